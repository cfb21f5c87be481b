"""The front door for arrays: labelled source and unlabelled target in, an adapted classifier out."""

from calida.adaptation.adapt import adapt
from calida.adaptation.adapted import Adapted, Trust, load
from calida.adaptation.automatic import AUTO, AUTO_RECIPES
from calida.adaptation.checks import choose_device

__all__ = ["AUTO", "AUTO_RECIPES", "Adapted", "Trust", "adapt", "choose_device", "load"]
