"""Arguments of `adapt`, checked before any work is spent."""

from __future__ import annotations

import operator
import os
import reprlib
import typing
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from calida.data import ImageFiles, Samples, Scale, as_inputs, as_labels, check_scale, check_shape
from calida.errors import InputError

Array = ArrayLike | Tensor


def choose_device(device: torch.device | str | None) -> torch.device:
    """The given device, or the GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"unknown device {device!r}: {str(error).splitlines()[0]}") from None
    # Dropout masks must follow the run's seeds, which is arranged for these two.
    if chosen.type not in ("cpu", "cuda") or (chosen.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"the device {chosen} cannot be used here; cpu always can, cuda where torch sees a GPU")
    return chosen


def whole(value: Any, name: str, least: int | None = None) -> int:
    """A whole number of any kind, NumPy's included, as Python's own."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, not {value!r}") from None
    if least is not None and number < least:
        raise InputError(f"{name} must be at least {least}, not {number}")
    return number


def check_kinds(**given: tuple[Any, Any]) -> None:
    """Refuse arguments of the wrong kind: for each name a value, and the types that it may have."""
    for name, (value, kinds) in given.items():
        truth = isinstance(value, bool | np.bool_)
        if not (isinstance(value, kinds) or truth) or (truth and bool not in (typing.get_args(kinds) or (kinds,))):
            allowed = [one for one in typing.get_args(kinds) or (kinds,) if one is not type(None)]
            words = " or ".join(_KINDS.get(one, one.__name__) for one in allowed)
            raise InputError(f"{name} is {words}, not {reprlib.repr(value)}")


_KINDS = {
    str: "a word",
    Real: "a number",
    bool: "True or False",
    Mapping: "a mapping from names to values",
    Sequence: "a list",
    np.ndarray: "an array",
    os.PathLike: "a path",
}


def usable_folder(folder: Path) -> Path:
    """The folder for checkpoints, made before any training is spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be used: {error.strerror}") from None
    except ValueError:  # what no file system takes for a name
        raise InputError(f"the folder {str(folder)!r} has a name that cannot be written") from None
    return folder


def read_weights(backbone: nn.Module, path: Path) -> None:
    """Fill a backbone from a safetensors file; weights of layers that it has not got, a classifier's, are left out."""
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from None
    wanted = backbone.state_dict()
    for name, tensor in wanted.items():
        if name not in found or found[name].shape != tensor.shape:
            given = tuple(found[name].shape) if name in found else "nothing"
            raise InputError(f"{path} has {given} for {name}; this backbone needs {tuple(tensor.shape)}")
    backbone.load_state_dict({name: found[name] for name in wanted})


def check_domains(
    source: tuple[Array | ImageFiles, Array], target: Array | ImageFiles, num_classes: int | None
) -> tuple[Samples, Tensor, Samples, int]:
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise InputError("source is a pair (samples, labels)")
    if isinstance(target, tuple):
        raise InputError("target is an array of samples without labels, not a tuple; give labels as oracle_labels")
    x, target_x = (_on_cpu(as_inputs(*one)) for one in ((source[0], "source"), (target, "target")))
    check_shape(x, target_x)
    check_scale("source", Scale.of(x), "target", Scale.of(target_x))
    y, classes = as_labels(source[1], len(x), num_classes, "source")
    if len(y.unique()) < 2:
        raise InputError("source has samples of only one class; a classifier needs at least two")
    return x, y, target_x, classes


def _on_cpu(samples: Samples) -> Samples:
    """Batches go to the device as they are needed; check classifiers and statistics work on the CPU."""
    return samples.cpu() if isinstance(samples, Tensor) else samples
