"""Numbers, however a person or a program wrote them.

A column has one way of writing: a decimal mark, and at most one unit. The source decides both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from calida.data.tables.values import MISSING, ColumnError, describe, is_words, many, strip

FEW_WORDS = 0.1  # share of words among numbers that does not keep a column from being one of numbers
_LARGEST = float(np.finfo(np.float32).max)
_LONG = r"^[+-]?[1-9][0-9]{15,}$"  # whole numbers that floating point may not tell apart
_BLANKS = " \u00a0\u2007\u2009\u202f'\u2019"  # separate thousands, and never fractions
_MINUS = "[\u2212\u2012\u2013]"  # that people write for the one on the keyboard
_SIGNS = "€$£¥₹"
_MONEY = rf"^(?:[{_SIGNS}]|[A-Z]{{3}})$"
# A unit is a sign of money before or after the number, a share, a code such as EUR before it, or a word after it.
_NUMBER = (
    rf"^(?P<sign>[+-]?)\s*(?:(?P<before>[{_SIGNS}]|[A-Z]{{3}}\s)\s*)?(?P<later>[+-]?)"
    rf"(?P<body>[0-9](?:[0-9.,{_BLANKS}]*[0-9.])?|\.[0-9]+)(?P<exponent>(?:[eE][+-]?[0-9]+)?)"
    rf"(?:\s*(?P<mark>[{_SIGNS}%‰])|\s+(?P<after>[^0-9\s.,;:'+-][^0-9\s]{{0,11}}))?$"
)


@dataclass(frozen=True)
class Writing:
    """How a column writes its numbers; None is as programs do."""

    mark: str | None = None  # what sets fractions apart: a point or a comma
    unit: str | None = None


def as_numbers(column: pl.Series, gaps: Sequence[str] = (), source: Writing | None = None) -> pl.Series:
    """Numbers in any writing as Float64; besides the usual words for what is missing, `gaps` are some too.

    Without the writing of the `source`, that of the column itself is found.
    """
    if column.dtype == pl.Duration:
        column = column.dt.total_milliseconds() / 1000.0
    if column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    if is_words(column):
        words = strip(column)
        numbers = numbers_in(words, source)
        wrong = words.filter(numbers.is_null() & words.is_not_null() & ~words.is_in([*MISSING, *gaps]))
        if len(wrong):
            unit = "" if source is None or source.unit is None else f" in {source.unit}"
            raise ColumnError(f"holds {wrong[0]!r}{many(len(wrong))} where there should be numbers{unit}")
        column = numbers
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(f"holds {describe(column)} where there should be numbers")
    values = column.cast(pl.Float64, strict=False).fill_nan(None)
    wild = (values.abs() > _LARGEST).fill_null(False).arg_true()
    if len(wild):
        row = int(wild[0])
        raise ColumnError(f"holds {values[row]!r} in row {row}: infinite, or too large for 32 bits")
    return values


def numbers_in(words: pl.Series, source: Writing | None = None) -> pl.Series:
    """The numbers among words, those that the source's writing allows; anything else is null."""
    plain = words.cast(pl.Float64, strict=False)
    as_programs = plain.is_null() == (words.is_null() | words.is_in(MISSING).fill_null(False))
    if as_programs.all() and (source is None or source.mark != ","):
        return plain
    parts = _parts(words)
    unit = _unit_of(parts) if source is None else source.unit
    parts = _in_unit(parts, unit)
    mark = _mark_of(parts, unit, _present(words)) if source is None or source.mark is None else source.mark
    found = (parts["sign"] + _with_point(parts["body"], mark) + parts["exponent"]).cast(pl.Float64, strict=False)
    # What has no digits is infinite, or no number.
    return found.zip_with(words.str.contains("[0-9]").fill_null(False), plain).rename(words.name)


