"""calida: calibrated domain adaptation. Adapt a classifier to unlabelled data by calibrating its uncertainty."""

from typing import TYPE_CHECKING, Any

from calida.adaptation import Adapted, adapt, load
from calida.errors import CalidaError, CheckpointError, DownloadError, InputError, MissingExtraError, NonFiniteError
from calida.model import Prediction
from calida.objective import Weighted
from calida.recipes import RECIPES, Recipe, get_recipe
from calida.training import print_rounds
from calida.version import __version__

if TYPE_CHECKING:
    from calida.estimator import CalibratedAdapter, label_free_score

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

_OF_ESTIMATOR = ("CalibratedAdapter", "label_free_score")


def __getattr__(name: str) -> Any:
    """Import scikit-learn, which takes as long as torch, only for those who use it."""
    if name in _OF_ESTIMATOR:
        import calida.estimator

        return getattr(calida.estimator, name)
    raise AttributeError(f"module 'calida' has no attribute {name!r}")
