"""Decide how both domains are brought to one value range, polarity, geometry and detail."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from calida.data.arrays.decode import MAX_PIXELS
from calida.data.files.collection import Collection
from calida.data.unify.image_statistics import (
    ImageStatistics,
    ground_words,
    image_statistics,
    is_inverted,
)
from calida.data.unify.preparation import Preparation, column_sizes, odd_column
from calida.data.unify.values import Values
from calida.errors import InputError

OnMismatch = Literal["stop", "match", "ignore"]
_LARGEST = 64  # pixels, unless a size is asked for: what a small network on a CPU can take
_SMALLEST = 16
_REFRAME = 1.15  # content that fills the frame by this factor more is drawn smaller
_SHARPER = 1.25  # detail that is finer by this factor is taken away


def unify(
    source: Collection,
    target: Collection,
    size: int | None = None,
    on_mismatch: OnMismatch = "stop",
    skip_unreadable: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> tuple[Preparation, Preparation]:
    """One preparation for each domain, after which both have one shape and one meaning of values."""
    if source.is_images != target.is_images:
        raise InputError(
            f"source {source.origin} holds {source.kind} and target {target.origin} {target.kind}; "
            "both must be of one kind"
        )
    if not source.is_images:
        return _unify_vectors(source, target, on_mismatch)
    valued = _unify_values(source, target, on_mismatch)
    domains = zip((source, target), valued, strict=True)
    found = [image_statistics(domain, steps, skip_unreadable, max_pixels) for domain, steps in domains]
    shape = (max(image.channels for image in found), *_frame(found, size))
    inverted = _is_inverted(found, on_mismatch)
    finished = []
    for image, other, steps, invert in zip(found, reversed(found), valued, (False, inverted), strict=True):
        inner, detail = _fit_frame(image, other, shape[1:])
        level = 0.0
        if inner is not None and image.background is not None:
            level = 1 - image.background if invert else image.background
        level = float(round(255 * level)) if steps.as_bytes else level
        finished.append(replace(steps, shape=shape, invert=invert, detail=detail, inner=inner, background=level))
    return finished[0], finished[1]


def _unify_values(source: Collection, target: Collection, on_mismatch: OnMismatch) -> list[Preparation]:
    """The value steps of both domains; a mismatch stops, or the target's own range becomes 0..1 too."""
    first, second = Values.of(source.samples), Values.of(target.samples)
    if not first.same_scale(second):
        if on_mismatch == "stop":
            raise InputError(
                f"source values lie in {first} and target values in {second}: give both in one scale, "
                "or let on_mismatch=match stretch the target's range to the source's",
                "on_mismatch",
            )
        if on_mismatch == "ignore":  # the target's numbers mean what the source's do, whatever they are
            floats = first._replace(convention="other")
            return [Preparation((), **floats.steps()) for _ in range(2)]
    elif first.convention == "other":
        second = first  # ranges that differ a little are one scale, and black is black in both
    return [Preparation((), **values.steps()) for values in (first, second)]


def _frame(found: list[ImageStatistics], size: int | None) -> tuple[int, int]:
    """The size asked for, or the larger domain's, within what a small network can take."""
    if size is not None:
        return size, size
    larger = max(found, key=lambda image: image.height * image.width)
    scale = min(1.0, _LARGEST / max(larger.height, larger.width))
    return max(round(larger.height * scale), _SMALLEST), max(round(larger.width * scale), _SMALLEST)


def _is_inverted(found: list[ImageStatistics], on_mismatch: OnMismatch) -> bool:
    first, second = (image.background for image in found)
    if first is None or second is None or not is_inverted(first, second) or on_mismatch == "ignore":
        return False
    if on_mismatch == "stop":
        raise InputError(
            f"source images are {ground_words(first)} and target images {ground_words(second)}: "
            "their polarity is inverted; "
            "let on_mismatch=match invert the target, or on_mismatch=ignore leave it",
            "on_mismatch",
        )
    return True


def _fit_frame(
    image: ImageStatistics, other: ImageStatistics, frame: tuple[int, ...]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The inner size that makes the content of both domains equally large, and the detail that both have."""
    plain = image.background is not None and other.background is not None
    content, others = (image.content, other.content) if plain else (1.0, 1.0)
    share = others / content if content > _REFRAME * others else 1.0
    inner = (max(round(frame[0] * share), 1), max(round(frame[1] * share), 1))
    # Pixels that the content really has, against those that it takes in the frame.
    finest, own = min(image.height * content, other.height * others), inner[0] * content
    detail = None
    if min(image.height * content, own) > _SHARPER * finest:
        detail = (max(round(inner[0] * finest / own), 1), max(round(inner[1] * finest / own), 1))
    return (inner if inner != tuple(frame) else None), detail


def _unify_vectors(source: Collection, target: Collection, on_mismatch: OnMismatch) -> tuple[Preparation, Preparation]:
    x, t = source.samples, target.samples
    assert isinstance(x, Tensor)
    assert isinstance(t, Tensor)
    if x.shape[1] != t.shape[1]:
        raise InputError(
            f"source {source.origin} has {x.shape[1]} features and target {target.origin} has {t.shape[1]}"
        )
    measured = torch.ones(x.shape[1]) if source.table is None else torch.tensor(source.table.measured)
    same, sizes = Preparation((x.shape[1],), **column_sizes(x, measured)), column_sizes(t, measured)
    odd = odd_column(same.magnitude, sizes["magnitude"])
    if odd is None or on_mismatch == "ignore":
        return same, replace(same, **sizes)
    if on_mismatch == "stop":
        name = repr(source.columns[odd]) if source.columns else str(odd)
        raise InputError(
            f"the column {name} lies in {_span(x[:, odd])} in source and in {_span(t[:, odd])} in target: "
            "give both in one scale, let on_mismatch=match bring each column to the source's mean and spread, "
            "or on_mismatch=ignore leave it",
            "on_mismatch",
        )
    x, t = x.float(), t.float()
    spread = t.std(0)
    gain = torch.where((spread > 0) & (measured > 0), x.std(0) / spread.clamp(min=1e-12), 1.0)
    offset = torch.where(measured > 0, x.mean(0) - gain * t.mean(0), 0.0)
    return same, Preparation((x.shape[1],), gain=tuple(gain.tolist()), offset=tuple(offset.tolist()), **sizes)


def _span(x: Tensor) -> str:
    return f"{float(x.min()):g}..{float(x.max()):g}"
