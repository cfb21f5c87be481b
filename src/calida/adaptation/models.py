"""What a run trains: a network, or a classifier of another family; how either is built, trained and read back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.errors import CheckpointError, InputError
from calida.families import FAMILIES, NETWORK, OWN, Family, FittedClassifier, own_family
from calida.model import CUSTOM, AnyClassifier, Network, build_classifier
from calida.recipes import Recipe
from calida.seeds import Seeds
from calida.training import FitTrainer, MakeTrainer, NetworkTrainer

CANNOT_BE_SAVED = (
    "this estimator cannot be saved; logistic regression, forests and HistGradientBoostingClassifier can, as arrays"
)
MLP = "mlp"
AUTO = "auto"
MODELS = (NETWORK, MLP, *FAMILIES, AUTO)


def family_of(model: Any) -> Family | None:
    """The family of a model, by its name or an estimator of one's own; None is a network, or several are tried."""
    if not isinstance(model, str):
        return own_family(model)
    if model not in MODELS:
        raise InputError(f"unknown model {model!r}; there are {', '.join(MODELS)}")
    return FAMILIES.get(model)


def is_network(model: Any) -> bool:
    """Whether a model is trained by steps, and not by fits."""
    return family_of(model) is None and model != AUTO


def fitted_recipe(recipe: Recipe) -> Recipe:
    """The recipe as a family runs it, one fit a round; what only a network can do is refused."""
    if recipe.needs_network:
        raise InputError(
            f"the recipe {recipe.name} trains networks; other models are adapted by self-training, rer-inf, annealed "
            "or source"
        )
    return recipe.with_settings({"pretraining.epochs": 1})


def blank_classifier(network: Network, seeds: Seeds, backbone: nn.Module | None = None) -> AnyClassifier:
    """A classifier before it has learned, or is filled with what another has."""
    if network.model == NETWORK:
        return build_classifier(network, seeds, backbone)
    if network.model not in (OWN, *FAMILIES):
        raise InputError(f"the model {network.model!r} is not one that this version of calida knows")
    if len(network.input_shape) != 1:
        raise InputError(
            f"the model {network.model} reads feature vectors, not samples of shape {network.input_shape}; "
            "leave it out to train a network"
        )
    return FittedClassifier(network.input_shape[0], network.num_classes)


def check_shapes(network: Network, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse values that ask for another network than the weights beside them are of, before it takes any memory."""
    if network.backbone == CUSTOM or "timm:" in network.backbone:  # not ours to build without memory
        return
    with torch.device("meta"):
        blank = blank_classifier(network, Seeds(0)).state_dict()
    for name, wanted in blank.items():
        if name in tensors and tensors[name].shape != wanted.shape:
            raise CheckpointError(
                f"the weights in {folder} do not fit this network: {name} has the shape {tuple(tensors[name].shape)} "
                f"where {tuple(wanted.shape)} is needed"
            )


def trainer_of(family: Family | None, recipe: Recipe) -> MakeTrainer:
    """Who trains in a round."""
    if family is None:
        return NetworkTrainer
    return partial(FitTrainer, family=family, average=recipe.fitting.average, max_rows=recipe.fitting.max_rows)
