"""`adapt` on arrays: labeled source and unlabeled target in, an adapted classifier out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from calida.adaptation.adapted import Adapted
from calida.adaptation.arguments import Array, check_domains, check_kinds, whole
from calida.adaptation.auto import try_recipes
from calida.adaptation.auto_model import try_models
from calida.adaptation.finetune import Tuning, train_and_tune
from calida.adaptation.frames import encode_frames, frame_preparation, with_column_names
from calida.adaptation.models import AUTO, is_network
from calida.adaptation.options import RunOptions
from calida.adaptation.task import Task
from calida.adaptation.weights import joint_weights, without_weightless
from calida.data import (
    ImageFiles,
    Labeled,
    Scale,
    as_inputs,
    as_labels,
    check_sizes,
    class_indices,
    is_frame,
    listed_labels,
    refuse_inverted,
    split_validation,
    take,
    tell_copies,
    with_looks,
)
from calida.data import class_names as labels_of
from calida.errors import InputError
from calida.model import MOST_CLASSES
from calida.objective import Weighted
from calida.processes import join, telling_reasons
from calida.recipes import DEFAULT_RECIPE, Recipe
from calida.seeds import Seeds
from calida.training import Domains, Observe, RunEvent


def adapt(
    source: tuple[Array | ImageFiles, Array],
    target: Array | ImageFiles,
    recipe: str | Recipe = DEFAULT_RECIPE,
    *,
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    start: Adapted | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observe: Observe | None = None,
    terms: Mapping[str, Weighted] | None = None,
    oracle_labels: Array | None = None,
    sample_weight: Array | None = None,
    **options: Any,
) -> Adapted:
    """Train on labeled `source` (x, y), adapt to unlabeled `target`, and return the classifier.

    Samples are vectors [N, D], images [N, H, W], [N, C, H, W] or [N, H, W, C], or data frames with columns of any kind;
    labels are 0..K-1, or words. `options` are those of `RunOptions` (seed, device, backbone, validation, choice,
    calibration, guard, ...) and settings of the recipe (rounds, batch_size, ...). A batch is never larger than the
    domain it comes from.

    A `start` is a classifier that was trained on source before (`Adapted.source_only`, or what the recipe `source`
    gave): training begins with adaptation then. `terms` adds terms to adaptation. With `folder`, each round leaves a
    checkpoint that `resume=True` goes on from. `observe` hears every `RunEvent` as training goes on.

    `sample_weight`, [N], says how much each source sample counts: one of weight 2 as if it were there twice, one of
    weight 0 as if it were not there. `class_weight` does so for whole classes, "balanced" for the same total each.
    Weights are of what is learned; source validation and check classifiers count each sample once.

    `oracle_labels` are the target's true labels, if known: they only add "oracle" figures to the history and never
    reach training.

    Under torchrun, all of its processes call this with the same arguments and train one classifier, which all return;
    the first one writes and observes.
    """
    gathered = RunOptions.of(recipe, options)
    gathered.check()
    check_kinds(
        class_names=(class_names if not isinstance(class_names, str) else 0, Sequence | np.ndarray | None),
        start=(start, Adapted | None),
        folder=(folder, str | os.PathLike | None),
        resume=(resume, bool),
        terms=(terms, Mapping | None),
    )
    if observe is not None and not callable(observe):
        raise InputError(f"observe is a function of one event, not {observe!r}")
    if gathered.on_mismatch == "match":
        raise InputError("on_mismatch=match is for files; of arrays, bring both to one scale")
    if gathered.on_mismatch == "stop":
        _check_units(source, target)
    return adapt_with(
        gathered,
        source,
        target,
        num_classes=num_classes,
        class_names=class_names,
        start=start,
        folder=folder,
        resume=resume,
        observe=observe or _ignore,
        terms=terms or {},
        oracle_labels=oracle_labels,
        sample_weight=sample_weight,
    )


@telling_reasons()
def adapt_with(
    options: RunOptions,
    source: tuple[Array | ImageFiles, Array],
    target: Array | ImageFiles,
    *,
    num_classes: int | None,
    class_names: Sequence[str] | None,
    start: Adapted | None,
    folder: str | os.PathLike[str] | None,
    resume: bool,
    observe: Observe,
    terms: Mapping[str, Weighted],
    oracle_labels: Array | None,
    tuning: Tuning | None = None,
    sample_weight: Array | None = None,
) -> Adapted:
    """`adapt` with options that are gathered already; with `tuning`, samples are features of what is fine-tuned."""
    processes = join()
    options.check()
    options = replace(options, seed=whole(options.seed, "seed"))
    num_classes = None if num_classes is None else whole(num_classes, "num_classes", 2)
    if num_classes is not None and num_classes > MOST_CLASSES:
        raise InputError(f"num_classes is at most {MOST_CLASSES:,}, not {num_classes:,}")
    class_names = None if class_names is None else tuple(map(str, class_names))
    source, class_names = named_labels(source, class_names)
    if class_names is not None and len(class_names) != (num_classes or len(class_names)):
        raise InputError(f"class_names has {len(class_names)} names, and num_classes is {num_classes}")
    num_classes = num_classes if class_names is None else len(class_names)
    if resume and folder is None:
        raise InputError("resume=True needs the folder of the run")
    if start is not None and options.backbone == "auto":
        options = replace(options, backbone=start.network.backbone)
    known = start.preparation.table if start is not None and start.preparation is not None else None
    source, weights, places = without_weightless(source, sample_weight)
    if tuning is not None and places is not None:  # the images behind the features that are left
        tuning = replace(tuning, source=take(tuning.source, places))
    source, target, table = encode_frames(source, target, known)
    x, y, target_x, classes = check_domains(source, target, num_classes)
    weights = joint_weights(y, classes, weights, options.class_weight, class_names)
    if processes.first:
        tell_copies(x, y, "the source")
    kept, held = split_validation(y, options.validation, Seeds(options.seed))
    for name, count in {"source (less validation)": len(kept), "target": len(target_x)}.items():
        if count < 2:
            raise InputError(f"{name} has {count} sample; training needs at least two")
    task = Task(
        options,
        Domains(
            Labeled(take(x, kept), y[kept]),
            Labeled(take(x, held), y[held]),
            target_x,
            classes,
            None if weights is None else weights[kept],
        ),
        with_looks(Scale.of(x), x, target_x),
        terms,
        class_names,
        None if oracle_labels is None else _truth(oracle_labels, len(target_x), classes, class_names),
        start,
        processes=processes,
    )
    place, recipes = None if folder is None else Path(folder), options.recipes(vectors=target_x.ndim == 2)
    with processes.training():
        if tuning is not None:
            if len(recipes) > 1 or not is_network(options.model):
                raise InputError("fine-tuning goes on with one recipe, and with a network")
            adapted = train_and_tune(task, tuning, (kept, held), recipes[0], place, observe, resume)
        elif options.model == AUTO:
            adapted = try_models(task, recipes[0], place, observe, resume)
        elif len(recipes) > 1:
            adapted = try_recipes(task, recipes, place, observe, resume)
        else:
            adapted = task.train(recipes[0], place, observe, resume)
    names = tuple(class_names or map(str, range(classes)))
    if table is None:
        return adapted.named(class_names or (), None)
    return with_column_names(adapted.named(class_names or (), frame_preparation(table, x, names)), table.features)


def named_labels(source: Any, class_names: Sequence[str] | None) -> tuple[Any, Sequence[str] | None]:
    """Labels that are words as indices, with their names; in the order of `class_names`, if that is given."""
    if not isinstance(source, tuple | list) or len(source) != 2 or (words := listed_labels(source[1])) is None:
        return source, class_names
    names = labels_of(words) if class_names is None else tuple(class_names)
    return (source[0], class_indices(words, names, "source")), names


def _truth(labels: Any, count: int, classes: int, names: Sequence[str] | None) -> Tensor:
    words = listed_labels(labels)
    found = labels if words is None or names is None else class_indices(words, names, "oracle_labels")
    return as_labels(found, count, classes, "oracle")[0]


def _check_units(source: Any, target: Any) -> None:
    """Refuse vectors in another unit in the target, and images that are negatives of the source's, as of files."""
    pair = isinstance(source, tuple | list) and len(source) == 2 and not isinstance(target, tuple)
    if not pair or is_frame(source[0]) or is_frame(target):
        return  # encoded first, or refused
    x, other = as_inputs(source[0], "source"), as_inputs(target, "target")
    if x.ndim == other.ndim == 2 and x.shape[1:] == other.shape[1:]:
        check_sizes(Scale.of(x), other, "target", "source")
    if x.ndim == other.ndim == 4:
        refuse_inverted(x, other)


def _ignore(event: RunEvent) -> None:
    """What observes where nobody wants to."""
