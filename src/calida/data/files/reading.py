"""What a user names on the command line -> a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calida.data.arrays.decode import IMAGE_SUFFIXES
from calida.data.files.collection import Collection
from calida.data.files.delimited_text import suffix_of
from calida.data.files.image_folders import (
    check_printable,
    is_image_list,
    list_entries,
    printable,
    read_folder,
    read_image_list,
)
from calida.data.files.numpy_files import array_labels, from_arrays, load_arrays
from calida.data.files.tables import (
    ROW,
    TABLE_SUFFIXES,
    RowRange,
    is_json_lines,
    read_label_column,
    read_own_labels,
    read_table,
)
from calida.data.files.texts import is_text_folder, read_text_folder, read_text_table
from calida.data.named.store import NAMED, data_folder, named_path, read_named
from calida.data.tables.preparation import ColumnChoice, TablePreparation
from calida.errors import InputError
from calida.seeds import Seeds
from calida.spreadsheets import plain_text

_ARCHIVES = (".npz", ".npy")
INSIDE = "inside"  # in place of a file of labels: those that the data set itself carries
ALL_COLUMNS = ColumnChoice()
_SPLITS = ("train", "test", "validation", "all")


@dataclass(frozen=True)
class Place:
    """A data set by path or by name, perhaps a split of it, perhaps a number of samples: `mnist:train:2000`."""

    name: str
    split: str | None = None
    count: int | None = None

    @staticmethod
    def parse(text: str) -> Place:
        """Read from the right, as a path may have colons of its own; a file or folder of just that name is meant."""
        if not text:
            raise InputError("a data set has a name: a folder, a file or a named set")
        check_printable(text)
        if Path(text).expanduser().exists():
            return Place(text)
        name, split, count = text, None, None
        head, _, tail = name.rpartition(":")
        if head and tail.isdecimal():
            name, count = head, int(tail)
            head, _, tail = name.rpartition(":")
        if head and tail in _SPLITS:
            name, split = head, tail
        if count == 0:
            raise InputError(f"{text} asks for no samples at all")
        return Place(name, split, count)


def read_collection(
    text: str,
    seeds: Seeds,
    labeled: bool,
    choice: ColumnChoice = ALL_COLUMNS,
    table: TablePreparation | None = None,
    rows: RowRange | None = None,
) -> Collection:
    """Samples of a folder, a list, a NumPy file, a table or a named set; class names only if `labeled`.

    A subset is drawn by seed; rows of a table are encoded by `table`, that of the source, if it is given. Where labels
    are not asked for they are not read, so nothing downstream can see them. Of a Parquet file, `rows` may be a part.
    """
    place = Place.parse(text)
    collection = _read(place, text, labeled, choice, table, rows)
    return collection if place.count is None else collection.subset(place.count, seeds)


def _read(
    place: Place,
    text: str,
    labeled: bool,
    choice: ColumnChoice,
    table: TablePreparation | None,
    rows: RowRange | None,
) -> Collection:
    path = Path(place.name).expanduser()
    suffix = suffix_of(path)
    if place.name in NAMED:
        if NAMED[place.name].convert is None:  # images in folders
            return read_folder(named_path(place.name, data_folder()) / (place.split or "train"), text, labeled)
        return from_arrays(read_named(place.name, data_folder()), text, place.split, labeled)
    if not path.exists():
        head, _, tail = place.name.rpartition(":")
        if head in NAMED or (head and Path(head).expanduser().exists()):
            raise InputError(f"{head} is followed by {tail!r}, which is neither a split nor a number of samples")
        named = ", ".join(NAMED)
        raise InputError(f"there is no file or folder {place.name}, and it is not a named set ({named})")
    if path.is_dir():
        folder = path / place.split if place.split and place.split != "all" else path
        if not folder.is_dir():
            raise InputError(f"the folder {path} has no split {place.split!r}")
        return (read_text_folder if is_text_folder(folder) else read_folder)(folder, text, labeled)
    if not path.is_file():
        raise InputError(f"{path} is neither a file nor a folder, and cannot be read twice: write it to a file first")
    if suffix in _ARCHIVES:
        return from_arrays(load_arrays(path), text, place.split, labeled)
    if place.split:
        raise InputError(f"{place.name} has no splits; leave out :{place.split}")
    if choice.text is not None and (suffix in (*TABLE_SUFFIXES, ".txt") or is_json_lines(path)):
        return read_text_table(path, text, choice, labeled, rows)
    if is_json_lines(path):
        raise InputError(f"{place.name} holds JSON lines: name the column of texts", "text")
    if suffix in (".csv", ".tsv", ".txt") and is_image_list(path, choice.label):
        return read_image_list(path, text, labeled, choice.label)
    if suffix in TABLE_SUFFIXES:
        return read_table(path, text, choice, labeled, table, rows)
    if suffix in IMAGE_SUFFIXES and not labeled:
        return Collection(text, [path], [printable(path.name)])
    raise InputError(
        f"{place.name} is none of: a folder of images or texts, .csv, .tsv, .csv.gz, .txt, .jsonl, .parquet, .npz, "
        ".npy, a named set"
    )


def read_labels(text: str, collection: Collection, seeds: Seeds, label: str | None = None) -> list[str]:
    """True labels of a collection that was read without: `inside` for those that its data set carries, or a file.

    A file is a list of path,label, a table with a label column, or a NumPy array of labels in the samples' order. A
    table with a column `row`, or with the one that names the samples, as predictions have, may be in any order.
    """
    if text == INSIDE:
        if collection.table is not None:
            return _table_labels(collection, label)
        choice = ColumnChoice(label=label, id=collection.id, text=collection.text)
        own = read_collection(collection.origin, seeds, True, choice, collection.table)
        return _by_name(own.names, own.labels or (), collection, text)
    path = Path(text).expanduser()
    if not path.is_file():
        raise InputError(f"the labels {text} are neither a file nor the word inside")
    if suffix_of(path) in (".csv", ".tsv", ".txt") and is_image_list(path):
        names, labels = list_entries(path, True, label)
        return _by_name(names, labels or (), collection, text)
    if path.suffix.lower() in _ARCHIVES:
        rows, found = None, array_labels(load_arrays(path), text, Place.parse(collection.origin).split)
    else:
        rows, found = read_label_column(path, label or "label", collection.id or ROW)
    if rows is not None:
        return _by_name(rows, found, collection, text)
    total = len(collection) if collection.total is None else collection.total
    if len(found) != total:
        raise InputError(f"{text} has {len(found):,} labels; {collection.origin} has {total:,} samples")
    # Samples are named by their row in the data set, of which the collection may be a subset.
    return _by_name([str(row) for row in range(total)], found, collection, text)


def _table_labels(collection: Collection, label: str | None) -> list[str]:
    """The labels that a table of features carries, without reading its features again."""
    path = Path(Place.parse(collection.origin).name).expanduser()
    rows, found = read_own_labels(path, label, collection.id)
    return _by_name(rows, found, collection, INSIDE)


def _by_name(names: Sequence[str], found: Sequence[str], collection: Collection, text: str) -> list[str]:
    labels: dict[str, str] = {}
    wanted = set(collection.names)
    if len(wanted) == len(names) and list(names) == list(collection.names):
        return list(found)
    for written, label in zip(names, found, strict=True):
        # Names in a file that calida wrote have an apostrophe where a spreadsheet would take them for formulas.
        name = next((one for one in (written, printable(written), plain_text(written)) if one in wanted), written)
        if labels.setdefault(name, label) != label:
            raise InputError(f"{text} has two labels for {name}: {labels[name]!r} and {label!r}")
    absent = [name for name in collection.names if name not in labels]
    if absent:
        raise InputError(
            f"{text} has {len(labels):,} labels, and none for {len(absent):,} samples of {collection.origin}, "
            f"for example {absent[0]}"
        )
    return [labels[name] for name in collection.names]
