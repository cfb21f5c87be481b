"""Texts from tables, JSON lines and folders."""

import gzip
import json

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
    unlabelled = read_collection(f"{path}:2", Seeds(0), False, CHOICE)
    assert unlabelled.labels is None
    assert len(unlabelled) == 2
    assert isinstance(unlabelled.samples, Texts)
    words = read_labels("inside", unlabelled, Seeds(0), "verdict")
    assert words == [ROWS[int(name)][1] for name in unlabelled.names]


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".jsonl.gz"])
def test_true_labels_come_in_the_forms_that_texts_do(tmp_path, suffix):
    path = written(tmp_path, suffix)
    texts = read_collection(str(path), Seeds(0), False, CHOICE)
    assert read_labels(str(path), texts, Seeds(0), "verdict") == ["good", "bad", "bad"]
