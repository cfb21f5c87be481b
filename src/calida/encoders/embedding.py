"""Samples -> embeddings, each computed once: known ones from the cache, new ones in batches, kept as they come."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from calida.data import (
    DecodedFiles,
    ImageSource,
    Loading,
    Preparation,
    Texts,
    UnreadableImageError,
    Values,
    read_ahead,
    row_slices,
)
from calida.devices import has_bf16
from calida.encoders.cache import KEY_BYTES, SHARD_ROWS, EmbeddingCache
from calida.encoders.encoder import Encoder, ImageInput
from calida.errors import InputError

Progress = Callable[[int, int], None]
Content = Tensor | Texts | Sequence[ImageSource]
_BATCH = 32  # keeps a core busy; larger ones leave its caches
_READERS = 8  # threads that hash files
_TURNED = 0x0112  # the tag of a photograph that says which side is up


class Embedded(NamedTuple):
    """Features [N, D] of the samples that could be read, and their rows among all."""

    features: Tensor
    rows: list[int]


def embed(
    encoder: Encoder,
    samples: Content,
    loading: Loading | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = lambda done, total: None,
    root: Path | None = None,
) -> Embedded:
    """Features of image files, images [N, C, H, W] or texts; what the cache in `root` knows is not computed again."""
    loading, device = loading or Loading(), torch.device(device)
    precision = embedding_precision(device)
    cache = EmbeddingCache(encoder, precision, root)
    keys, unreadable = content_keys(samples, loading.skip_unreadable)
    features = torch.zeros(len(keys), encoder.num_features)
    missing = cache.fill(keys, features)
    missing[unreadable] = False
    first: dict[bytes, int] = {}
    for row in missing.nonzero().flatten().tolist():
        first.setdefault(keys[row], row)  # what occurs twice is computed once
    module = encoder.module
    module.to(device)
    done, total, waiting = len(keys) - len(first), len(keys), list[int]()
    progress(done, total)

    def keep() -> None:
        cache.add([keys[row] for row in waiting], features[torch.tensor(waiting, dtype=torch.long)])
        waiting.clear()

    try:
        for rows, batch in _batches(encoder, samples, list(first.values()), loading, unreadable):
            features[torch.tensor(rows, dtype=torch.long)] = encoder(batch, precision, device)
            waiting += rows
            if len(waiting) >= SHARD_ROWS:
                keep()
            done += len(rows)
            progress(done, total)
    finally:  # what is done is kept, whatever ended the work
        keep()
    broken = {keys[row] for row in unreadable}
    for row in missing.nonzero().flatten().tolist():
        features[row] = features[first[keys[row]]]
    readable = [row for row, key in enumerate(keys) if key not in broken]
    return Embedded(features if len(readable) == len(keys) else features[readable], readable)


def embedding_precision(device: torch.device) -> str:
    """bf16 where the processor computes with it, which is three times as fast there; fp32 elsewhere."""
    return "bf16" if has_bf16(device) else "fp32"


def standardizing(features: Tensor) -> Preparation:
    """What brings every feature of a domain to mean 0 and spread 1: a shift in style moves and stretches features."""
    mean, spread = features.double().mean(0), features.double().std(0)
    # A feature that is constant carries nothing.
    gain = torch.where(spread > 1e-6 * mean.abs(), 1 / spread.clamp(min=1e-12), 0.0)
    return Preparation((features.shape[1],), gain=tuple(gain.tolist()), offset=tuple((-gain * mean).tolist()))


def content_keys(samples: Content, skip_unreadable: bool = False) -> tuple[list[bytes], list[int]]:
    """A hash of each sample's content, and the rows of files that cannot be opened."""
    if isinstance(samples, Texts):
        return [_key(text.encode("utf-8", "surrogatepass")) for text in samples], []
    if isinstance(samples, Tensor):
        plain = samples.detach().cpu().contiguous()
        told = f"{plain.dtype} {tuple(plain.shape[1:])}".encode()
        return [_key(told + row.numpy().tobytes()) for row in plain], []
    with ThreadPoolExecutor(_READERS) as threads:
        found = list(threads.map(_file_key, samples))
    broken = [row for row, key in enumerate(found) if isinstance(key, str)]
    if broken and not skip_unreadable:
        raise UnreadableImageError(str(found[broken[0]])).with_advice()
    # A file that cannot be opened has no content: its name stands in.
    return [key if isinstance(key, bytes) else _key(key.encode()) for key in found], broken


def _file_key(path: ImageSource) -> bytes | str:
    try:
        if isinstance(path, Path):
            return _key(path.read_bytes())
        return _key(f"{path.mode} {path.size} {path.getexif().get(_TURNED)} ".encode() + path.tobytes())
    except Exception as error:  # Pillow decodes only now, and raises whatever a broken image makes it stumble over
        reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        return f"the image {path} cannot be read: {reason[:200]}"


def _key(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()


def _batches(
    encoder: Encoder, samples: Content, rows: list[int], loading: Loading, unreadable: list[int]
) -> Iterator[tuple[list[int], Tensor | Sequence[str]]]:
    """The rows in batches, with what the encoder reads of each; rows that cannot be read are added to `unreadable`."""
    reads = encoder.input
    if isinstance(samples, Texts) != (not isinstance(reads, ImageInput)):
        raise InputError(f"the encoder {encoder.name} reads {encoder.reads}, which these samples are not")
    if isinstance(samples, Texts):
        rows = sorted(rows, key=lambda row: len(samples[row]))  # alike in length, so that little is padded
        yield from ((part, [samples[row] for row in part]) for part in _parts(rows))
        return
    assert isinstance(reads, ImageInput)
    frame = reads.frame
    if isinstance(samples, Tensor):
        # Bytes stay bytes; floats are brought to 0..1 by what their range says that they are.
        steps = Values.of(samples).steps()
        prepare = replace(frame, **steps)
        yield from ((part, prepare(samples[torch.tensor(part)])) for part in _parts(rows))
        return
    files = DecodedFiles([samples[row] for row in rows], frame, loading, at_least=frame.shape[1])
    decoded = read_ahead(files, row_slices(len(rows), _BATCH), loading.workers)
    for part, images in zip(_parts(rows), decoded, strict=True):
        read: list[int] = []
        frames: list[Tensor] = []
        for row, image in zip(part, images, strict=True):
            if isinstance(image, Tensor):
                read.append(row)
                frames.append(image)
            elif loading.skip_unreadable:
                unreadable.append(row)
            else:
                raise image
        if read:
            yield read, torch.stack(frames)


def _parts(rows: list[int]) -> list[list[int]]:
    return [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]
