"""The paper's methods and our own, by name."""

from __future__ import annotations

import math
import re
from typing import Any

from calida.errors import InputError, suggest
from calida.recipes.recipe import Recipe
from calida.selection import Ramp

DEFAULT_RECIPE = "default"  # what suits the kind of data: see `default_recipe`
FEATURES_RECIPE = "features"  # for what an encoder made of the samples

_BAYESIAN: dict[str, Any] = {"gaussian": True, "sampled": "top", "num_samples": 10}


def _entropy_settings(order: float) -> dict[str, Any]:
    """The paper's regularization of one order, point network, no gradient variance."""
    # Training normalizes each domain's batches by themselves, so the target is predicted with the target's statistics.
    base: dict[str, Any] = {"rounds": 10, "passes": 1, "order": order, "statistics": "target"}
    if order == math.inf:
        # To the released start at 0.3, an end at which nearly all of the target has a part.
        return {**base, "portion": Ramp(0.3, None, 0.93)}
    # Entropy alone has a trivial optimum, one class for everything; the source loss in the same step holds it back.
    return {**base, "schedule": "joint", "selection": "none"}


def _made(name: str, summary: str, settings: dict[str, Any]) -> Recipe:
    return Recipe(name, summary).with_settings(settings)


# What a recipe's name may end with: the paper's gradient variance, and the control that tells it from its groups.
_ENDINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("", {}),
    "-gvr": (
        ", while gradients of sample groups are pushed apart (gradient variance)",
        {"gradient_variance.weight": 1.0},
    ),
    "-groups": (
        ", in the groups of samples that -gvr compares, without comparing them",
        {"gradient_variance.groups_only": True},
    ),
}
_DOUBTING = "a network that knows its own doubt (Bayesian)"


def _paper_recipe(bayesian: bool, order: float, ending: str = "") -> Recipe:
    if order == math.inf:
        kind = "learns from its surest answers of each class on target (class-balanced self-training)"
    else:
        kind = f"is made sure of its answers on target (entropy of order {order:.12g})"
    words, more = _ENDINGS[ending]
    summary = f"{_DOUBTING if bayesian else 'a network'} {kind}{words}"
    settings = {**_entropy_settings(order), **(_BAYESIAN if bayesian else {}), **more}
    return _made(f"{'b' * bayesian}rer-{order:.12g}{ending}", summary, settings)


