"""Weights that a package or a file carries: found without running any of its code, checked by hash, never unpickled."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from calida.errors import InputError, MissingExtraError

Weights = dict[str, Tensor]


class PackagedWeights(NamedTuple):
    """A file of weights inside an installed package, and what it must be."""

    module: str  # the package's import name
    path: str  # inside the package
    sha256: str
    install: str  # the command that brings it

    def find(self) -> Path | None:
        """Where the file lies, or None if the package is not installed; the package itself is not imported."""
        spec = importlib.util.find_spec(self.module)
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        return next((path for place in places if (path := Path(place, self.path)).is_file()), None)

    def locate(self, encoder: str) -> Path:
        """Where the file lies; one sentence if it is not there or is not the published one."""
        path = self.find()
        if path is None:
            raise MissingExtraError(f"the encoder {encoder} needs weights that a package carries: {self.install}")
        if (found := file_hash(path)) != self.sha256:
            raise InputError(
                f"the weights of {encoder} in {path} are not the published ones (SHA-256 {found[:12]}..., expected "
                f"{self.sha256[:12]}...): install them again with {self.install}"
            )
        return path


@cache
def file_hash(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    with path.open("rb") as file:
        state = hashlib.sha256()
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def read_weights(path: Path) -> Weights:
    """Tensors by name, of a safetensors file or of a PyTorch file; the latter's own restricted reader runs no code."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError) as error:
        raise InputError(f"the weights {path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    except Exception:  # damaged files fail in many ways, and what PyTorch says of others is how to run their code
        raise InputError(
            f"the weights {path} cannot be read: the file is damaged, or holds more than tensors"
        ) from None
    if isinstance(found, dict) and _are_tensors(found.get("state_dict")):
        found = found["state_dict"]  # of a checkpoint of training
    if not _are_tensors(found):
        raise InputError(f"the file {path} does not hold weights, which are tensors by name")
    return dict(found)


def _are_tensors(found: object) -> bool:
    """Whether these are tensors by name, and any at all."""
    return (
        isinstance(found, dict)
        and bool(found)
        and all(isinstance(name, str) and isinstance(value, Tensor) for name, value in found.items())
    )


def load_in_order(module: nn.Module, weights: Weights, origin: str) -> None:
    """Fill a module with tensors of its own names, or of others that stand in its order, as published files have it.

    Safetensors files keep no order: theirs must be the module's own names.
    """
    own = module.state_dict()
    weights = {name: weights[name] for name in own} if weights.keys() == own.keys() else weights
    shapes = [tuple(value.shape) for value in weights.values()]
    if shapes != [tuple(value.shape) for value in own.values()]:
        raise InputError(f"{origin} does not hold the weights of this network")
    module.load_state_dict(dict(zip(own, weights.values(), strict=True)))
