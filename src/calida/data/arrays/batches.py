"""Batches as index tensors: whole slices of arrays in memory, no per-item work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.seeds import Seeds


@dataclass(frozen=True)
class SourceBatch:
    """Labeled source samples, and how much each counts where they do not all count alike."""

    x: Tensor  # [B, ...]
    y: Tensor  # [B]
    weight: Tensor | None = None  # [B], of mean 1 over the source

    def __getitem__(self, rows: slice) -> SourceBatch:
        weight = None if self.weight is None else self.weight[rows]
        return SourceBatch(self.x[rows], self.y[rows], weight)


@dataclass(frozen=True)
class TargetBatch:
    """Target samples with what the model itself said of them: there is no field for a true label.

    `labels` are pseudo-labels, rows that sum to 1 (one-hot when hard); `selected` is 1 where they may be used.
    `plain` are the samples as they are, if `x` is an augmented view of them.
    """

    x: Tensor  # [B, ...]
    labels: Tensor  # [B, K]
    selected: Tensor  # [B]
    plain: Tensor | None = None  # [B, ...]

    def __getitem__(self, rows: slice) -> TargetBatch:
        plain = None if self.plain is None else self.plain[rows]
        return TargetBatch(self.x[rows], self.labels[rows], self.selected[rows], plain)


def num_batches(count: int, batch_size: int) -> int:
    """Full batches in one pass; a set smaller than a batch is one batch."""
    return max(count // batch_size, 1)


def shuffled_batches(pool: Tensor, batch_size: int, seeds: Seeds) -> Iterator[Tensor]:
    """Index batches without end: each pass over `pool` in a new order, its incomplete last batch left out."""
    size = min(batch_size, len(pool))
    lap = 0
    while True:
        order = pool[torch.randperm(len(pool), generator=seeds.at(lap).generator("order"))]
        for start in range(0, len(pool) - size + 1, size):
            yield order[start : start + size]
        lap += 1
