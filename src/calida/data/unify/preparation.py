"""What is done to the samples of a domain before a network reads them, as values that can be shown and saved."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from calida.data.arrays.checks import OTHER_UNIT, mean_and_largest, size_factors
from calida.data.unify.values import Values
from calida.json_values import from_json

_NOTHING = 1e-12  # a column of zeros tells nothing
_LARGEST_SIDE = 1 << 14  # pixels


@dataclass(frozen=True)
class Preparation:
    """The steps from a sample as it comes to the shape that both domains share, in the order of these fields.

    Images are [C, h, w] of any size or batches of them; vectors are rows. Values first: `gain` and `offset`, one number
    or one a column, bring images to 0..1, or they stay bytes, which are read as that; then inversion. Then geometry:
    channels, an optional detour through a smaller size that takes away detail, and the image, cropped to the frame's
    aspect, at `inner` size in the middle of a plain frame.
    """

    shape: tuple[int, ...]
    values: Values | None = None  # of the samples that this was decided for; vectors have none
    gain: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    as_bytes: bool = False
    invert: bool = False
    detail: tuple[int, int] | None = None
    inner: tuple[int, int] | None = None
    background: float = 0.0  # as the pixels' values are
    # Of the columns that this was decided for, so that new rows can be compared: mean and largest absolute values.
    magnitude: tuple[float, ...] = ()
    largest: tuple[float, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        x = self._values(x)
        return self._geometry(x) if len(self.shape) == 3 else x

    def _values(self, x: Tensor) -> Tensor:
        if self.values is not None and not self.as_bytes:
            x = x.float()  # also of bytes that hold 0 and 1, which would be read as 0 and 1/255
        if self.gain != (1.0,) or self.offset != (0.0,):
            x = x.float() * torch.tensor(self.gain) + torch.tensor(self.offset)
        if self.as_bytes and x.dtype != torch.uint8:
            x = x.round().clamp(0, 255).byte()
        if self.invert:
            x = (255 if x.dtype == torch.uint8 else 1) - x
        return x

    def _geometry(self, x: Tensor) -> Tensor:
        channels, height, width = self.shape
        batch = to_channels(x if x.ndim == 4 else x[None], channels)
        inner = self.inner or (height, width)
        batch = crop_to_aspect(batch, inner)
        if self.detail is not None:
            batch = resize(batch, self.detail)
        batch = resize(batch, inner)
        if inner != (height, width):
            frame = batch.new_full((len(batch), channels, height, width), self.background)
            top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
            frame[:, :, top : top + inner[0], left : left + inner[1]] = batch
            batch = frame
        return batch if x.ndim == 4 else batch[0]

    def explain(self, before: tuple[int, ...] | None) -> list[str]:
        """What these steps do to samples of the shape `before` (None: images of many sizes), one phrase a step."""
        told = []
        if len(self.gain) > 1:
            told.append("every column brought to the source's mean and spread")
        elif self.gain != (1.0,) or self.offset != (0.0,):
            told.append(f"values multiplied by {self.gain[0]:.4g} and shifted by {self.offset[0]:.4g}")
        if self.invert:
            told.append("light and dark exchanged")
        if len(self.shape) != 3:
            return told
        channels, height, width = self.shape
        if before is not None and before[0] != channels:
            told.append("gray copied to three channels" if before[0] == 1 else f"reduced to {channels} channel(s)")
        if self.detail is not None:
            told.append(f"reduced to {_times(self.detail)} first, as the other domain has no more detail")
        inner = self.inner or (height, width)
        if before is not None and (middle := cropped_size(before[1:], inner)) != tuple(before[1:]):
            told.append(f"the middle {_times(middle)} of {_times(before[1:])} taken, to keep proportions")
            before = (before[0], *middle)
        if before is None:
            told.append(f"middle part resized to {_times(inner)}")
        elif tuple(before[1:]) != inner:
            told.append(f"resized from {_times(before[1:])} to {_times(inner)}")
        if self.inner is not None:
            told.append(
                f"placed in the middle of {_times((height, width))}, so that content is equally large in both domains"
            )
        return told

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Any) -> Preparation:
        return from_json(Preparation, values, "a preparation")

    def check(self) -> None:
        """Refuse steps that cannot be taken, or that would make numbers of nothing: ValueError."""
        sizes = self.shape if len(self.shape) == 1 else (1,)
        columns = (1, *sizes)
        if len(self.shape) not in (1, 3) or min(self.shape) < 1:
            raise ValueError(f"samples are brought to the shape {self.shape}")
        if len(self.gain) not in columns or len(self.offset) not in columns:
            raise ValueError(f"{len(self.gain)} gains and {len(self.offset)} offsets for samples of {self.shape}")
        if any(len(part) not in (0, *sizes) for part in (self.magnitude, self.largest)):
            raise ValueError(f"the sizes of other columns than the {self.shape[0]} there are")
        numbers = (*self.gain, *self.offset, *self.magnitude, *self.largest, self.background, *(self.values or ())[1:3])
        if not all(map(math.isfinite, numbers)):
            raise ValueError("numbers that are infinite or none")
        for size in (self.detail, self.inner):
            if size is not None and (len(self.shape) != 3 or min(size) < 1 or max(size) > _LARGEST_SIDE):
                raise ValueError(f"images are resized to {size}")
        if self.inner is not None and any(
            inner > outer for inner, outer in zip(self.inner, self.shape[1:], strict=True)
        ):
            raise ValueError(f"images of {self.inner} do not fit into a frame of {self.shape[1:]}")

    def for_values(self, values: Values) -> Preparation | None:
        """The same steps for samples stored in another way, if that is the same scale; None if it is not."""
        if self.values is None or self.values == values:
            return self
        if values.within(self.values):
            return self  # dark or dim images, in numbers as before
        if not self.values.same_scale(values):
            return None
        if values.convention == "other":
            return self  # the range that was decided on holds for all that come after
        levels = {(True, False): 1 / 255, (False, True): 255.0}
        level = self.background * levels.get((self.as_bytes, values.convention == "bytes"), 1.0)
        return replace(self, **values.steps(), background=level)

    def strange_column(self, rows: Tensor) -> tuple[int, float] | None:
        """The column of new rows that is most unlike those that this was decided for in size, and by what factor."""
        if not self.magnitude:
            return None
        every = [True] * len(self.magnitude)
        factors = size_factors(self.magnitude, self.largest or self.magnitude, rows, every)
        return int(factors.argmax()), float(factors.max())


def column_sizes(x: Tensor, measured: Tensor) -> dict[str, Any]:
    """The fields of a preparation that tell how large the values of each column are.

    Columns that are not `measured` in a unit, indicators of a category for one, have no size to compare.
    """
    return {
        name: tuple(size if told else 0.0 for size, told in zip(sizes, measured.tolist(), strict=True))
        for name, sizes in zip(("magnitude", "largest"), mean_and_largest(x), strict=True)
    }


def odd_column(first: tuple[float, ...], second: tuple[float, ...]) -> int | None:
    """The column that differs most in size, where half of them do so by a factor of 50 and more.

    Real drift moves single columns by any factor, and is warned of. A column of zeros tells nothing.
    """
    sizes = enumerate(zip(first, second, strict=True))
    ratios = {column: max(pair) / min(pair) for column, pair in sizes if min(pair) > _NOTHING}
    odd = [column for column, ratio in ratios.items() if ratio >= OTHER_UNIT]
    return max(odd, key=lambda column: ratios[column]) if odd and 2 * len(odd) >= len(ratios) else None


def to_channels(batch: Tensor, channels: int) -> Tensor:
    """Gray images repeated, or color ones averaged by how bright the eye finds red, green and blue."""
    have = batch.shape[1]
    if have == channels:
        return batch
    if have == 1:
        return batch.expand(-1, channels, -1, -1)
    if channels == 3:
        return batch[:, :3]  # what is over is transparency
    weights = torch.tensor([0.299, 0.587, 0.114], device=batch.device).view(1, 3, 1, 1)
    gray = (batch[:, :3].float() * weights).sum(1, keepdim=True)
    return gray.round().byte() if batch.dtype == torch.uint8 else gray


def crop_to_aspect(batch: Tensor, size: tuple[int, int]) -> Tensor:
    """The largest middle part with the proportions of `size`."""
    height, width = batch.shape[-2:]
    tall, wide = cropped_size((height, width), size)
    top, left = (height - tall) // 2, (width - wide) // 2
    return batch[..., top : top + tall, left : left + wide]


def cropped_size(before: tuple[int, ...], size: tuple[int, int]) -> tuple[int, int]:
    scale = min(before[0] / size[0], before[1] / size[1])
    return max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)


def resize(batch: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, with the averaging over pixels that shrinking needs."""
    if tuple(batch.shape[-2:]) == size:
        return batch
    return torch.nn.functional.interpolate(batch.contiguous(), size, mode="bilinear", antialias=True)


def _times(size: tuple[int, ...]) -> str:
    return " x ".join(map(str, size))
