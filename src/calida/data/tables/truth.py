"""True and false, however they are written."""

from __future__ import annotations

import polars as pl

from calida.data.tables.numbers import as_numbers
from calida.data.tables.values import MISSING, ColumnError, is_words, many, strip

_PAIRS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("1", "0"))
_TRUTH = {word: 1.0 - place for pair in _PAIRS for place, word in enumerate(pair)}


def as_truth(column: pl.Series) -> pl.Series:
    """True and false, also as the usual words for them, as Float64."""
    if not is_words(column):
        numbers = as_numbers(column)
        other = numbers.filter(~numbers.is_in([0.0, 1.0]) & numbers.is_not_null())
        if len(other):
            raise ColumnError(f"holds {other[0]:g}{many(len(other))} where there should be true or false")
        return numbers
    words = strip(column).str.to_lowercase()
    values = words.replace_strict(list(_TRUTH), list(_TRUTH.values()), default=None, return_dtype=pl.Float64)
    wrong = words.filter(values.is_null() & words.is_not_null() & ~words.is_in([one.lower() for one in MISSING]))
    if len(wrong):
        raise ColumnError(f"holds {wrong[0]!r}{many(len(wrong))} where there should be true or false")
    return values


def is_truth(column: pl.Series) -> bool:
    """Whether these are the words true and false.

    Of yes and no a target may have a third, such as "don't know": they are categories, where it is told and counted.
    """
    found = strip(column).str.to_lowercase().unique().drop_nulls().to_list()
    words = set(found) - {one.lower() for one in MISSING}
    return bool(words) and words <= {"true", "false"}
