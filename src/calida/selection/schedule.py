"""A number that moves from round to round: portions, temperatures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ramp:
    """start + round * step, held at stop once reached; self-paced learning goes from easy to hard this way.

    Without a step it goes evenly from start in the first round to stop in the last.
    """

    start: float
    step: float | None = 0.0
    stop: float | None = None

    def __call__(self, round_index: int, rounds: int = 1) -> float:
        stop = self.start if self.stop is None else self.stop
        if self.step is None:
            return self.start + (stop - self.start) * round_index / max(rounds - 1, 1)
        value = self.start + self.step * round_index
        if self.stop is None:
            return value
        return min(value, stop) if self.step >= 0 else max(value, stop)
