"""The values of one column, however they are written -> numbers, dates or words; what is missing is null."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from calida.errors import InputError

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0, "1": 1.0, "0": 0.0, "y": 1.0, "n": 0.0}
_WITH_FRACTION = {",": r"^[+-]?[1-9]\d{0,2}(,\d{3})+\.\d+$", ".": r"^[+-]?[1-9]\d{0,2}(\.\d{3})+,\d+$"}  # by separator
_SIGN = r"^[+-]?\s*[€$£¥₹]|[€$£¥₹%‰]$"  # of a currency or a share, which all numbers of a column have
_FEW_ERRORS = 0.1  # share of words among dates that are taken for mistakes
_LARGEST = float(np.finfo(np.float32).max)
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.fZ",
    "%Y-%m-%dT%H:%M:%S%.f%:z",
    "%Y-%m-%d %H:%M:%S%.f%:z",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S%.f",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
)
_IN_WORDS = {"%m/%d": "month before day as in source", "%d/%m": "day before month as in source"}


class ColumnError(InputError):
    """What is wrong with one column; it is told together with what is wrong with the others."""


def as_numbers(column: pl.Series, gaps: Sequence[str] = (), mark: str | None = None) -> pl.Series:
    """Numbers in any writing as Float64; besides the usual words for what is missing, `gaps` are some too.

    `mark` is what sets fractions apart, a point or a comma, where that is known.
    """
    if column.dtype == pl.Duration:
        column = column.dt.total_milliseconds() / 1000.0
    if column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    if is_words(column):
        words = strip(column)
        numbers = with_points(words, mark).cast(pl.Float64, strict=False)
        wrong = words.filter(numbers.is_null() & words.is_not_null() & ~words.is_in([*MISSING, *gaps]))
        if len(wrong):
            raise ColumnError(f"holds {wrong[0]!r}{_many(len(wrong))} where there should be numbers")
        column = numbers
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(f"holds {_kind(column)} where there should be numbers")
    values = column.cast(pl.Float64, strict=False).fill_nan(None)
    wild = (values.abs() > _LARGEST).fill_null(False).arg_true()
    if len(wild):
        row = int(wild[0])
        raise ColumnError(f"holds {values[row]!r} in row {row}: infinite, or too large for 32 bits")
    return values


def as_truth(column: pl.Series) -> pl.Series:
    """True and false, also as the usual words for them, as Float64."""
    if not is_words(column):
        numbers = as_numbers(column)
        other = numbers.filter(~numbers.is_in([0.0, 1.0]) & numbers.is_not_null())
        if len(other):
            raise ColumnError(f"holds {other[0]:g}{_many(len(other))} where there should be true or false")
        return numbers
    words = strip(column).str.to_lowercase()
    values = words.replace_strict(list(_TRUTH), list(_TRUTH.values()), default=None, return_dtype=pl.Float64)
    wrong = words.filter(values.is_null() & words.is_not_null() & ~words.is_in([one.lower() for one in MISSING]))
    if len(wrong):
        raise ColumnError(f"holds {wrong[0]!r}{_many(len(wrong))} where there should be true or false")
    return values


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
    raise ColumnError(f"holds {_kind(column)} where there should be words")


def as_dates(column: pl.Series, first: str | None = None) -> pl.Series:
    """Moments as Datetime, read by the format `first` where they are words, or else by the one that fits them all."""
    if column.dtype in (pl.Date, pl.Datetime):
        stamped = column.cast(pl.Datetime("us"), strict=False)
        return stamped.dt.replace_time_zone(None) if getattr(column.dtype, "time_zone", None) else stamped
    if not is_words(column):
        if column.dtype == pl.Null:
            return column.cast(pl.Datetime("us"))
        raise ColumnError(f"holds {_kind(column)} where there should be dates")
    form = date_format(column, first)
    if form is None or (first is not None and form == _twin(first)):
        present = strip(column).drop_nulls()
        present = present.filter(~present.is_in(MISSING))
        if not len(present):
            return pl.Series(column.name, [None] * len(column), pl.Datetime("us"))
        wrong = present.filter(_parse(present, first or DATE_FORMATS[0]).is_null())
        told = f"holds {wrong[0] if len(wrong) else present[0]!r} where there should be dates"
        raise ColumnError(f"{told}{'' if form is None else f', {_IN_WORDS[(first or form)[:5]]}: write 2020-12-31'}")
    return _parse(strip(column), form)


def _twin(form: str) -> str | None:
    """The format that takes day for month and month for day."""
    swapped = {"%m/%d": "%d/%m", "%d/%m": "%m/%d"}.get(form[:5])
    return None if swapped is None else swapped + form[5:]


def date_format(column: pl.Series, first: str | None = None) -> str | None:
    """The first format in which every word of a column is a date; none, if there is no such format or no word."""
    words = strip(column).drop_nulls()
    words = words.filter(~words.is_in(MISSING))
    forms = [form for form in (first,) if form] + [form for form in DATE_FORMATS if form != first]
    if not len(words):
        return first
    head = words.head(50)
    for form in forms:
        if _parse(head, form).is_not_null().all() and _parse(words, form).is_not_null().all():
            return form
    return None


def no_date_among_dates(column: pl.Series) -> str | None:
    """The first word that is no date in a column of which nearly all are dates; none where all are, or few."""
    words = strip(column).drop_nulls()
    words = words.filter(~words.is_in(MISSING))
    for form in DATE_FORMATS:
        wrong = words.filter(_parse(words, form).is_null())
        if 0 < len(wrong) <= _FEW_ERRORS * len(words):
            return str(wrong[0])
    return None


def _parse(words: pl.Series, form: str) -> pl.Series:
    moments = words.str.to_datetime(form, strict=False, time_unit="us")
    return moments.dt.replace_time_zone(None) if form.endswith("%:z") else moments  # they are in UTC


def is_words(column: pl.Series) -> bool:
    """Whether a column holds text, be it as categories."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def strip(column: pl.Series) -> pl.Series:
    return column.cast(pl.String).str.strip_chars()


