"""Named methods as plain values; `phases` turns one into what the training loop runs."""

from calida.recipes.named import DEFAULT_RECIPE, RECIPES, get_recipe
from calida.recipes.phases import phases
from calida.recipes.recipe import Recipe
from calida.recipes.settings import Settings, resolve

__all__ = ["DEFAULT_RECIPE", "RECIPES", "Recipe", "Settings", "get_recipe", "phases", "resolve"]
