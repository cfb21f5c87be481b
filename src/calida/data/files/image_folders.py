"""Folders of images and lists of image files."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from calida.data.arrays.decode import IMAGE_SUFFIXES
from calida.data.files.collection import Collection
from calida.data.files.delimited_text import encoding_of, not_text, read_cells, refuse_twice
from calida.errors import InputError, warn_user
from calida.spreadsheets import plain_text

_TURNING = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # from left to right, or back
PATH_COLUMNS = ("path", "file", "filename", "image")


def read_folder(
    folder: Path, origin: str, labeled: bool, suffixes: frozenset[str] = IMAGE_SUFFIXES, what: str = "images"
) -> Collection:
    """All images below a folder, or files of another kind; if `labeled`, the first sub-folder of each is its class."""
    visible = list(visible_files(folder))
    paths = sorted(path for path in visible if path.suffix.lower() in suffixes and not _never_ends(path))
    if not paths:
        raise InputError(f"the folder {folder} holds no {what} ({len(visible)} other files)")
    names = [printable(path.relative_to(folder).as_posix()) for path in paths]
    if len(set(names)) < len(names):
        raise InputError(
            f"two files of {folder} have names that can only be written alike: {_twice(names)}; rename one"
        )
    others = len(visible) - len(paths)
    notes: tuple[str, ...] = (f"{others:,} files that are no {what} were left out",) if others else ()
    if not labeled:
        return Collection(origin, paths, names, notes=notes)
    loose = [name for name in names if "/" not in name]
    if loose:
        raise InputError(
            f"{len(loose):,} of {len(names):,} {what} lie directly in {folder}, for example {loose[0]}: "
            f"labeled {what} belong into one sub-folder a class"
        )
    classes = [name.split("/", 1)[0] for name in names]
    empty = sorted({printable(place.name) for place in folder.iterdir() if _is_class(place)} - set(classes))
    if empty:
        notes += (f"class folders without {what}: {', '.join(empty[:5])}{', ...' if len(empty) > 5 else ''}",)
    refuse_two_labels(f"the folder {folder}", names, paths, classes)
    return Collection(origin, paths, names, classes, notes=notes)


def _never_ends(path: Path) -> bool:
    """Whether this is a pipe, a socket or a device; a link that leads nowhere is told when it is decoded."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _is_class(place: Path) -> bool:
    return place.is_dir() and not place.name.startswith(".")


