"""The front door: labelled source and unlabelled target in, an adapted classifier out."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from calida.adaptation.adapted import Adapted
from calida.adaptation.automatic import AUTO, AUTO_RECIPES, try_recipes
from calida.adaptation.checks import Array, check_domains, choose_device, whole
from calida.adaptation.task import Task
from calida.calibration import DEFAULT_CALIBRATION, check_calibration
from calida.data import ImageFiles, Labelled, Scale, as_labels, split_validation, take
from calida.errors import InputError
from calida.model import Precision
from calida.objective import Weighted
from calida.recipes import DEFAULT_RECIPE, Recipe, get_recipe
from calida.seeds import Seeds
from calida.training import Domains, Record
from calida.validation import DEFAULT_RULE, check_rule


def adapt(
    source: tuple[Array | ImageFiles, Array],
    target: Array | ImageFiles,
    recipe: str | Recipe = DEFAULT_RECIPE,
    *,
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    backbone: str | nn.Module = "auto",
    head: str = "auto",
    backbone_weights: str | os.PathLike[str] | None = None,
    start: Adapted | None = None,
    validation: float = 0.1,
    seed: int = 0,
    device: torch.device | str | None = None,
    precision: Precision = "fp32",
    choice: str = DEFAULT_RULE,
    calibration: str = DEFAULT_CALIBRATION,
    guard: bool = True,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observe: Callable[[Record], None] | None = None,
    terms: Mapping[str, Weighted] | None = None,
    oracle_labels: Array | None = None,
    **settings: Any,
) -> Adapted:
    """Train on labelled `source` (x, y), adapt to unlabelled `target`, and return the classifier.

    Samples are vectors [N, D] or images [N, H, W], [N, C, H, W] or [N, H, W, C]; labels are 0..K-1. `settings`
    override the recipe's values, `terms` adds terms to adaptation. The recipe "auto" tries a few and returns the result
    that validators prefer. A batch is never larger than the domain it comes from.

    Without a target label, `choice` decides which round is returned (the default rule, a validator's name, or "last"),
    and `calibration` at which temperature it gives probabilities. The `guard` ends a run that collapses, and has the
    source-only classifier returned unless something says that adaptation helped.

    `backbone_weights` is a safetensors file that the backbone begins with. A `start` is a classifier that was trained
    on source before (`Adapted.source_only`, or what the recipe `source` gave): training begins with adaptation then.

    With `folder`, each round leaves a checkpoint that `resume=True` goes on from. `oracle_labels` are the target's true
    labels, if known: they only add "oracle" figures to the history and never reach training.
    """
    seed, num_classes = whole(seed, "seed"), None if num_classes is None else whole(num_classes, "num_classes", 2)
    if class_names is not None and len(class_names) != num_classes:
        raise InputError(f"class_names has {len(class_names)} names; give num_classes={len(class_names)} with it")
    check_rule(choice)
    check_calibration(calibration)
    if precision not in typing.get_args(Precision):
        raise InputError(f"precision is one of {', '.join(typing.get_args(Precision))}, not {precision!r}")
    if resume and folder is None:
        raise InputError("resume=True needs the folder of the run")
    if not isinstance(backbone, str | nn.Module):
        raise InputError(f"backbone is a name or an nn.Module, not {backbone!r}")
    if start is not None and backbone == "auto":
        backbone = start.network.backbone
    recipes = [recipe] if isinstance(recipe, Recipe) else [get_recipe(name) for name in _names(recipe)]
    recipes = [one.with_settings(**settings) for one in recipes]
    x, y, target_x, classes = check_domains(source, target, num_classes)
    kept, held = split_validation(y, validation, Seeds(seed))
    for name, count in {"source (less validation)": len(kept), "target": len(target_x)}.items():
        if count < 2:
            raise InputError(f"{name} has {count} sample; training needs at least two")
    task = Task(
        Domains(Labelled(take(x, kept), y[kept]), Labelled(take(x, held), y[held]), target_x, classes),
        Scale.of(x),
        seed,
        backbone,
        head,
        choose_device(device),
        choice,
        calibration,
        guard,
        terms or {},
        class_names,
        None if oracle_labels is None else as_labels(oracle_labels, len(target_x), classes, "oracle")[0],
        start,
        None if backbone_weights is None else Path(backbone_weights),
        precision,
    )
    place = None if folder is None else Path(folder)
    if recipe == AUTO:
        return try_recipes(task, recipes, place, observe or _ignore, resume)
    return task.train(recipes[0], place, observe or _ignore, resume)


def _names(recipe: str) -> tuple[str, ...]:
    return AUTO_RECIPES if recipe == AUTO else (recipe,)


def _ignore(record: Record) -> None:
    """An observer that has seen enough."""
