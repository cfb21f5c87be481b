"""What a user has in memory -> checked tensors: images as uint8 or float, feature vectors as float."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from calida.data.arrays.samples import ImageFiles, Samples
from calida.errors import InputError
from calida.seeds import Seeds

_CHANNELS = (1, 3, 4)


class Labeled(NamedTuple):
    """Inputs [N, ...] and class indices [N]."""

    x: Samples
    y: Tensor


def as_inputs(x: ArrayLike | Samples, name: str) -> Samples:
    """Check samples and give them one layout: vectors [N, D] or images [N, C, H, W].

    Images may come as [N, H, W], [N, C, H, W] or [N, H, W, C]. uint8 stays uint8 (a quarter of the memory; the
    classifier reads it as 0..1), everything else becomes float32.
    """
    if isinstance(x, ImageFiles):
        return x
    _refuse_masked(x, name, "samples")
    try:
        tensor = x.detach() if isinstance(x, Tensor) else _from_numpy(np.asarray(x))
        tensor = tensor.to_dense() if tensor.is_sparse else tensor
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} samples are not a numeric array: {error}") from None
    if tensor.ndim not in (2, 3, 4):
        raise InputError(
            f"{name} samples have shape {tuple(tensor.shape)}; expected vectors [N, D] "
            "or images [N, H, W], [N, C, H, W] or [N, H, W, C]"
        )
    if 0 in tensor.shape:
        raise InputError(f"{name} is empty: its shape is {tuple(tensor.shape)}")
    if tensor.is_complex():
        raise InputError(f"{name} samples are complex numbers; give real ones")
    if tensor.dtype != torch.uint8:
        tensor = tensor.to(torch.float32)
        broken = (~torch.isfinite(tensor)).flatten(1).any(1).nonzero().flatten()
        if len(broken):
            raise InputError(
                f"{name} has NaN or infinite values in {len(broken)} of {len(tensor)} samples, "
                f"the first at index {int(broken[0])}; fill or drop them"
            )
    if tensor.ndim == 3:
        return tensor.unsqueeze(1)
    if tensor.ndim == 4 and tensor.shape[1] not in _CHANNELS and tensor.shape[3] in _CHANNELS:
        return tensor.permute(0, 3, 1, 2)
    return tensor


def _refuse_masked(values: object, name: str, what: str) -> None:
    """What lies under a mask is not meant to be read, and NumPy reads it all the same."""
    if not isinstance(values, np.ma.MaskedArray) or not values.size:
        return
    masked = np.flatnonzero(np.ma.getmaskarray(values).reshape(len(values), -1).any(1))
    if len(masked):
        raise InputError(
            f"{name} {what} are masked in {len(masked)} of {len(values)} rows, the first at index {masked[0]}; "
            "fill or drop them"
        )


def _from_numpy(array: np.ndarray) -> Tensor:
    """A tensor of any numeric array: views that run backwards, other byte orders and read-only memory are copied."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def as_labels(y: ArrayLike | Tensor, count: int, num_classes: int | None, name: str) -> tuple[Tensor, int]:
    """Check class indices 0..K-1 for `count` samples; K is `num_classes`, or as many as there are without a gap."""
    _refuse_masked(y, name, "labels")
    try:
        values = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
        with np.errstate(invalid="ignore"):  # NaN is told apart below
            labels = values.astype(np.int64)
        whole = values.dtype.kind in "biuf" and bool(np.all(labels == values))
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InputError(f"{name} labels must be whole numbers 0..K-1, or words")
    if labels.shape != (count,):
        raise InputError(f"{name} has {count} samples but labels of shape {labels.shape}; expected ({count},)")
    classes = int(labels.max()) + 1 if num_classes is None else num_classes
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        first = int(outside[0])
        raise InputError(
            f"{name} label {int(labels[first])} at index {first} is outside 0..{classes - 1} "
            f"({len(outside)} such labels)"
        )
    used = np.unique(labels)
    if num_classes is None and len(used) < classes:
        gap = int(np.flatnonzero(used != np.arange(len(used)))[0])
        raise InputError(
            f"{name} labels go up to {classes - 1} and none is {gap}: number the {len(used)} classes "
            f"0..{len(used) - 1}, or give num_classes={classes}"
        )
    if classes < 2:
        raise InputError(f"{name} labels name only one class; a classifier needs at least two")
    return torch.from_numpy(labels), classes


class Scale(NamedTuple):
    """What the numbers of a domain are: bytes, read as 0..1, or floats with a range."""

    is_bytes: bool
    low: float
    high: float

    @staticmethod
    def of(x: Samples) -> Scale:
        if isinstance(x, ImageFiles):
            return Scale(True, 0.0, 255.0)
        return Scale(x.dtype == torch.uint8, float(x.min()), float(x.max()))


def check_scale(first_name: str, first: Scale, second_name: str, second: Scale) -> None:
    """Bytes beside floats are one scale only if the floats lie within 0..1."""
    if first.is_bytes == second.is_bytes:
        return
    name, floats = (second_name, second) if first.is_bytes else (first_name, first)
    if floats.low < 0 or floats.high > 1:
        other = first_name if first.is_bytes else second_name
        raise InputError(
            f"{other} is uint8 (read as 0..1) but {name} is float with values from {floats.low:g} to {floats.high:g}; "
            "give both in one scale"
        )


def check_shape(source: Samples, target: Samples) -> None:
    """Both domains must be of one shape before a network can read them."""
    if source.shape[1:] != target.shape[1:]:
        raise InputError(
            f"source samples have shape {tuple(source.shape[1:])} but target samples have shape "
            f"{tuple(target.shape[1:])}; bring both to one shape"
        )


def split_validation(labels: Tensor, share: float, seeds: Seeds) -> tuple[Tensor, Tensor]:
    """Indices (train, validation), the same share of every class; a class of one sample stays in training."""
    if not 0 < share < 1:
        raise InputError(f"the validation share is a number between 0 and 1, not {share}")
    order = torch.randperm(len(labels), generator=seeds.generator("validation split"))
    held = []
    for label in labels.unique():
        members = order[labels[order] == label]
        held.append(members[: min(max(1, round(share * len(members))), len(members) - 1)])
    validation = torch.cat(held).sort().values
    if not len(validation):
        raise InputError("no class has two samples, so none can be held out for validation")
    keep = torch.ones(len(labels), dtype=torch.bool)
    keep[validation] = False
    return keep.nonzero().flatten(), validation
