"""Texts from tables, JSON lines and folders."""

import gzip
import json
from dataclasses import replace

import polars as pl
import pytest

from calida.data import ColumnChoice, Texts, read_collection, read_labels
from calida.errors import InputError
from calida.seeds import Seeds

ROWS = [("A fine book.", "good"), ("Dull, and long", "bad"), ('He said "no"\nand left', "bad")]
CHOICE = ColumnChoice(label="verdict", text="review")


def written(place, suffix):
    frame = pl.DataFrame({"id": range(3), "review": [text for text, _ in ROWS], "verdict": [word for _, word in ROWS]})
    path = place / f"reviews{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix in (".csv", ".tsv"):
        frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    else:
        lines = "\n".join(json.dumps(row) for row in frame.to_dicts()).encode()
        path.write_bytes(gzip.compress(lines) if suffix.endswith(".gz") else lines)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".jsonl.gz"])
def test_a_column_of_texts(tmp_path, suffix):
    path = written(tmp_path, suffix)
    found = read_collection(str(path), Seeds(0), True, CHOICE)
    assert found.samples == Texts(text for text, _ in ROWS)
    assert (found.kind, list(found.labels), list(found.names)) == ("texts", ["good", "bad", "bad"], ["0", "1", "2"])
    unlabeled = read_collection(f"{path}:2", Seeds(0), False, CHOICE)
    assert unlabeled.labels is None
    assert len(unlabeled) == 2
    assert isinstance(unlabeled.samples, Texts)
    words = read_labels("inside", unlabeled, Seeds(0), "verdict")
    assert words == [ROWS[int(name)][1] for name in unlabeled.names]


def test_folders_of_texts(tmp_path):
    for place, (text, word) in enumerate(ROWS):
        (tmp_path / word).mkdir(exist_ok=True)
        (tmp_path / word / f"{place}.txt").write_text(text, encoding="utf-16" if place else "utf-8")
    found = read_collection(str(tmp_path), Seeds(0), True)
    assert dict(zip(found.samples, found.labels, strict=True)) == dict(ROWS)
    assert found.names[0].endswith(".txt")
    (tmp_path / "bad" / "latin.txt").write_bytes(b"\xff\xe9\xff")
    with pytest.raises(InputError, match="is not readable text"):
        read_collection(str(tmp_path), Seeds(0), True)


@pytest.mark.parametrize(
    ("content", "choice", "message"),
    [
        ("review,verdict\na,b\n", ColumnChoice(text="words", label="verdict"), "has no column 'words'; it has review"),
        ("review,verdict\na,b\n", ColumnChoice(text="review"), "name its label column"),
        ("review,verdict\na,b\n", ColumnChoice(text="review", label="stars"), "has no column 'stars'"),
        ("review,verdict\n", CHOICE, "has no rows"),
        ("review,verdict\n,b\n ,c\n", CHOICE, "all of them are empty"),
        ("review,verdict\na,\n", CHOICE, "lacks some values, the first in row 0"),
        ("review,verdict\na,b\nc, \n", CHOICE, "lacks some values, the first in row 1"),
        ("n,review,verdict\n1,a,b\n1,c,d\n", replace(CHOICE, id="n"), "names several rows '1'"),
        ("review, review ,verdict\na,b,c\n", CHOICE, "more than one column named 'review'"),
    ],
)
def test_what_is_wrong_with_a_table_of_texts_is_one_sentence(tmp_path, content, choice, message):
    path = tmp_path / "reviews.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_collection(str(path), Seeds(0), True, choice)
    assert "\n" not in str(caught.value)


def test_broken_json_lines_and_those_without_a_column_are_named(tmp_path):
    path = tmp_path / "reviews.jsonl"
    path.write_text('{"review": "a"')
    with pytest.raises(InputError, match="cannot be read"):
        read_collection(str(path), Seeds(0), False, CHOICE)
    with pytest.raises(InputError, match="name the column of texts"):
        read_collection(str(path), Seeds(0), False)
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="cannot be read"):
        read_collection(str(tmp_path / "broken.jsonl.gz"), Seeds(0), False, CHOICE)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_spaces_around_names_do_not_count(tmp_path, suffix):
    rows = {"id": ["x", "y"], " review": ["007", " NA "], " verdict ": ["1.0", "2.0"]}
    path = tmp_path / f"reviews{suffix}"
    frame = pl.DataFrame(rows)
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}[suffix](path)
    found = read_collection(str(path), Seeds(0), True, replace(CHOICE, id="id"))
    assert (found.samples, list(found.names)) == (Texts(["007", "NA"]), ["x", "y"])
    assert found.labels == ["1", "2"]  # as in a table of numbers
    assert read_labels("inside", found, Seeds(0), "verdict") == ["1", "2"]


def test_a_long_text_and_a_blank_line(tmp_path):
    path = tmp_path / "reviews.csv"
    long = 200_000 * "a"
    path.write_text(f"review,verdict\n{long},good\n\nb,bad\n")
    found = read_collection(str(path), Seeds(0), True, CHOICE)
    assert (found.samples, found.labels) == (Texts([long, "b"]), ["good", "bad"])


def test_long_texts_that_are_no_utf_8_are_told(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_bytes(b"review,verdict\n" + 20_000 * b"plain,good\n" + "schön,good\n".encode("latin-1"))
    with pytest.raises(InputError, match="is not readable text; save it as UTF-8"):
        read_collection(str(path), Seeds(0), True, CHOICE)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".jsonl.gz"])
def test_true_labels_come_in_the_forms_that_texts_do(tmp_path, suffix):
    path = written(tmp_path, suffix)
    texts = read_collection(str(path), Seeds(0), False, CHOICE)
    assert read_labels(str(path), texts, Seeds(0), "verdict") == ["good", "bad", "bad"]
