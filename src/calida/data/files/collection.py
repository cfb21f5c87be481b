"""Samples as a user has them, before both domains are brought to one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl
import torch
from torch import Tensor

from calida.data.arrays.decode import ImageSource
from calida.data.arrays.samples import Texts
from calida.data.tables.preparation import TablePreparation
from calida.errors import InputError
from calida.seeds import Seeds
from calida.spreadsheets import plain_text

Content = Tensor | Sequence[ImageSource] | Texts


@dataclass(frozen=True)
class Collection:
    """Arrays, image files or texts, a name for every sample, and class names where they were asked for."""

    origin: str
    samples: Content  # vectors [N, D], images [N, C, H, W], files not decoded yet, or texts
    names: Sequence[str]  # path or row
    labels: Sequence[str] | None = None
    notes: tuple[str, ...] = ()
    total: int | None = None  # samples in the data set, if this is a part of it
    table: TablePreparation | None = None  # that made vectors of the rows below
    frame: pl.DataFrame | None = None  # a table's rows as they were read, without labels
    id: str | None = None  # the column of a table that the names are from
    text: str | None = None  # the column of a table that texts are from

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a table's features."""
        return () if self.table is None else self.table.features

    @property
    def named_by(self) -> str:
        """What the names are: paths, rows, or the column of a table."""
        return self.id or ("row" if self.names and self.names[0].isdecimal() else "path")

    @property
    def is_images(self) -> bool:
        return self.samples.ndim == 4 if isinstance(self.samples, Tensor) else not self.is_texts

    @property
    def is_texts(self) -> bool:
        return isinstance(self.samples, Texts)

    @property
    def files(self) -> Sequence[ImageSource]:
        """The samples of a collection of files."""
        assert not isinstance(self.samples, Tensor | Texts)
        return self.samples

    @property
    def kind(self) -> str:
        return "images" if self.is_images else "texts" if self.is_texts else "feature vectors"

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Sequence[int]) -> Collection:
        samples = self.samples
        if isinstance(samples, Tensor):
            chosen: Content = samples[torch.tensor(rows, dtype=torch.long)]
        elif isinstance(samples, Texts):
            chosen = Texts(samples[row] for row in rows)
        else:
            chosen = [samples[row] for row in rows]
        return replace(
            self,
            samples=chosen,
            names=[self.names[row] for row in rows],
            labels=None if self.labels is None else [self.labels[row] for row in rows],
            frame=None if self.frame is None else self.frame[list(rows)],
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
    # A class called =1+1 stands with an apostrophe before it in files that calida wrote.
    labels = [name if name in index or plain_text(name) not in index else plain_text(name) for name in labels]
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
