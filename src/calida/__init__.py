"""calida: calibrated domain adaptation. Adapt a classifier to unlabelled data by calibrating its uncertainty."""

import importlib
from typing import TYPE_CHECKING, Any

from calida.adaptation import Adapted, adapt, load
from calida.errors import CalidaError, CheckpointError, DownloadError, InputError, MissingExtraError, NonFiniteError
from calida.model import Prediction
from calida.objective import Weighted
from calida.recipes import RECIPES, Recipe, get_recipe
from calida.run_warnings import RunWarning, WarningCode
from calida.training import RunStarted, StepTaken, print_rounds
from calida.validation import Decision, Reason, RoundRecord
from calida.version import __version__

if TYPE_CHECKING:
    from calida.estimator import CalibratedAdapter, label_free_score
    from calida.table_encoder import TableEncoder

__all__ = [
    "RECIPES",
    "Adapted",
    "CalibratedAdapter",
    "CalidaError",
    "CheckpointError",
    "Decision",
    "DownloadError",
    "InputError",
    "MissingExtraError",
    "NonFiniteError",
    "Prediction",
    "Reason",
    "Recipe",
    "RoundRecord",
    "RunStarted",
    "RunWarning",
    "StepTaken",
    "TableEncoder",
    "WarningCode",
    "Weighted",
    "__version__",
    "adapt",
    "get_recipe",
    "label_free_score",
    "load",
    "print_rounds",
]

_OF_SCIKIT_LEARN = {
    "CalibratedAdapter": "calida.estimator",
    "label_free_score": "calida.estimator",
    "TableEncoder": "calida.table_encoder",
}


def __getattr__(name: str) -> Any:
    """Import scikit-learn, which takes as long as torch, only for those who use it."""
    if name in _OF_SCIKIT_LEARN:
        return getattr(importlib.import_module(_OF_SCIKIT_LEARN[name]), name)
    raise AttributeError(f"module 'calida' has no attribute {name!r}")
