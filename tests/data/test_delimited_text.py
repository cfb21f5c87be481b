"""CSV files as programs and people write them, against Python's own reader and writer."""

import csv
import gzip
import io
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from calida.data import ColumnChoice, ImageFiles, UnreadableImageError, collect, digest, read_collection
from calida.data.files.delimited_text import ends_in_returns, suffix_of
from calida.errors import InputError
from calida.seeds import Seeds

RNG = np.random.default_rng(0)
ROWS = [[f"{one:.3f}", f"{other:.3f}", "uv"[row % 2]] for row, (one, other) in enumerate(RNG.normal(size=(30, 2)))]
LABELED = ColumnChoice(label="y")


def write(path, rows, header=("a", "b", "y"), **dialect):
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, **dialect).writerow(header)
        csv.writer(file, **dialect).writerows(rows)
    return path


def read(path, choice=LABELED, labeled=True, table=None):
    return read_collection(str(path), Seeds(0), labeled, choice, table)


def known(rows=ROWS):
    return np.array([[float(one) for one in row[:2]] for row in rows], np.float32).tolist()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "header", [("a", "b", "y"), ("a,b;c", 'say "b"', "y"), ("a\nb", "b\r\nc", "y"), ("", "b", "y")]
)
def test_rows_end_and_headers_are_quoted_in_any_way(tmp_path, end, separator, header):
    file = write(tmp_path / "t.csv", ROWS, header, lineterminator=end, delimiter=separator)
    found = read(file)
    assert found.frame.columns == list(header[:2])
    assert found.labels == [row[2] for row in ROWS]
    kept = slice(0, 2) if header[0] else slice(1, 2)
    assert found.samples.tolist() == [row[kept] for row in known()]
    later = write(tmp_path / "later.csv", ROWS[:3], header, lineterminator="\n")
    assert read(later, labeled=False, table=found.table).samples.tolist() == found.samples[:3].tolist()


def test_what_ends_rows_is_seen_outside_of_quotes(tmp_path):
    file = tmp_path / "t.csv"
    for content, returns in {
        '"a\rb",c\n1,2\n': False,
        '"a\nb",c\r1,2\r': True,
        "a,b\r\n1,2\r\n": False,
        "a": False,
    }.items():
        file.write_bytes(content.encode())
        assert ends_in_returns(file) is returns


@pytest.mark.parametrize(
    ("row", "cells"),
    [(["1", "2", "u", "9"], "4 cells"), (["1"], "1 cell"), (["1", "2"], "2 cells"), (["1", "2", "u", ""], "4 cells")],
)
@pytest.mark.parametrize("place", [0, 12])
def test_rows_of_another_length_are_named_by_their_line(tmp_path, row, cells, place):
    """A cell with a line break in the row before: lines are those that an editor counts."""
    rows = [["1\n2", "1", "u"], *ROWS[:place], row, *ROWS[place:]]
    file = write(tmp_path / "t.csv", rows, lineterminator="\n")
    lines = file.read_text().splitlines()
    with pytest.raises(InputError, match=f"line {4 + place} of .*t.csv has {cells}, and the header has 3$"):
        read(file)
    assert lines[3 + place] == ",".join(row)
    table = read(write(tmp_path / "s.csv", ROWS)).table
    with pytest.raises(InputError, match=f"has {cells}"):
        read(file, labeled=False, table=table)


def test_a_column_without_values_is_left_out_or_all_gaps(tmp_path):
    empty, full = [[one, "", label] for one, _, label in ROWS], write(tmp_path / "full.csv", ROWS)
    source = read(write(tmp_path / "empty.csv", empty))
    assert source.table.columns == ("a",)
    assert read(full, labeled=False, table=source.table).samples.tolist() == source.samples.tolist()
    later = read(tmp_path / "empty.csv", labeled=False, table=read(full).table)
    median = np.float32(np.median([float(row[1]) for row in ROWS]))
    np.testing.assert_allclose(later.samples[:, 1].numpy(), median)
    assert later.notes == ("other shares of missing values: b (0.0% in source, 100.0% here)",)


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv.gz", ".CSV.GZ"])
def test_packed_tables_are_read(tmp_path, suffix):
    plain = write(tmp_path / "t.csv", ROWS, delimiter="\t" if "tsv" in suffix else ",")
    packed = tmp_path / f"t{suffix}"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed).samples.tolist() == known()
    packed.write_bytes(gzip.compress(plain.read_text().encode("utf-16")))
    assert read(packed).samples.tolist() == known()
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read(packed)
    assert suffix_of(tmp_path / "x.npz.gz") == ".gz"


def test_an_index_that_was_saved_along_is_left_out_and_named(tmp_path):
    frame = pd.DataFrame({"x": RNG.normal(size=60), "y": RNG.permutation(["u", "v"] * 30)})
    two = pd.MultiIndex.from_arrays([np.arange(60) % 20, np.arange(60) % 3])
    frame.to_csv(tmp_path / "one.csv")
    frame.set_index(two).to_csv(tmp_path / "two.csv")
    frame[frame.x > -9].sample(frac=1, random_state=0).to_parquet(tmp_path / "one.parquet")
    for name, columns in {
        "one.csv": "''",
        "two.csv": "'Unnamed: column 1', 'Unnamed: column 2'",
        "one.parquet": "'__index_level_0__'",
    }.items():
        found = read(tmp_path / name)
        assert found.table.columns == ("x",)
        assert f"left out as an index without a name: {columns}" in found.table.warnings()
    asked = read(tmp_path / "one.parquet", ColumnChoice(("__index_level_0__",), label="y"))
    assert asked.table.columns == ("__index_level_0__",)  # who asks for a column gets it


