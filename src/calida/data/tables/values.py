"""The values of one column as words; what is missing is null."""

from __future__ import annotations

import polars as pl

from calida.errors import InputError

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")


class ColumnError(InputError):
    """What is wrong with one column; it is told together with what is wrong with the others."""


def as_words(column: pl.Series) -> pl.Series:
    """Words without the spaces around them; whole numbers are written without a point, whatever stored them."""
    if is_words(column):
        words = strip(column)
        return words.set(words.is_in(MISSING).fill_null(False), None)
    if column.dtype.is_float():
        whole = bool((column.drop_nulls().drop_nans() == column.drop_nulls().drop_nans().round()).all())
        column = column.fill_nan(None).cast(pl.Int64, strict=False) if whole else column.fill_nan(None)
    if column.dtype in (pl.Boolean, pl.Null) or column.dtype.is_numeric() or column.dtype.is_temporal():
        return column.cast(pl.String)
    raise ColumnError(f"holds {describe(column)} where there should be words")


def is_words(column: pl.Series) -> bool:
    """Whether a column holds text, be it as categories."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def strip(column: pl.Series) -> pl.Series:
    """The words as they are written, without the spaces around them."""
    return column.cast(pl.String).str.strip_chars()


def many(count: int) -> str:
    """How many there are besides the one that is shown."""
    return f" (and {count - 1:,} more)" if count > 1 else ""


def describe(column: pl.Series) -> str:
    """What a column holds, in the words of an error."""
    if column.dtype == pl.Time:
        return "times of day"
    if column.dtype.is_temporal():
        return "dates"
    if column.dtype.is_nested():
        return "lists or dicts"
    return "numbers" if column.dtype.is_numeric() else f"values of the type {column.dtype}"
