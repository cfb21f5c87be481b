"""A recipe cut short, for a first look."""

from __future__ import annotations

import math

from calida.recipes.recipe import Recipe

_EPOCHS, _ROUNDS = 1 / 5, 1 / 3  # of a recipe's epochs, and of its rounds and their length


def quick(recipe: Recipe) -> Recipe:
    """A fifth of the epochs, a third of the rounds, each a third as long: about a fifth of the time in all."""
    epochs, rounds = recipe.pretraining, recipe.adaptation
    changed = {
        "pretraining.epochs": _part(epochs.epochs, _EPOCHS),
        "adaptation.rounds": _part(rounds.rounds, _ROUNDS),
        "adaptation.passes": _part(rounds.passes, _ROUNDS),
        "adaptation.min_batches_per_round": _part(rounds.min_batches_per_round, _ROUNDS),
    }
    if rounds.max_batches_per_round is not None:
        changed["adaptation.max_batches_per_round"] = _part(rounds.max_batches_per_round, _ROUNDS)
    return recipe.with_settings(changed)


def _part(count: int, share: float) -> int:
    return math.ceil(count * share - 1e-9)
