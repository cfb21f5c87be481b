"""NumPy files: .npz with one or two splits, .npy."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from calida.data.arrays.checks import as_inputs
from calida.data.arrays.samples import ImageFiles
from calida.data.files.collection import Collection
from calida.errors import InputError
from calida.files import check_unpacked


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a NumPy file, never unpickled; a .npy file is its array `x`."""
    try:
        with path.open("rb") as file:
            beginning = file.read(6)
            file.seek(0)
            if beginning.startswith(b"\x93NUMPY"):
                return {"x": _read_array(file, path.stat().st_size)}
            if not beginning.startswith(b"PK"):
                raise ValueError("it does not begin as one")
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                check_unpacked(path, path.stat().st_size, sum(member.file_size for member in members))
                return {member.filename.removesuffix(".npy"): _read_member(archive, member) for member in members}
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path} cannot be read as a NumPy file: its arrays do not fit into memory") from None
    except Exception as error:  # a damaged archive fails in as many ways as it has parts
        raise InputError(f"{path} cannot be read as a NumPy file: {str(error)[:150] or type(error).__name__}") from None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        array = _read_array(file, member.file_size)
        if file.read(1):  # which also compares the checksum, at the end
            raise ValueError(f"{member.filename} is longer than its header says")
    return array


def _read_array(file: IO[bytes], size: int) -> np.ndarray:
    """One array, if there are as many bytes as its header promises: else memory for them would be asked for first."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, not numbers")
    promised = math.prod(shape) * dtype.itemsize
    if promised > size:
        raise ValueError(f"its header promises {promised:,} bytes and the file has {size:,}")
    content = np.empty(promised, np.uint8)
    done = 0
    while done < promised and (more := file.readinto(content[done:].data)):  # type: ignore[attr-defined]
        done += more
    if done < promised:
        raise ValueError(f"it ends after {done:,} of {promised:,} bytes")
    return content.view(dtype).reshape(shape, order="F" if by_columns else "C")


def from_arrays(arrays: Mapping[str, np.ndarray], origin: str, split: str | None, labeled: bool) -> Collection:
    """One split of `x`,`y` or `x_train`,`y_train`,`x_test`,`y_test`; "all" joins the two."""
    chosen = _splits(arrays, origin, split)
    samples = as_inputs(_join(arrays, [f"x{end}" for end in chosen], origin), origin)
    assert not isinstance(samples, ImageFiles)
    labels = None
    if labeled:
        absent = [f"y{end}" for end in chosen if f"y{end}" not in arrays]
        if absent:
            raise InputError(f"{origin} has no labels: the array {absent[0]!r} is missing")
        labels = label_names(_join(arrays, [f"y{end}" for end in chosen], origin), origin)
        if len(labels) != len(samples):
            raise InputError(f"{origin} has {len(samples):,} samples but {len(labels):,} labels")
    return Collection(origin, samples, [str(row) for row in range(len(samples))], labels)


def array_labels(arrays: Mapping[str, np.ndarray], origin: str, split: str | None) -> list[str]:
    """Labels from a file of their own: a bare array, `y`, or those of the split that the samples are from."""
    if "x" in arrays and "y" not in arrays:
        return label_names(arrays["x"], origin)
    ends = {"all": ("_train", "_test"), None: ("_train",)}.get(split, (f"_{split}",))
    keys = ["y"] if "y" in arrays else [f"y{end}" for end in ends]
    absent = [key for key in keys if key not in arrays]
    if absent:
        raise InputError(f"{origin} has no array {absent[0]!r}")
    return label_names(_join(arrays, keys, origin), origin)


def _join(arrays: Mapping[str, np.ndarray], keys: list[str], origin: str) -> np.ndarray:
    if len(keys) == 1:
        return arrays[keys[0]]
    try:
        return np.concatenate([arrays[key] for key in keys])
    except (TypeError, ValueError):  # of unlike types, or unlike shapes
        told = " and ".join(f"{key} of shape {arrays[key].shape} ({arrays[key].dtype})" for key in keys)
        raise InputError(f"{origin} cannot be joined: it has {told}") from None


def _splits(arrays: Mapping[str, np.ndarray], origin: str, split: str | None) -> list[str]:
    there = [end for end in ("", "_train", "_test") if f"x{end}" in arrays]
    if not there:
        raise InputError(f"{origin} has no array x or x_train; it has {', '.join(sorted(arrays)) or 'none'}")
    if split == "all" or (split is None and there == [""]):
        return there
    wanted = f"_{split or 'train'}"
    if wanted not in there:
        known = [end.removeprefix("_") for end in there if end]
        state = f"its splits are {', '.join(known)} and all" if known else "it has one array of samples and no splits"
        raise InputError(f"{origin} has no split {wanted[1:]!r}; {state}")
    return [wanted]


def label_names(y: np.ndarray, origin: str) -> list[str]:
    """Labels of any kind, one a sample, as words."""
    if y.ndim != 1:
        raise InputError(f"{origin} has labels of shape {y.shape}; expected one label a sample")
    if y.dtype.kind == "f":
        if not np.all(np.isfinite(y) & (y == np.round(y))):
            raise InputError(f"{origin} has labels that are neither whole numbers nor words")
        y = y.astype(np.int64)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    return [str(label) for label in y.tolist()]
