"""Targets with classes 10 : 1 out of balance; only making them needs the labels."""

from __future__ import annotations

import torch
from torch import Tensor


def skewed_rows(y: Tensor, common: int, seed: int) -> Tensor:
    """The rows of a few classes as they are and of a tenth of every other, class by class."""
    generator = torch.Generator().manual_seed(seed)
    classes = int(y.max()) + 1
    whole = torch.randperm(classes, generator=generator)[:common]
    kept = []
    for label in range(classes):
        rows = (y == label).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        kept.append(rows if label in whole else rows[: max(1, len(rows) // 10)])
    return torch.cat(kept)
