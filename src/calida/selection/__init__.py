"""Pseudo-label selection and its schedules: pure functions and plain values."""

from calida.selection.neighbors import smooth_over_neighbors
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

__all__ = [
    "SELECTORS",
    "Ramp",
    "Selection",
    "select_class_balanced",
    "select_global",
    "select_reweighted",
    "selector",
    "smooth_over_neighbors",
    "tempered_labels",
]
