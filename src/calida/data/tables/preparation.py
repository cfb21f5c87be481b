"""A table's columns as features: decided and fitted on source, applied to any other rows, kept with the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from calida.data.tables.dates import has_zone
from calida.data.tables.encoders import DateEncoder, Encoder, NumberEncoder, encoder_from_json, fit_encoder
from calida.data.tables.kinds import Kind, LeftOut, kind_of, why_left_out
from calida.data.tables.values import ColumnError
from calida.errors import InputError
from calida.json_values import from_json

_UNNAMED = re.compile(r"\s*$|Unnamed: |__index_level_\d+__$")  # an index, as pandas writes and reads it
_UNSEEN = 0.01  # share of rows with categories that the source never showed that is worth a sentence
_MORE_GAPS = 0.1  # missing values more or fewer than in the source, as a share of the rows


@dataclass(frozen=True)
class ColumnChoice:
    """What a user says of the columns: these alone, not those, the labels' and the one that names the rows."""

    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    label: str | None = None  # never a feature
    id: str | None = None  # neither
    text: str | None = None  # holds texts, which an encoder reads; all other columns are left alone then

    def __post_init__(self) -> None:
        # Spaces around the names of columns do not count, in a file or on the command line.
        for name in ("only", "drop"):
            object.__setattr__(self, name, tuple(column.strip() for column in getattr(self, name)))
        for name in ("label", "id", "text"):
            object.__setattr__(self, name, (getattr(self, name) or "").strip() or None)
        uses = {
            "drop": (self.drop, "is no feature in any case"),
            "id": ((self.id,), "cannot name the rows as well"),
            "columns": (self.only, "cannot be a feature as well"),
        }
        for option, (columns, why) in uses.items():
            if self.label is not None and self.label in columns:
                raise InputError(f"the column {self.label!r} holds the labels, and {why}", option)

    def check(self, known: Sequence[str], origin: str) -> None:
        """Refuse columns that the source has not got, all in one sentence."""
        absent = [column for column in dict.fromkeys((*self.only, *self.drop)) if column not in known]
        both = [column for column in self.only if column in (*self.drop, self.label, self.id)]
        if absent:
            raise InputError(f"{origin} has no column {listed(map(repr, absent))}; it has {listed(known)}")
        if both:
            raise InputError(f"the column {listed(map(repr, both))} is asked for as a feature and ruled out as one")


