"""How much each labeled sample counts: weights of samples and of classes, as one weight a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calida.data import as_frame, as_inputs, is_frame, take
from calida.errors import InputError

BALANCED = "balanced"
ClassWeight = str | Mapping[int, float] | None


def check_class_weight(weight: Any) -> None:
    """Refuse what is neither "balanced" nor a mapping from classes to numbers above 0."""
    if weight is None or weight == BALANCED:
        return
    if not isinstance(weight, Mapping):
        raise InputError(f"class_weight is {BALANCED!r} or a mapping from classes to weights, not {weight!r}")
    for label, value in weight.items():
        if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0):
            raise InputError(f"the weight of class {label!r} must be a number above 0, not {value!r}")


class Weighed(NamedTuple):
    """A source without samples of weight 0, the weights of the others, and their places where some are gone."""

    source: Any
    weights: Tensor | None = None  # [N]
    places: Tensor | None = None  # [N]


def without_weightless(source: Any, sample_weight: Any) -> Weighed:
    """The source without samples of weight 0, which are as good as absent."""
    if sample_weight is None or not isinstance(source, tuple | list) or len(source) != 2:
        return Weighed(source)
    x: Any
    x, labels = source
    framed = is_frame(x)
    x = as_frame(x, "source") if framed else as_inputs(x, "source")
    weights = _checked(sample_weight, len(x))
    rows = weights.nonzero().flatten()
    if not len(rows):
        raise InputError("sample_weight is 0 for every sample: there is nothing to learn from")
    if len(rows) == len(x):
        return Weighed((x, labels), weights)
    labels = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if labels.shape[:1] != (len(x),):
        raise InputError(f"source has {len(x)} samples but labels of shape {labels.shape}; expected ({len(x)},)")
    present = x[rows.numpy()] if framed else take(x, rows)
    return Weighed((present, labels[rows.numpy()]), weights[rows], rows)


def joint_weights(
    labels: Tensor,
    num_classes: int,
    weights: Tensor | None,
    class_weight: ClassWeight,
    names: Sequence[str] | None = None,
) -> Tensor | None:
    """A weight a sample, [N]; None where every sample counts as much as any other.

    "balanced" gives every class the same total, and leaves the total of all as it is. Classes that have `names` are
    called by them.
    """
    if class_weight is None:
        return _uneven(weights)
    each = torch.ones(len(labels), dtype=torch.float64) if weights is None else weights
    if isinstance(class_weight, str):
        totals = torch.bincount(labels, each, num_classes)
        factors = totals.sum() / ((totals > 0).sum() * totals.clamp(min=torch.finfo(totals.dtype).tiny))
    else:
        factors = torch.ones(num_classes, dtype=torch.float64)
        places: dict[Any, int] = {name: place for place, name in enumerate(names or range(num_classes))}
        for label, value in class_weight.items():
            if label not in places:
                there = f"0..{num_classes - 1}" if names is None else ", ".join(map(str, names))
                raise InputError(f"class_weight names the class {label!r}; there are {there}")
            factors[places[label]] = float(value)
    return _uneven(each * factors[labels])


def _uneven(weights: Tensor | None) -> Tensor | None:
    return None if weights is None or bool((weights == weights[0]).all()) else weights


def _checked(sample_weight: Any, count: int) -> Tensor:
    """Weights as float64: one for each sample, finite, none below 0."""
    try:
        given = sample_weight.detach().cpu() if isinstance(sample_weight, Tensor) else sample_weight
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sample_weight must hold a number for each sample of the source") from None
    if weights.shape != (count,):
        raise InputError(f"source has {count} samples but sample_weight of shape {weights.shape}; expected ({count},)")
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        first = int(wrong[0])
        raise InputError(f"sample_weight is {weights[first]} at index {first}; weights are finite and at least 0")
    return torch.from_numpy(np.ascontiguousarray(weights))
