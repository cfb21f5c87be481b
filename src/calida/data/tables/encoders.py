"""One column -> features [N, D]: an encoder for each kind, fitted on source, whose parameters are plain values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calida.data.tables.dates import as_dates, date_format, has_zone
from calida.data.tables.kinds import Kind, gaps_among_numbers
from calida.data.tables.numbers import Writing, as_numbers, writing_of
from calida.data.tables.truth import as_truth
from calida.data.tables.values import as_words
from calida.json_values import from_json

Features = NDArray[np.float32]
_RARE = 0.001  # share of rows below which a category is not told apart from other rare ones; so are those of one row
_FINE = 2**-12  # of a number's size: half of the 24 bits that it has in 32
_HASHES, _MOST_HASHES = 128, 1 << 14
_CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Encoder:
    """What all encoders know of their column: its name and how much of it the source lacks."""

    column: str
    missing: float  # share of the source's rows

    kind: ClassVar[Kind]

    @property
    def as_written(self) -> bool:
        """Whether a file's words are needed as they are: 01 and 1 may be two categories."""
        return self.kind in (Kind.CATEGORY, Kind.TEXT)

    @property
    def features(self) -> tuple[str, ...]:
        """A name for each feature."""
        gap = (f"{self.column} is missing",) if self.missing else ()
        return (*self._named(), *gap)

    def encode(self, values: pl.Series) -> Features:
        """Values, as `read` gives them -> [N, D]; a gap has an indicator where the source had gaps to learn from."""
        encoded = self._encode(values)
        if not self.missing:
            return encoded
        return np.concatenate([encoded, values.is_null().to_numpy()[:, None].astype(np.float32)], 1)

    def read(self, column: pl.Series) -> pl.Series:
        """The values as this kind has them; ColumnError for what is not of this kind."""
        raise NotImplementedError

    def unseen(self, values: pl.Series) -> pl.Series:
        """The values, as `read` gives them, that the source never showed; only categories are told."""
        return values.clear()

    def check(self) -> None:
        """Refuse parameters that no column of a source leads to: ValueError."""
        numbers = [value for value in vars(self).values() if isinstance(value, float)]
        if not all(map(math.isfinite, numbers)) or not 0 <= self.missing <= 1:
            raise ValueError(f"the column {self.column!r} has parameters that are infinite or none")
        if isinstance(self, DateEncoder) and not set(self.cycles) <= set(_CYCLES):
            raise ValueError(f"the dates of {self.column!r} have cycles {', '.join(self.cycles)}")
        if isinstance(self, NumberEncoder) and self.mark not in (None, ".", ","):
            raise ValueError(f"the numbers of {self.column!r} have the decimal mark {self.mark!r}")
        if isinstance(self, TextEncoder) and not 1 <= self.width <= _MOST_HASHES:
            raise ValueError(f"the texts of {self.column!r} have {self.width} features")
        if isinstance(self, CategoryEncoder) and len({*self.categories, *self.rare}) < len(
            (*self.categories, *self.rare)
        ):
            raise ValueError(f"the categories of {self.column!r} are not all different")

    def _named(self) -> tuple[str, ...]:
        return (self.column,)

    def _encode(self, values: pl.Series) -> Features:
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind.value, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """The number itself, in its own unit; a missing one is the source's median."""

    median: float
    gaps: tuple[str, ...] = ()  # words that stand for missing numbers in the source
    mark: str | None = None  # what sets fractions apart, where the source's words show it: a point or a comma
    origin: float = 0.0  # taken off numbers that 32 bits could not tell apart, such as seconds since 1970
    unit: str | None = None  # that the source's words have, such as a currency

    kind = Kind.NUMBER

    @property
    def as_written(self) -> bool:
        """With a decimal comma, 1.234 is no fraction."""
        return self.mark == ","

    @staticmethod
    def fit(column: pl.Series) -> NumberEncoder:
        gaps = gaps_among_numbers(column) or ()
        values = as_numbers(column, gaps)
        median = _median(values)
        spread = _edge(values.quantile(0.84)) - _edge(values.quantile(0.16))
        origin = median if spread < _FINE * abs(median) else 0.0
        writing = writing_of(column)
        return NumberEncoder(column.name, _missing(values), median, gaps, writing.mark, origin, writing.unit)

    def read(self, column: pl.Series) -> pl.Series:
        return as_numbers(column, self.gaps, Writing(self.mark, self.unit))

    def _encode(self, values: pl.Series) -> Features:
        return (values.fill_null(self.median) - self.origin).cast(pl.Float32).to_numpy()[:, None]


@dataclass(frozen=True)
class BooleanEncoder(Encoder):
    """0 or 1; a missing one is the source's share of ones."""

    share: float

    kind = Kind.BOOLEAN

    @staticmethod
    def fit(column: pl.Series) -> BooleanEncoder:
        values = as_truth(column)
        return BooleanEncoder(column.name, _missing(values), _mean(values))

    def read(self, column: pl.Series) -> pl.Series:
        return as_truth(column)

    def _encode(self, values: pl.Series) -> Features:
        return values.fill_null(self.share).cast(pl.Float32).to_numpy()[:, None]


