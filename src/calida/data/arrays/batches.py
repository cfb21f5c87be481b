"""Batches as index tensors: whole slices of arrays in memory, no per-item work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from calida.processes import Share
from calida.seeds import Seeds


@dataclass(frozen=True)
class SourceBatch:
    """Labeled source samples, and how much each counts where they do not all count alike.

    Labels and weights are of all rows, samples of those that are this process's own.
    """

    own: Tensor  # [b, ...]
    y: Tensor  # [B]
    weight: Tensor | None = None  # [B], of mean 1 over the source
    shared: Share | None = None  # whose rows are whose; without it, all are one's own

    @cached_property
    def share(self) -> Share:
        return self.shared or Share.whole(len(self.own))

    @cached_property
    def x(self) -> Tensor:
        """The samples of all rows, [B, ...]; what other processes have of them is fetched when asked for."""
        return self.share.gather(self.own)

    def __getitem__(self, rows: slice) -> SourceBatch:
        weight = None if self.weight is None else self.weight[rows]
        return SourceBatch(self.own[_own_rows(rows, self.share)], self.y[rows], weight)

    def __len__(self) -> int:
        return self.share.count


@dataclass(frozen=True)
class TargetBatch:
    """Target samples with what the model itself said of them: there is no field for a true label.

    `labels` are pseudo-labels, rows that sum to 1 (one-hot when hard); `selected` is 1 where they may be used.
    `plain` are the samples as they are, if `x` is an augmented view of them.
    """

    own: Tensor  # [b, ...]
    labels: Tensor  # [B, K]
    selected: Tensor  # [B]
    own_plain: Tensor | None = None  # [b, ...]
    shared: Share | None = None

    @cached_property
    def share(self) -> Share:
        return self.shared or Share.whole(len(self.own))

    @cached_property
    def x(self) -> Tensor:
        """The samples of all rows, as a source batch has them."""
        return self.share.gather(self.own)

    @cached_property
    def plain(self) -> Tensor | None:
        return None if self.own_plain is None else self.share.gather(self.own_plain)

    def __getitem__(self, rows: slice) -> TargetBatch:
        own = _own_rows(rows, self.share)
        plain = None if self.own_plain is None else self.own_plain[own]
        return TargetBatch(self.own[own], self.labels[rows], self.selected[rows], plain)

    def __len__(self) -> int:
        return self.share.count


def _own_rows(rows: slice, share: Share) -> slice:
    """Where rows of the batch, all of them one's own, lie among one's own."""
    start, stop, _ = rows.indices(share.count)
    assert share.start <= start
    assert stop <= share.stop
    return slice(start - share.start, stop - share.start)


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
