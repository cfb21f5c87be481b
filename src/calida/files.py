"""Files that are whole or not there, locks that end with the process that holds them, and TOML."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from calida.errors import InputError, WriteError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


_SECONDS_BETWEEN_TURNS = 0.5
_UNFINISHED = ".writing-"


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the destination, flush to disk, then rename over it; WriteError names what could not be written.

    A link stays a link, and what it leads to is written. A device or a pipe is written into, not replaced.
    """
    with writing(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as stream:
                stream.write(content)
            return
        # Not before: /dev/stdout leads to a pipe whose name no file has.
        path = path.resolve() if path.is_symlink() else path
        handle, temporary = tempfile.mkstemp(prefix=_UNFINISHED, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())  # temporary files are private; this one is to be as any other
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):  # what went wrong before is what counts
                Path(temporary).unlink(missing_ok=True)
            raise


def unfinished_files(folder: Path) -> list[Path]:
    """What `write_atomically` was writing when its process was killed, or is writing now."""
    return list(folder.glob(f"{_UNFINISHED}*"))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a full disk, or a folder that may not be written, raises inside into one sentence that names `path`."""
    try:
        yield
    except (WriteError, BlockingIOError):
        raise
    except OSError as error:
        told = WriteError(
            f"{path} cannot be written: {error.strerror or error}; free some space or choose another folder"
        )
        told.errno = error.errno
        raise told from None


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there; WriteError if it cannot be."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


_UNPACKED, _RATIO = 1 << 28, 100


def check_unpacked(path: Path, packed: int, unpacked: int) -> None:
    """Refuse a file that would unpack to more than 256 MB and more than a hundred times what it takes on disk."""
    if unpacked > max(_UNPACKED, _RATIO * packed):
        raise InputError(
            f"{path} unpacks to {unpacked / 1e9:,.2f} GB or more from {packed / 1e6:,.1f} MB, which no honest data do: "
            "unpack it yourself if they are"
        )


def read_gzip(path: Path) -> bytes:
    """What a gzip file holds, a piece at a time, so that one that has no end is refused before it fills the memory."""
    packed, parts, length = path.stat().st_size, list[bytes](), 0
    with gzip.open(path) as file:
        while part := file.read(1 << 24):
            parts.append(part)
            length += len(part)
            check_unpacked(path, packed, length)
    return b"".join(parts)


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file, or one sentence on what is wrong with it."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except RecursionError:
        raise InputError(f"{path} is not a TOML file of ours: its brackets are nested too deep") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; ValueError if it is none."""
    return tomllib.loads(text)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path` as a lock; BlockingIOError if another process holds it. A killed holder lets go of it."""
    while True:
        with writing(path):
            file = path.open("ab")
        try:
            _lock(file)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    break
            file.close()  # the holder before removed this file after it was opened here: it guards nothing now
        except BaseException:
            file.close()
            raise
    try:
        yield
    finally:
        if sys.platform == "win32":  # an open file cannot be removed there, nor one that another has just opened
            file.close()
            with suppress(OSError):
                path.unlink()
        else:  # removed while held, so that whoever waits for it sees that it is gone
            path.unlink(missing_ok=True)
            file.close()


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Hold `path` as a lock, after whoever holds it now."""
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(path))
                break
            except BlockingIOError:
                time.sleep(_SECONDS_BETWEEN_TURNS)
        yield


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
