"""How often is the classifier right on target? Estimates without a target label, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from calida.estimation.calibration_data import CalibrationData, pseudocal_temperature
from calida.uncertainty import accuracy, mean_confidence, temper, wilson


@dataclass(frozen=True)
class Estimate:
    """A share, and the interval that it should lie in."""

    value: float
    low: float
    high: float

    def reaching(self, value: float) -> Estimate:
        """With an interval that reaches to another estimate too, such as how far independent classifiers agree."""
        return replace(self, low=min(self.low, value), high=max(self.high, value))


def thresholded_confidence(data: CalibrationData) -> float:
    """Share of the target above the confidence that as many source samples exceed as are right (ATC; Garg, 2022)."""
    validation, target = (part.amax(-1) for part in (data.validation, data.target))
    right = accuracy(data.validation, data.labels)
    wrong = min(round((1 - right) * len(validation)), len(validation) - 1)
    threshold = validation.sort().values[wrong]
    return float((target >= threshold).double().mean())


def confidence_difference(data: CalibrationData) -> float:
    """Source accuracy less what mean confidence loses from source to target (DoC; Guillory et al., 2021)."""
    right = accuracy(data.validation, data.labels)
    return _share(right - mean_confidence(data.validation) + mean_confidence(data.target))


def mixed_confidence(data: CalibrationData) -> float:
    """Mean confidence on target at the temperature that mixed target pairs ask for (after PseudoCal)."""
    return mean_confidence(temper(data.target, pseudocal_temperature(data)))


ESTIMATES: dict[str, Callable[[CalibrationData], float]] = {
    "thresholded confidence": thresholded_confidence,
    "difference of confidences": confidence_difference,
    "confidence on mixed pairs": mixed_confidence,
}


DEFAULT_ESTIMATE = "confidence on mixed pairs"  # measured in reproduction/notes/trust.md


def estimate_accuracy(
    data: CalibrationData, temperature: Callable[[CalibrationData], float] = pseudocal_temperature
) -> Estimate:
    """Mean confidence on target at a temperature, and an interval by other estimates too.

    At the temperature that mixed pairs ask for it is the default estimate; another calibration's takes its place.
    """
    values = {name: estimate(data) for name, estimate in ESTIMATES.items() if name != DEFAULT_ESTIMATE}
    values[DEFAULT_ESTIMATE] = mean_confidence(temper(data.target, temperature(data)))
    return with_interval(values, max(min(len(data.labels), len(data.target)), 1))


def with_interval(values: Mapping[str, float], count: int) -> Estimate:
    """The default of several estimates; the interval reaches over all of them and the chance of `count` samples."""
    ends = [wilson(end, count) for end in (min(values.values()), max(values.values()))]
    return Estimate(values[DEFAULT_ESTIMATE], ends[0][0], ends[1][1])


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
