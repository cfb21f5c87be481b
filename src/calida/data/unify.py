"""Look at both domains and decide how to bring them to one value range, polarity, geometry and detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from calida.data.collection import Collection
from calida.data.decode import UnreadableImageError, decode_image, image_facts
from calida.data.preparation import Preparation, to_channels
from calida.errors import InputError

OnMismatch = Literal["stop", "match", "ignore"]
_LOOKED_AT = 256
_LARGEST = 64  # pixels, unless a size is asked for: what a small network on a CPU can take
_SMALLEST = 16
_PLAIN = 0.6  # share of border pixels near one level that makes a plain background
_REFRAME = 1.15  # content that fills the frame by this factor more is drawn smaller
_SHARPER = 1.25  # detail that is finer by this factor is taken away


class Values(NamedTuple):
    """What the numbers of a domain are."""

    convention: str  # "bytes" 0..255, "unit" 0..1, "symmetric" -1..1, or "other"
    low: float
    high: float
    stored_as_bytes: bool

    @staticmethod
    def of(x: Tensor | Sequence[Path]) -> Values:
        if not isinstance(x, Tensor):
            return Values("bytes", 0.0, 255.0, True)
        low, high, stored = float(x.min()), float(x.max()), x.dtype == torch.uint8
        if low >= 0 and high <= 1:
            return Values("unit", 0.0, 1.0, stored)
        if stored or (low >= 0 and 128 < high <= 255):
            return Values("bytes", 0.0, 255.0, stored)
        if low >= -1 and high <= 1:
            return Values("symmetric", -1.0, 1.0, stored)
        return Values("other", min(low, 0.0), max(high, 0.0), stored)

    def same_scale(self, other: Values) -> bool:
        """One convention; or bytes beside floats in 0..1, which can only be the same thing divided by 255."""
        if self.convention != other.convention:
            pair = {(one.convention, one.stored_as_bytes) for one in (self, other)}
            return pair == {("bytes", True), ("unit", False)}
        if self.convention == "other":
            spans = sorted((self.high - self.low, other.high - other.low))
            return spans[1] < 4 * spans[0]
        return self.convention == "bytes" or self.stored_as_bytes == other.stored_as_bytes

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Look:
    """What a glance at some images of a domain tells."""

    height: int
    width: int
    channels: int
    background: float | None  # level in 0..1 where most borders are plain
    content: float  # share of the frame that the larger side of what is not background takes


def unify(
    source: Collection,
    target: Collection,
    size: int | None = None,
    on_mismatch: OnMismatch = "stop",
    skip_unreadable: bool = False,
) -> tuple[Preparation, Preparation]:
    """One preparation for each domain, after which both have one shape and one meaning of values."""
    if source.is_images != target.is_images:
        kinds = {True: "images", False: "feature vectors"}
        raise InputError(
            f"source {source.origin} holds {kinds[source.is_images]} and target {target.origin} "
            f"{kinds[target.is_images]}; both must be of one kind"
        )
    if not source.is_images:
        return _unify_vectors(source, target, on_mismatch)
    value_steps = _unify_values(source, target, on_mismatch)
    looks = [_look(domain, steps, skip_unreadable) for domain, steps in zip((source, target), value_steps, strict=True)]
    channels = max(look.channels for look in looks)
    shape = (channels, *_frame(looks, size))
    inverted = _is_inverted(looks, on_mismatch)
    preparations = []
    for look, other, steps, invert in zip(looks, reversed(looks), value_steps, (False, inverted), strict=True):
        inner, detail = _fit_frame(look, other, shape[1:])
        level = look.background or 0.0
        level = 1 - level if invert else level
        preparations.append(
            Preparation(
                shape,
                steps.gain,
                steps.offset,
                steps.as_bytes,
                invert,
                detail,
                inner,
                0.0 if inner is None else float(round(255 * level)) if steps.as_bytes else level,
            )
        )
    return preparations[0], preparations[1]


def _unify_values(source: Collection, target: Collection, on_mismatch: OnMismatch) -> list[Preparation]:
    """The value steps of both domains; a mismatch stops, or stretches the target's range to the source's."""
    first, second = Values.of(source.samples), Values.of(target.samples)
    steps = [Preparation((), as_bytes=values.convention == "bytes") for values in (first, second)]
    if first.same_scale(second) or on_mismatch == "ignore":
        return steps
    if on_mismatch == "stop":
        raise InputError(
            f"source values lie in {first} and target values in {second}: give both in one scale, "
            "or let --on-mismatch match stretch the target's range to the source's"
        )
    gain = (first.high - first.low) / ((second.high - second.low) or 1.0)
    return [steps[0], Preparation((), (gain,), (first.low - gain * second.low,), steps[0].as_bytes)]


def _look(domain: Collection, values: Preparation, skip_unreadable: bool) -> Look:
    count = len(domain)
    rows = sorted({round(place * (count - 1) / max(_LOOKED_AT - 1, 1)) for place in range(min(count, _LOOKED_AT))})
    rows = rows if count > _LOOKED_AT else list(range(count))
    if isinstance(domain.samples, Tensor):
        some = domain.samples[torch.tensor(rows)]
        images = list(_unit(values(some)))
        height, width, channels = some.shape[2], some.shape[3], 1 if some.shape[1] == 1 else 3
    else:
        sizes, images = [], []
        for row in rows:
            try:
                sizes.append(image_facts(domain.samples[row]))
                images.append(_unit(decode_image(domain.samples[row], 1)))
            except UnreadableImageError:
                if not skip_unreadable:
                    raise
        if not images:
            raise InputError(f"none of {len(rows)} images of {domain.origin} that were tried can be read")
        height, width = (int(torch.tensor(side).float().median()) for side in list(zip(*sizes, strict=True))[:2])
        channels = max(facts[2] for facts in sizes)
    background = _background(images)
    return Look(height, width, channels, background, 1.0 if background is None else _content(images, background))


def _unit(images: Tensor) -> Tensor:
    """Grey images in 0..1 (of floats with a range of their own, as they are)."""
    grey = to_channels(images if images.ndim == 4 else images[None], 1)
    grey = grey.float() / 255 if grey.dtype == torch.uint8 else grey
    return grey if images.ndim == 4 else grey[0]


def _background(images: list[Tensor]) -> float | None:
    """The level of most border pixels, if most of them have one level."""
    borders = torch.cat(
        [
            torch.cat([image[..., 0, :], image[..., -1, :], image[..., 0], image[..., -1]], -1).flatten()
            for image in images
        ]
    )
    level = borders.median()
    return float(level) if float(((borders - level).abs() < 0.1).float().mean()) >= _PLAIN else None


def _content(images: list[Tensor], background: float) -> float:
    shares = []
    for image in images:
        marked = (
            ((image - background).abs() > 0.2).flatten(0, -3).any(0)
            if image.ndim > 2
            else (image - background).abs() > 0.2
        )
        sides = [marked.any(axis).nonzero().flatten() for axis in (0, 1)]
        if all(len(side) for side in sides):
            shares.append(
                max(
                    float(side[-1] - side[0] + 1) / length
                    for side, length in zip(sides, reversed(marked.shape), strict=True)
                )
            )
    return sum(shares) / len(shares) if shares else 1.0


def _frame(looks: list[Look], size: int | None) -> tuple[int, int]:
    """The size asked for, or the larger domain's, within what a small network can take."""
    if size is not None:
        if not 8 <= size <= 1024:
            raise InputError(f"the image size is a number of pixels between 8 and 1024, not {size}")
        return size, size
    larger = max(looks, key=lambda look: look.height * look.width)
    scale = min(1.0, _LARGEST / max(larger.height, larger.width))
    return max(round(larger.height * scale), _SMALLEST), max(round(larger.width * scale), _SMALLEST)


