"""Tables of features: CSV, TSV and Parquet."""

from __future__ import annotations

import zlib
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from calida.data.files.collection import Collection
from calida.data.files.delimited_text import (
    PACKED,
    blank_lines,
    encoding_of,
    ends_in_returns,
    not_text,
    read_cells,
    refuse_ragged,
    refuse_twice,
    separator_of,
    suffix_of,
    with_line_feeds,
)
from calida.data.files.image_folders import printable
from calida.data.tables.preparation import ColumnChoice, TablePreparation, listed
from calida.data.tables.values import MISSING
from calida.errors import InputError, suggest
from calida.files import read_gzip

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
ROW = "row"  # the column by which predictions name the samples of a table
_EXACT = 2**53  # floats below are exact where they are whole


class RowRange(NamedTuple):
    """Some rows of a Parquet file: the first, and how many."""

    start: int
    length: int


def read_table(
    path: Path,
    origin: str,
    choice: ColumnChoice,
    labeled: bool,
    table: TablePreparation | None = None,
    rows: RowRange | None = None,
) -> Collection:
    """The rows of a file as features."""
    frame = read_frame(path, {choice.label, choice.id, *(() if table is None else table.words)}, rows=rows)
    return table_collection(frame, str(path), choice, labeled, table, origin, rows)


def table_collection(
    frame: pl.DataFrame,
    place: str,
    choice: ColumnChoice,
    labeled: bool,
    table: TablePreparation | None = None,
    origin: str | None = None,
    rows: RowRange | None = None,
) -> Collection:
    """Rows as features; the label column, if there, is never a feature and only read where labels are asked for.

    With the `table` of the source, its columns are taken and encoded as they were there; without, it is fitted here.
    `place` is what errors call the table, `origin` what the user does, and `rows` which of a file's rows these are.
    """
    label = choice.label
    labels = _labels_of(frame, label, place) if labeled else None
    frame = frame.drop(label, strict=False) if label else frame
    fitted = table or TablePreparation.fit(frame, labels, choice, place)
    values = fitted.read(frame, place)
    notes = fitted.explain() if table is None else fitted.compare(frame, values)
    named = choice.id if choice.id in frame.columns else None
    names = row_numbers(frame, rows) if named is None else row_names(frame[named], place)
    samples = fitted.encode(values)
    return Collection(origin or place, samples, names, labels, tuple(notes), table=fitted, frame=frame, id=named)


def _labels_of(frame: pl.DataFrame, label: str | None, place: str) -> list[str]:
    """The column of labels as words."""
    if label is None:
        raise InputError(f"{place} is a table: name its label column; it has {listed(frame.columns)}", "label")
    if label not in frame.columns:
        raise no_column(place, label, frame.columns)
    return label_words(frame[label], place)


def no_column(place: str, name: str, columns: Sequence[str]) -> InputError:
    """For a column that a table has not got: those that it has, and the ones with such a name."""
    return InputError(f"{place} has no column {name!r}; it has {listed(columns)}{suggest(name, columns, listed=False)}")


def read_parquet(path: Path, rows: RowRange | None = None, only: Container[str | None] | None = None) -> pl.DataFrame:
    """The table, or some rows or columns of it without reading the others."""
    whole = pl.scan_parquet(path)
    if only is not None:
        columns = whole.collect_schema().names()
        whole = whole.select([column for column in columns if column.strip() in only] or columns)
    return (whole if rows is None else whole.slice(*rows)).collect()


def is_json_lines(path: Path) -> bool:
    """Whether a file's name says that each of its lines is a JSON object."""
    return path.name.lower().endswith(_JSON_LINES)


def read_json_lines(path: Path) -> pl.DataFrame:
    """A table of JSON objects, one a line, packed or not."""
    content = read_gzip(path) if path.suffix.lower() == ".gz" else path.read_bytes()
    return pl.read_ndjson(content, infer_schema_length=None)


def row_numbers(frame: pl.DataFrame, rows: RowRange | None) -> list[str]:
    """Rows named by their place in the file."""
    first = 0 if rows is None else rows.start
    return [str(row) for row in range(first, first + len(frame))]


def row_names(column: pl.Series, place: str) -> list[str]:
    """Rows named by a column, in which each name is there once."""
    names = [printable(name) for name in label_words(column, place, "column")]
    twice = pl.Series(names).filter(pl.Series(names).is_duplicated())
    if len(twice):
        raise InputError(f"the column {column.name!r} of {place} names several rows {twice[0]!r}; name another", "id")
    return names


def read_label_column(path: Path, label: str, key: str = ROW) -> tuple[list[str] | None, list[str]]:
    """The labels of a table, by the name of their column; of a table with a single column, that one.

    With them the rows that they belong to, if a column tells: the one named `key`.
    """
    label = label.strip()
    frame = read_frame(path, {label}, numbers=False)
    column = frame.columns[0] if len(frame.columns) == 1 else label
    if column not in frame.columns:
        raise no_column(str(path), label, frame.columns)
    rows = label_words(frame[key], str(path), "column") if key in frame.columns and column != key else None
    return rows, label_words(frame[column], str(path))


