"""Samples as a user has them, before both domains are brought to one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from calida.errors import InputError
from calida.seeds import Seeds


@dataclass(frozen=True)
class Collection:
    """Arrays or image files, a name for every sample, and class names where they were asked for."""

    origin: str
    samples: Tensor | Sequence[Path]  # vectors [N, D], images [N, C, H, W], or files that are not decoded yet
    names: Sequence[str]  # path or row
    labels: Sequence[str] | None = None
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    total: int | None = None  # samples in the data set, if this is a part of it

    @property
    def is_images(self) -> bool:
        return not isinstance(self.samples, Tensor) or self.samples.ndim == 4

    @property
    def kind(self) -> str:
        return "images" if self.is_images else "feature vectors"

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Sequence[int]) -> Collection:
        samples = self.samples
        return replace(
            self,
            samples=samples[torch.tensor(rows)] if isinstance(samples, Tensor) else [samples[row] for row in rows],
            names=[self.names[row] for row in rows],
            labels=None if self.labels is None else [self.labels[row] for row in rows],
        )

    def subset(self, count: int, seeds: Seeds) -> Collection:
        """`count` samples drawn by the seed, in their old order."""
        if count > len(self):
            raise InputError(f"{self.origin} asks for {count:,} samples and has {len(self):,}")
        rows = torch.randperm(len(self), generator=seeds.generator("subset"))[:count].sort().values
        return replace(self.take(rows.tolist()), total=len(self))


def class_names(labels: Iterable[str]) -> tuple[str, ...]:
    """All class names in order: numbers by size, anything else by alphabet."""
    names = set(labels)
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def class_indices(labels: Sequence[str], classes: Sequence[str], origin: str) -> Tensor:
    """Labels as indices into the source's classes; a class that the source does not have is named.

    One program writes true and another True: these are the same, unless the source has both.
    """
    index = {name: place for place, name in enumerate(classes)}
    spelt = {name.lower(): name for name in classes if name.lower() in ("true", "false")}
    labels = [name if name in index else spelt.get(name.lower(), name) for name in labels]
    unseen = [name for name in dict.fromkeys(labels) if name not in index]
    if unseen:
        count = sum(label == unseen[0] for label in labels)
        others = f" (and of {len(unseen) - 1} more such classes)" if len(unseen) > 1 else ""
        known = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
        raise InputError(
            f"{origin} has {count:,} samples of the class {unseen[0]!r}{others}, which the source never showed; "
            f"its classes are {known}"
        )
    return torch.tensor([index[label] for label in labels])
