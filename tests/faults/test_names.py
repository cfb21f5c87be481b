"""Names that a spreadsheet would run, or that break a line, in files that calida writes and reads back."""

import csv
import json

import numpy as np
from commands import succeed
from conftest import SETTINGS
from hypothesis import given, settings
from hypothesis import strategies as st

from calida.spreadsheets import plain_text, read_csv, safe_text, write_csv

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
HOSTILE = [
    "=HYPERLINK(1).png",
    "@SUM(1).png",
    "+1+1.png",
    "-2+3.png",
    "\tx.png",
    "a\rb.png",
    "'=quoted.png",
    'a,"b.png',
]
TEXT = st.text(st.sampled_from("=+-@\t\r\n'\",;1a é"), max_size=6)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(text=TEXT)
def test_every_text_comes_back_and_none_is_a_formula(text):
    safe = safe_text(text)
    assert plain_text(safe) == text
    number = text.lstrip("+-").isdecimal()
    assert number or not safe.startswith(STARTS)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=4))
def test_a_table_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    names, labels = ([row[place] for row in rows] for place in (0, 1))
    write_csv(path, [("name", names), ("=label", labels)])
    assert read_csv(path) == [["name", "=label"], *map(list, rows)]


def test_numbers_have_six_digits_and_whole_numbers_all_of_theirs(tmp_path):
    numbers = np.array([0.0, 1.0, 0.1234567, 1.5e-8, 123456.7], np.float32)
    write_csv(tmp_path / "t.csv", [("n", numbers), ("rows", [0, -1, 10**9, 3, 4]), ("none", [""] * 5)])
    _, *rows = read_csv(tmp_path / "t.csv")
    np.testing.assert_allclose([float(row[0]) for row in rows], numbers, rtol=1e-5)
    assert rows[2] == ["0.123457", "1000000000", ""]


def test_a_run_on_hostile_names(world):
    """It is trained, reported and evaluated, and its own predictions serve as labels."""
    for index, name in enumerate(HOSTILE):
        (world / "photos-t" / "up" / name).write_bytes(
            (world / "photos-s" / "up" / f"{2 * (index % 4) + 1}.png").read_bytes()
        )
    words = ["--source", "photos-s", "--target", "photos-t", "--out", "hostile", "--backbone", "lenet", *SETTINGS]
    succeed("adapt", *words, cwd=world)
    path = world / "hostile" / "predictions.csv"
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    assert len(rows) == 8 + len(HOSTILE)
    names = [row[0] for row in rows]
    assert "up/a\\rb.png" in names
    assert not [cell for row in rows for cell in row if cell.startswith(STARTS)]
    for folder in ("photos-t/up", "photos-t"):  # below the folder itself, the name is the first thing in its cell
        succeed("predict", "hostile", folder, "--out", "p.csv", cwd=world)
        with (world / "p.csv").open(newline="") as file:
            assert not [row for row in csv.reader(file) if row[0].startswith(STARTS)]
    succeed("report", "hostile", cwd=world)
    done = succeed("evaluate", "hostile", "--target-labels", "hostile/predictions.csv", "--json", cwd=world)
    assert json.loads(done.stdout)["adapted"]["oracle"]["accuracy"] == 1.0
