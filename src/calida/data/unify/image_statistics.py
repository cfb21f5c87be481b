"""Statistics of some images of a domain: size, channels, background, and how much of the frame they fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.data.arrays.decode import MAX_PIXELS, UnreadableImageError, decode_image, image_facts
from calida.data.arrays.samples import Samples
from calida.data.files.collection import Collection
from calida.data.unify.preparation import Preparation, to_channels
from calida.errors import InputError

_LOOKED_AT = 256
_PLAIN = 0.6  # share of border pixels near one level that makes a plain background
_NEGATIVE = 0.5  # between the grounds of a picture and of its negative, in 0..1
_CHANNELS = (1, 3, 4)
_COLOURFUL = 0.01  # of the range of values: more than a lossy format makes of grays


@dataclass(frozen=True)
class ImageStatistics:
    """What some images of a domain have in common; levels are in 0..1."""

    height: int
    width: int
    channels: int
    background: float | None  # where most borders are plain
    content: float  # share of the frame that the larger side of what is not background takes


def image_statistics(
    domain: Collection, values: Preparation, skip_unreadable: bool, max_pixels: int = MAX_PIXELS
) -> ImageStatistics:
    """Statistics of up to 256 images, spread over the whole collection; `values` brings them to 0..1."""
    step = max(len(domain) / _LOOKED_AT, 1.0)
    rows = [int(place * step) for place in range(min(len(domain), _LOOKED_AT))]
    if isinstance(domain.samples, Tensor):
        have, height, width = domain.samples.shape[1:]
        if have not in _CHANNELS:
            raise InputError(f"{domain.origin} has images of {have} channels; expected 1, 3 or 4")
        images = [_gray(values(domain.samples[row])) for row in rows]
        return _judge(images, height, width, min(have, 3))
    facts, images = [], []
    for fact, image in _decoded(domain, rows, skip_unreadable, max_pixels):
        facts.append(fact)
        images.append(_gray(image))
    if not images:
        raise InputError(f"none of {len(rows)} images of {domain.origin} that were tried can be read")
    sizes = torch.tensor(facts)
    height, width = sizes[:, :2].median(0).values.tolist()
    return _judge(images, height, width, int(sizes[:, 2].max()))


def statistics_of(images: Tensor) -> ImageStatistics:
    """The same for images [N, C, H, W] in 0..1 that are in memory."""
    return _judge([_gray(image) for image in images], images.shape[2], images.shape[3], images.shape[1])


def is_inverted(background: float, other: float) -> bool:
    """Whether one of two grounds is light and the other dark, so that one domain is as a negative of the other."""
    return abs(background - other) >= _NEGATIVE


def ground_words(background: float) -> str:
    """How images are drawn on a ground of this level, in words."""
    return "dark on light" if background > 0.5 else "light on dark"


def has_colors(samples: Samples) -> bool:
    """Whether images have more than grays; those of a file format that has colors may be gray all the same."""
    if samples.ndim != 4 or samples.shape[1] != 3:
        return False
    rows = torch.linspace(0, len(samples) - 1, min(len(samples), _LOOKED_AT)).long()
    images = samples[rows].float()
    colors = (images - images.mean(1, keepdim=True)).abs().mean()
    return bool(colors > _COLOURFUL * (images.max() - images.min()))


def _decoded(
    domain: Collection, rows: list[int], skip: bool, max_pixels: int
) -> Iterator[tuple[tuple[int, int, int], Tensor]]:
    for row in rows:
        try:
            yield image_facts(domain.files[row]), decode_image(domain.files[row], 1, max_pixels=max_pixels)
        except UnreadableImageError as error:
            if not skip:
                raise error.with_advice() from None


def _gray(image: Tensor) -> Tensor:
    """[h, w] in 0..1."""
    gray = to_channels(image[None], 1)[0, 0]
    return gray.float() / 255 if gray.dtype == torch.uint8 else gray


def _judge(images: list[Tensor], height: int, width: int, channels: int) -> ImageStatistics:
    background = _background(images)
    content = None if background is None else _content(images, background)
    if content is None:  # no ground, or nothing on it
        return ImageStatistics(height, width, channels, None, 1.0)
    return ImageStatistics(height, width, channels, background, content)


def _background(images: list[Tensor]) -> float | None:
    """The level of most border pixels, if most of them have one level."""
    borders = torch.cat([torch.cat([image[0], image[-1], image[:, 0], image[:, -1]]) for image in images])
    level = borders.median()
    return float(level) if float(((borders - level).abs() < 0.1).float().mean()) >= _PLAIN else None


def _content(images: list[Tensor], background: float) -> float | None:
    shares = []
    for image in images:
        marked = (image - background).abs() > 0.2
        extents = []
        for axis in (0, 1):
            places = marked.any(1 - axis).nonzero().flatten()
            if len(places):
                extents.append(float(places[-1] - places[0] + 1) / image.shape[axis])
        if extents:
            shares.append(max(extents))
    return sum(shares) / len(shares) if shares else None
