"""What a column of the source is: its kind, or why it cannot be a feature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

import polars as pl

from calida.data.tables.dates import COMPACT, as_dates, date_format, no_date_among_dates
from calida.data.tables.numbers import FEW_WORDS, are_codes, as_numbers, numbers_in
from calida.data.tables.truth import as_truth, is_truth
from calida.data.tables.values import MISSING, ColumnError, as_words, describe, is_words, strip

MOST_CATEGORIES = 64  # a column of words with more distinct ones is read as text
_MOST_DECLARED = 1000  # of a categorical type, which is somebody's word for it
_FEW_GAPS = 10  # different words among numbers that are taken for gaps
_ENOUGH = 20  # rows: among fewer, values may all differ, or go along with the label, by chance
_ROWS_A_VALUE = 20  # that make a column which decides the label no coincidence
_OWN = 0.4  # different values a row, from which what is called an identifier is one
_NAMED_ID = re.compile(r"(^|[\W_])(id|uuid|guid|index|row|key)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](Id|ID)$")


class Kind(str, Enum):
    """How the values of a column are read."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    DATE = "date"
    TEXT = "text"


class LeftOut(str, Enum):
    """Why a column is no feature: it was left out as ..."""

    UNNAMED = "an index without a name"
    DROPPED = "asked"
    EMPTY = "empty"
    CONSTANT = "constant"
    IDENTIFIER = "a name of rows"
    LEAK = "giving the label away"


def kind_of(column: pl.Series) -> Kind:
    """The kind of a column of the source; ColumnError for what is none."""
    if column.dtype == pl.Boolean:
        return Kind.BOOLEAN
    if column.dtype in (pl.Date, pl.Datetime, pl.Time):
        return Kind.DATE
    if column.dtype in (pl.Null, pl.Duration):
        return Kind.NUMBER
    if column.dtype.is_numeric():
        return _kind_of_numbers(column)
    if not is_words(column):
        raise ColumnError(f"holds {describe(column)}, which no feature is made of")
    if column.dtype == pl.String:
        if is_truth(column):
            return Kind.BOOLEAN
        if gaps_among_numbers(column) is not None:
            return _kind_of_numbers(column)
        if date_format(column) is not None:
            return Kind.DATE
        if (wrong := no_date_among_dates(column)) is not None:
            raise ColumnError(f"holds {wrong!r} among dates")
    return _kind_of_words(column)


def _kind_of_numbers(column: pl.Series) -> Kind:
    """Not all that is written in digits is a number: 20210314 can be a day, and 19 digits are a code."""
    if date_format(column) == COMPACT:
        return Kind.DATE
    return _kind_of_words(column) if are_codes(column) else Kind.NUMBER


def _kind_of_words(column: pl.Series) -> Kind:
    most = _MOST_DECLARED if column.dtype in (pl.Categorical, pl.Enum) else MOST_CATEGORIES
    return Kind.CATEGORY if as_words(column).drop_nulls().n_unique() <= most else Kind.TEXT


def gaps_among_numbers(column: pl.Series) -> tuple[str, ...] | None:
    """The words that stand for missing numbers; none of a column that is not one of numbers."""
    if not is_words(column):
        return ()
    words = strip(column)
    words = words.filter(words.is_not_null() & ~words.is_in(MISSING))
    strange = words.filter(numbers_in(words).is_null())
    different = strange.unique().sort()
    if len(strange) > FEW_WORDS * len(words) or len(different) > _FEW_GAPS:
        return None
    return tuple(different.to_list())


def why_left_out(column: pl.Series, kind: Kind, labels: Sequence[str] | None) -> LeftOut | None:
    """The reason why a column should not be a feature, if there is one."""
    values = _comparable(column, kind)
    present = values.drop_nulls()
    if not len(present):
        return LeftOut.EMPTY
    if present.n_unique() == 1 and len(present) == len(values):
        return LeftOut.CONSTANT
    if _identifies(column, kind, present):
        return LeftOut.IDENTIFIER
    if labels is not None and (_decides(values, labels) or _gaps_decide(values, labels)):
        return LeftOut.LEAK
    return None


def _comparable(column: pl.Series, kind: Kind) -> pl.Series:
    if kind == Kind.NUMBER:
        return as_numbers(column, gaps_among_numbers(column) or ())
    if kind == Kind.BOOLEAN:
        return as_truth(column)
    return as_dates(column, date_format(column)) if kind == Kind.DATE else as_words(column)


def _identifies(column: pl.Series, kind: Kind, present: pl.Series) -> bool:
    """Row numbers, keys and codes: hardly two rows share one, and it is no sentence, moment or measurement."""
    named = bool(_NAMED_ID.search(column.name) or _CAMEL_ID.search(column.name))
    different = present.n_unique() if len(column) >= _ENOUGH else 0
    # What is called an identifier may lack some, or name a person that has several rows.
    if named and different < _OWN * len(column):
        return False
    if not named and different < len(column):
        return False
    if kind in (Kind.TEXT, Kind.CATEGORY):
        return named or (kind == Kind.TEXT and not present.str.contains(r"\s").any())
    if kind != Kind.NUMBER or not bool((present == present.round()).all()):
        return False
    low, high = float(present.min()), float(present.max())  # type: ignore[arg-type]
    return named or high - low == len(present) - 1


def _decides(values: pl.Series, labels: Sequence[str]) -> bool:
    """Whether each of few values goes with one label, in so many rows that it is the label in other words."""
    distinct = values.n_unique()
    if len(values) < _ENOUGH or distinct * _ROWS_A_VALUE > len(values):
        return False
    pairs = pl.DataFrame({"value": values, "label": pl.Series(labels, dtype=pl.String)})
    return pairs.n_unique() == distinct and pairs["label"].n_unique() > 1


def _gaps_decide(values: pl.Series, labels: Sequence[str]) -> bool:
    """Whether one label alone has values, or one alone has none, and it has them in all of its rows or in none."""
    gone = values.is_null()
    if min(int(gone.sum()), len(gone) - int(gone.sum())) < _ROWS_A_VALUE:
        return False
    words = pl.Series(labels, dtype=pl.String)
    without, with_values = (set(words.filter(part).unique().to_list()) for part in (gone, ~gone))
    return not without & with_values and min(len(without), len(with_values)) == 1
