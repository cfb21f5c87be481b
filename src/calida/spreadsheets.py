"""CSV files for people, whose programs take some texts for formulas: what is written here runs in none of them.

A text that begins as a formula does (=, +, -, @, a tab or a line's end) gets an apostrophe before it: that is how
spreadsheets mark text. So does one that begins with apostrophes and then such a sign, so that every text comes back as
it was: `plain_text` takes the one apostrophe off again. Numbers are left alone: -1 is no formula.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from calida.files import write_atomically

# The wide signs are those that some programs read as the narrow ones.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_QUOTED = re.compile(r'[,;"\r\n\t]|^\s|\s$')


def safe_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain_text(cell: str) -> str:
    """The text that `safe_text` made a cell of; any other as it is."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Write a table, whole or not at all; every text in it is made safe."""
    lines = (",".join(map(_cell, row)) for row in (header, *rows))
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


def read_csv(path: Path) -> list[list[str]]:
    """The rows of a table that `write_csv` wrote; csv.Error or ValueError if it is none."""
    with path.open(newline="", encoding="utf-8") as file:
        return [[plain_text(cell) for cell in row] for row in csv.reader(file, strict=True)]


def _cell(value: str | int) -> str:
    """Quoted where it must be; the standard library's writer leaves a carriage return bare, which no reader takes."""
    text = safe_text(str(value).replace("\0", "\\x00"))
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
