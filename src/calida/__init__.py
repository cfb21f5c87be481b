"""calida: calibrated domain adaptation. Adapt a classifier to unlabeled data by calibrating its uncertainty."""

import importlib

from calida.version import __version__

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from calida.adaptation import Adapted, finetune, load
    from calida.errors import (
        CalidaError,
        CalidaWarning,
        CheckpointError,
        DownloadError,
        InputError,
        LostProcessError,
        MissingExtraError,
        NonFiniteError,
    )
    from calida.estimator import CalibratedAdapter, label_free_score
    from calida.front import adapt
    from calida.model import Prediction
    from calida.objective import Weighted
    from calida.recipes import RECIPES, Recipe, get_recipe
    from calida.run_warnings import RunWarning, WarningCode
    from calida.table_encoder import TableEncoder
    from calida.training import RunStarted, StepTaken, print_rounds
    from calida.validation import Decision, Reason, RoundRecord

__all__ = [
    "RECIPES",
    "Adapted",
    "CalibratedAdapter",
    "CalidaError",
    "CalidaWarning",
    "CheckpointError",
    "Decision",
    "DownloadError",
    "InputError",
    "LostProcessError",
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
    "finetune",
    "get_recipe",
    "label_free_score",
    "load",
    "print_rounds",
]

# Names are fetched when they are first used: torch and scikit-learn take two seconds to import, and `calida --help`,
# or a program that only may come to need calida, should not wait for them.
_HOMES = {
    "adaptation": ("Adapted", "finetune", "load"),
    "errors": (
        "CalidaError",
        "CalidaWarning",
        "CheckpointError",
        "DownloadError",
        "InputError",
        "LostProcessError",
        "MissingExtraError",
        "NonFiniteError",
    ),
    "estimator": ("CalibratedAdapter", "label_free_score"),
    "front": ("adapt",),
    "model": ("Prediction",),
    "objective": ("Weighted",),
    "recipes": ("RECIPES", "Recipe", "get_recipe"),
    "run_warnings": ("RunWarning", "WarningCode"),
    "table_encoder": ("TableEncoder",),
    "training": ("RunStarted", "StepTaken", "print_rounds"),
    "validation": ("Decision", "Reason", "RoundRecord"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> "Any":
    """A public name, or a subpackage such as `calida.training`, imported when first asked for."""
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    else:
        value = None if name.startswith("_") else _room(name)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _room(name: str) -> "Any":
    from importlib.util import find_spec

    full = f"{__name__}.{name}"
    return None if find_spec(full) is None else importlib.import_module(full)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
