"""calida: calibrated domain adaptation. Adapt a classifier to unlabelled data by calibrating its uncertainty."""

from calida.adaptation import Adapted, adapt, load
from calida.errors import CalidaError, CheckpointError, InputError, MissingExtraError, NonFiniteError
from calida.model import Prediction
from calida.objective import Weighted
from calida.recipes import RECIPES, Recipe, get_recipe
from calida.training import print_rounds

__version__ = "0.1.0"

__all__ = [
    "RECIPES",
    "Adapted",
    "CalidaError",
    "CheckpointError",
    "InputError",
    "MissingExtraError",
    "NonFiniteError",
    "Prediction",
    "Recipe",
    "Weighted",
    "__version__",
    "adapt",
    "get_recipe",
    "load",
    "print_rounds",
]
