"""Pairs of target samples laid over each other: does the classifier see the one that prevails?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from calida.data import Samples, stream, unit_range
from calida.model import AnyClassifier, predict
from calida.processes import ALONE, Processes
from calida.seeds import Seeds

MIXVAL_SHARE, PSEUDOCAL_SHARE = 0.55, 0.65
_PAIRS = 2000  # accuracy to a point, at the cost of a pass over that many samples


class Mixed(NamedTuple):
    """What a classifier says of mixed samples, and what it said of their two parts."""

    log_probs: Tensor  # [N, K] of share * first + (1 - share) * second
    first: Tensor  # [N] labels of the part that prevails
    second: Tensor  # [N]


def predict_mixed(
    classifier: AnyClassifier,
    x: Samples,
    labels: Tensor,
    share: float,
    num_samples: int,
    seeds: Seeds,
    batch_size: int,
    processes: Processes = ALONE,
) -> Mixed:
    """Mix up to 2,000 samples with a permutation of them, and predict; `labels` are the predicted ones of all `x`."""
    order = torch.randperm(len(x), generator=seeds.generator("pairs"))
    first = order[:_PAIRS]
    second = first.roll(1)
    # Each sample is the larger part once and the smaller part of the next one, and is read once for both.
    chain = torch.cat([first[-1:], first])
    batches = [chain[start : start + batch_size + 1] for start in range(0, len(first), batch_size)]
    parts = []
    for images in map(unit_range, stream(x, batches)):
        mixed = share * images[1:] + (1 - share) * images[:-1]
        parts.append(predict(classifier, mixed, num_samples, seeds, batch_size, processes=processes).log_probs)
    return Mixed(torch.cat(parts), labels[first], labels[second])


def mixed_accuracy(mixed: Mixed) -> float:
    """Mean of two accuracies on mixed pairs, those with one predicted label and with two (MixVal; Hu et al., 2023).

    Right is the label of the part that prevails. Where there are only pairs of one kind, theirs is the value.
    """
    right = (mixed.log_probs.argmax(-1) == mixed.first).double()
    same = mixed.first == mixed.second
    kinds = [right[kind].mean() for kind in (same, ~same) if bool(kind.any())]
    return float(torch.stack(kinds).mean())