def with_points(words: pl.Series, mark: str | None = None) -> pl.Series:
    """Numbers with a decimal point and nothing else, if all are written alike: 1.234,50 or $1,234.50, 12,5 or 45 %.

    What no number with this mark looks like is missing then.
    """
    words = _without_sign(words)
    mark = mark or _mark_of(words)
    if mark is None:
        return words
    separator = "," if mark == "." else "."
    grouped = words.str.contains(f"{_WITH_FRACTION[separator]}|{_grouped(separator)}").fill_null(False)
    words = words.str.replace_all(separator, "", literal=True).zip_with(grouped, words)
    odd = words.str.contains(separator, literal=True).fill_null(False)
    return words.set(odd, None).str.replace(mark, ".", literal=True)


def decimal_mark(column: pl.Series) -> str | None:
    """What sets fractions apart in a column of words, if any of them shows it."""
    return _mark_of(_without_sign(strip(column))) if is_words(column) else None


def _mark_of(words: pl.Series) -> str | None:
    """A point or a comma; 1,234 alone might be a fraction or thousands, and is refused."""
    for separator, pattern in _WITH_FRACTION.items():
        if words.str.contains(pattern).any():
            written = words.filter(words.str.contains(separator, literal=True).fill_null(False))
            if written.str.contains(f"{pattern}|{_grouped(separator)}").all():
                return "." if separator == "," else ","
    written = words.filter(words.str.contains(",", literal=True).fill_null(False))
    fractions = written.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    if not len(written) or fractions.is_null().any() or words.str.contains(".", literal=True).any():
        return None
    if written.str.contains(_grouped(",")).all():
        raise ColumnError(f"holds {written[0]!r}, a fraction or thousands: write numbers with a decimal point")
    return ","


def _grouped(separator: str) -> str:
    """Whole numbers whose thousands are set apart by this."""
    return rf"^[+-]?[1-9]\d{{0,2}}({re.escape(separator)}\d{{3}})+$"


def _without_sign(words: pl.Series) -> pl.Series:
    """Without the sign of a currency or a share, where all have the same one and a digit beside it."""
    present = words.filter(words.is_not_null() & ~words.is_in(MISSING))
    signs = present.str.extract(f"({_SIGN})", 1).str.strip_chars("+- ").unique()
    if not len(present) or len(signs) != 1 or signs[0] is None:
        return words
    return words.str.replace(r"^([+-]?)\s*[€$£¥₹]\s*", "${1}").str.replace(r"\s*[€$£¥₹%‰]$", "")


def _many(count: int) -> str:
    return f" (and {count - 1:,} more)" if count > 1 else ""


def _kind(column: pl.Series) -> str:
    if column.dtype.is_temporal():
        return "dates"
    if column.dtype.is_nested():
        return "lists"
    return "numbers" if column.dtype.is_numeric() else f"values of the type {column.dtype}"