def _is_inverted(looks: list[Look], on_mismatch: OnMismatch) -> bool:
    levels = [look.background for look in looks]
    if levels[0] is None or levels[1] is None or abs(levels[0] - levels[1]) < 0.5 or on_mismatch == "ignore":
        return False
    if on_mismatch == "stop":
        words = ["dark on light" if level > 0.5 else "light on dark" for level in levels if level is not None]
        raise InputError(
            f"source images are {words[0]} and target images {words[1]}: their polarity is inverted; "
            "let --on-mismatch match invert the target, or --on-mismatch ignore leave it"
        )
    return True


def _fit_frame(
    look: Look, other: Look, frame: tuple[int, ...]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The inner size that makes the content of both domains equally large, and the detail that both have."""
    plain = look.background is not None and other.background is not None
    share = other.content / look.content if plain and look.content > _REFRAME * other.content else 1.0
    inner = (round(frame[0] * share), round(frame[1] * share))
    # Pixels that an image really has, for each pixel of content in the frame.
    finest = min(look.height * look.content, other.height * other.content)
    own = inner[0] * look.content
    detail = None
    if min(look.height * look.content, own) > _SHARPER * finest:
        ratio = finest / own
        detail = (max(round(inner[0] * ratio), 1), max(round(inner[1] * ratio), 1))
    return (inner if inner != tuple(frame) else None), detail


def _unify_vectors(source: Collection, target: Collection, on_mismatch: OnMismatch) -> tuple[Preparation, Preparation]:
    x, t = source.samples, target.samples
    assert isinstance(x, Tensor)
    assert isinstance(t, Tensor)
    if x.shape[1] != t.shape[1]:
        raise InputError(
            f"source {source.origin} has {x.shape[1]} features and target {target.origin} has {t.shape[1]}"
        )
    same = Preparation((x.shape[1],))
    ratio = float((_magnitude(t) / _magnitude(x)).median())
    if 1 / 20 < ratio < 20 or on_mismatch == "ignore":
        return same, same
    if on_mismatch == "stop":
        raise InputError(
            f"target values are about {ratio:.3g} times the source's ({_span(x)} in source, {_span(t)} in target): "
            "give both in one scale, let --on-mismatch match bring each column to the source's mean and spread, "
            "or --on-mismatch ignore leave it"
        )
    spread = t.std(0)
    gain = torch.where(spread > 0, x.std(0) / spread.clamp(min=1e-12), 1.0)
    offset = x.mean(0) - gain * t.mean(0)
    return same, Preparation((x.shape[1],), tuple(gain.tolist()), tuple(offset.tolist()))


def _magnitude(x: Tensor) -> Tensor:
    return x.float().abs().mean(0).clamp(min=1e-12)


def _span(x: Tensor) -> str:
    return f"{float(x.min()):g}..{float(x.max()):g}"
