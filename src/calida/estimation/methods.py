"""The ways to calibrate, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calida.errors import InputError, suggest
from calida.estimation.calibration_data import (
    CalibrationData,
    pseudocal_temperature,
    source_temperature,
    transcal_temperature,
)
from calida.estimation.estimate import confidence_difference, thresholded_confidence
from calida.estimation.temperature import lowest_temperature, match_confidence


@dataclass(frozen=True)
class Calibration:
    """A way to find a temperature without target labels."""

    summary: str
    temperature: Callable[[CalibrationData], float]


def matched_temperature(data: CalibrationData) -> float:
    """At which mean confidence on target is its estimated accuracy, by agreement or else by confidences on source."""
    if data.accuracy is not None:
        # An estimate that rests on a few held-out samples is no reason to sharpen.
        return max(match_confidence(data.target, data.accuracy), lowest_temperature(len(data.labels)))
    estimates = [estimate(data) for estimate in (thresholded_confidence, confidence_difference)]
    return match_confidence(data.target, sum(estimates) / len(estimates))


CALIBRATIONS: dict[str, Calibration] = {
    "none": Calibration("the network's own probabilities", lambda data: 1.0),
    "source": Calibration("temperature fitted on source validation", source_temperature),
    "transcal": Calibration("source validation, weighted to look like the target", transcal_temperature),
    "pseudocal": Calibration("mixed pairs of target samples", pseudocal_temperature),
    "matched": Calibration("mean confidence brought to the estimate, as far as source bears it", matched_temperature),
}
DEFAULT_CALIBRATION = "auto"


def check_calibration(name: str) -> None:
    """Refuse the name of no calibration."""
    if name not in (known := [DEFAULT_CALIBRATION, *CALIBRATIONS]):
        raise InputError(f"unknown calibration {name!r}{suggest(name, known)}")


def name_calibration(name: str, images: bool, checked: bool) -> str:
    """The name as it is; for `auto`, pseudocal for images; for vectors, matched if check classifiers were asked.

    Two images laid over each other are a poor image. Half-way between two feature vectors there may be no sample at
    all, and a classifier that doubts what lies there says nothing of what it knows.
    """
    if name != DEFAULT_CALIBRATION:
        return name
    if images:
        return "pseudocal"
    return "matched" if checked else "transcal"
