"""Figures on tables: moved columns and accuracy by group, against numbers counted by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_results import HOSTILE, make
from scipy.stats import binomtest

from calida.data import Collection
from calida.errors import InputError
from calida.report import measure_groups, render
from calida.report.groups import accuracy_by_group, group_rows
from calida.report.table_figures import groups, moved_columns
from calida.shift import ColumnShift, TableShift
from calida.uncertainty import wilson

MOVED = ColumnShift(HOSTILE, "category", None, 0.5, 0.25, (0.0, 0.1), 0.4, ("a", HOSTILE), (0.75, 0.25), (0.25, 0.75))
STILL = ColumnShift(
    "age", "number", -0.25, 0.125, 0.0, (0.0, 0.0), 0.0, ("1 to 2", "2 to 3"), (0.5, 0.5), (0.375, 0.625)
)


def test_values_are_groups_and_numbers_are_quarters():
    cities = group_rows(pl.Series("city", ["b", "a", None, "b", "b", "a"]))
    assert [(name, rows.nonzero()[0].tolist()) for name, rows in cities] == [
        ("b", [0, 3, 4]),
        ("a", [1, 5]),
        ("(missing)", [2]),
    ]
    ages = group_rows(pl.Series("age", [*range(100), None]))
    assert [int(rows.sum()) for _, rows in ages] == [25, 25, 25, 25, 1]
    assert ages[0][0] == "0 to 24.75"
    many = group_rows(pl.Series("word", [f"w{place % 20} x" for place in range(200)]))
    assert sum(int(rows.sum()) for _, rows in many) == 200
    assert int(dict(many)["(others)"].sum()) == 80
    one = group_rows(pl.Series("grade", [1.0, 2.0, 1.0]))
    assert [(name, int(rows.sum())) for name, rows in one] == [("1", 2), ("2", 1)]


def test_no_group_hides_another():
    stamps = group_rows(pl.Series("stamp", [1_700_000_000.0 + place for place in range(400)]))
    assert [int(rows.sum()) for _, rows in stamps] == [100] * 4
    assert len({name for name, _ in stamps}) == 4
    words = group_rows(pl.Series("word", ["(missing)", None, "a", "a"]))
    assert [(name, int(rows.sum())) for name, rows in words] == [("a", 2), ("(missing)", 1), ("(missing)", 1)]


def test_accuracy_is_counted_within_each_group():
    column = pl.Series("city", ["a"] * 4 + ["b"] * 2)
    truth, before, after = np.zeros(6, int), np.array([0, 1, 1, 1, 0, 0]), np.array([0, 0, 0, 1, 1, 0])
    found = {one.group: one for one in accuracy_by_group(column, truth, before, after)}
    assert (found["a"].rows, found["a"].source_only, found["a"].adapted) == (4, 0.25, 0.75)
    assert (found["b"].rows, found["b"].source_only, found["b"].adapted) == (2, 1.0, 0.5)
    for share, count in ((0.75, 4), (0.0, 7), (1.0, 3)):
        exact = binomtest(round(share * count), count).proportion_ci(method="wilson")
        assert wilson(share, count) == pytest.approx((exact.low, exact.high), abs=1e-4)
    table = Collection("t", [], [], frame=pl.DataFrame({"city": column}))
    assert measure_groups(table, " city", truth, before, after)["groups"][0]["adapted"] == 0.75
    with pytest.raises(InputError, match="t has no column 'town'; it has city"):
        measure_groups(table, "town", truth, before, after)
    with pytest.raises(InputError, match="photos is no table"):
        measure_groups(Collection("photos", [], []), "town", truth, before, after)


def results():
    known = make()
    rows = Collection("t", [], [], frame=pl.DataFrame({HOSTILE: [HOSTILE, "b"] * 45}))
    said = (side.target.argmax(1) for side in (known.predictions.before, known.predictions.after))
    shift = TableShift(0.875, (MOVED, STILL))
    facts = {"columns": shift.to_json(), "groups": measure_groups(rows, HOSTILE, known.truth, *said)}
    return replace(known, metrics={**known.metrics, **facts})


def test_both_figures_show_their_numbers_and_nothing_hostile():
    shown = results()
    page = render(shown)
    assert HOSTILE not in page
    figure = moved_columns(shown)
    assert "0.88" in figure.caption
    assert figure.table.rows[0] == [HOSTILE, "category", "", "0.50", "0.250", "0.0%", "10.0%", "40.0%"]
    assert figure.table.rows[1][2] == "-0.25"
    assert figure.panels[0].picture.count("<rect") == 4
    by_group = groups(shown)
    right = shown.predictions.after.target.argmax(1) == shown.truth
    assert [row[3] for row in by_group.table.rows] == [f"{right[start::2].mean():.1%}" for start in (0, 1)]
    for text in ('id="columns"', 'id="groups"', "Which columns moved"):
        assert text in page


def test_runs_without_tables_have_neither():
    assert moved_columns(make()) is None
    assert groups(make()) is None
