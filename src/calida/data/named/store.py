"""Sets by name: fetched into a folder, whole or not at all, and read from there."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import platformdirs

from calida.data.files.numpy_files import load_arrays
from calida.data.named.catalogue import NAMED, Arrays, NamedSet, unpack_visda17
from calida.data.named.download import PATIENT, Patience, Progress, Remote, download
from calida.errors import DownloadError, InputError, suggest
from calida.files import locked

__all__ = ["NAMED", "Arrays", "NamedSet", "data_folder", "fetch_named", "is_present", "named_path", "read_named"]

_KEYS = {"x_train", "y_train", "x_test", "y_test"}


def data_folder() -> Path:
    """Where named sets are kept: CALIDA_DATA, or else the user's cache."""
    chosen = os.environ.get("CALIDA_DATA")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("calida", appauthor=False)


def is_present(name: str, folder: Path) -> bool:
    """Whether a set can be read without a download."""
    named = _named(name)
    return importlib.util.find_spec(named.package) is not None if named.package else _place(named, folder).exists()


def named_path(name: str, folder: Path) -> Path:
    """Where a downloaded set lies: the file of its arrays, or its folder of images."""
    named = _named(name)
    if named.package:
        raise InputError(f"{name} comes with the package {named.package} and has no file of its own")
    if not _place(named, folder).exists():
        raise InputError(f"{name} is not in {folder}; get it with: calida data get {name}")
    return _place(named, folder)


def read_named(name: str, folder: Path) -> Arrays:
    """The arrays of a set: x_train, y_train, x_test, y_test, or x and y for a set that has no such parts."""
    named = _named(name)
    if named.convert is None:
        raise InputError(f"{name} is a folder of images, not arrays; read the images in {named_path(name, folder)}")
    if named.package:
        return named.convert(folder)
    path = named_path(name, folder)
    try:
        content = load_arrays(path)
        arrays = {key: content[key] for key in sorted(_KEYS)}
        _check(arrays)
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path} is truncated or not {name} ({error}); remove it and get it again with: calida data get {name}"
        ) from None
    return arrays


def fetch_named(
    name: str, folder: Path, progress: Progress, remotes: Sequence[Remote] | None = None, patience: Patience = PATIENT
) -> Path:
    """Download a set and put it into `folder`, whole or not at all; `remotes` are other addresses of its files.

    `progress` hears of one file after the other. A call that is cut off leaves what it has received in `.downloads`,
    and the next one goes on from there.
    """
    named = _named(name)
    if named.package:
        raise InputError(f"{name} comes with the package {named.package}; there is nothing to download")
    wanted = named.remotes if remotes is None else tuple(remotes)
    if sorted(remote.name for remote in wanted) != sorted(remote.name for remote in named.remotes):
        raise InputError(f"{name} is made of the files {', '.join(remote.name for remote in named.remotes)}")
    path, downloads = _place(named, folder), folder / ".downloads" / name
    try:
        downloads.parent.mkdir(parents=True, exist_ok=True)
        with locked(downloads.parent / f"{name}.lock"):
            if not path.exists():
                for remote in wanted:
                    download(remote, downloads, progress, patience)
                _finish(named, downloads, path)
            shutil.rmtree(downloads, ignore_errors=True)
    except BlockingIOError:
        raise DownloadError(f"another process is getting {name} into {folder}; wait until it is done") from None
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"cannot write {path}: {error.strerror or error}; free some space there or choose another folder"
        ) from None
    return path


def _finish(named: NamedSet, downloads: Path, path: Path) -> None:
    """Make the set under a hidden name and give it its own as the last step."""
    fresh = path.with_name(f".{path.name}.new")
    _remove(fresh)  # of a process that was killed here
    try:
        if named.convert is None:
            unpack_visda17(downloads, fresh)
        else:
            arrays = named.convert(downloads)
            _check(arrays)
            with fresh.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, path)
    except InputError as error:  # kept, the wrong files would stand in the way of right ones
        shutil.rmtree(downloads)
        raise InputError(f"what was downloaded for {named.name} is not {named.name} and is removed: {error}") from None
    finally:
        _remove(fresh)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _named(name: str) -> NamedSet:
    if name in NAMED:
        return NAMED[name]
    raise InputError(f"no set is called {name!r}{suggest(name, NAMED)}")


def _place(named: NamedSet, folder: Path) -> Path:
    return folder / (named.name if named.convert is None else f"{named.name}.npz")


def _check(arrays: Arrays) -> None:
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if x.dtype != np.uint8 or x.ndim not in (3, 4) or y.shape != x.shape[:1] or not len(x):
            raise InputError(f"its {part} part has images {x.dtype} {x.shape} and labels {y.dtype} {y.shape}")
        if y.dtype.kind not in "iu" or y.min() < 0 or y.max() > 9:
            raise InputError(f"its {part} part has labels that are not whole numbers 0..9")
