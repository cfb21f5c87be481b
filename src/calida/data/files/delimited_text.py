"""How a text file of cells is written: its encoding, and what separates the cells."""

from __future__ import annotations

import codecs
import csv
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from calida.errors import InputError

_SEPARATORS = (",", ";", "\t", "|")  # the first that the first line has


def encoding_of(path: Path) -> str:
    """UTF-8, or UTF-16 where the file begins with its mark, as what spreadsheets call Unicode text does."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def separator_of(path: Path) -> str:
    """A tab, where the file's suffix says so; else what the first line has that is not blank."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding=encoding_of(path), errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    return next((one for one in _SEPARATORS if one in first), ",")


def read_cells(path: Path, most: int | None = None) -> list[list[str]]:
    """The rows of a file that are not blank, or as many of the first; InputError if it is no text."""
    try:
        with path.open(newline="", encoding=encoding_of(path)) as file:
            rows = csv.reader(file, delimiter=separator_of(path))
            return list(itertools.islice((row for row in rows if any(cell.strip() for cell in row)), most))
    except (UnicodeError, csv.Error) as error:
        raise not_text(path, error) from None


def blank_lines(path: Path) -> list[bool]:
    """Whether each row of a file, from the first that is not blank, has nothing in it, not even separators."""
    with path.open(newline="", encoding=encoding_of(path)) as file:
        blank = [not any(row) and len(row) < 2 for row in csv.reader(file, delimiter=separator_of(path))]
    return blank[blank.index(False) :] if False in blank else []


def refuse_twice(columns: Sequence[str], origin: str) -> None:
    """Refuse a header that names a column twice: nobody can tell which of the two is meant."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(f"{origin} has more than one column named {', '.join(map(repr, twice[:5]))}")


def not_text(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is not readable text; save it as UTF-8: {error}")
