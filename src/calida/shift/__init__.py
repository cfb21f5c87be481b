"""What differs between two domains: how frequent classes are, where samples lie; and what follows."""

from calida.shift.columns import MISSING_VALUES, OTHERS, ColumnShift, TableShift, compare_columns, span_words
from calida.shift.diagnosis import Classified, MeasuredShift, explain_no_shift, is_shifted, measure_shift, prior_offsets
from calida.shift.domain_classifier import DomainGap, domain_gap
from calida.shift.label_shift import (
    balancing_weights,
    chance_distance,
    class_shares,
    mlls_shares,
    prior_logit_offsets,
    resample,
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
    "balancing_weights",
    "chance_distance",
    "class_shares",
    "compare_columns",
    "domain_gap",
    "explain_no_shift",
    "is_shifted",
    "measure_shift",
    "mlls_shares",
    "prior_logit_offsets",
    "prior_offsets",
    "resample",
    "shares_nearest_uniform",
    "span_words",
    "thin_out",
]
