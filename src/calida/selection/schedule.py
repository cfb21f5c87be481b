"""A number that moves from round to round: portions, temperatures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ramp:
    """start + round * step, held at stop once reached; self-paced learning goes from easy to hard this way."""

    start: float
    step: float = 0.0
    stop: float | None = None

    def __call__(self, round_index: int) -> float:
        value = self.start + self.step * round_index
        if self.stop is None:
            return value
        return min(value, self.stop) if self.step >= 0 else max(value, self.stop)
