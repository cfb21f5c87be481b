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
from calida.validation.choice import (
    DECIDING,
    DEFAULT_RULE,
    LAST,
    RESHARED,
    SOURCE_ONLY,
    TOLERANCE,
    VOTERS,
    check_rule,
    explain_choice,
    merit,
    prefers,
    returned_record,
    votes,
)
from calida.validation.guard import collapse, dominant_class, warnings_of
from calida.validation.importance import importance_weights, weighted_risk
from calida.validation.mixing import MIXVAL_SHARE, PSEUDOCAL_SHARE, Mixed, mixed_accuracy, predict_mixed
from calida.validation.neighbours import cluster_information, neighbour_test, neighbourhood_density
from calida.validation.outlook import Outlook, Viewpoint
from calida.validation.predictions import (
    accuracy,
    class_correlation,
    ensemble_agreement,
    information,
    mean_entropy,
    nuclear_norm,
)
from calida.validation.shift import is_shifted, measure_shift, share_offsets
from calida.validation.validators import VALIDATORS, Validator, validate

__all__ = [
    "DECIDING",
    "DEFAULT_RULE",
    "ENSV",
    "LAST",
    "MIXVAL_SHARE",
    "PSEUDOCAL_SHARE",
    "RESHARED",
    "SOURCE_ONLY",
    "TOLERANCE",
    "VALIDATORS",
    "VOTERS",
    "Candidate",
    "Mixed",
    "Outlook",
    "Selection",
    "Validator",
    "Viewpoint",
    "accuracy",
    "agreement_with_others",
    "check_rule",
    "choose_candidate",
    "class_correlation",
    "cluster_information",
    "collapse",
    "dominant_class",
    "ensemble_agreement",
    "explain_choice",
    "importance_weights",
    "information",
    "is_shifted",
    "mean_entropy",
    "measure_shift",
    "merit",
    "mixed_accuracy",
    "neighbour_test",
    "neighbourhood_density",
    "nuclear_norm",
    "predict_mixed",
    "prefers",
    "rank",
    "returned_record",
    "share_offsets",
    "turned",
    "validate",
    "votes",
    "warnings_of",
    "weighted_risk",
]
