"""What differs between two domains: how frequent classes are, where samples lie; and what follows."""

from calida.shift.columns import MISSING_VALUES, OTHERS, ColumnShift, TableShift, compare_columns, span_words
from calida.shift.diagnosis import Classified, MeasuredShift, explain_no_shift, is_shifted, measure_shift, prior_offsets
from calida.shift.domain_classifier import DomainGap, domain_gap
from calida.shift.label_shift import (
    TargetShares,
    balancing_weights,
    chance_distance,
    class_shares,
    estimate_shares,
    mlls_shares,
    prior_logit_offsets,
    resample,
    rlls_shares,
    shares_nearest_uniform,
    thin_out,
)

__all__ = [
    "MISSING_VALUES",
    "OTHERS",
    "Classified",
    "ColumnShift",
    "DomainGap",
    "MeasuredShift",
    "TableShift",
    "TargetShares",
    "balancing_weights",
    "chance_distance",
    "class_shares",
    "compare_columns",
    "domain_gap",
    "estimate_shares",
    "explain_no_shift",
    "is_shifted",
    "measure_shift",
    "mlls_shares",
    "prior_logit_offsets",
    "prior_offsets",
    "resample",
    "rlls_shares",
    "shares_nearest_uniform",
    "span_words",
    "thin_out",
]
