"""What differs between two domains: how frequent classes are, where samples lie; and what follows."""

from calida.shift.diagnosis import Classified, explain_no_shift, is_shifted, measure_shift, prior_offsets
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
from calida.shift.neighbors import neighbor_test

__all__ = [
    "Classified",
    "balancing_weights",
    "chance_distance",
    "class_shares",
    "explain_no_shift",
    "is_shifted",
    "measure_shift",
    "mlls_shares",
    "neighbor_test",
    "prior_logit_offsets",
    "prior_offsets",
    "resample",
    "shares_nearest_uniform",
    "thin_out",
]
