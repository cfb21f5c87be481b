"""Probabilities that mean what they say, without target labels: temperatures, and estimates of accuracy."""

from calida.calibration.estimate import (
    ESTIMATES,
    Estimate,
    confidence_difference,
    estimate_accuracy,
    mean_confidence,
    mixed_confidence,
    thresholded_confidence,
)
from calida.calibration.fitting import Grounds, pseudocal_temperature, source_temperature, transcal_temperature
from calida.calibration.methods import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    Calibration,
    check_calibration,
    matched_temperature,
)
from calida.calibration.temperature import fit_temperature, match_confidence, temper

__all__ = [
    "CALIBRATIONS",
    "DEFAULT_CALIBRATION",
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
    "pseudocal_temperature",
    "source_temperature",
    "temper",
    "thresholded_confidence",
    "transcal_temperature",
]
