"""Texts: a column of a table or of JSON lines, or a folder of .txt files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from calida.data.arrays.decode import IMAGE_SUFFIXES
from calida.data.arrays.samples import Texts
from calida.data.files.collection import Collection
from calida.data.files.delimited_text import encoding_of, not_text
from calida.data.files.image_folders import read_folder, visible_files
from calida.data.files.tables import RowRange, label_words, no_column, read_frame, row_names, row_numbers
from calida.data.tables.preparation import ColumnChoice
from calida.errors import InputError

_TEXT_SUFFIXES = frozenset((".txt",))


def is_text_folder(folder: Path) -> bool:
    """Whether a folder holds .txt files and no images."""
    suffixes = set[str]()
    for path in visible_files(folder):
        suffixes.add(path.suffix.lower())
        if suffixes & IMAGE_SUFFIXES:
            return False
    return bool(suffixes & _TEXT_SUFFIXES)


def read_text_folder(folder: Path, origin: str, labeled: bool) -> Collection:
    """All .txt files below a folder, a text each; if `labeled`, the first sub-folder is the class."""
    files = read_folder(folder, origin, labeled, _TEXT_SUFFIXES, "texts")
    texts = [_read_file(path) for path in files.files if isinstance(path, Path)]
    return _collection(origin, texts, files.names, files.labels, files.notes)


def read_text_table(
    path: Path, origin: str, choice: ColumnChoice, labeled: bool, rows: RowRange | None = None
) -> Collection:
    """One column of a file as texts."""
    frame = read_frame(path, (), numbers=False, rows=rows)
    return text_collection(frame, str(path), choice, labeled, origin, rows)


def text_collection(
    frame: pl.DataFrame,
    place: str,
    choice: ColumnChoice,
    labeled: bool,
    origin: str | None = None,
    rows: RowRange | None = None,
) -> Collection:
    """One column of a table as texts; that of labels is only read where they are asked for.

    `place` is what errors call the table, `origin` what the user does, and `rows` which of a file's rows these are.
    """
    column, label = choice.text, choice.label
    assert column is not None
    shown = ", ".join(frame.columns[:8])
    for name in (column, label) if labeled else (column,):
        if name is None:
            raise InputError(f"{place} is a table: name its label column; it has {shown}", "label")
        if name not in frame.columns:
            raise no_column(place, name, frame.columns)
    if not len(frame):
        raise InputError(f"{place} has no rows")
    if frame[column].dtype.is_nested():
        raise InputError(f"the column {column!r} of {place} holds no texts")
    labels = label_words(frame[label], place) if labeled and label is not None else None
    named = choice.id if choice.id in frame.columns else None
    names = row_numbers(frame, rows) if named is None else row_names(frame[named], place)
    return replace(_collection(origin or place, _words(frame[column]), names, labels), id=named, text=column)


def _collection(
    origin: str,
    texts: Sequence[str],
    names: Sequence[str],
    labels: Sequence[str] | None,
    notes: tuple[str, ...] = (),
) -> Collection:
    empty = sum(not text.strip() for text in texts)
    if empty == len(texts):
        raise InputError(f"{origin} has {len(texts):,} texts, and all of them are empty")
    notes += (f"{empty:,} texts are empty",) if empty else ()
    return Collection(origin, Texts(texts), names, labels, notes=notes)


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding_of(path))
    except UnicodeError as error:
        raise not_text(path, error) from None


def _words(column: pl.Series) -> list[str]:
    return ["" if value is None else str(value).strip() for value in column]
