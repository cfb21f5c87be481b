"""Which columns of a table moved: distributions in both domains, and what a domain classifier tells them apart by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calida.data import Collection, Kind
from calida.seeds import Seeds

_BINS = 12
_CATEGORIES = 8  # shown apart; the others are one
_COMPARED = 50_000  # rows of each domain that distributions are taken from
_ROWS = 1000  # of each domain that the domain classifier sees
_PERMUTED = 200  # columns, those that moved furthest, whose importance is measured
MISSING_VALUES, OTHERS = "(missing)", "(others)"  # bins beside those of values


@dataclass(frozen=True)
class ColumnShift:
    """One column in both domains."""

    column: str
    kind: str
    difference: float | None  # of medians, in units of the source's spread; words have none
    distance: float  # total variation of the shares below: 0 for the same, 1 for nothing in common
    importance: float  # what the domain classifier's area under the curve loses without this column
    missing: tuple[float, float]  # shares of rows, source and target
    unseen: float  # share of target rows with categories that the source never showed
    bins: tuple[str, ...]
    source: tuple[float, ...]  # share of rows in each bin
    target: tuple[float, ...]


@dataclass(frozen=True)
class TableShift:
    """All columns, the one that tells the domains apart best first, and how well they are told apart by all."""

    separation: float  # area under the curve of a domain classifier on held-out rows; 0.5 is none
    columns: tuple[ColumnShift, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> TableShift:
        columns = [{key: _tuple(value) for key, value in one.items()} for one in values["columns"]]
        return TableShift(values["separation"], tuple(ColumnShift(**one) for one in columns))


def compare_columns(source: Collection, target: Collection, seeds: Seeds) -> TableShift | None:
    """Compare two tables column by column; None of what are no tables."""
    table = source.table
    if table is None or source.frame is None or target.frame is None:
        return None
    frames = {"source": source.frame, "target": target.frame}
    pairs = [table.read(_some(frame, seeds, name), name) for name, frame in frames.items()]
    moved = []
    for encoder, first, second in zip(table.encoders, *pairs, strict=True):
        bins, shares = _shares(encoder.kind, first, second)
        moved.append(
            ColumnShift(
                encoder.column,
                encoder.kind.value,
                None if encoder.kind in (Kind.CATEGORY, Kind.BOOLEAN) else _difference(encoder.kind, first, second),
                float(np.abs(shares[0] - shares[1]).sum() / 2),
                0.0,
                (first.null_count() / len(first), second.null_count() / len(second)),
                len(encoder.unseen(second)) / len(second),
                bins,
                tuple(shares[0].tolist()),
                tuple(shares[1].tolist()),
            )
        )
    widths = [len(encoder.features) for encoder in table.encoders]
    order = sorted(range(len(moved)), key=lambda place: -moved[place].distance)[:_PERMUTED]
    separation, importance = _tell_apart(np.asarray(source.samples), np.asarray(target.samples), widths, order, seeds)
    columns = [
        ColumnShift(**{**vars(one), "importance": importance.get(place, 0.0)}) for place, one in enumerate(moved)
    ]
    # What adds less than a hundredth adds nothing: where one column tells the domains apart, the others are no use.
    columns.sort(key=lambda one: (-max(round(one.importance, 2), 0.0), -one.distance))
    return TableShift(separation, tuple(columns))


def _some(frame: pl.DataFrame, seeds: Seeds, name: str) -> pl.DataFrame:
    """All rows, or as many as tell shares to a third of a percent."""
    if len(frame) <= _COMPARED:
        return frame
    random = np.random.default_rng(seeds.integer(f"compared rows of {name}") % 2**32)
    return frame[np.sort(random.permutation(len(frame))[:_COMPARED])]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _as_numbers(kind: Kind, values: pl.Series) -> pl.Series:
    """What a histogram can be made of: numbers, days, and the length of texts."""
    return values.str.len_chars().cast(pl.Float64) if kind == Kind.TEXT else values


def _shares(kind: Kind, first: pl.Series, second: pl.Series) -> tuple[tuple[str, ...], list[NDArray[np.float64]]]:
    """Bins that hold for both domains, and the share of each domain's rows in them; gaps are a bin of their own."""
    if kind in (Kind.CATEGORY, Kind.BOOLEAN):
        words = [_named(kind, one) for one in (first, second)]
        every = pl.concat([one.alias("word").drop_nulls() for one in words])
        counted = every.value_counts(name="rows").sort("rows", "word", descending=[True, False])
        names = sorted(counted.head(_CATEGORIES)["word"].to_list())
        bins = (*names, OTHERS, MISSING_VALUES)
        named = [[int((one == name).sum()) for name in names] for one in words]
        counts = [
            np.array([*some, len(one) - one.null_count() - sum(some), one.null_count()], float)
            for some, one in zip(named, words, strict=True)
        ]
        used = (counts[0] + counts[1]) > 0
    else:
        values = [_as_numbers(kind, one) for one in (first, second)]
        present = [one.drop_nulls().to_numpy() for one in values]
        edges = _edges(np.concatenate(present))
        bins = (*(span_words(kind, low, high) for low, high in pairwise(edges)), MISSING_VALUES)
        inner = [np.clip(one, edges[0], edges[-1]) for one in present]
        counts = [
            np.append(np.histogram(one, edges)[0], whole.null_count()).astype(float)
            for one, whole in zip(inner, values, strict=True)
        ]
        used = np.append(np.ones(len(edges) - 1, dtype=bool), counts[0][-1] + counts[1][-1] > 0)
    return tuple(np.array(bins, dtype=object)[used].tolist()), [one[used] / max(one.sum(), 1) for one in counts]


