"""Choosing a checkpoint or a run without target labels."""

from calida.validation.candidates import (
    ENSV,
    Candidate,
    Selection,
    agreement_with_others,
    choose_candidate,
    rank,
    turned,
)
from calida.validation.choice import check_rule, decide, merit, prefers, returned_record, votes
from calida.validation.collapse import DRIVEN, WEAK_SOURCE, collapse, dominant_class, warnings_of
from calida.validation.decision import (
    DECIDING,
    DEFAULT_RULE,
    LAST,
    SOURCE_ONLY,
    TOLERANCE,
    VOTERS,
    Decision,
    Reason,
    Returned,
    explain,
)
from calida.validation.importance import importance_weights, weighted_risk
from calida.validation.mixing import MIXVAL_SHARE, PSEUDOCAL_SHARE, Mixed, mixed_accuracy, predict_mixed
from calida.validation.neighbors import cluster_information, neighborhood_density
from calida.validation.prediction_scores import (
    class_correlation,
    ensemble_agreement,
    information,
    mean_entropy,
    nuclear_norm,
)
from calida.validation.predictor import DomainPredictions, Predictor
from calida.validation.round_record import (
    LabeledSummary,
    PredictionSummary,
    PseudoLabelSummary,
    RoundRecord,
    describe_labeled,
    describe_target,
)
from calida.validation.validators import VALIDATORS, Validator, validate

__all__ = [
    "DECIDING",
    "DEFAULT_RULE",
    "DRIVEN",
    "ENSV",
    "LAST",
    "MIXVAL_SHARE",
    "PSEUDOCAL_SHARE",
    "SOURCE_ONLY",
    "TOLERANCE",
    "VALIDATORS",
    "VOTERS",
    "WEAK_SOURCE",
    "Candidate",
    "Decision",
    "DomainPredictions",
    "LabeledSummary",
    "Mixed",
    "PredictionSummary",
    "Predictor",
    "PseudoLabelSummary",
    "Reason",
    "Returned",
    "RoundRecord",
    "Selection",
    "Validator",
    "agreement_with_others",
    "check_rule",
    "choose_candidate",
    "class_correlation",
    "cluster_information",
    "collapse",
    "decide",
    "describe_labeled",
    "describe_target",
    "dominant_class",
    "ensemble_agreement",
    "explain",
    "importance_weights",
    "information",
    "mean_entropy",
    "merit",
    "mixed_accuracy",
    "neighborhood_density",
    "nuclear_norm",
    "predict_mixed",
    "prefers",
    "rank",
    "returned_record",
    "turned",
    "validate",
    "votes",
    "warnings_of",
    "weighted_risk",
]
