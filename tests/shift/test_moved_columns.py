"""Which columns moved, on tables that were moved on purpose."""

import datetime
import json

import numpy as np
import polars as pl
import pytest
import torch

from calida.data import Collection, ColumnChoice, TablePreparation
from calida.seeds import Seeds
from calida.shift import TableShift, compare_columns

ROWS = 600


def collections(source, target):
    table = TablePreparation.fit(source, None, ColumnChoice(), "source")
    return [
        Collection(name, table.apply(frame, name), [str(row) for row in range(len(frame))], table=table, frame=frame)
        for name, frame in (("source", source), ("target", target))
    ]


def frame(seed, moved=0.0, cities=("a", "b"), gaps=0, words=2):
    random = np.random.default_rng(seed)
    first = datetime.date(2024, 1, 1)
    return pl.DataFrame(
        {
            "same": random.normal(7, 2, ROWS),
            "moved": random.normal(moved, 2, ROWS),
            "city": random.choice(cities, ROWS),
            "gaps": pl.Series([None] * gaps + list(random.normal(size=ROWS - gaps)), dtype=pl.Float64),
            "day": [first + datetime.timedelta(days=int(day)) for day in random.integers(0, 300, ROWS)],
            "text": [" ".join(random.choice(["one", "two", "six"], words)) + f" {row}" for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def shift():
    return compare_columns(*collections(frame(0), frame(1, 6.0, ("b", "c"), 150, 6)), Seeds(0))


def test_columns_that_moved_are_told_in_spreads_and_distances(shift):
    by_name = {one.column: one for one in shift.columns}
    assert by_name["moved"].difference == pytest.approx(3, abs=0.25)
    assert abs(by_name["same"].difference) < 0.25
    assert abs(by_name["day"].difference) < 0.25
    # A Gaussian three deviations away: total variation 2 Phi(1.5) - 1 = 0.866.
    assert by_name["moved"].distance == pytest.approx(0.866, abs=0.04)
    assert by_name["same"].distance < 0.15
    assert by_name["city"].difference is None
    assert by_name["city"].distance == pytest.approx(0.5, abs=0.06)
    assert by_name["city"].unseen == pytest.approx(0.5, abs=0.06)
    assert by_name["city"].bins == ("a", "b", "c")
    assert by_name["gaps"].missing == (0.0, 0.25)
    assert by_name["text"].difference > 5
    for one in shift.columns:
        assert sum(one.source) == pytest.approx(1)
        assert sum(one.target) == pytest.approx(1)
        assert len(one.bins) == len(one.source) == len(one.target)
        assert one.distance == pytest.approx(np.abs(np.subtract(one.source, one.target)).sum() / 2)
    assert TableShift.from_json(json.loads(json.dumps(shift.to_json()))) == shift


def test_importance_is_that_of_the_one_column_that_moved():
    shift = compare_columns(*collections(frame(0), frame(1, 6.0)), Seeds(0))
    assert shift.columns[0].column == "moved"
    # Three deviations apart: area Phi(3 / sqrt 2) = 0.983; with the column dealt out anew, chance.
    assert shift.separation == pytest.approx(0.983, abs=0.02)
    assert shift.columns[0].importance == pytest.approx(0.483, abs=0.06)
    assert max(abs(one.importance) for one in shift.columns[1:]) < 0.05


def test_two_halves_of_one_table_are_not_told_apart():
    shift = compare_columns(*collections(frame(0), frame(1)), Seeds(0))
    assert shift.separation == pytest.approx(0.5, abs=0.07)
    assert max(one.distance for one in shift.columns) < 0.15


def test_columns_without_values_or_spread_do_no_harm():
    source = pl.DataFrame({"a": [1.0, 2.0, None, 4.0] * 5, "b": [3.0] * 19 + [4.0]})
    target = pl.DataFrame({"a": pl.Series([None] * 20, dtype=pl.Float64), "b": [3.0] * 20})
    shift = compare_columns(*collections(source, target), Seeds(0))
    by_name = {one.column: one for one in shift.columns}
    assert by_name["a"].difference is None
    assert by_name["a"].distance == pytest.approx(0.75)
    assert by_name["b"].difference == pytest.approx(0)
    vectors = Collection("x", torch.zeros(3, 2), ["0", "1", "2"])
    assert compare_columns(vectors, vectors, Seeds(0)) is None


@pytest.mark.parametrize("name", ["count", "rows", "word"])
def test_a_column_may_have_any_name_and_a_category_too(name):
    """Categories called as bins are do not count twice, and shares of a column sum to one."""
    words = ["others", "missing", *"abcdefghij"]
    source = pl.DataFrame({name: [words[place % 12] for place in range(240)], "x": list(range(240))})
    target = pl.DataFrame({name: [words[place % 2] for place in range(239)] + [None], "x": list(range(240))})
    shift = compare_columns(*collections(source, target), Seeds(0))
    one = next(one for one in shift.columns if one.column == name)
    assert sum(one.source) == pytest.approx(1)
    assert sum(one.target) == pytest.approx(1)
    # Ten of twelve words are gone in the target, and one of its 240 rows is a gap.
    assert one.distance == pytest.approx(10 / 12, abs=1 / 240)
