"""What a person hands over in Python -> a collection: names of data, frames, rows, texts or images."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image
from torch import Tensor

from calida.data.files.collection import Collection
from calida.data.files.reading import ALL_COLUMNS, read_collection
from calida.data.files.tables import table_collection
from calida.data.files.texts import text_collection
from calida.data.tables.frames import as_frame, is_frame
from calida.data.tables.preparation import ColumnChoice, TablePreparation
from calida.errors import InputError
from calida.seeds import Seeds

_TEXT = "text"  # the column of texts that come without one
_LARGEST_INTEGER = 2**63 - 1  # beyond which a whole number has no type of its own


def is_named(given: object) -> bool:
    """Whether data are given by name: a path or a named set."""
    return isinstance(given, str | os.PathLike)


def is_collected(given: object) -> bool:
    """Whether this is read as a collection: a name, a frame, rows as dicts, images of Pillow, files or texts.

    Anything else may be an array.
    """
    if is_named(given) or is_frame(given) or isinstance(given, Mapping | Image.Image):
        return True
    several = _listed(given)
    return several is not None and isinstance(several[0], str | os.PathLike | Mapping | Image.Image)


def collect(
    given: Any,
    seeds: Seeds,
    labeled: bool,
    choice: ColumnChoice = ALL_COLUMNS,
    table: TablePreparation | None = None,
    name: str = "the input",
    texts: bool = False,
) -> Collection:
    """The samples of what `is_collected`; `name` is what errors call what has no name of its own.

    With `texts`, words in a list are texts; without, they are names of image files.
    """
    if is_named(given):
        return read_collection(os.fspath(given), seeds, labeled, choice, table)
    named = {choice.label, choice.id, *choice.only}
    frame = as_frame(given, name, named) if is_frame(given) else _frame_of_rows(given, name)
    if frame is not None:
        if choice.text is not None:
            return text_collection(frame, name, choice, labeled)
        return table_collection(frame, name, choice, labeled, table)
    several = [given] if isinstance(given, Image.Image) else _listed(given) or []
    rows = [str(row) for row in range(len(several))]
    if all(isinstance(one, Image.Image) for one in several):
        if empty := [row for row, one in zip(rows, several, strict=True) if not one.width * one.height]:
            raise InputError(f"image {empty[0]} of {name} has no pixels")
        return Collection(name, several, rows)
    if texts and all(isinstance(one, str) for one in several):
        return text_collection(pl.DataFrame({_TEXT: several}), name, ColumnChoice(text=_TEXT), False)
    if not texts and all(is_named(one) for one in several):
        return _files(several, name)
    kinds = ", ".join(sorted({type(one).__name__ for one in several}))
    raise InputError(f"{name} is a list of {kinds}: give {'texts' if texts else 'images, files or rows'} alone")


def listed_labels(labels: Any) -> list[str] | None:
    """Labels that are words, one a sample: of an array, a list, or a column of a frame; None if they are numbers."""
    words = _listed(labels)
    return words if words is not None and all(isinstance(word, str) for word in words) else None


def _listed(given: Any) -> list[Any] | None:
    """A list of objects: Python's own, an array of words or objects, or the column of a frame; else None."""
    columnar = hasattr(given, "to_list") or (hasattr(given, "tolist") and not isinstance(given, Tensor))
    if not isinstance(given, list | tuple) and not columnar:
        return None
    if isinstance(given, np.ndarray) and (given.ndim != 1 or given.dtype.kind not in "UOT"):
        return None
    several: list[Any] = list(given) if isinstance(given, list | tuple) else np.asarray(given, object).tolist()
    return several or None


def _frame_of_rows(given: Any, name: str) -> pl.DataFrame | None:
    """Rows as dicts, or one of them, as a frame; None if it is neither."""
    rows = [given] if isinstance(given, Mapping) else _listed(given)
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        return None
    nested = [str(column) for row in rows for column, value in row.items() if isinstance(value, list | dict | tuple)]
    if nested:
        raise InputError(f"{name} has more than one value for {nested[0]!r} in a row; give a list of rows")
    plain = [{str(column): _value(value, str(column), name) for column, value in row.items()} for row in rows]
    for place, row in enumerate(plain):
        if (new := row.keys() - plain[0].keys()) and (absent := plain[0].keys() - row.keys()):
            raise InputError(f"row {place} of {name} has a column {min(new)!r} where row 0 has {min(absent)!r}")
    return pl.DataFrame(plain, infer_schema_length=None, strict=False)


def _value(value: Any, column: str, name: str) -> Any:
    """A number of any library as Python has it, and what is not a number as a gap."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray | Tensor) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) > _LARGEST_INTEGER):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf  # which is refused as all that is infinite
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} has a text in {column!r} that is not Unicode") from None
    return None if isinstance(value, float) and value != value else value


def _files(paths: Sequence[Any], name: str) -> Collection:
    files = [Path(path).expanduser() for path in paths]
    absent = [str(file) for file in files if not file.is_file()]
    if absent:
        raise InputError(f"{name} names {len(absent):,} files that do not exist, the first is {absent[0]}")
    return Collection(name, files, [os.fspath(path) for path in paths])
