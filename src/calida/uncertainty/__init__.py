"""Pure tensor math on log-probabilities; imports nothing but torch."""

from calida.uncertainty.accuracy import accuracy, mean_class_accuracy, mean_confidence, measure_answers, wilson
from calida.uncertainty.calibration import (
    ReliabilityBins,
    binned_error,
    calibration_error,
    classwise_calibration_error,
    reliability_bins,
)
from calida.uncertainty.entropy import (
    Uncertainty,
    decompose,
    expected_entropy,
    mean_log_probs,
    mutual_information,
    predictive_entropy,
    renyi_entropy,
)
from calida.uncertainty.risk import (
    SCORES,
    RiskCoverage,
    accepted,
    aurc,
    coverage_at_risk,
    ranked,
    rejection_scores,
    risk_coverage,
)
from calida.uncertainty.scores import brier, nll
from calida.uncertainty.tempering import temper

__all__ = [
    "SCORES",
    "ReliabilityBins",
    "RiskCoverage",
    "Uncertainty",
    "accepted",
    "accuracy",
    "aurc",
    "binned_error",
    "brier",
    "calibration_error",
    "classwise_calibration_error",
    "coverage_at_risk",
    "decompose",
    "expected_entropy",
    "mean_class_accuracy",
    "mean_confidence",
    "mean_log_probs",
    "measure_answers",
    "mutual_information",
    "nll",
    "predictive_entropy",
    "ranked",
    "rejection_scores",
    "reliability_bins",
    "renyi_entropy",
    "risk_coverage",
    "temper",
    "wilson",
]
