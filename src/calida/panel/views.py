"""Two ways to bring both domains to one scale."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
View = Literal["shared", "own"]
VIEWS: tuple[View, ...] = ("shared", "own")
_FARTHEST = 10.0  # standard deviations that a value may count for
_SMALLEST = 1e-3  # of the usual spread of a column, the least that a column is divided by


class Scaling:
    """Means and spreads of a domain's columns.

    A column that hardly moves is not blown up: its spread counts as a thousandth of the usual one at least.
    """

    def __init__(self, x: Floats) -> None:
        self.mean = x.mean(0, dtype=np.float64)
        spread = x.std(0, dtype=np.float64)
        moving = spread > 1e-6 * np.abs(self.mean)
        usual = float(np.median(spread[moving])) if moving.any() else 1.0
        self.spread = np.where(moving, np.maximum(spread, _SMALLEST * usual), 1.0)

    def __call__(self, x: Floats) -> Floats:
        scaled: Floats = np.clip((x - self.mean) / self.spread, -_FARTHEST, _FARTHEST).astype(np.float32)
        return scaled


def seen_as(view: View, source: Floats, target: Floats) -> tuple[Scaling, Scaling]:
    """Scalings of source and target: both by the source ("shared"), or each domain by its own ("own").

    Where sensors drift, each domain's own scale takes the drift away. Where classes differ in frequency it takes that
    for drift. Nobody knows which of the two happened, so check classifiers see both.
    """
    first = Scaling(source)
    return first, first if view == "shared" else Scaling(target)
