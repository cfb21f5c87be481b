"""Collections -> prepared samples: in memory as bytes where they fit, streamed from disk where they do not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from calida.data.arrays.checks import OTHER_UNIT, WORTH_A_WARNING
from calida.data.arrays.decode import MAX_PIXELS, ImageSource, UnreadableImageError, decode_image
from calida.data.arrays.samples import ImageFiles, Rows, Samples, read_ahead, row_slices
from calida.data.files.collection import Collection
from calida.data.unify.preparation import Preparation
from calida.data.unify.values import Values
from calida.errors import InputError, warn_user

Progress = Callable[[int, int], None]
_CHUNK = 64


@dataclass(frozen=True)
class Loading:
    """How files are read: memory for decoded images, worker processes, and whether bad files are passed over."""

    memory: float = 2.0  # GB a domain
    workers: int = min(4, os.cpu_count() or 1)
    skip_unreadable: bool = False
    max_pixels: int = MAX_PIXELS  # of an image; larger ones cannot be read


class Loaded(NamedTuple):
    """Prepared samples, the collection of those that could be read, and a sentence on each thing that was done."""

    samples: Samples
    collection: Collection
    notes: list[str]


def load_samples(
    collection: Collection,
    preparation: Preparation,
    loading: Loading,
    progress: Progress = lambda done, total: None,
) -> Loaded:
    """Prepare every sample; an image that cannot be read is named, or passed over and counted."""
    if isinstance(collection.samples, Tensor):
        shape = tuple(collection.samples.shape[1:])
        parts = [preparation(chunk) for chunk in collection.samples.split(4096)]
        samples: Samples = parts[0] if len(parts) == 1 else torch.cat(parts)
        return Loaded(samples, collection, _notes(collection, preparation, shape, False))
    decoded, readable = _read_files(collection.files, preparation, loading, progress)
    if not readable:
        raise InputError(f"none of the {len(collection):,} images of {collection.origin} can be read")
    skipped: list[str] = []
    if len(readable) < len(collection):
        names = [collection.names[row] for row in sorted(set(range(len(collection))) - set(readable))]
        more = ", ..." if len(names) > 5 else ""
        skipped = [f"{len(names):,} unreadable images skipped: {', '.join(names[:5])}{more}"]
        collection = collection.take(readable)
    samples = decoded if decoded is not None else _files(collection, preparation, loading)
    return Loaded(samples, collection, _notes(collection, preparation, None, decoded is None) + skipped)


_TAKE_THEM = "; on_mismatch=ignore takes them as they are"


def load_new(collection: Collection, preparation: Preparation, loading: Loading, check_scale: bool = True) -> Loaded:
    """Samples that come after training, prepared as those of the run were; vectors must have its columns."""
    if collection.is_images != (len(preparation.shape) == 3):
        raise InputError(f"{collection.origin} holds {collection.kind}, which this classifier does not read")
    if isinstance(collection.samples, Tensor) and not collection.is_images:
        have, want = collection.samples.shape[1], preparation.shape[0]
        if have != want:
            raise InputError(f"{collection.origin} has {have} features; this classifier reads {want}")
        odd = preparation.strange_column(collection.samples) if check_scale else None
        if odd is not None and odd[1] >= WORTH_A_WARNING:
            name = repr(collection.columns[odd[0]]) if collection.columns else str(odd[0])
            told = (
                f"the column {name} of {collection.origin} is of another scale than the classifier was trained on, "
                f"by a factor of {odd[1]:.3g}"
            )
            if odd[1] >= OTHER_UNIT:
                raise InputError(f"{told}{_TAKE_THEM}", "on_mismatch")
            warn_user(f"{told}: are they in one unit?")
        return load_samples(collection, preparation, loading)
    values = Values.of(collection.samples)
    fitting = preparation.for_values(values)
    if fitting is None and (check_scale or not isinstance(collection.samples, Tensor)) and not _is_blank(collection):
        raise InputError(
            f"{collection.origin} has values in {values}; this classifier was trained on {preparation.values}"
            f"{_TAKE_THEM}",
            "on_mismatch",
        )
    return load_samples(collection, fitting or preparation, loading)


def _is_blank(collection: Collection) -> bool:
    """Zeros are numbers of any range, and say nothing of which it is."""
    return isinstance(collection.samples, Tensor) and not bool(collection.samples.any())


def _files(collection: Collection, preparation: Preparation, loading: Loading) -> ImageFiles:
    return ImageFiles(collection.files, preparation, preparation.shape, loading.workers, loading.max_pixels)


class DecodedFiles(Dataset[list[Tensor | UnreadableImageError]]):
    """Chunks of files, each decoded and prepared, or the reason why it could not be."""

    def __init__(
        self, paths: Sequence[ImageSource], preparation: Preparation, loading: Loading, at_least: int | None = None
    ) -> None:
        self.paths, self.preparation, self.at_least, self.max_pixels = paths, preparation, at_least, loading.max_pixels

    def __getitem__(self, rows: Rows) -> list[Tensor | UnreadableImageError]:
        results: list[Tensor | UnreadableImageError] = []
        for path in self.paths[rows]:  # type: ignore[index]
            try:
                image = decode_image(path, self.preparation.shape[0], self.at_least, self.max_pixels)
                results.append(self.preparation(image))
            except UnreadableImageError as error:
                results.append(error.with_advice())
        return results


def _read_files(
    paths: Sequence[ImageSource], preparation: Preparation, loading: Loading, progress: Progress
) -> tuple[Tensor | None, list[int]]:
    """Decode every file once; keep the result if it fits. Reading all now finds what is broken before training does."""
    fits = len(paths) * torch.Size(preparation.shape).numel() <= loading.memory * 1e9
    store = torch.empty((len(paths), *preparation.shape), dtype=torch.uint8) if fits else None
    readable: list[int] = []
    done = 0
    for chunk in read_ahead(DecodedFiles(paths, preparation, loading), row_slices(len(paths), _CHUNK), loading.workers):
        for image in chunk:
            if isinstance(image, Tensor):
                if store is not None:
                    store[len(readable)] = image
                readable.append(done)
            elif not loading.skip_unreadable:
                raise image
            done += 1
        progress(done, len(paths))
    return (None if store is None else store[: len(readable)]), readable


def _notes(
    collection: Collection, preparation: Preparation, shape: tuple[int, ...] | None, streamed: bool
) -> list[str]:
    kind = "images" if collection.is_images else f"rows of {preparation.shape[0]} features"
    size = f" of {' x '.join(map(str, shape[1:]))} pixels" if shape is not None and collection.is_images else ""
    first = f"{len(collection):,} {kind}{size}{', streamed from disk' if streamed else ''}"
    done = preparation.explain(shape) or (["kept as they are"] if collection.table is None else [])
    return [first, *done, *collection.notes]