def writing_of(column: pl.Series) -> Writing:
    """How the source writes its numbers."""
    if not is_words(column):
        return Writing()
    words = strip(column)
    parts = _parts(words)
    unit = _unit_of(parts)
    return Writing(_mark_of(_in_unit(parts, unit), unit, _present(words)), unit)


def are_codes(column: pl.Series) -> bool:
    """Whether whole numbers are so long that floating point takes different ones for the same."""
    if not (column.dtype.is_integer() or is_words(column)):
        return False
    words = strip(column)
    long = words.filter(words.str.contains(_LONG).fill_null(False))
    return long.n_unique() > long.cast(pl.Float64).n_unique()


def _present(words: pl.Series) -> int:
    return int((words.is_not_null() & ~words.is_in(MISSING)).sum())


def _parts(words: pl.Series) -> pl.DataFrame:
    """Sign, unit, digits and exponent of each word, null in what is no number."""
    parts = words.rename("").str.replace(_MINUS, "-").str.extract_groups(_NUMBER).struct.unnest()
    unit = pl.coalesce("before", "mark", "after").str.strip_chars()
    blank = rf"^[1-9][0-9]{{0,2}}(?:[{_BLANKS}][0-9]{{3}})+(?:[.,][0-9]*)?$"
    body = pl.col("body")
    body = pl.when(body.str.contains(blank)).then(body.str.replace_all(f"[{_BLANKS}]", "")).otherwise(body)
    return parts.select((pl.col("sign") + pl.col("later")).alias("sign"), unit.alias("unit"), body, "exponent")


def _unit_of(parts: pl.DataFrame) -> str | None:
    """The one that most numbers have; none, if most have none."""
    units = parts.filter(pl.col("body").is_not_null()).group_by("unit").len()
    return units.sort("len", "unit", descending=[True, False])["unit"][0] if len(units) else None


def _in_unit(parts: pl.DataFrame, unit: str | None) -> pl.DataFrame:
    """What has another unit is no number; without one, it is in the column's."""
    same = pl.col("unit").is_null() | pl.col("unit").is_in([unit or ""])
    return parts.with_columns(pl.when(same).then("body"))


def _mark_of(parts: pl.DataFrame, unit: str | None, present: int) -> str | None:
    """The decimal mark with which most words are numbers; none, if they are as programs write them.

    Of 1,234 alone nobody knows. A fraction of money has two digits, so that $1,234 is thousands.
    """
    bodies = parts["body"].drop_nulls()
    point, comma = (bodies.str.contains(_with_mark(mark)) for mark in ".,")
    commas, points = (bool(bodies.str.contains(separator, literal=True).any()) for separator in ",.")
    if point.sum() != comma.sum():
        mark = "." if point.sum() > comma.sum() else ","
        return None if mark == "." and unit is None and not commas else mark
    if commas == points or not (point & comma).all():
        return None
    if re.match(_MONEY, unit or ""):
        return "." if commas else ","
    if commas and len(bodies) >= (1 - FEW_WORDS) * present:
        example = bodies.filter(bodies.str.contains(",", literal=True))[0]
        raise ColumnError(f"holds {example!r}, a fraction or thousands: write numbers with a decimal point")
    return None


def _with_mark(mark: str) -> str:
    """Numbers with this decimal mark, whose thousands may be set apart by the other one."""
    separator = "," if mark == "." else "."
    return rf"^(?:[1-9][0-9]{{0,2}}(?:\{separator}[0-9]{{3}})+|[0-9]*)(?:\{mark}[0-9]*)?$"


def _with_point(bodies: pl.Series, mark: str | None) -> pl.Series:
    """Numbers as programs write them; what no number with this mark looks like is null."""
    if mark is None:
        return bodies
    separator = "," if mark == "." else "."
    fits = bodies.str.contains(_with_mark(mark)).fill_null(False)
    return bodies.set(~fits, None).str.replace_all(separator, "", literal=True).str.replace(mark, ".", literal=True)