def test_the_index_of_a_frame_names_rows_only_where_it_is_asked_to():
    frame = pd.DataFrame({"x": RNG.normal(size=60), "y": RNG.permutation(["u", "v"] * 30)})
    named = frame.set_index(pd.Index([f"p{row}" for row in range(60)], name="patient"))
    for given, choice, names in [
        (frame[::2], LABELED, [str(row) for row in range(30)]),
        (named, LABELED, [str(row) for row in range(60)]),
        (named, ColumnChoice(label="y", id="patient"), list(named.index)),
    ]:
        found = collect(given, Seeds(0), True, choice)
        assert found.names == names
        assert found.table.columns == ("x",)
    assert "patient" not in named.columns  # what was given is as it was


@pytest.mark.parametrize("choice", [{"drop": ("y ",)}, {"id": "y"}, {"only": ("y",)}])
def test_the_column_of_labels_has_no_other_use(choice):
    with pytest.raises(InputError, match=r"^the column 'y' holds the labels, and [a-z ]+$"):
        ColumnChoice(label="y", **choice)


@pytest.mark.parametrize(
    "values", [[[1, 2], [3]], [{"a": 1}, {"b": 2}], [(1,), (2,)], [{1}, {2}], [np.zeros(2), "word"]]
)
def test_lists_in_a_column_are_told_unless_it_is_left_out(values):
    frame = pd.DataFrame({"x": RNG.normal(size=60), "c": pd.Series(values * 30), "y": ["u", "v"] * 30})
    with pytest.raises(InputError, match="the column 'c' holds lists or dicts, which no feature is made of"):
        collect(frame, Seeds(0), True, LABELED)
    assert collect(frame, Seeds(0), True, ColumnChoice(label="y", drop=("c",))).table.columns == ("x",)


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", object, bool])
@pytest.mark.parametrize("words", [("true", "false"), ("Yes", "No"), ("T", "F"), (True, False)])
def test_truth_is_boolean_with_gaps_and_without(dtype, words):
    """A frame whose type says so is read alike with one that has words, in both directions."""
    whole = pd.Series([True, False, True, True] * 15)
    gaps = whole.astype(object).where(np.arange(60) % 5 > 0, None)
    typed = [whole.astype(dtype), whole.astype(dtype) if dtype is bool else gaps.astype(dtype)]
    spelled = [one.map({True: words[0], False: words[1]}, na_action="ignore") for one in (whole, gaps)]
    x = RNG.normal(size=60)
    for source in (*typed, *(spelled if words[0] in ("true", True) else ())):  # yes and no may have a third beside them
        fitted = collect(pd.DataFrame({"x": x, "c": source}), Seeds(0), False)
        assert [one.kind.value for one in fitted.table.encoders] == ["number", "boolean"]
        for target in (*typed, *spelled):
            found = collect(pd.DataFrame({"x": x, "c": target}), Seeds(0), False, table=fitted.table).samples[:, 1]
            share = source.astype(object).isin([True, words[0]]).sum() / source.count()
            reference = [share if pd.isna(one) else float(one in (True, words[0])) for one in target]
            np.testing.assert_allclose(found.numpy(), reference, rtol=1e-6)


def test_long_whole_numbers_keep_all_their_digits():
    codes = [2**60 + row % 7 for row in range(60)]
    nullable = pd.Series([None if row % 9 == 0 else code for row, code in enumerate(codes)], dtype="Int64")
    for column in (pd.Series(codes), pd.Series(codes, dtype="uint64"), nullable, pd.Series([8 * c for c in codes])):
        frame = pd.DataFrame({"x": RNG.normal(size=60), "c": column})
        (_, encoder) = collect(frame, Seeds(0), False).table.encoders
        assert set(encoder.categories) == {str(code) for code in column.dropna()}


def test_a_pipe_among_images_is_left_out(tmp_path):
    """Nothing is ever written into it, so that reading it would not end."""
    (tmp_path / "a").mkdir()
    Image.new("L", (4, 4)).save(tmp_path / "a" / "x.png")
    os.mkfifo(tmp_path / "a" / "y.png")
    found = read(tmp_path, labeled=True)
    assert found.names == ["a/x.png"]
    assert found.notes == ("1 files that are no images were left out",)
    for pipe in ("p.csv", "p.png"):
        os.mkfifo(tmp_path / pipe)
        with pytest.raises(InputError, match=f"{pipe} is neither a file nor a folder"):
            read(tmp_path / pipe, labeled=False)


def test_the_digest_of_an_image_that_ends_early_is_an_error_in_words():
    content = io.BytesIO()
    Image.fromarray(RNG.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(content, "PNG")
    image = Image.open(io.BytesIO(content.getvalue()[:2000]))
    with pytest.raises(UnreadableImageError, match="cannot be read: image file is truncated"):
        digest(ImageFiles([image], int, (3, 8, 8)))


def test_notes_have_one_line_whatever_columns_are_called():
    frame = pl.DataFrame({"a\nb": ["p", "q"] * 10, "x": RNG.normal(size=20)})
    assert collect(frame, Seeds(0), False).notes == ("read as category: a b",)