def _named(kind: Kind, values: pl.Series) -> pl.Series:
    return values if kind == Kind.CATEGORY else (values > 0.5).cast(pl.String)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of bins of one width over what both domains have; the outermost take in whatever lies beyond."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = np.quantile(values, [0.01, 0.99])
    if low == high:
        low, high = values.min(), values.max()
    return np.linspace(low, high, _BINS + 1) if low < high else np.array([low - 0.5, low + 0.5])


def span_words(kind: Kind, low: float, high: float) -> str:
    """From one number, day or length of a text to another, with as many digits as tell them apart."""
    if kind == Kind.DATE:
        return " to ".join(_moments(low, high))
    digits = next((count for count in range(4, 17) if f"{low:.{count}g}" != f"{high:.{count}g}"), 4)
    return f"{low:.{digits}g} to {high:.{digits}g}{' letters' if kind == Kind.TEXT else ''}"


def _moments(low: float, high: float) -> list[str]:
    """Days, or minutes where less than a day lies between; times of day are those of the first day of 1970."""
    ends = np.array([low, high])
    clock = low >= 0 and high <= 1
    if high - low >= 1 and not clock:
        return [str(day) for day in ends.astype("datetime64[D]")]
    minutes = [str(one).replace("T", " ") for one in (ends * 24 * 60).round().astype("datetime64[m]")]
    return [one[-5:] for one in minutes] if clock else minutes


def _difference(kind: Kind, first: pl.Series, second: pl.Series) -> float | None:
    """The medians' difference beside half of what the middle 68 % of the source span: a deviation of a Gaussian."""
    one, other = (_as_numbers(kind, values).drop_nulls().to_numpy() for values in (first, second))
    if not len(one) or not len(other):
        return None
    low, high = np.quantile(one, [0.16, 0.84])
    spread = (high - low) / 2 or float(one.std())
    return float((np.median(other) - np.median(one)) / spread) if spread > 0 else None


def _tell_apart(
    source: NDArray[np.float32], target: NDArray[np.float32], widths: Sequence[int], order: Sequence[int], seeds: Seeds
) -> tuple[float, dict[int, float]]:
    """The area under the curve of trees that were taught the domains, on rows held out, and what columns add to it.

    A column's importance is what the area loses when its values are dealt out anew among the rows. Of columns that say
    the same, each looks unimportant.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # imported late: it takes as long as torch
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(seeds.integer("domain classifier") % 2**32)
    some = [domain[random.permutation(len(domain))[:_ROWS]] for domain in (source, target)]
    if min(map(len, some)) < 4:
        return 0.5, {}
    x, y = np.concatenate(some), np.repeat([0, 1], [len(one) for one in some])
    held = np.concatenate([np.arange(len(one)) % 2 == 1 for one in some])
    trees = HistGradientBoostingClassifier(max_iter=50, early_stopping=False, random_state=0).fit(x[~held], y[~held])
    rows, truth = x[held], y[held]
    whole = float(roc_auc_score(truth, trees.predict_proba(rows)[:, 1]))
    ends = np.cumsum(widths)
    importance = {}
    for place in order:
        mixed, part = rows.copy(), slice(ends[place] - widths[place], ends[place])
        mixed[:, part] = rows[random.permutation(len(rows)), part]
        importance[place] = whole - float(roc_auc_score(truth, trees.predict_proba(mixed)[:, 1]))
    return whole, importance