def read_own_labels(path: Path, label: str | None, id_column: str | None) -> tuple[list[str], list[str]]:
    """The names of a table's rows and their labels; of a Parquet file, no other column is read."""
    frame = read_frame(path, {label, id_column}, only={label, id_column} if label else None)
    labels = _labels_of(frame, label, str(path))
    names = row_numbers(frame, None) if id_column is None else label_words(frame[id_column], str(path), "column")
    return names, labels


def read_frame(
    path: Path,
    words: Container[str | None],
    numbers: bool = True,
    rows: RowRange | None = None,
    only: Container[str | None] | None = None,
) -> pl.DataFrame:
    """The table; some columns are read as the words that are written, since 01 and 1 may be two classes.

    With `only`, a Parquet file gives no other columns, if it has one of them.
    """
    try:
        if is_json_lines(path):
            frame = read_json_lines(path)
        elif suffix_of(path) == ".parquet":
            frame = read_parquet(path, rows, only)
        else:
            frame = _read_text(path, words, numbers)
    except UnicodeError as error:
        raise not_text(path, error) from None
    except (pl.exceptions.PolarsError, OSError, EOFError, zlib.error) as error:
        told = str(error).splitlines()[0][:200]
        if "invalid utf-8" in told:
            raise not_text(path, told) from None
        raise InputError(f"the table {path} cannot be read: {told}") from None
    plain = [column.strip() for column in frame.columns]
    refuse_twice(plain, str(path))
    return frame.rename(dict(zip(frame.columns, plain, strict=True)))


def _read_text(path: Path, words: Container[str | None], numbers: bool) -> pl.DataFrame:
    header = next(iter(read_cells(path, 1)), [])
    refuse_twice([column.strip() for column in header if column.strip()], str(path))  # polars would rename one
    content = _content(path)
    options: dict[str, Any] = {"separator": separator_of(path), "null_values": [""]}
    try:
        own = pl.read_csv(content, n_rows=0, **options).columns
        # Where polars names columns otherwise than the file does, as it does those without a name, places tell.
        names = _names(header) if len(header) == len(own) else own
        overrides = {column: pl.String for column, name in zip(own, names, strict=True) if name.strip() in words}
        options |= {"infer_schema": numbers, "infer_schema_length": None, "schema_overrides": overrides}
        frame = pl.read_csv(content, **options)
    except pl.exceptions.PolarsError:
        refuse_ragged(path)
        raise
    if frame.width and frame[:, -1].null_count():
        refuse_ragged(path)  # polars fills up rows that are too short
    frame.columns = names
    return _without_blank_lines(frame, path)


def _content(path: Path) -> Path | bytes:
    """What polars reads: the file, or its text where that is packed, or written as polars does not read it."""
    packed, encoding, returns = path.suffix.lower() == PACKED, encoding_of(path), ends_in_returns(path)
    if encoding == "utf-8-sig" and not packed and not returns:
        return path
    text = (read_gzip(path) if packed else path.read_bytes()).decode(encoding)
    return (with_line_feeds(text, separator_of(path)) if returns else text).encode()


def _names(header: Sequence[str]) -> list[str]:
    """The names of columns; one without a name is told by its place, and a single one as the file has it."""
    unnamed = sum(not column.strip() for column in header)
    return [
        f"Unnamed: column {place}" if not column.strip() and unnamed > 1 else column
        for place, column in enumerate(header, start=1)
    ]


def _without_blank_lines(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """A blank line is no row; in a single column it may as well be a value that is missing.

    A line of separators is a row of gaps, and stays: rows are known by their place. At the end of a file it is what
    spreadsheets leave behind.
    """
    if frame.width < 2:
        return frame
    filled = (~frame.select(pl.all_horizontal(pl.all().is_null())).to_series()).to_list()
    count = max((row + 1 for row, some in enumerate(filled) if some), default=0)
    if all(filled[:count]):
        return frame.head(count)
    blank = blank_lines(path)[1 : count + 1]  # after the header
    known = blank if len(blank) == count else [True] * count
    return frame.head(count).filter([some or not none for some, none in zip(filled, known, strict=False)])


def label_words(column: pl.Series, place: str, what: str = "label column") -> list[str]:
    """Words for classes or rows, none of them missing."""
    texts = column if column.dtype == pl.String else pl.Series([None if one is None else str(one) for one in column])
    texts = texts.cast(pl.String).str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False).fill_nan(None)
    # Among numbers, a word for what is missing is no class; among words, NA may be one, and a blank is none.
    missing = texts.is_null() | (texts.is_in([""]) if numbers.is_null().all() else texts.is_in(MISSING))
    if missing.any():
        row = missing.arg_true()[0]
        raise InputError(f"the {what} {column.name!r} of {place} lacks some values, the first in row {row}")
    # 3.0 is class 3, in a column of whole numbers that something wrote as floats.
    whole = (numbers == numbers.round()) & (numbers.abs() < _EXACT)
    if texts.str.contains(".", literal=True).all() and whole.fill_null(False).all():
        texts = numbers.cast(pl.Int64).cast(pl.String)
    return texts.to_list()