def visible_files(folder: Path) -> Iterator[Path]:
    """All files but hidden ones; links are followed, but no folder is entered twice."""
    seen = set()

    def refuse(error: OSError) -> None:
        raise InputError(f"the folder {error.filename} cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        facts = os.stat(place)
        if (facts.st_dev, facts.st_ino) in seen:
            folders.clear()
            continue
        seen.add((facts.st_dev, facts.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in names if not name.startswith("."))


def printable(name: str) -> str:
    """A file's name as a line of text: control characters and bytes that are no UTF-8 are written as escapes."""
    text = name.encode("utf-8", "backslashreplace").decode()
    if text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if _is_control(one) else one for one in text)


def _is_control(letter: str) -> bool:
    """Control characters, and those that end a line or turn its direction."""
    return unicodedata.category(letter) in ("Cc", "Zl", "Zp") or letter in _TURNING


def check_printable(name: str) -> None:
    """Refuse a name that no text file could hold."""
    if name.encode("utf-8", "replace").decode() != name:
        raise InputError(f"the name {printable(name)} has bytes that are no UTF-8: rename the file or folder")


def _twice(names: Sequence[str]) -> str:
    seen = set[str]()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def is_image_list(path: Path, label: str | None = None) -> bool:
    """Whether a text file lists images: by a column named path, or by a first cell that is a file.

    With `label` it may as well be a table that has a column of that name, so the first path must be a file.
    """
    if path.suffix.lower() == ".txt":
        return True
    first, second = [*read_cells(path, 2), [], []][:2]
    places = [index for index, cell in enumerate(first) if cell.strip().lower() in PATH_COLUMNS]
    if not places:
        return bool(first) and _is_file(path.parent / first[0])
    return label is None or (len(second) > places[0] and _is_file(path.parent / second[places[0]].strip()))


def read_image_list(path: Path, origin: str, labeled: bool, label: str | None) -> Collection:
    """The files of a list; paths are relative to it."""
    names, labels = list_entries(path, labeled, label)
    # In a file that calida wrote, a name that a spreadsheet would run has an apostrophe before it.
    names = [name if _is_file(path.parent / name) else plain_text(name) for name in names]
    paths = [path.parent / name for name in names]
    missing = [name for name, file in zip(names, paths, strict=True) if not _is_file(file)]
    if missing:
        raise InputError(f"the list {path} names {len(missing):,} files that do not exist, the first is {missing[0]}")
    if labels is not None:
        refuse_two_labels(f"the list {path}", names, paths, labels)
    return Collection(origin, paths, [printable(name) for name in names], labels)


def refuse_two_labels(origin: str, names: Sequence[str], paths: Sequence[Path], labels: Sequence[str]) -> None:
    """One image cannot be of two classes, however its path is written; named twice with one label, it counts twice.

    Copies of an image in several classes are warned of: large collections have some.
    """
    known: dict[str, str] = {}
    for name, file, label in zip(names, paths, labels, strict=True):
        if (before := known.setdefault(os.path.realpath(file), label)) != label:
            raise InputError(f"{origin} has two labels for {name}: {before!r} and {label!r}")
    copies = _copies_of_another_class(paths, labels)
    if copies:
        one, other = (names[place] for place in copies[0])
        warn_user(f"{len(copies):,} images of {origin} are copies of images of another class, such as {other} of {one}")


def _copies_of_another_class(paths: Sequence[Path], labels: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of places, the first and a later one; only files of one size and several labels are read."""
    sizes: dict[int, list[int]] = {}
    for place, file in enumerate(paths):
        with suppress(OSError):  # what cannot be read is told when it is decoded
            sizes.setdefault(file.stat().st_size, []).append(place)
    first: dict[bytes, int] = {}
    copies = []
    for places in sizes.values():
        for place in places if len({labels[one] for one in places}) > 1 else ():
            with suppress(OSError):
                other = first.setdefault(hashlib.blake2b(paths[place].read_bytes()).digest(), place)
                if labels[other] != labels[place]:
                    copies.append((other, place))
    return copies


def list_entries(path: Path, labeled: bool, label: str | None) -> tuple[list[str], list[str] | None]:
    """File names and labels of a list of `path,label`, with or without a header."""
    rows = [row for row in _cells(path) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"the list {path} is empty")
    place, label_place = 0, 1
    header = [cell.strip().lower() for cell in rows[0]]
    if any(cell in PATH_COLUMNS for cell in header):
        refuse_twice([cell for cell in header if cell], f"the list {path}")
        place = next(index for index, cell in enumerate(header) if cell in PATH_COLUMNS)
        wanted = (label or "label").lower()
        label_place = header.index(wanted) if wanted in header else -1
        rows = rows[1:]
    short = [index for index, row in enumerate(rows) if len(row) <= max(place, label_place if labeled else 0)]
    if labeled and (label_place < 0 or short):
        where = f"in row {short[0] + 1}" if short else f"in its header ({', '.join(header)})"
        raise InputError(f"the list {path} has no label {where}; expected rows of path,label")
    if short or not rows:
        raise InputError(f"the list {path} has {'an incomplete row' if short else 'a header and no rows'}")
    names = [row[place].strip() for row in rows]
    labels = [row[label_place].strip() for row in rows] if labeled else None
    if labels is not None and not all(labels):
        raise InputError(f"the list {path} has no label for {names[labels.index('')]}")
    return names, labels


def _split_line(line: str, folder: Path) -> list[str]:
    """`path label`, or a path alone, which may have spaces."""
    return [line] if _is_file(folder / line) else line.rsplit(maxsplit=1)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a cell may hold what no file system takes for a name
        return False


def _cells(path: Path) -> list[list[str]]:
    if path.suffix.lower() != ".txt":
        return read_cells(path)
    try:
        with path.open(encoding=encoding_of(path)) as file:
            return [_split_line(line.strip(), path.parent) for line in file]
    except UnicodeError as error:
        raise not_text(path, error) from None
