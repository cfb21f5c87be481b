"""Tables of numeric features: CSV, TSV and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from calida.data.files.collection import Collection
from calida.data.files.delimited_text import encoding_of, not_text, read_cells, separator_of
from calida.errors import InputError

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
ROW = "row"  # the column by which predictions name the samples of a table
_MISSING = ["", "NA", "N/A", "NaN", "nan", "null"]
_EXACT = 2**53  # floats below are exact where they are whole
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"


def read_table(path: Path, origin: str, label: str | None, labelled: bool, columns: tuple[str, ...] = ()) -> Collection:
    """Rows of numbers; the column `label`, if there, is never a feature and only read where labels are asked for.

    With `columns`, those of the source: they are taken in that order, and what the source lacks is left out.
    """
    label, columns = label and label.strip(), tuple(column.strip() for column in columns)
    frame = _read(path, label)
    if labelled:
        if label is None:
            raise InputError(f"{path} is a table: name its label column with --label; it has {_list(frame.columns)}")
        if label not in frame.columns:
            raise InputError(f"{path} has no column {label!r}; it has {_list(frame.columns)}")
    unnamed = [column for column in frame.columns if not column.strip() or column.startswith("Unnamed: ")]
    features = [column for column in frame.columns if column != label and column not in unnamed]
    absent = [column for column in columns if column not in features]
    if absent:
        raise InputError(f"{origin} lacks the column {absent[0]!r} of the source ({len(absent)} such columns)")
    extra = [column for column in features if column not in columns] if columns else []
    notes: tuple[str, ...] = (f"columns that the source lacks were left out: {_list(extra)}",) if extra else ()
    notes += ("the column without a name, perhaps an index, was left out",) if unnamed else ()
    features = list(columns) or features
    if not features or not len(frame):
        raise InputError(f"{path} has no {'rows' if features else 'feature columns'}")
    values = np.stack([_numbers(frame[column], path) for column in features], 1)
    labels = _labels(frame[label], path) if labelled and label else None
    rows = [str(row) for row in range(len(frame))]
    return Collection(origin, torch.from_numpy(values), rows, labels, tuple(features), notes)


def read_label_column(path: Path, label: str) -> tuple[list[str] | None, list[str]]:
    """The labels of a table, by the name of their column; of a table with a single column, that one.

    With them the rows that they belong to, if a column tells.
    """
    label = label.strip()
    frame = _read(path, label, numbers=False)
    column = frame.columns[0] if len(frame.columns) == 1 else label
    if column not in frame.columns:
        raise InputError(f"{path} has no column {label!r}; it has {_list(frame.columns)}")
    rows = _labels(frame[ROW], path) if ROW in frame.columns and column != ROW else None
    return rows, _labels(frame[column], path)


def _read(path: Path, label: str | None, numbers: bool = True) -> pl.DataFrame:
    """The table; labels are read as they are written, since 01 and 1 may be two classes."""
    try:
        frame = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else _read_text(path, label, numbers)
    except UnicodeError as error:
        raise not_text(path, error) from None
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"the table {path} cannot be read: {str(error).splitlines()[0][:200]}") from None
    plain = [column.strip() for column in frame.columns]
    return frame.rename(dict(zip(frame.columns, plain, strict=True))) if len(set(plain)) == len(plain) else frame


def _read_text(path: Path, label: str | None, numbers: bool) -> pl.DataFrame:
    header = next(iter(read_cells(path, 1)), [])
    options: dict[str, Any] = {
        "separator": separator_of(path),
        "infer_schema": numbers,
        "infer_schema_length": None,
        "null_values": [""],
        "schema_overrides": {column: pl.String for column in header if column.strip() == label},
    }
    if (encoding := encoding_of(path)) != "utf-8-sig":  # which polars does not read
        frame = pl.read_csv(path.read_text(encoding).encode(), **options)
    else:
        frame = pl.read_csv(path, **options)
    # A blank line is no row; in a single column it may as well be a value that is missing.
    return frame if frame.width < 2 else frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _numbers(column: pl.Series, path: Path) -> np.ndarray:
    name = f"the column {column.name!r} of {path}"
    if column.dtype == pl.String:  # numbers, with words for those that are missing
        words = _with_points(column.str.strip_chars(), name)
        numbers = words.cast(pl.Float64, strict=False)
        if bool((numbers.is_not_null() | words.is_null() | words.is_in(_MISSING)).all()):
            column = numbers.alias(column.name)
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        wrong = next((value for value in column if value is not None and not _is_number(value)), column[0])
        raise InputError(f"{name} is not numeric: it holds {wrong!r}; leave it out, or name it with --label")
    values = column.cast(pl.Float32, strict=False)
    missing = (values.is_null() | values.is_nan()).arg_true()
    if len(missing):
        raise InputError(f"{name} lacks {len(missing):,} values, the first in row {missing[0]}; fill or drop them")
    wild = values.is_infinite().arg_true()
    if len(wild):
        raise InputError(f"{name} holds {column[wild[0]]!r} in row {wild[0]}: infinite, or too large for 32 bits")
    return values.to_numpy()


def _with_points(words: pl.Series, name: str) -> pl.Series:
    """Decimal commas as points, if there are commas and no points; 1,234 alone might be thousands as well."""
    written = words.filter(words.str.contains(",", literal=True))
    pointed = written.str.replace(",", ".", literal=True)
    if words.str.contains(".", literal=True).any() or pointed.cast(pl.Float64, strict=False).is_null().any():
        return words
    if len(written) and written.str.contains(_THOUSANDS).all():
        raise InputError(f"{name} holds {written[0]!r}, a fraction or thousands: write numbers with a decimal point")
    return words.str.replace(",", ".", literal=True)


def _is_number(value: object) -> bool:
    try:
        float(str(value).replace(",", "."))
    except ValueError:
        return False
    return True


def _labels(column: pl.Series, path: Path) -> list[str]:
    texts = column if column.dtype == pl.String else pl.Series([None if one is None else str(one) for one in column])
    texts = texts.cast(pl.String).str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False).fill_nan(None)
    # Among numbers, a word for what is missing is no class; among words, NA may be one.
    missing = texts.is_null() if numbers.is_null().all() else texts.is_null() | texts.is_in(_MISSING)
    if missing.any():
        raise InputError(f"the label column {column.name!r} of {path} lacks some values")
    # 3.0 is class 3, in a column of whole numbers that something wrote as floats.
    whole = (numbers == numbers.round()) & (numbers.abs() < _EXACT)
    if texts.str.contains(".", literal=True).all() and whole.fill_null(False).all():
        texts = numbers.cast(pl.Int64).cast(pl.String)
    return texts.to_list()


def _list(columns: list[str]) -> str:
    shown = ", ".join(columns[:8])
    return f"{shown}, ... ({len(columns)} columns)" if len(columns) > 8 else shown
