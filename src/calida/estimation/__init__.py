"""Probabilities that mean what they say, without target labels: temperatures, and estimates of accuracy."""

from calida.estimation.calibration_data import (
    CalibrationData,
    pseudocal_temperature,
    source_temperature,
    transcal_temperature,
)
from calida.estimation.estimate import (
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
from calida.estimation.methods import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    Calibration,
    check_calibration,
    matched_temperature,
    name_calibration,
)
from calida.estimation.temperature import fit_temperature, match_confidence, temper

__all__ = [
    "CALIBRATIONS",
    "DEFAULT_CALIBRATION",
    "DEFAULT_ESTIMATE",
    "ESTIMATES",
    "Calibration",
    "CalibrationData",
    "Estimate",
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
