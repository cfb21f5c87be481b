"""How far classifiers agree, beyond what class shares alone would give."""

from __future__ import annotations

import torch
from torch import Tensor


def share_equal(first: Tensor, second: Tensor) -> float:
    """The share of samples with the same label: [N], [N]."""
    return float((first == second).double().mean()) if len(first) else 0.0


def beyond_chance(first: Tensor, second: Tensor, num_classes: int) -> float:
    """Cohen's kappa (1960): 1 for the same labels, 0 for what class shares alone give: [N], [N].

    Two classifiers that give everything to one class agree fully and know nothing.
    """
    shares = [torch.bincount(one, minlength=num_classes).double() / max(len(one), 1) for one in (first, second)]
    by_chance = float(shares[0] @ shares[1])
    if by_chance >= 1.0:
        return 0.0
    return (share_equal(first, second) - by_chance) / (1 - by_chance)


def mean_agreement(labels: Tensor, num_classes: int) -> Tensor:
    """Each classifier's mean agreement with all others, beyond chance: [m, N] -> [m]; 1 where there are no others."""
    count = len(labels)
    found = torch.ones(count, count, dtype=torch.float64)
    for one in range(count):
        for other in range(one):
            found[one, other] = found[other, one] = beyond_chance(labels[one], labels[other], num_classes)
    return (found.sum(1) - 1) / (count - 1) if count > 1 else torch.ones(1, dtype=torch.float64)
