"""How a run is made, whoever asks for it: one name for a thing in Python, on the command line, in TOML and JSON."""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

import torch
from torch import nn

from calida.adaptation.arguments import check_kinds, choose_device, whole
from calida.adaptation.models import AUTO, fitted_recipe, is_network
from calida.adaptation.weights import ClassWeight, check_class_weight
from calida.errors import InputError
from calida.estimation import DEFAULT_CALIBRATION, check_calibration
from calida.families import NETWORK
from calida.model import AUTO_PRECISION, Precision
from calida.recipes import DEFAULT_FITTED_RECIPE, DEFAULT_RECIPE, Recipe, default_recipe, get_recipe, quick
from calida.validation import DEFAULT_RULE, check_rule

AUTO_RECIPES = (DEFAULT_RECIPE, "rer-1", "rer-inf")  # one of each kind: the default, entropy, pseudo-labels


@dataclass(frozen=True)
class RunOptions:
    """Everything that decides a run but its data; `settings` override the recipe's values."""

    recipe: str | Recipe = DEFAULT_RECIPE  # what suits the data; "auto" tries several, validators choose
    model: Any = NETWORK  # or mlp, logistic, forest, hgb, auto, or an estimator in the manner of scikit-learn
    seed: int = 0
    device: str | torch.device | None = None  # the GPU where there is one
    precision: str = AUTO_PRECISION  # of the backbone: fp32, bf16, or what a short trial finds faster
    compile: bool = False  # the backbone, by torch.compile, on a GPU
    backbone: str | nn.Module = "auto"
    backbone_weights: str | None = None  # a safetensors file that the backbone begins with
    head: str = "auto"
    class_weight: ClassWeight = None  # of the source's classes: a mapping, or "balanced" for the same total each
    validation: float = 0.1  # share of the source that is held out
    choice: str = DEFAULT_RULE  # which round is returned: the default rule, a validator's name, or "last"
    calibration: str = DEFAULT_CALIBRATION  # how probabilities are calibrated
    guard: bool = True  # ends a run that collapses, and returns source-only unless something says that adapting helped
    quick: bool = False  # a recipe cut short, for a first look in about a fifth of the time
    on_mismatch: str = "stop"  # where a column is in another unit; "ignore" takes it as it is, "match" is for files
    settings: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(recipe: str | Recipe, named: Mapping[str, Any]) -> RunOptions:
        """From keyword arguments: names of options are options, all others settings of the recipe."""
        known = {one.name for one in fields(RunOptions)} - {"recipe", "settings"}
        options = {name: value for name, value in named.items() if name in known}
        settings = {name: value for name, value in named.items() if name not in known}
        return RunOptions(recipe, **options, settings=settings)

    def recipes(self, vectors: bool = False) -> list[Recipe]:
        """The recipe with its settings, or those that are tried; what the default is depends on data and model."""
        network = is_network(self.model)
        if isinstance(self.recipe, Recipe):
            recipes = [self.recipe]
        elif not network and self.recipe in ("", DEFAULT_RECIPE, AUTO):
            recipes = [get_recipe(DEFAULT_FITTED_RECIPE)]
        else:
            names = AUTO_RECIPES if self.recipe == AUTO else (DEFAULT_RECIPE if self.recipe == "" else self.recipe,)
            known = [default_recipe(vectors) if name == DEFAULT_RECIPE else name for name in names]
            recipes = [get_recipe(name) for name in known]
        recipes = [quick(recipe) if self.quick else recipe for recipe in recipes]
        recipes = [recipe.with_settings(self.settings) for recipe in recipes]
        return recipes if network else [fitted_recipe(recipe) for recipe in recipes]

    def check(self) -> None:
        """Refuse what no run could use, before any data are read."""
        check_kinds(
            recipe=(self.recipe, str | Recipe),
            validation=(self.validation, Real),
            choice=(self.choice, str),
            calibration=(self.calibration, str),
            guard=(self.guard, bool),
            head=(self.head, str),
            precision=(self.precision, str),
            compile=(self.compile, bool),
            quick=(self.quick, bool),
            backbone_weights=(self.backbone_weights, str | os.PathLike | None),
            on_mismatch=(self.on_mismatch, str),
            settings=(self.settings, Mapping),
        )
        if self.on_mismatch not in ("stop", "match", "ignore"):
            raise InputError(f"on_mismatch is one of stop, match, ignore, not {self.on_mismatch!r}")
        self.recipes()
        whole(self.seed, "seed")
        check_rule(self.choice)
        check_calibration(self.calibration)
        check_class_weight(self.class_weight)
        choose_device(self.device)
        known = (AUTO_PRECISION, *typing.get_args(Precision))
        if self.precision not in known:
            raise InputError(f"precision is one of {', '.join(known)}, not {self.precision!r}")
        if self.compile and choose_device(self.device).type != "cuda":
            raise InputError("compiling pays on a GPU alone, and this run has none", "compile")
        if not is_network(self.model) and (self.backbone != "auto" or self.backbone_weights is not None):
            raise InputError("a backbone belongs to a network; leave it out, or the model")
        if not isinstance(self.backbone, str | nn.Module):
            raise InputError(f"backbone is a name or an nn.Module, not {self.backbone!r}")
