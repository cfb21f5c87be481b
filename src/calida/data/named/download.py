"""One file over HTTP: resumed where it broke off, checked, and in place only when it is whole."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from calida.errors import DownloadError, InputError
from calida.files import locked

Progress = Callable[[int, "int | None"], None]
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Remote:
    """A file on the web: its address, what it must be ("sha256:..." or "md5:...", or its size), where else it lies."""

    url: str
    digest: str = ""
    size: int | None = None
    mirrors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.digest and not re.fullmatch(r"md5:[0-9a-fA-F]{32}|sha256:[0-9a-fA-F]{64}", self.digest):
            raise InputError(
                f"{self.digest!r} is no checksum; write it as md5:... or sha256:..., in hexadecimal digits"
            )

    @property
    def name(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Patience:
    """How often a connection that was cut off is taken up again, and how many seconds are waited for what."""

    attempts: int = 5
    pause: float = 0.5  # doubled after every attempt
    timeout: float = 30.0


PATIENT = Patience()


class _Failed(Exception):
    """An address gives nothing, or the wrong thing."""


class _CutOff(Exception):
    """An address that answers has stopped before the end."""


def download(remote: Remote, folder: Path, progress: Progress, patience: Patience = PATIENT) -> Path:
    """Have the file in `folder`: already there and right, or fetched from its address, else from its mirrors.

    What is received goes to `NAME.part`, which only becomes `NAME` after its check. It stays when a transfer fails,
    and the next call goes on from it.
    """
    if remote.name in ("", ".."):
        raise DownloadError(f"cannot download {remote.url}: the address names no file; give the address of a file")
    path = folder / remote.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f".{remote.name}.lock"):
            if not (path.is_file() and _fault(path, remote) is None):
                _from_any(remote, path, progress, patience)
    except BlockingIOError:
        raise DownloadError(
            f"another process is downloading {remote.url} into {folder}; wait until it is done and try again"
        ) from None
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"cannot store {remote.url} as {path}: {error.strerror or error}; "
            "free some space there or choose another folder"
        ) from None
    return path


def _from_any(remote: Remote, path: Path, progress: Progress, patience: Patience) -> None:
    part = path.with_name(f"{path.name}.part")
    failures = []
    for url in (remote.url, *remote.mirrors):
        try:
            _Transfer(url, remote, part, progress, patience).complete()
            os.replace(part, path)
            return
        except _Failed as failure:
            failures.append(f"{url}: {failure}")
    kept = f"; the {_size(part)} bytes received so far are kept and the next try goes on from there"
    raise DownloadError(
        f"cannot download {', nor '.join(failures)}{kept if _size(part) else ''}; "
        f"try again later, or put the file into {path.parent} yourself"
    )


@dataclass(frozen=True)
class _Transfer:
    """From one address into the part file."""

    url: str
    remote: Remote
    part: Path
    progress: Progress
    patience: Patience

    def complete(self) -> None:
        """Bring the part file to its end and check it."""
        inherited = _size(self.part) > 0
        self.receive_patiently()
        fault = _fault(self.part, self.remote)
        if fault and inherited:  # the fault may lie in what an earlier call, or another address, had left
            self.part.unlink()
            self.receive_patiently()
            fault = _fault(self.part, self.remote)
        if fault:
            self.part.unlink()
            raise _Failed(f"{fault}, and what was received is removed")

    def receive_patiently(self) -> None:
        answered, attempts = False, self.patience.attempts
        for attempt in range(1, attempts + 1):
            try:
                return self.receive()
            except _CutOff as cut:
                answered, reason = True, str(cut)
            except _Failed as failure:
                if not answered:  # an address that never answered will hardly do so in a second
                    raise
                reason = str(failure)
            if attempt < attempts:
                time.sleep(self.patience.pause * 2 ** (attempt - 1))
        raise _Failed(f"{reason}, in attempt {attempts} of {attempts}")

    def receive(self) -> None:
        """Append to the part file what the address has beyond it."""
        have = _size(self.part)
        try:
            response = _open(self.url, have, self.patience.timeout)
        except HTTPError as error:
            error.close()
            if error.code != 416 or not have:
                raise _Failed(f"the server answered {error.code} {error.reason}") from None
            if _total(error.headers) == have:
                return None  # nothing beyond it: the part file was whole already
            self.part.unlink()
            return self.receive()
        with response:
            total = _total(response.headers)
            if self.remote.size is not None and total is not None and total != self.remote.size:
                raise _Failed(f"it has {total} bytes where {self.remote.size} were expected")
            if response.status != 206:
                have = 0  # the server sends all of it, asked or not
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self.part.unlink(missing_ok=True)
                raise _CutOff("the server answered with another range than the one asked for")
            with self.part.open("r+b" if self.part.exists() else "wb") as file:
                file.truncate(have)
                file.seek(have)
                self.copy(response, file, have, total)
                file.flush()
                os.fsync(file.fileno())

    def copy(self, response: Any, file: IO[bytes], done: int, total: int | None) -> None:
        self.progress(done, total)
        while True:
            try:
                chunk = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                reason = _in_words(error, self.patience.timeout)
                raise _CutOff(f"the connection broke off after {done} bytes ({reason})") from None
            if not chunk:
                break
            file.write(chunk)
            done += len(chunk)
            self.progress(done, total)
        if total is not None and done < total:  # http.client takes an early end for an end
            raise _CutOff(f"the connection broke off after {done} of {total} bytes")


def _open(url: str, start: int, timeout: float) -> Any:
    if urlsplit(url).scheme not in ("http", "https"):
        raise _Failed("only http and https addresses can be downloaded")
    headers = {"User-Agent": "calida", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        return urlopen(Request(url, headers=headers), timeout=timeout)
    except HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
        if isinstance(cause, ConnectionResetError):
            raise _CutOff("the server closed the connection without an answer") from None
        raise _Failed(_in_words(cause, timeout)) from None


def _in_words(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} seconds"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, socket.gaierror):
        return "the name of the host cannot be resolved"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _total(headers: Message) -> int | None:
    """Bytes of the whole file, from `Content-Range: bytes 5-9/10` or `Content-Length: 10`."""
    if "Content-Range" in headers:
        match = re.search(r"/(\d+)\s*$", headers["Content-Range"])
        return int(match[1]) if match else None
    length = headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _fault(path: Path, remote: Remote) -> str | None:
    """What is wrong with a file, or None."""
    if remote.size not in (None, _size(path)):
        return f"it has {_size(path)} bytes where {remote.size} were expected"
    if not remote.digest:
        return None
    algorithm, _, expected = remote.digest.partition(":")
    with path.open("rb") as file:
        found = hashlib.new(algorithm, usedforsecurity=False)
        while chunk := file.read(1 << 20):
            found.update(chunk)
    if found.hexdigest() == expected.lower():
        return None
    return f"its {algorithm} checksum is {found.hexdigest()} where {expected} was expected"
