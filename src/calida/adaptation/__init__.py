"""The front door for arrays: labelled source and unlabelled target in, an adapted classifier out."""

from calida.adaptation.adapt import adapt
from calida.adaptation.adapted import Adapted, Trust, load
from calida.adaptation.checks import choose_device

__all__ = ["Adapted", "Trust", "adapt", "choose_device", "load"]
