"""Dates, times of day and both together, however they are written -> moments; what is missing is null.

A column writes its days in one way, which the source decides. A time of day may follow, and an offset from Greenwich.
"""

from __future__ import annotations

import re

import polars as pl

from calida.data.tables.values import ColumnError, as_words, describe, is_words

CLOCK = "%H:%M"  # of a column that has times of day and no days
COMPACT = "%Y%m%d"
# The first that fits all values is taken: a month before a day only where slashes separate them. Two digits of a year
# between dashes could be year, month or day, and are no date.
DAY_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    COMPACT,
    "%d.%m.%Y",
    "%d.%m.%y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %B %Y",
    "%d-%B-%Y",
    "%d-%B-%y",
    "%B %d, %Y",
    "%B %d %Y",
)
_SHAPES = {"%Y": "[0-9]{4}", "%y": "[0-9]{2}", "%m": "[0-9]{1,2}", "%d": "[0-9]{1,2}", "%B": "[A-Za-z]{3,9}"}
_CENTURIES = "(?:19|20)[0-9]{6}"  # eight digits are a date if they are one of these
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?"
_TIME = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}(?:\.[0-9]{1,9})?))?(?: ?(?P<half>[AaPp][Mm]))?"
)
_ZONE = r" ?(?:Z|UTC|GMT|(?P<offset>[+-][0-9]{2}:?[0-9]{2}))"
_IN_TIME = rf"(?:{_TIME})(?:{_ZONE})?"
_FEW_ERRORS = 0.1  # share of words among dates that are taken for mistakes
_HEAD = 50  # rows that rule most formats out


def as_dates(column: pl.Series, first: str | None = None) -> pl.Series:
    """Moments as Datetime, read by the format `first` where they are words, or else by the one that fits them all.

    Times of day, which are moments of one day, are read where `first` says so.
    """
    first = _day_format(first)
    if (column.dtype == pl.Time) == (first == CLOCK) and column.dtype in (pl.Date, pl.Datetime, pl.Time):
        return _stamped(column)
    if column.dtype == pl.Null:
        return column.cast(pl.Datetime("us"))
    what = "times of day" if first == CLOCK else "dates"
    if not (is_words(column) or column.dtype.is_numeric()):
        raise ColumnError(f"holds {describe(column)} where there should be {what}")
    words = as_words(column)
    present = words.drop_nulls()
    if not len(present):
        return pl.Series(column.name, [None] * len(column), pl.Datetime("us"))
    form = date_format(column, first)
    swapped = first is not None and form not in (None, first) and str(form).lower() == _swapped(first).lower()
    if form is None or swapped or (form == CLOCK) != (first == CLOCK):
        wrong = present.filter(_parse(present, first or DAY_FORMATS[0]).is_null())
        told = f"holds {wrong[0] if len(wrong) else present[0]!r} where there should be {what}"
        raise ColumnError(f"{told}{_order_in_words(first) if swapped else ''}")
    return _parse(words, form)


def date_format(column: pl.Series, first: str | None = None) -> str | None:
    """The first format in which every value of a column is a date; none, if there is no such format or no value.

    After `first`, the source's, come those that have days and months in the same order.
    """
    if column.dtype == pl.Time:
        return CLOCK
    first = _day_format(first)
    words = _dated_words(column)
    if words is None:
        return None
    if not len(words):
        return first
    others = [form for form in (*DAY_FORMATS, CLOCK) if form != first]
    if first is not None:
        others.sort(key=lambda form: _day_before_month(form) != _day_before_month(first))
    head = words.head(_HEAD)
    for form in filter(None, [first, *others]):
        if _parse(head, form).is_not_null().all() and _parse(words, form).is_not_null().all():
            return form
    return None


