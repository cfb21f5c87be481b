"""Classifiers that are no networks: scikit-learn's by name or of one's own, what they learn kept as arrays."""

from calida.families.classifier import FittedClassifier
from calida.families.fit import Fit, LinearFit, OpaqueFit
from calida.families.named import FAMILIES, NETWORK, OWN, Family, own_family, store
from calida.families.trees import TreeFit

__all__ = [
    "FAMILIES",
    "NETWORK",
    "OWN",
    "Family",
    "Fit",
    "FittedClassifier",
    "LinearFit",
    "OpaqueFit",
    "TreeFit",
    "own_family",
    "store",
]