@dataclass(frozen=True)
class CategoryEncoder(Encoder):
    """One indicator a category, and one for all rare ones, which those that the source never showed join.

    Without rare ones in the source nothing could be learned of them: an unseen category is then all zeros.
    """

    categories: tuple[str, ...]
    rare: tuple[str, ...] = ()

    kind = Kind.CATEGORY

    @staticmethod
    def fit(column: pl.Series) -> CategoryEncoder:
        words = as_words(column)
        counts = words.alias("word").drop_nulls().value_counts(name="rows").sort("word")
        often = counts["rows"] >= max(2.0, _RARE * len(words))
        frequent, rare = (counts.filter(part)["word"].to_list() for part in (often, ~often))
        if not frequent:
            frequent, rare = rare, frequent
        return CategoryEncoder(column.name, _missing(words), tuple(frequent), tuple(rare))

    def read(self, column: pl.Series) -> pl.Series:
        return as_words(column)

    def unseen(self, values: pl.Series) -> pl.Series:
        return values.filter(values.is_not_null() & ~values.is_in([*self.categories, *self.rare]))

    def _named(self) -> tuple[str, ...]:
        another = (f"{self.column} is another",) if self.rare else ()
        return (*(f"{self.column} = {word}" for word in self.categories), *another)

    def _encode(self, values: pl.Series) -> Features:
        other = len(self.categories)
        places = values.replace_strict(
            list(self.categories), list(range(other)), default=other, return_dtype=pl.Int64
        ).to_numpy()
        encoded = np.zeros((len(values), other + 1), np.float32)
        encoded[np.arange(len(values)), places] = 1
        encoded[values.is_null().to_numpy()] = 0
        return encoded if self.rare else encoded[:, :other]


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """Days since the source's first date, within its dates, and where in year, week and day a moment falls.

    A target is often later than all of the source. Its rows count as the source's last day then: a network says
    nothing sensible of values beyond those that it was trained on.
    """

    first: float  # days since 1970
    last: float
    middle: float
    format: str | None = None  # of days that are written as words
    cycles: tuple[str, ...] = ()  # those that the source's dates go through
    zoned: bool | None = None  # whether they say how far they are from Greenwich; None of days alone

    kind = Kind.DATE

    @staticmethod
    def fit(column: pl.Series) -> DateEncoder:
        form = date_format(column)
        days = _days(as_dates(column, form))
        first, last = _edge(days.min()), _edge(days.max())
        timed = bool((days != days.floor()).any())
        met = {"year": last - first > 60, "week": last - first >= 7, "day": timed}
        cycles = tuple(name for name, there in met.items() if there)
        return DateEncoder(column.name, _missing(days), first, last, _median(days), form, cycles, has_zone(column))

    def read(self, column: pl.Series) -> pl.Series:
        return _days(as_dates(column, self.format))

    def _named(self) -> tuple[str, ...]:
        waves = (f"{self.column}, {wave} of the {cycle}" for cycle in self.cycles for wave in ("sine", "cosine"))
        return (f"{self.column}, days", *waves)

    def _encode(self, values: pl.Series) -> Features:
        days = values.fill_null(self.middle).clip(self.first, self.last).to_numpy() - self.first
        known = values.fill_null(0.0).to_numpy()
        parts = [days]
        for cycle in self.cycles:
            turns = 2 * np.pi * known / _CYCLES[cycle]
            parts += [np.where(values.is_null().to_numpy(), 0.0, wave(turns)) for wave in (np.sin, np.cos)]
        return np.stack(parts, 1).astype(np.float32)


@dataclass(frozen=True)
class TextEncoder(Encoder):
    """Groups of two to four letters, hashed into so many features; nothing is fitted, and any word can come."""

    width: int = _HASHES

    kind = Kind.TEXT

    @staticmethod
    def fit(column: pl.Series) -> TextEncoder:
        return TextEncoder(column.name, _missing(as_words(column)))

    def read(self, column: pl.Series) -> pl.Series:
        return as_words(column)

    def _named(self) -> tuple[str, ...]:
        return tuple(f"{self.column}, letters {place}" for place in range(self.width))

    def _encode(self, values: pl.Series) -> Features:
        from sklearn.feature_extraction.text import HashingVectorizer  # imported late: it takes as long as torch

        hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=self.width)
        encoded: Features = hashing.transform(values.fill_null("").to_list()).toarray().astype(np.float32)
        return encoded


ENCODERS: dict[Kind, type[Encoder]] = {
    one.kind: one for one in (NumberEncoder, BooleanEncoder, CategoryEncoder, DateEncoder, TextEncoder)
}


def fit_encoder(column: pl.Series, kind: Kind) -> Encoder:
    """An encoder of this kind, fitted to a column of the source."""
    encoder: Encoder = ENCODERS[kind].fit(column)  # type: ignore[attr-defined]
    return encoder


def encoder_from_json(values: Mapping[str, Any], place: str = "a column's encoder") -> Encoder:
    """What `to_json` wrote; CheckpointError or ValueError for what is none of it."""
    encoder = from_json(ENCODERS[Kind(values.get("kind"))], values, place)
    encoder.check()
    return encoder


def _missing(values: pl.Series) -> float:
    return values.null_count() / len(values)


def _median(values: pl.Series) -> float:
    return _edge(values.median())


def _mean(values: pl.Series) -> float:
    return _edge(values.mean())


def _edge(value: Any) -> float:
    """A statistic of a column; of one without values, zero."""
    return 0.0 if value is None else float(value)


def _days(moments: pl.Series) -> pl.Series:
    return moments.cast(pl.Int64).cast(pl.Float64) / _DAY