def no_date_among_dates(column: pl.Series) -> str | None:
    """The first word that is no date in a column of which nearly all are dates; none where all are, or few."""
    words = as_words(column).drop_nulls()
    head = words.head(_HEAD)
    for form in DAY_FORMATS:
        if 2 * _parse(head, form).null_count() > len(head):
            continue
        wrong = words.filter(_parse(words, form).is_null())
        if 0 < len(wrong) <= _FEW_ERRORS * len(words):
            return str(wrong[0])
    return None


def has_zone(column: pl.Series) -> bool | None:
    """Whether moments say how far they are from Greenwich; None of days alone, which need not."""
    if column.dtype == pl.Datetime:
        return getattr(column.dtype, "time_zone", None) is not None
    timed = as_words(column).drop_nulls() if is_words(column) else pl.Series([], dtype=pl.String)
    timed = timed.filter(timed.str.contains(":", literal=True))
    return bool(timed.str.contains(f"[0-9Mm]{_ZONE}$").any()) if len(timed) else None


def _dated_words(column: pl.Series) -> pl.Series | None:
    """What may be dates: words, and whole numbers of eight digits."""
    if column.dtype.is_numeric():
        present = column.drop_nulls()
        if not len(present) or present.min() < 19000101 or present.max() > 20991231:  # type: ignore[operator]
            return None
    elif not is_words(column):
        return None
    return as_words(column).drop_nulls()


def _stamped(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Time:
        return (column.cast(pl.Int64) // 1000).cast(pl.Datetime("us"))
    stamped = column.cast(pl.Datetime("us"), strict=False)
    return stamped.dt.replace_time_zone(None) if getattr(column.dtype, "time_zone", None) else stamped


def _parse(words: pl.Series, form: str) -> pl.Series:
    """Moments of Greenwich, where an offset is given, or as they are written."""
    shape = _CENTURIES if form == COMPACT else re.sub("%[YymdB]", lambda found: _SHAPES[found[0]], re.escape(form))
    pattern = f"^(?P<day>){_IN_TIME}$" if form == CLOCK else rf"^{_WEEKDAY}(?P<day>{shape})(?:(?:T|,? +){_IN_TIME})?$"
    parts = words.rename("").str.extract_groups(pattern).struct.unnest()
    days = pl.lit(0).cast(pl.Date) if form == CLOCK else pl.col("day").str.to_date(form, strict=False)
    hour, minute = pl.col("hour").cast(pl.Int64).fill_null(0), pl.col("minute").cast(pl.Int64).fill_null(0)
    micros = (pl.col("second").cast(pl.Float64).fill_null(0.0) * 1e6).round().cast(pl.Int64)
    half = pl.col("half").str.to_lowercase()
    real = pl.when(half.is_null()).then(hour < 24).otherwise((hour > 0) & (hour < 13))
    hour = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + 12 * (half == "pm").cast(pl.Int64))
    offset = pl.col("offset").str.replace(":", "").cast(pl.Int64).fill_null(0)
    ahead = offset.sign() * (offset.abs() // 100 * 60 + offset.abs() % 100)
    moment = days.cast(pl.Datetime("us")) + pl.duration(minutes=60 * hour + minute - ahead, microseconds=micros)
    found = pl.when(pl.col("day").is_not_null() & real & (minute < 60) & (micros < 60_000_000)).then(moment)
    return parts.select(found.alias("moment"))["moment"].rename(words.name)


def _day_format(form: str | None) -> str | None:
    """That of the days; models that were saved before have a time of day behind it."""
    return form if form is None or form == CLOCK else re.split("[T ]%H", form)[0]


def _swapped(form: str) -> str:
    """The format that takes day for month and month for day."""
    return re.sub("%[md]", lambda found: {"%m": "%d", "%d": "%m"}[found[0]], form)


def _day_before_month(form: str) -> bool:
    return "%d" in re.split("%[mB]", form)[0]


def _order_in_words(form: str | None) -> str:
    ahead = "day before month" if _day_before_month(form or "") else "month before day"
    return f", {ahead} as in source: write 2020-12-31"
