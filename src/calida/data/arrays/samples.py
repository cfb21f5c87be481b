"""Samples in memory or on disk behind one small interface: how many, of what shape, and these rows, please."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from calida.data.arrays.decode import MAX_PIXELS, ImageSource, UnreadableImageError, decode_image
from calida.errors import InputError

Rows = Tensor | slice
Item = TypeVar("Item")


@dataclass(frozen=True)
class ImageFiles(Dataset[Tensor]):
    """Image files that are decoded and prepared each time they are asked for: for sets larger than memory.

    `prepare` brings one decoded image, bytes [C, h, w], to the shape that all samples share.
    """

    paths: Sequence[ImageSource]
    prepare: Callable[[Tensor], Tensor]
    sample_shape: tuple[int, ...]
    workers: int = 2
    max_pixels: int = MAX_PIXELS  # of a file that is decoded

    dtype = torch.uint8
    is_sparse = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.paths), *self.sample_shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Rows) -> Tensor:
        chosen = self.paths[rows] if isinstance(rows, slice) else [self.paths[int(row)] for row in rows]
        images = (decode_image(path, self.sample_shape[0], max_pixels=self.max_pixels) for path in chosen)
        return torch.stack([self.prepare(image) for image in images])


Samples = Tensor | ImageFiles


class Texts(tuple[str, ...]):
    """Texts, one a sample: an encoder reads them."""

    __slots__ = ()


def take(samples: Samples, rows: Tensor) -> Samples:
    """The samples of these rows: a copy of arrays, a shorter list of files."""
    if isinstance(samples, ImageFiles):
        return replace(samples, paths=[samples.paths[int(row)] for row in rows])
    return samples[rows]


def stream(samples: Samples, batches: Sequence[Rows]) -> Iterator[Tensor]:
    """The batches in order: slices of an array, or files that worker processes decode ahead of their turn."""
    if isinstance(samples, Tensor):
        return (samples[rows] for rows in batches)
    return read_ahead(samples, batches, samples.workers)


def read_ahead(dataset: Dataset[Item], items: Sequence[Rows], workers: int) -> Iterator[Item]:
    """The dataset's items in order, made by worker processes that stay a few items ahead."""
    if workers == 0 or len(items) < 2:
        yield from (dataset[rows] for rows in items)
        return
    loader: DataLoader[Item] = DataLoader(
        dataset,
        sampler=items,
        batch_size=None,
        num_workers=min(workers, len(items)),
        prefetch_factor=4,
        multiprocessing_context=_start_method(),
        generator=torch.Generator(),  # or the loader would draw from the global one
        worker_init_fn=_begin_worker,
    )
    try:
        yield from loader
    except InputError as error:  # a worker's error arrives with its stack trace as text
        raise InputError(str(error).strip().splitlines()[-1].split("Error: ", 1)[-1]) from None


def _start_method() -> str:
    """How worker processes start: as this one says, unless it is one of joblib's, whose way serves joblib alone."""
    known = multiprocessing.get_all_start_methods()  # the platform's default comes first
    method = multiprocessing.get_start_method()
    return method if method in known else known[0]


def _begin_worker(worker: int) -> None:
    """One thread; and Ctrl-C, which a terminal sends to all processes, is left to the one that started this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def row_slices(stop: int, size: int, start: int = 0) -> list[Rows]:
    """All rows, or those from `start` on, in slices of at most this size."""
    return [slice(begin, min(begin + size, stop)) for begin in range(start, stop, size)]


def digest(*parts: Samples) -> str:
    """A short name for the content: of arrays their bytes, of files their names, sizes and times of change."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, Tensor):
            state.update(part.cpu().contiguous().numpy().data)
            continue
        state.update(repr((part.sample_shape, part.prepare)).encode())
        for path in part.paths:
            if not isinstance(path, Path):
                state.update(_pixels(path))
                continue
            try:
                facts = os.stat(path)
            except OSError as error:
                raise UnreadableImageError(f"the image {path} cannot be read: {error.strerror}") from None
            state.update(os.fsencode(path.name) + f" {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return state.hexdigest()


def _pixels(image: Image.Image) -> bytes:
    """The bytes of an image, which Pillow may not have read yet."""
    try:
        return image.tobytes()
    except Exception as error:  # decoders of broken files raise whatever they stumble over
        raise UnreadableImageError(f"the image {image} cannot be read: {str(error)[:200]}") from None


def unit_range(x: Tensor) -> Tensor:
    """Bytes as floats in 0..1; floats as they are."""
    return x.float() / 255 if x.dtype == torch.uint8 else x
