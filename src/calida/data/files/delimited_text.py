"""How a text file of cells is written: its encoding, what separates cells and rows, and whether it is packed."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from calida.errors import InputError

_SEPARATORS = (",", ";", "\t", "|")  # the earlier, where two fit equally well
_FIRST_LINES = 20
_HEAD = 1 << 16  # letters that show how rows end
PACKED = ".gz"


def suffix_of(path: Path) -> str:
    """What a file's name says that it is; that of a packed table comes before `.gz`."""
    suffix = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower() if suffix == PACKED else ""
    return inner if inner in (".csv", ".tsv") else suffix


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked."""
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == PACKED else path.open("rb")


def _open_text(path: Path, errors: str = "strict") -> TextIO:
    encoding = encoding_of(path)
    return io.TextIOWrapper(open_bytes(path), encoding, errors, newline="")


def encoding_of(path: Path) -> str:
    """UTF-8, or UTF-16 where the file begins with its mark, as what spreadsheets call Unicode text does."""
    with open_bytes(path) as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def separator_of(path: Path) -> str:
    """A tab, where the file's suffix says so; else what cuts the first lines into equally many cells, and into most.

    Where nothing does, it is the first that the header has.
    """
    if suffix_of(path) == ".tsv":
        return "\t"
    widths = {one: _widths(path, one) for one in _SEPARATORS}
    even = [one for one, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    if even:
        return max(even, key=lambda one: widths[one][0])
    return next((one for one, found in widths.items() if found and found[0] > 1), ",")


def _widths(path: Path, separator: str) -> list[int]:
    """How many cells this makes of each of the first lines that are not blank, as far as they can be read so."""
    found: list[int] = []
    with _open_text(path, "replace") as file, suppress(csv.Error):
        rows = (row for row in csv.reader(file, delimiter=separator) if any(cell.strip() for cell in row))
        found.extend(map(len, itertools.islice(rows, _FIRST_LINES)))
    return found


def read_cells(path: Path, most: int | None = None) -> list[list[str]]:
    """The rows of a file that are not blank, or as many of the first; InputError if it is no text."""
    try:
        with _open_text(path) as file:
            rows = csv.reader(file, delimiter=separator_of(path))
            return list(itertools.islice((row for row in rows if any(cell.strip() for cell in row)), most))
    except (UnicodeError, csv.Error) as error:
        raise not_text(path, error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked: {error}") from None


def blank_lines(path: Path) -> list[bool]:
    """Whether each row of a file, from the first that is not blank, has nothing in it, not even separators.

    None at all, if a cell is longer than Python reads.
    """
    blank: list[bool] = []
    with _open_text(path) as file, suppress(csv.Error):
        blank = [not any(row) and len(row) < 2 for row in csv.reader(file, delimiter=separator_of(path))]
    return blank[blank.index(False) :] if False in blank else []


def ends_in_returns(path: Path) -> bool:
    """Whether a carriage return alone ends rows, as old spreadsheets of the Mac write; cells in quotes may have any."""
    with _open_text(path, "replace") as file:
        head = re.sub(r'"[^"]*("|$)', "", file.read(_HEAD))
    return "\r" in head and "\n" not in head


def with_line_feeds(text: str, separator: str) -> str:
    """The same cells, in rows that end in a line feed."""
    lines = io.StringIO(newline="")
    csv.writer(lines, delimiter=separator, lineterminator="\n").writerows(
        csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    )
    return lines.getvalue()


def refuse_ragged(path: Path) -> None:
    """Refuse rows that have more or fewer cells than the header: nobody can tell which cell is whose."""
    with _open_text(path) as file, suppress(csv.Error):
        rows = ((line, row) for line, row in _numbered(file, separator_of(path)) if any(cell.strip() for cell in row))
        _, header = next(rows, (0, []))
        for line, row in rows:
            if len(row) != len(header) > 1 or len(row) > len(header):
                cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
                raise InputError(f"line {line} of {path} has {cells}, and the header has {len(header)}")


def _numbered(file: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line that each begins in; a cell may have line breaks inside."""
    rows, line = csv.reader(file, delimiter=separator), 1
    for row in rows:
        yield line, row
        line = rows.line_num + 1


def refuse_twice(columns: Sequence[str], origin: str) -> None:
    """Refuse a header that names a column twice: nobody can tell which of the two is meant."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(f"{origin} has more than one column named {', '.join(map(repr, twice[:5]))}")


def not_text(path: Path, error: Exception | str) -> InputError:
    """For a file that is no text in an encoding that is read."""
    return InputError(f"{path} is not readable text; save it as UTF-8: {error}")
