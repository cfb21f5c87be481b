"""What a user has in memory -> checked tensors: images as uint8 or float, feature vectors as float."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from calida.data.arrays.samples import ImageFiles, Samples
from calida.errors import InputError, warn_user
from calida.seeds import Seeds

_CHANNELS = (1, 3, 4)
_LOOKED_AT = 4096  # rows at once


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
        if hasattr(x, "toarray"):
            raise TypeError("a sparse matrix; give x.toarray()")
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
        given, tensor = tensor, tensor.to(torch.float32)
        if given.dtype == torch.float64 and bool((given.isfinite() & tensor.isinf()).any()):
            raise InputError(f"{name} has values up to {float(given.abs().max()):.3g}, too large for 32 bits")
        if not bool(tensor.sum(dtype=torch.float64).isfinite()):  # which one bad number is enough for
            broken = (~torch.isfinite(tensor)).flatten(1).any(1).nonzero().flatten()
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
    if array.dtype.kind not in "biufc":
        kind = {"O": "objects", "U": "words", "S": "bytes", "M": "dates", "m": "times"}.get(array.dtype.kind, "records")
        raise TypeError(f"it holds {kind}; give numbers, or a data frame whose columns hold them")
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
            f"({len(outside)} such labels): number the classes 0..K-1, or give them as words"
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


OTHER_UNIT, WORTH_A_WARNING = 50, 5  # drift moves a column; a factor like the first is another unit
_NOTHING = 1e-12  # a column of zeros tells nothing
_COPIES = 0.05  # of the rows; fewer change little
_COMPARED = 100_000  # rows that are looked through for copies
_MANY = 30  # rows of which some would be of the usual size; fewer may all be small


class Scale(NamedTuple):
    """What the numbers of a domain are: bytes, read as 0..1, or floats with a range.

    Floats also have mean and largest absolute values, one a column of vectors and one for all of an image. Images have
    the levels of their backgrounds, where both domains have plain ones, and how bright the darker domain is, in 0..1.
    """

    is_bytes: bool
    low: float
    high: float
    magnitude: tuple[float, ...] = ()
    largest: tuple[float, ...] = ()
    backgrounds: tuple[float, ...] = ()
    light: float = 0.0  # unknown

    @staticmethod
    def of(x: Samples) -> Scale:
        if isinstance(x, ImageFiles):
            return Scale(True, 0.0, 255.0)
        is_bytes = x.dtype == torch.uint8
        mean, largest = ((), ()) if is_bytes else mean_and_largest(x)
        return Scale(is_bytes, float(x.min()), float(x.max()), mean, largest)

    def compare(self, x: Samples) -> Tensor | None:
        """By what factor each column of new samples differs in size from what is known; None if none can be told.

        Columns that never leave -1..1 may be shares, or marks of a category, which are rare or frequent and no smaller
        for it.
        """
        if not self.magnitude or not isinstance(x, Tensor) or x.dtype == torch.uint8:
            return None
        if len(self.magnitude) != (x.shape[1] if x.ndim == 2 else 1):
            return None
        return size_factors(self.magnitude, self.largest, x, [size > 1 for size in self.largest])


def size_factors(magnitude: Sequence[float], largest: Sequence[float], x: Tensor, shrinks: Sequence[bool]) -> Tensor:
    """By what factor the size of each column differs from mean and largest values that are known: [D], 1 if unknown.

    A few rows may all have rare values: their mean tells little, and only values far beyond all that was seen count.
    `shrinks` says of which columns smaller values would be another unit.
    """
    mean, most = (torch.tensor(part, dtype=torch.float64) for part in mean_and_largest(x))
    usual, known = (torch.tensor(part, dtype=torch.float64) for part in (magnitude, largest))
    told = (usual > _NOTHING) & (mean > _NOTHING)
    beyond = most / known.clamp(min=_NOTHING)
    factor = torch.where(told & (beyond >= OTHER_UNIT), beyond, 1.0)
    if len(x) < _MANY:
        return factor
    larger = torch.where(told & (most > known), mean / usual.clamp(min=_NOTHING), 1.0)
    smaller = torch.where(told & torch.tensor(shrinks), usual / mean.clamp(min=_NOTHING), 1.0)
    return torch.stack([factor, larger, smaller]).amax(0)


def mean_and_largest(x: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and largest absolute values: of each column of vectors, or of all pixels of images."""
    means, most = [], []
    for rows in x.split(_LOOKED_AT):
        sizes = rows.abs() if x.ndim == 2 else rows.abs().flatten()[:, None]
        means.append(sizes.sum(0, dtype=torch.float64) / (len(x) if x.ndim == 2 else x.numel()))
        most.append(sizes.amax(0).double())
    return tuple(torch.stack(means).sum(0).tolist()), tuple(torch.stack(most).amax(0).tolist())


def check_sizes(known: Scale, x: Samples, name: str, trained: str) -> None:
    """Refuse samples in another unit than those of the source; warn of what may be one.

    Real drift moves single columns by any factor: of 52 real shifts, five have a column that grew or shrank fifty
    times. Refused is only what differs so in at least half of its columns.
    """
    factors = known.compare(x)
    if factors is None or float(factors.max()) < WORTH_A_WARNING:
        return
    column, factor = int(factors.argmax()), float(factors.max())
    what = f"column {column} of {name}" if x.ndim == 2 else f"the values of {name}"
    told = f"{what} {'is' if x.ndim == 2 else 'are'} of another size than in {trained}, by a factor of {factor:.3g}"
    if float((factors >= OTHER_UNIT).double().mean()) >= 0.5:
        raise InputError(f"{told}: give both in one unit; on_mismatch=ignore takes them as they are", "on_mismatch")
    warn_user(f"{told}: are they in one unit?")


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


def tell_copies(x: Samples, y: Tensor, name: str) -> None:
    """Warn of rows that stand more than once in measured data, where that is no chance: [N, D] and their labels, [N].

    Rows of a few categories repeat by themselves. Where a column hardly ever repeats, equal rows are copies, as
    oversampling makes them, and held-out source has copies of what is learned.
    """
    if not isinstance(x, Tensor) or x.ndim != 2 or len(x) < _MANY:
        return
    rows = x[:_COMPARED].cpu().contiguous().numpy()
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()  # a row as one value
    _, distinct, group = np.unique(whole, return_index=True, return_inverse=True)
    copies = len(rows) - len(distinct)
    if copies < _COPIES * len(rows):
        return
    if max(len(np.unique(column)) for column in rows[distinct].T) >= len(distinct) / 2:
        labels = y[: len(rows)].cpu().numpy()
        other = int((labels != labels[distinct][group.ravel()]).sum())
        told = f", {other:,} of them with another label" if other else ""
        warn_user(
            f"{copies:,} of {len(rows):,} rows of {name} are copies of others{told}: held-out source has copies "
            "of what is learned, so every accuracy looks too good; drop them, or give sample_weight or class_weight"
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
