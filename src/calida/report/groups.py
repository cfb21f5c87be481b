"""Accuracy by group of a named column, where target labels are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from calida.data import Collection, Kind, as_words, fit_encoder, kind_of, listed
from calida.errors import InputError
from calida.shift import MISSING_VALUES, OTHERS, span_words
from calida.uncertainty import wilson

_MOST = 12  # groups; values that are rarer are one
_PARTS = 4  # of a column of numbers
_NO_GROUPS = 0.5  # different values a row: names of rows, or sentences


@dataclass(frozen=True)
class GroupAccuracy:
    """Rows that share a value, and how many of them each classifier gets right."""

    group: str
    rows: int
    source_only: float
    adapted: float
    low: float  # of the adapted one, 95 %
    high: float


def accuracy_by_group(
    column: pl.Series, truth: np.ndarray, before: np.ndarray, after: np.ndarray
) -> list[GroupAccuracy]:
    """Measured with labels: predictions [N] of both classifiers against the truth, for each value of the column."""
    found = []
    for name, rows in group_rows(column):
        count = int(rows.sum())
        first, second = (float((said[rows] == truth[rows]).mean()) for said in (before, after))
        found.append(GroupAccuracy(name, count, first, second, *wilson(second, count)))
    return found


def group_rows(column: pl.Series) -> list[tuple[str, np.ndarray]]:
    """Which rows are in which group: quarters of numbers and dates by size, or the most frequent values first.

    Groups are pairs, as a value may be called what the group of gaps or of rare values is called.
    """
    kind = kind_of(column)
    values = fit_encoder(column, kind).read(column)
    missing = values.is_null().to_numpy()
    if kind in (Kind.NUMBER, Kind.DATE) and values.n_unique() > _MOST:
        numbers = values.fill_null(np.nan).to_numpy()
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _PARTS + 1)))
        above = [numbers >= edge for edge in edges[:-1]] + [np.zeros(len(numbers), dtype=bool)]
        spans = [span_words(kind, low, high) for low, high in pairwise(edges)]
        groups = [(name, above[place] & ~above[place + 1]) for place, name in enumerate(spans)]
    else:
        words = as_words(column).alias("word").set(pl.Series(missing), None)
        counted = words.drop_nulls().value_counts(name="rows").sort("rows", "word", descending=[True, False])
        if len(counted) > max(_MOST, _NO_GROUPS * len(words)):
            raise InputError(
                f"the column {column.name!r} has {len(counted):,} values in {len(words):,} rows: no groups"
            )
        often = counted["word"].to_list()
        groups = [(name, (words == name).fill_null(False).to_numpy()) for name in often[:_MOST]]
        groups.append((OTHERS, words.is_in(often[_MOST:]).fill_null(False).to_numpy()))
    return [(name, rows) for name, rows in (*groups, (MISSING_VALUES, missing)) if rows.any()]


def measure_groups(
    samples: Collection, by: str, truth: np.ndarray, before: np.ndarray, after: np.ndarray
) -> dict[str, Any]:
    """Accuracy by a column of a table, as JSON has it; of what has no such column, an InputError."""
    if samples.frame is None:
        raise InputError(f"{samples.origin} is no table, and groups are those of a column of one", "by")
    if by.strip() not in samples.frame.columns:
        raise InputError(f"{samples.origin} has no column {by!r}; it has {listed(samples.frame.columns)}")
    found = accuracy_by_group(samples.frame[by.strip()], truth, before, after)
    return {"column": by.strip(), "groups": [asdict(one) for one in found]}


def from_json(values: Mapping[str, Any]) -> tuple[str, list[GroupAccuracy]]:
    """The column and its groups, as `measure_groups` wrote them."""
    return str(values["column"]), [GroupAccuracy(**one) for one in values["groups"]]