_ANNEALED = _made(
    "annealed",
    "its own answers on target are labels, at first with all their doubt, at last with none (deterministic annealing)",
    {**_entropy_settings(math.inf), "pseudo_labels.temperature": Ramp(1.0, None, 0.0), "normalize": False},
)
_DUAL = _made(
    "dual",
    "as rer-1, but no surer of the target than of held-out source (dual ascent on an entropy budget)",
    {**_entropy_settings(1.0), "budget": "source"},
)
_SELF_TRAINING = _made(
    "self-training",
    "learns from its own surest answers on target, more of them each round: the default of trees and lines",
    # Measured in docs/classifiers.md.
    {"rounds": 5, "order": math.inf, "selection": "class-balanced", "portion": Ramp(0.2, None, 0.8)},
)
_MMD = _made(
    "mmd",
    "draws the features of both domains together (maximum mean discrepancy)",
    {"rounds": 10, "schedule": "joint", "selection": "none", "mmd": 1.0},
)
_CALIDA = _made(
    "calida",
    "its answers on changed images must agree with those of an average of past networks (mean teacher)",
    {
        **_entropy_settings(1.0),
        # A step costs and teaches the same on any data: of a large set, an epoch or a round takes a part, and a small
        # one is gone through more often.
        "pretraining": {
            "epochs": 15,
            "min_batches_per_epoch": 90,
            "max_batches_per_epoch": 160,
            "learning_rate": 3e-3,
            "final_rate_fraction": 0.03,
            "warmup_fraction": 0.2,
        },
        "rounds": 6,
        "passes": 2,
        "min_batches_per_round": 147,
        "max_batches_per_round": 325,
        "adaptation.learning_rate": 4e-3,
        "uniform_prior_slack": 1.0,
        "augmentation": {"affine": 1.0, "color": 1.0, "noise": 0.3},
        "multiplier": 0.1,  # entropy alone settles early mistakes; consistency and diversity mend them first
        "consistency": 1.0,
        "diversity": 1.0,
        "teacher": {"memory": 1.0, "max_steps": 60.0},
    },
)
_FEATURES = _made(
    FEATURES_RECIPE,
    "for an encoder's features: sure and varied answers on target, averaged over past networks (mean teacher)",
    {
        **_entropy_settings(1.0),
        "pretraining": {"epochs": 20, "learning_rate": 1e-3, "final_rate_fraction": 0.1},
        "passes": 2,
        "adaptation.learning_rate": 1e-3,
        "augmentation": {"noise": 0.3},
        "label_smoothing": 0.1,  # of a linear head on many features, certainty on source says little
        "multiplier": 0.3,
        "diversity": 1.0,
        "pseudo_label": 0.1,
        "pseudo_labels": {"selection": "global", "portion": 1.0, "neighbors_share": 0.5},
        "teacher": {"memory": 1.0, "max_steps": 60.0},
    },
)
_CONSENSUS = _made(
    "consensus",
    "classifiers of other kinds label the target together, and the network learns what they agree on",
    {
        **_entropy_settings(math.inf),
        "pretraining": {
            "epochs": 40,
            "learning_rate": 2e-3,
            "final_rate_fraction": 0.03,
            "max_batches_per_epoch": 120,
            "keep_best": True,  # tables that say little of their labels are learned by heart after a few epochs
        },
        "rounds": 4,
        "passes": 5,
        "max_batches_per_round": 200,
        "adaptation.learning_rate": 2e-3,
        # Domains take turns, and the target's statistics stay: the student ends up answering as the panel does.
        "labeler": "panel",
        "portion": Ramp(1.0),
        "pseudo_labels.temperature": Ramp(1.0),
        "normalize": False,
    },
)
_SOURCE = Recipe("source", "a network that learns from source alone")
_BSOURCE = _made("bsource", f"{_DOUBTING} and learns from source alone", _BAYESIAN)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _CALIDA,
        _FEATURES,
        _CONSENSUS,
        _SOURCE,
        _BSOURCE,
        *(_paper_recipe(b, order, end) for b in (False, True) for order in (1.0, math.inf) for end in ("", "-gvr")),
        _ANNEALED,
        _DUAL,
        _SELF_TRAINING,
        _MMD,
    )
}

# When to choose which; of the paper's, `-gvr` adds gradient variance and `b` weight samples.
WHEN: dict[str, str] = {
    "calida": "samples are images: the default there",
    "features": "an encoder reads photographs or texts: the default there",
    "consensus": "samples are tables or feature vectors: the default there",
    "source": "you want to know what there is to gain",
    "bsource": "the same, with doubt about the model told apart",
    "rer-1": "you compare with entropy minimization, and classes are about balanced",
    "rer-1-gvr": "you study how training goes",
    "rer-inf": "you want the paper's self-training",
    "rer-inf-gvr": "you study how training goes",
    "brer-1": "as rer-1, with doubt about the model told apart",
    "brer-1-gvr": "you study how training goes",
    "brer-inf": "you want the paper's best",
    "brer-inf-gvr": "you run the paper again",
    "annealed": "the first answers on target are poor",
    "dual": "you will act on the probabilities",
    "self-training": "the model is hgb, forest or logistic: the default there",
    "mmd": "you want a baseline to compare with",
    "auto": "you have three times the time and no idea",
}

DEFAULT_FITTED_RECIPE = _SELF_TRAINING.name  # of classifiers that are no networks


def default_recipe(vectors: bool) -> str:
    """What the default is: for images, views that agree; for feature vectors and tables, which have none, consensus."""
    return "consensus" if vectors else "calida"


_PATTERN = re.compile(r"(?P<bayesian>b?)rer-(?P<order>\d+(\.\d+)?|inf)(?P<ending>-gvr|-groups)?")


def get_recipe(name: str) -> Recipe:
    """A recipe by name: one of `RECIPES`, or any order as rer-2, brer-0.5, rer-3-gvr, rer-inf-groups, ..."""
    name = str(name)
    if name in RECIPES:
        return RECIPES[name]
    match = _PATTERN.fullmatch(name)
    if match and float(match["order"]) > 0:
        return _paper_recipe(bool(match["bayesian"]), float(match["order"]), match["ending"] or "")
    raise InputError(f"unknown recipe {name!r}{suggest(name, RECIPES)}, or rer-ORDER for another order")
