"""Probabilities that mean what they say, without target labels: temperatures, and estimates of accuracy."""

from calida.calibration.estimate import (
    DEFAULT_ESTIMATE,
    ESTIMATES,
    Estimate,
    confidence_difference,
    estimate_accuracy,
    mean_confidence,
    mixed_confidence,
    thresholded_confidence,
    with_interval,
)
from calida.calibration.fitting import Grounds, pseudocal_temperature, source_temperature, transcal_temperature
from calida.calibration.methods import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    Calibration,
    check_calibration,
    matched_temperature,
    name_calibration,
)
from calida.calibration.temperature import fit_temperature, match_confidence, temper

__all__ = [
    "CALIBRATIONS",
    "DEFAULT_CALIBRATION",
    "DEFAULT_ESTIMATE",
    "ESTIMATES",
    "Calibration",
    "Estimate",
    "Grounds",
    "check_calibration",
    "confidence_difference",
    "estimate_accuracy",
    "fit_temperature",
    "match_confidence",
    "matched_temperature",
    "mean_confidence",
    "mixed_confidence",
    "name_calibration",
    "pseudocal_temperature",
    "source_temperature",
    "temper",
    "thresholded_confidence",
    "transcal_temperature",
    "with_interval",
]