@dataclass(frozen=True)
class TablePreparation:
    """Encoders in the order of their features, and the columns that are none with the reason."""

    encoders: tuple[Encoder, ...]
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    id: str | None = None  # the column that names the rows

    @staticmethod
    def fit(frame: pl.DataFrame, labels: Sequence[str] | None, choice: ColumnChoice, origin: str) -> TablePreparation:
        """Decide the kind of every column of the source and fit its encoder; all that is wrong is told at once.

        What looks like an identifier or like the label itself is left out, unless the user asks for the column.
        """
        choice.check(frame.columns, origin)
        _refuse_empty(frame, origin)
        encoders: list[Encoder] = []
        left_out: dict[str, LeftOut] = {}
        problems: list[str] = []
        others = [column for column in frame.columns if column not in choice.only]
        for column in (*choice.only, *others):
            if column in (choice.label, choice.id):
                continue
            unasked = column in choice.drop or (bool(choice.only) and column in others)
            if unasked or (is_unnamed(column) and column in others):
                left_out[column] = LeftOut.DROPPED if unasked else LeftOut.UNNAMED
                continue
            try:
                kind = kind_of(frame[column])
                reason = why_left_out(frame[column], kind, labels)
                if reason is not None and column not in choice.only:
                    left_out[column] = reason
                else:
                    encoders.append(fit_encoder(frame[column], kind))
            except ColumnError as error:
                problems.append(f"{column!r} {error}")
        if problems:
            raise _all_of(problems, origin)
        if not encoders:
            told = "; ".join(TablePreparation((), left_out).warnings())
            raise InputError(f"{origin} has no feature columns{told and ': '}{told}")
        return TablePreparation(tuple(encoders), left_out, choice.id)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that features are made of."""
        return tuple(encoder.column for encoder in self.encoders)

    @property
    def features(self) -> tuple[str, ...]:
        """A name for every feature."""
        return tuple(name for encoder in self.encoders for name in encoder.features)

    @property
    def words(self) -> tuple[str, ...]:
        """The columns that are read as they are written."""
        return tuple(one.column for one in self.encoders if one.as_written)

    @property
    def measured(self) -> tuple[bool, ...]:
        """Which features are numbers in a unit of their own, whose sizes two domains can be compared by."""
        return tuple(
            encoder.kind == Kind.NUMBER and place == 0
            for encoder in self.encoders
            for place in range(len(encoder.features))
        )

    def read(self, frame: pl.DataFrame, origin: str) -> list[pl.Series]:
        """The values of each column by its kind; columns are found by name, and all that is wrong is told at once."""
        _refuse_empty(frame, origin)
        absent = [column for column in self.columns if column not in frame.columns]
        missing = f"{listed(map(repr, absent))} of the source {'are' if absent[1:] else 'is'} missing"
        problems = [missing] * bool(absent)
        found = []
        for encoder in self.encoders:
            if encoder.column in absent:
                continue
            try:
                found.append(encoder.read(frame[encoder.column]))
            except ColumnError as error:
                problems.append(f"{encoder.column!r} {error}")
        if problems:
            raise _all_of(problems, origin)
        return found

    def encode(self, values: Sequence[pl.Series]) -> Tensor:
        """Values, as `read` gives them, as features [N, D] in float32."""
        parts = [encoder.encode(column) for encoder, column in zip(self.encoders, values, strict=True)]
        return torch.from_numpy(np.concatenate(parts, 1))

    def apply(self, frame: pl.DataFrame, origin: str) -> Tensor:
        """Rows of a table as features [N, D]."""
        return self.encode(self.read(frame, origin))

    def explain(self) -> list[str]:
        """What was done to the source's columns, and which were left out."""
        told = []
        for kind in (Kind.BOOLEAN, Kind.CATEGORY, Kind.DATE, Kind.TEXT):
            of_kind = [encoder.column for encoder in self.encoders if encoder.kind == kind]
            if of_kind:
                told.append(f"read as {kind.value}: {listed(of_kind)}")
        gaps = [f"{one.column} ({one.missing:.1%})" for one in self.encoders if one.missing]
        if gaps:
            told.append(f"missing values filled and marked: {listed(gaps)}")
        return told + self.warnings()

    def warnings(self) -> list[str]:
        """The columns that a user may be surprised not to find among the features."""
        told = []
        for reason in LeftOut:
            columns = [column for column, why in self.left_out.items() if why == reason]
            if columns:
                told.append(f"left out as {reason.value}: {listed(map(repr, columns))}")
        numbers = [one for one in self.encoders if isinstance(one, NumberEncoder) and one.gaps]
        strange = [f"{one.column} ({listed(map(repr, one.gaps), 3)})" for one in numbers]
        if strange:
            told.append(f"words among numbers, taken for missing ones: {listed(strange)}")
        return told

    def compare(self, frame: pl.DataFrame, found: Sequence[pl.Series]) -> list[str]:
        """How rows differ from the source: other columns, categories that it never showed, other shares of gaps."""
        told = []
        known = (*self.columns, *self.left_out, *filter(None, [self.id]))
        extra = [column for column in frame.columns if column not in known and not is_unnamed(column)]
        if extra:
            told.append(f"columns that the source lacks were left out: {listed(extra)}")
        unseen, gaps = [], []
        for encoder, values in zip(self.encoders, found, strict=True):
            new = encoder.unseen(values)
            if len(new) >= max(1.0, _UNSEEN * len(values)):
                words = listed([str(word) for word in new.unique(maintain_order=True)], 3)
                unseen.append(f"{encoder.column} ({len(new) / len(values):.1%} of the rows, such as {words})")
            share = values.null_count() / len(values)
            if abs(share - encoder.missing) >= _MORE_GAPS:
                gaps.append(f"{encoder.column} ({encoder.missing:.1%} in source, {share:.1%} here)")
        if zones := self._other_zones(frame):
            told.append(f"times with an offset from Greenwich in one domain alone, which is not corrected: {zones}")
        if unseen:
            told.append(f"categories that the source never showed: {listed(unseen)}")
        if gaps:
            told.append(f"other shares of missing values: {listed(gaps)}")
        return told

    def _other_zones(self, frame: pl.DataFrame) -> str:
        """The columns of dates that have a time zone in one domain and none in the other."""
        dates = [one for one in self.encoders if isinstance(one, DateEncoder) and one.zoned is not None]
        return listed(one.column for one in dates if has_zone(frame[one.column]) is (not one.zoned))

    def to_json(self) -> dict[str, Any]:
        return {
            "encoders": [encoder.to_json() for encoder in self.encoders],
            "left_out": {column: reason.name for column, reason in self.left_out.items()},
            "id": self.id,
        }

    @staticmethod
    def from_json(values: Any, place: str = "a table's preparation") -> TablePreparation:
        """What `to_json` gave; CheckpointError or ValueError for what is none of it."""
        saved = from_json(_Saved, values, place)
        encoders = tuple(encoder_from_json(one, place) for one in saved.encoders)
        unknown = [reason for reason in saved.left_out.values() if reason not in LeftOut.__members__]
        columns = [encoder.column for encoder in encoders]
        if unknown or not encoders or len(set(columns)) < len(columns):
            raise ValueError(f"the columns {listed(columns)} are not those of a table")
        return TablePreparation(encoders, {name: LeftOut[why] for name, why in saved.left_out.items()}, saved.id)


@dataclass
class _Saved:
    """What `to_json` gives of a table."""

    encoders: list[dict[str, Any]]
    left_out: dict[str, str]
    id: str | None


def is_unnamed(column: str) -> bool:
    """Whether this is an index that some program saved along."""
    return bool(_UNNAMED.match(column))


def listed(names: Any, most: int = 8) -> str:
    """The first few names, and how many there are."""
    names = [" ".join(str(name).split()) for name in names]  # one may have a line break inside
    shown = ", ".join(names[:most])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > most else shown


def _refuse_empty(frame: pl.DataFrame, origin: str) -> None:
    if not len(frame):
        raise InputError(f"{origin} has no rows")


def _all_of(problems: Sequence[str], origin: str) -> InputError:
    """One message on all columns; a problem names its column first."""
    count = f"{len(problems)} problems with its columns: " if problems[1:] else "the column "
    return InputError(f"{origin}: {count}{'; '.join(problems)}; mend the file, or train without these columns", "drop")
