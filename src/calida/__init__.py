"""calida: calibrated domain adaptation. Adapt a classifier to unlabelled data by calibrating its uncertainty."""

from calida.adaptation import Adapted, adapt, load
from calida.errors import CalidaError, CheckpointError, DownloadError, InputError, MissingExtraError, NonFiniteError
from calida.estimator import CalibratedAdapter, label_free_score
from calida.model import Prediction
from calida.objective import Weighted
from calida.recipes import RECIPES, Recipe, get_recipe
from calida.training import print_rounds
from calida.version import __version__

__all__ = [
    "RECIPES",
    "Adapted",
    "CalibratedAdapter",
    "CalidaError",
    "CheckpointError",
    "DownloadError",
    "InputError",
    "MissingExtraError",
    "NonFiniteError",
    "Prediction",
    "Recipe",
    "Weighted",
    "__version__",
    "adapt",
    "get_recipe",
    "label_free_score",
    "load",
    "print_rounds",
]
