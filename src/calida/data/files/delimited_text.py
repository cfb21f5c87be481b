"""How a text file of cells is written: its encoding, and what separates the cells."""

from __future__ import annotations

import codecs
import csv
import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from calida.errors import InputError

_SEPARATORS = (",", ";", "\t", "|")  # the earlier, where two fit equally well
_FIRST_LINES = 20


def encoding_of(path: Path) -> str:
    """UTF-8, or UTF-16 where the file begins with its mark, as what spreadsheets call Unicode text does."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def separator_of(path: Path) -> str:
    """A tab, where the file's suffix says so; else what cuts the first lines into equally many cells, and into most.

    Where nothing does, it is the first that the header has.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    widths = {one: _widths(path, one) for one in _SEPARATORS}
    even = [one for one, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    if even:
        return max(even, key=lambda one: widths[one][0])
    return next((one for one, found in widths.items() if found and found[0] > 1), ",")


def _widths(path: Path, separator: str) -> list[int]:
    """How many cells this makes of each of the first lines that are not blank, as far as they can be read so."""
    found: list[int] = []
    with path.open(newline="", encoding=encoding_of(path), errors="replace") as file, suppress(csv.Error):
        rows = (row for row in csv.reader(file, delimiter=separator) if any(cell.strip() for cell in row))
        found.extend(map(len, itertools.islice(rows, _FIRST_LINES)))
    return found


def read_cells(path: Path, most: int | None = None) -> list[list[str]]:
    """The rows of a file that are not blank, or as many of the first; InputError if it is no text."""
    try:
        with path.open(newline="", encoding=encoding_of(path)) as file:
            rows = csv.reader(file, delimiter=separator_of(path))
            return list(itertools.islice((row for row in rows if any(cell.strip() for cell in row)), most))
    except (UnicodeError, csv.Error) as error:
        raise not_text(path, error) from None


def blank_lines(path: Path) -> list[bool]:
    """Whether each row of a file, from the first that is not blank, has nothing in it, not even separators.

    None at all, if a cell is longer than Python reads.
    """
    blank: list[bool] = []
    with path.open(newline="", encoding=encoding_of(path)) as file, suppress(csv.Error):
        blank = [not any(row) and len(row) < 2 for row in csv.reader(file, delimiter=separator_of(path))]
    return blank[blank.index(False) :] if False in blank else []


def refuse_twice(columns: Sequence[str], origin: str) -> None:
    """Refuse a header that names a column twice: nobody can tell which of the two is meant."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(f"{origin} has more than one column named {', '.join(map(repr, twice[:5]))}")


def not_text(path: Path, error: Exception | str) -> InputError:
    """For a file that is no text in an encoding that is read."""
    return InputError(f"{path} is not readable text; save it as UTF-8: {error}")
