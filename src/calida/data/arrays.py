"""What a user has in memory -> checked tensors: images as uint8 or float, feature vectors as float."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from calida.errors import InputError
from calida.seeds import Seeds

_CHANNELS = (1, 3, 4)


class Labelled(NamedTuple):
    """Inputs [N, ...] and class indices [N]."""

    x: Tensor
    y: Tensor


def as_inputs(x: ArrayLike | Tensor, name: str) -> Tensor:
    """Check samples and give them one layout: vectors [N, D] or images [N, C, H, W].

    Images may come as [N, H, W], [N, C, H, W] or [N, H, W, C]. uint8 stays uint8 (a quarter of the memory; the
    classifier reads it as 0..1), everything else becomes float32.
    """
    try:
        tensor = x.detach() if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x))
    except (TypeError, ValueError) as error:
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
                f"the first at index {int(broken[0])}"
            )
    if tensor.ndim == 3:
        return tensor.unsqueeze(1)
    if tensor.ndim == 4 and tensor.shape[1] not in _CHANNELS and tensor.shape[3] in _CHANNELS:
        return tensor.permute(0, 3, 1, 2)
    return tensor


def as_labels(y: ArrayLike | Tensor, count: int, num_classes: int | None, name: str) -> tuple[Tensor, int]:
    """Check class indices 0..K-1 for `count` samples; K is `num_classes` or the largest label plus one."""
    try:
        values = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
        labels = values.astype(np.int64)
        whole = values.dtype.kind in "biuf" and bool(np.all(labels == values))
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InputError(f"{name} labels must be whole numbers 0..K-1")
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
    if classes < 2:
        raise InputError(f"{name} labels name only one class; a classifier needs at least two")
    return torch.from_numpy(labels), classes


def check_same_kind(source: Tensor, target: Tensor) -> None:
    """Both domains must be of one shape and one scale before a network can read them."""
    if source.shape[1:] != target.shape[1:]:
        raise InputError(
            f"source samples have shape {tuple(source.shape[1:])} but target samples have shape "
            f"{tuple(target.shape[1:])}; bring both to one shape"
        )
    if source.dtype != target.dtype:
        named = {"source": source, "target": target}
        floating = next(name for name, x in named.items() if x.dtype != torch.uint8)
        largest = float(named[floating].max())
        if largest > 1:
            raise InputError(
                f"one domain is uint8 (read as 0..1) but {floating} is float with values up to {largest:g}; "
                "give both in one scale"
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
    keep = torch.ones(len(labels), dtype=torch.bool)
    keep[validation] = False
    return keep.nonzero().flatten(), validation
