"""CSV files for people, whose programs take some texts for formulas: what is written here runs in none of them.

A text that begins as a formula does (=, +, -, @, a tab or a line's end) gets an apostrophe before it: that is how
spreadsheets mark text. So does one that begins with apostrophes and then such a sign, so that every text comes back as
it was: `plain_text` takes the one apostrophe off again. Numbers are left alone: -1 is no formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from calida.files import write_atomically

Column: TypeAlias = "Sequence[str] | Sequence[int] | np.ndarray[Any, np.dtype[np.floating[Any]]]"
# The wide signs are those that some programs read as the narrow ones.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_QUOTED = re.compile(r'[,;"\r\n\t]|^\s|\s$')
_HARMLESS = r"^[\p{L}\p{N}_][\p{L}\p{N}_./:-]*$"  # neither made safe nor quoted, as most names are
_DIGITS = 6  # of a number


def safe_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain_text(cell: str) -> str:
    """The text that `safe_text` made a cell of; any other as it is."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv(path: Path, columns: Sequence[tuple[str, Column]]) -> None:
    """Write a table, whole or not at all; every text in it is made safe, and numbers have six digits."""
    header = ",".join(_cell(name) for name, _ in columns)
    cells = pl.DataFrame([_cells(values).alias(str(place)) for place, (_, values) in enumerate(columns)])
    content = io.BytesIO(f"{header}\n".encode("utf-8", "backslashreplace"))
    content.seek(0, io.SEEK_END)
    cells.write_csv(content, include_header=False, quote_style="never")  # what needs quotes has them
    write_atomically(path, content.getvalue())


def read_csv(path: Path) -> list[list[str]]:
    """The rows of a table that `write_csv` wrote; csv.Error or ValueError if it is none.

    A spreadsheet may have saved it again, with a mark before the text and other line ends.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [[plain_text(cell) for cell in row] for row in csv.reader(file, strict=True)]


def _cells(values: Column) -> pl.Series:
    """A column as it is written."""
    if isinstance(values, np.ndarray):
        return pl.Series(values.astype(np.float64)).round_sig_figs(_DIGITS).cast(pl.String)
    if not len(values) or not isinstance(values[0], str):
        return pl.Series(values, dtype=pl.Int64).cast(pl.String)
    try:
        texts = pl.Series(values, dtype=pl.String)
    except UnicodeEncodeError:  # halves of a character, which no file can hold
        texts = pl.Series([str(one).encode("utf-8", "backslashreplace").decode() for one in values])
    odd = (~texts.str.contains(_HARMLESS)).arg_true()
    return texts.scatter(odd, [_cell(text) for text in texts.gather(odd)]) if len(odd) else texts


def _cell(text: str) -> str:
    """Quoted where it must be; the standard library's writer leaves a carriage return bare, which no reader takes."""
    text = safe_text(text.replace("\0", "\\x00"))
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
