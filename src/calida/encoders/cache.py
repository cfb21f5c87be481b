"""Embeddings on disk: found by what a sample holds, whoever computed them and wherever its file lies.

An encoder has a folder of shards, safetensors files of keys and features that are memory-mapped when they are read. A
shard appears whole or not at all, under a name that its keys decide: a run that was killed finds what it had finished,
and two processes that compute the same samples write the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from calida.encoders.encoder import Encoder
from calida.errors import CheckpointError, InputError
from calida.files import write_atomically
from calida.json_values import read_json

KEY_BYTES = 16
SHARD_ROWS = 512
_ABOUT, _SHARDS = "about.json", "*.safetensors"
_DIGEST = "digest"
_ENVIRONMENT = "CALIDA_CACHE"


def cache_folder() -> Path:
    """Where embeddings are kept: the folder that CALIDA_CACHE names, or the user's own cache folder."""
    named = os.environ.get(_ENVIRONMENT)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("calida", appauthor=False)


class Cached(NamedTuple):
    """What the cache holds of one encoder."""

    folder: Path
    name: str
    weights: str
    samples: int
    size: int  # in bytes


class EmbeddingCache:
    """The embeddings of one encoder."""

    def __init__(self, encoder: Encoder, precision: str, root: Path | None = None) -> None:
        plain = re.sub(r"[^\w.-]+", "-", encoder.name)[:60]
        self.folder = (root or cache_folder()) / f"{plain}-{encoder.fingerprint(precision)}"
        self._about = encoder.identity(precision)
        self._width = encoder.num_features

    def fill(self, keys: Sequence[bytes], features: Tensor) -> Tensor:
        """Copy what is known into the rows of `features`; give booleans, [N], of the rows that are still missing."""
        rows: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        for shard in self._read():
            places = [(place, rows[key]) for place, key in enumerate(shard.keys) if key in rows]
            if places and shard.is_whole():
                for place, _ in places:
                    rows.pop(shard.keys[place], None)
                known = shard.features[torch.tensor([place for place, _ in places])]
                for value, (_, wanted) in zip(known, places, strict=True):
                    features[wanted] = value
        missing = torch.zeros(len(keys), dtype=torch.bool)
        missing[[row for wanted in rows.values() for row in wanted]] = True
        return missing

    def add(self, keys: Sequence[bytes], features: Tensor) -> None:
        """Write a shard."""
        if not keys:
            return
        name = hashlib.blake2b(b"".join(keys), digest_size=KEY_BYTES).hexdigest()
        table = torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8).view(-1, KEY_BYTES)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / _ABOUT).exists():
                write_atomically(self.folder / _ABOUT, json.dumps(self._about, indent=1).encode())
            said = {_DIGEST: _digest(table, features)}
            content = save({"keys": table, "features": features}, metadata=said)
            write_atomically(self.folder / f"{name}.safetensors", content)
        except OSError as error:
            raise InputError(
                f"embeddings cannot be kept in {self.folder}: {error.strerror or error}; {_ENVIRONMENT} names another "
                "folder"
            ) from None

    def _read(self) -> Iterator[_Shard]:
        """Every shard that can be read; one that cannot is as if it had never been written."""
        for path in sorted(self.folder.glob(_SHARDS)):
            try:
                with safe_open(path, "pt") as file:
                    table, features = file.get_tensor("keys"), file.get_tensor("features")
                    digest = (file.metadata() or {}).get(_DIGEST)
            except (OSError, SafetensorError):
                continue
            fits = table.dtype == torch.uint8 and table.ndim == 2 and table.shape[1] == KEY_BYTES
            if fits and features.shape == (len(table), self._width) and features.dtype == torch.float32:
                plain = table.numpy().tobytes()
                keys = [plain[at : at + KEY_BYTES] for at in range(0, len(plain), KEY_BYTES)]
                yield _Shard(keys, table, features, digest)


class _Shard(NamedTuple):
    keys: list[bytes]
    table: Tensor  # the same as bytes
    features: Tensor
    digest: str | None

    def is_whole(self) -> bool:
        """Whether nothing of it was changed; this reads all of it, so it is asked where something is needed."""
        return self.digest == _digest(self.table, self.features)


def _digest(keys: Tensor, features: Tensor) -> str:
    state = hashlib.blake2b(keys.contiguous().numpy().data, digest_size=KEY_BYTES)
    state.update(features.contiguous().numpy().data)
    return state.hexdigest()


def list_cache(root: Path | None = None) -> list[Cached]:
    """What is kept, by encoder."""
    found = []
    for about in sorted((root or cache_folder()).glob(f"*/{_ABOUT}")):
        try:
            values = read_json(about)
            name, weights = str(values["name"]), str(values["weights"])
        except (OSError, CheckpointError, KeyError, TypeError):
            continue
        samples = size = 0
        for path in about.parent.glob(_SHARDS):
            try:
                with safe_open(path, "pt") as file:
                    samples += file.get_slice("keys").get_shape()[0]
                size += path.stat().st_size
            except (OSError, SafetensorError):
                continue
        found.append(Cached(about.parent, name, weights, samples, size))
    return found


def clear_cache(name: str | None = None, root: Path | None = None) -> list[Cached]:
    """Remove what is kept of an encoder, or of all; other files in the folder are left alone."""
    gone = [one for one in list_cache(root) if name in (None, one.name)]
    for one in gone:
        shutil.rmtree(one.folder, ignore_errors=True)
    return gone
