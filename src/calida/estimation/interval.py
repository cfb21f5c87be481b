"""How wide an interval has to be: learned from real shifts whose answer is known, not from theory."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from calida.estimation.estimate import Estimate
from calida.uncertainty import wilson


class Widths(NamedTuple):
    """Half a 90 % interval's width is factor x (base + 1 / sqrt(labeled source samples)), where domains never meet.

    What an agreement can miss is what all check classifiers have in common: what they were taught. The fewer samples
    taught them, the further it may be off. Of all that was tried (how far the panel is apart, how well it knows the
    source, how many classes there are), this tells most.
    """

    base: float
    factor: float


@lru_cache(maxsize=1)
def fitted_widths() -> Widths:
    """The table that `python -m benchmarks.shifts widths` writes, fitted on its closed sets, seed 0."""
    return Widths(**json.loads(files("calida.estimation").joinpath("widths.json").read_text(encoding="utf-8")))


class Counts(NamedTuple):
    """Samples that an estimate rests on: all with labels, those of them that were held out, and the target's."""

    source: int
    validation: int
    target: int

    @property
    def fewest(self) -> int:
        """What chance depends on: accuracy on source is known from held-out samples alone."""
        return max(min(self.validation, self.target), 1)


def empirical_interval(value: float, apart: float, counts: Counts, widths: Widths) -> Estimate:
    """An estimate with its 90 % interval.

    Where the domains mix (`apart` 0), it is what chance leaves of so many samples. Where they are apart, what other
    shifts had to be widened by comes on top.
    """
    low, high = wilson(value, counts.fewest, 1.645)
    more = apart * widths.factor * (widths.base + 1 / math.sqrt(max(counts.source, 1)))
    return Estimate(
        value, max(0.0, value - math.hypot(value - low, more)), min(1.0, value + math.hypot(high - value, more))
    )
