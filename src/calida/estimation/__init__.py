"""Probabilities that mean what they say, without target labels: temperatures, and estimates of accuracy."""

from calida.estimation.agreement import Agreement, AgreementEstimate, estimate_by_agreement
from calida.estimation.calibration_data import (
    CalibrationData,
    pseudocal_temperature,
    source_temperature,
    transcal_temperature,
)
from calida.estimation.choosing import averaged, choose_by_agreement, gains_by_view
from calida.estimation.correctness import probability_right, right_by_confidence, with_mean, worth_of_confidence
from calida.estimation.disagreement import disagreement_floor
from calida.estimation.estimate import (
    DEFAULT_ESTIMATE,
    ESTIMATES,
    Estimate,
    confidence_difference,
    estimate_accuracy,
    mixed_confidence,
    thresholded_confidence,
    with_interval,
)
from calida.estimation.interval import Counts, Widths, empirical_interval, fitted_widths
from calida.estimation.labeling import (
    LABEL_LEVEL,
    LabelDesign,
    compare_estimates,
    draw_design,
    estimate_from_labels,
)
from calida.estimation.methods import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    Calibration,
    check_calibration,
    matched_temperature,
    name_calibration,
)
from calida.estimation.prediction_sets import (
    SetCalibration,
    check_level,
    effective_size,
    mass_thresholds,
    weighted_quantile,
)
from calida.estimation.temperature import fit_temperature, match_confidence

__all__ = [
    "CALIBRATIONS",
    "DEFAULT_CALIBRATION",
    "DEFAULT_ESTIMATE",
    "ESTIMATES",
    "LABEL_LEVEL",
    "Agreement",
    "AgreementEstimate",
    "Calibration",
    "CalibrationData",
    "Counts",
    "Estimate",
    "LabelDesign",
    "SetCalibration",
    "Widths",
    "averaged",
    "check_calibration",
    "check_level",
    "choose_by_agreement",
    "compare_estimates",
    "confidence_difference",
    "disagreement_floor",
    "draw_design",
    "effective_size",
    "empirical_interval",
    "estimate_accuracy",
    "estimate_by_agreement",
    "estimate_from_labels",
    "fit_temperature",
    "fitted_widths",
    "gains_by_view",
    "mass_thresholds",
    "match_confidence",
    "matched_temperature",
    "mixed_confidence",
    "name_calibration",
    "probability_right",
    "pseudocal_temperature",
    "right_by_confidence",
    "source_temperature",
    "thresholded_confidence",
    "transcal_temperature",
    "weighted_quantile",
    "with_interval",
    "with_mean",
    "worth_of_confidence",
]
