"""Pseudo-label selection and its schedules: pure functions and plain values."""

from calida.selection.pseudo_labels import (
    SELECTORS,
    Selection,
    select_class_balanced,
    select_global,
    select_reweighted,
    selector,
    tempered_labels,
)
from calida.selection.schedule import Ramp
from calida.selection.shares import (
    chance_distance,
    class_shares,
    equalising_weights,
    expected_shares,
    likely_shares,
    resample,
    share_logits,
    thin_out,
)

__all__ = [
    "SELECTORS",
    "Ramp",
    "Selection",
    "chance_distance",
    "class_shares",
    "equalising_weights",
    "expected_shares",
    "likely_shares",
    "resample",
    "select_class_balanced",
    "select_global",
    "select_reweighted",
    "selector",
    "share_logits",
    "tempered_labels",
    "thin_out",
]
