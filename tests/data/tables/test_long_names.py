"""Names of columns that are sentences, and columns of times, in the figures of the report."""

from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

from calida.data import Kind
from calida.report.table_figures import groups, moved_columns
from calida.shift import ColumnShift, TableShift, span_words

LONG = "How often did you, in the last <four> weeks, feel that nothing could cheer you up?"


def test_a_long_name_is_cut_and_told_in_full_where_the_pointer_rests():
    one = ColumnShift(LONG, "number", 0.5, 0.5, 0.0, (0.0, 0.0), 0.0, ("1 to 2", "2 to 3"), (1.0, 0.0), (0.5, 0.5))
    short = ColumnShift("age", "number", 0.5, 0.5, 0.0, (0.0, 0.0), 0.0, ("1 to 2", "2 to 3"), (1.0, 0.0), (0.5, 0.5))
    figure = moved_columns(SimpleNamespace(metrics={"columns": TableShift(0.5, (one, short)).to_json()}))
    cut = f'<span title="{escape(LONG)}">{escape(LONG[:39])}…</span>'
    for shown in (figure.panels[0].title, figure.table.rows[0][0]):
        assert shown.__html__() == cut
    assert figure.panels[1].title == figure.table.rows[1][0] == "age"
    assert LONG.split(",")[2] not in figure.panels[0].picture


def test_long_groups_are_cut_too():
    found = {
        "column": LONG,
        "groups": [{"group": LONG, "rows": 9, "source_only": 0.5, "adapted": 0.5, "low": 0.2, "high": 0.8}],
    }
    figure = groups(SimpleNamespace(metrics={"groups": found}, truth=np.zeros(1)))
    assert figure.title == f"Accuracy by {LONG[:39]}…"
    assert figure.table.header[0].__html__() == figure.table.rows[0][0].__html__()
    assert len(figure.caption) < 200


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (18700.0, 18800.0, "2021-03-14 to 2021-06-22"),
        (18700.5, 18700.9, "2021-03-14 12:00 to 2021-03-14 21:36"),
        (0.0, 0.3, "00:00 to 07:12"),
        (0.5, 1.0, "12:00 to 00:00"),
        (-3.0, 5.0, "1969-12-29 to 1970-01-06"),
    ],
)
def test_spans_of_hours_have_hours(low, high, words):
    assert span_words(Kind.DATE, low, high) == words
