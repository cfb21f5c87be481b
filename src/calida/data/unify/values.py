"""What the numbers of images mean, and how they become 0..1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from calida.data.arrays.decode import ImageSource
from calida.data.arrays.samples import Texts


class Values(NamedTuple):
    """A range that stands for black to white: 0..255, 0..1, -1..1, or whatever the data have."""

    convention: str  # "bytes", "unit", "symmetric" or "other"
    low: float
    high: float
    stored_as_bytes: bool

    @staticmethod
    def of(x: Tensor | Sequence[ImageSource] | Texts) -> Values:
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
        return True

    def within(self, known: Values) -> bool:
        """Whether these are numbers of the known range that do not quite fill it; 0..1 may as well be its own."""
        inside = known.low <= self.low and self.high <= known.high < known.low + 4 * (self.high - self.low)
        return inside and self.stored_as_bytes == known.stored_as_bytes and self.convention != "unit"

    def steps(self) -> dict[str, Any]:
        """The fields of a preparation that bring this range to 0..1; bytes stay bytes, which are read as that."""
        gain = 1.0 if self.convention == "bytes" else 1 / (self.high - self.low)
        offset = 0.0 if self.convention == "bytes" else -gain * self.low
        return {"values": self, "gain": (gain,), "offset": (offset,), "as_bytes": self.convention == "bytes"}

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"
