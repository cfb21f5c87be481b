"""Named methods as plain values; `phases` turns one into what the training loop runs."""

from calida.recipes.groups import MOST_SAMPLES
from calida.recipes.named import (
    DEFAULT_FITTED_RECIPE,
    DEFAULT_RECIPE,
    FEATURES_RECIPE,
    RECIPES,
    WHEN,
    default_recipe,
    get_recipe,
)
from calida.recipes.phases import finetuning_phase, phases
from calida.recipes.quick import quick
from calida.recipes.recipe import Recipe
from calida.recipes.settings import Settings, resolve

__all__ = [
    "DEFAULT_FITTED_RECIPE",
    "DEFAULT_RECIPE",
    "FEATURES_RECIPE",
    "MOST_SAMPLES",
    "RECIPES",
    "WHEN",
    "Recipe",
    "Settings",
    "default_recipe",
    "finetuning_phase",
    "get_recipe",
    "phases",
    "quick",
    "resolve",
]
