"""`calida.adapt` for people: data by name as on the command line, frames, texts, images or arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL.Image import Image
from torch import Tensor

from calida.adaptation import Adapted, RunOptions
from calida.adaptation import adapt as adapt_arrays
from calida.adaptation.arguments import check_kinds
from calida.data import INSIDE, class_indices, collect, is_collected, is_frame, is_named, listed_labels
from calida.data.files.image_folders import refuse_two_labels
from calida.data.files.numpy_files import label_names
from calida.data.files.tables import label_words
from calida.data.tables.frames import as_frame
from calida.errors import InputError, warn_user
from calida.launch import is_first
from calida.objective import Weighted
from calida.processes import join, telling_reasons
from calida.recipes import Recipe, get_recipe
from calida.runs.config import RunConfig
from calida.runs.data import ReadingProgress, RunData, domain_seeds, open_data, prepare_data
from calida.runs.execution import adapt_data, decided, execute, read_start
from calida.training import Observe, RunEvent

# Options of reading; with arrays, `memory` is the teacher's setting of that name.
_READING = (
    {one.name for one in fields(RunConfig)} - {one.name for one in fields(RunOptions)} - {"tensorboard", "memory"}
)


_OBJECTS = ("backbone", "model", "class_weight")  # that may be no words


def adapt(
    source: Any,
    target: Any,
    recipe: str | Recipe = "",
    *,
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    start: Adapted | str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observe: Observe | None = None,
    progress: bool = False,
    terms: Mapping[str, Weighted] | None = None,
    oracle_labels: Any = None,
    **options: Any,
) -> Adapted:
    """Train on labeled `source`, adapt to unlabeled `target`, and return the classifier.

    Data are whatever `calida adapt` takes: `calida.adapt("photos/", "camera/")`, folders, lists, tables, NumPy files,
    named sets such as "mnist:train:2000", texts; or frames, with `label="column"`. They are prepared by the same code,
    with the same options: label, columns, drop, id, text, encoder, finetune, size, on_mismatch, skip_unreadable,
    target_labels, ... Or `source` is a pair of samples and labels: of images of Pillow, image files or texts, which are
    prepared the same way; or of arrays or frames, which are taken as they are: vectors [N, D], images [N, H, W],
    [N, C, H, W] or [N, H, W, C]. Labels are words, or 0..K-1.

    Other `options` are those of `RunOptions` (seed, device, backbone, validation, choice, calibration, guard, ...) and
    settings of the recipe (rounds, batch_size, ...). A `start` is a classifier that was trained on source before, or
    the folder of its run: training begins with adaptation then. `terms` adds terms to adaptation.

    With `folder`, data by name give a run's folder as on the command line, report included; of all others each round
    leaves a checkpoint there. `resume=True` goes on from either. `progress` draws bars, in a terminal or a notebook;
    `observe` hears every `RunEvent`.

    `oracle_labels` are the target's true labels, if known: they only add "oracle" figures to the history and never
    reach training.

    Under torchrun, all of its processes call this with the same arguments and train one classifier, which all return;
    the first one writes and observes.
    """
    check_kinds(folder=(folder, str | os.PathLike | None))
    if _is_pair(source):
        _refuse_other_order(*source)
    with _following(progress and is_first(), observe) as follow:
        if not _is_read(source, target, options):
            return adapt_arrays(
                source,
                target,
                recipe,
                num_classes=num_classes,
                class_names=class_names,
                start=read_start(RunConfig(start=os.fspath(start))) if is_named(start) else start,  # type: ignore
                folder=folder,
                resume=resume,
                observe=follow.observe,
                terms=terms,
                oracle_labels=oracle_labels,
                **options,
            )
        if num_classes is not None or class_names is not None:
            raise InputError("these data name their classes: leave out num_classes and class_names")
        weights = options.pop("sample_weight", None)
        config, place = _config(source, target, recipe, start, options), None if folder is None else Path(folder)
        by_name = is_named(source) and is_named(target)
        if by_name and place is not None:
            if terms or oracle_labels is not None or weights is not None or isinstance(start, Adapted):
                raise InputError(
                    "a run's folder holds names alone: leave out terms, oracle_labels, sample_weight and start, or it"
                )
            return execute(config, place, resume, follow.observe, follow.tell, _warn_of_columns)[0]
        with telling_reasons(), join().first_ahead():
            first = start if isinstance(start, Adapted) else read_start(config)
            data = open_data(config, follow.tell) if by_name else _open(config, source, target, follow.tell)
        _warn_of_columns(data)
        if oracle_labels is not None:
            data = replace(data, truth=_truth(oracle_labels, data))
        return adapt_data(decided(config, data), data, first, place, resume, follow.observe, terms, weights)


def _is_pair(source: Any) -> bool:
    """Samples and labels apart; two rows or two images in a list are no pair."""
    return isinstance(source, tuple | list) and len(source) == 2 and not isinstance(source[0], Mapping | Image)


def _refuse_other_order(samples: Any, labels: Any) -> None:
    """Refuse a frame and labels of pandas whose rows have the same names in another order: one of them was shuffled."""
    if not (hasattr(samples, "iloc") and hasattr(labels, "iloc")) or samples.index.equals(labels.index):
        return
    if samples.index.sort_values().equals(labels.index.sort_values()):
        raise InputError(
            "the source and its labels have the same index in another order: bring both to one order, or give the "
            "labels as an array if their order is right"
        )


def _is_read(source: Any, target: Any, options: Mapping[str, Any]) -> bool:
    """Whether data are read and prepared as from files. Frames beside their labels are taken as they are, as arrays."""
    samples = source[0] if _is_pair(source) else source
    reading = [name for name in options if name in _READING]
    if is_collected(samples) and (reading or samples is source or not is_frame(samples)):
        if not is_collected(target):
            raise InputError("source is read as files are and target is an array: give both in one form")
        return True
    if reading:
        raise InputError(f"{reading[0]} is for data by name, frames, texts and images, and these are arrays")
    return False


def _warn_of_columns(data: RunData) -> None:
    """What a user may not expect of a table: columns that are left out, and how the target's differ."""
    source, target = data.source.collection, data.target.collection
    if source.table is not None:
        for sentence in (*source.table.warnings(), *target.notes):
            warn_user(f"table: {sentence}")


def _truth(labels: Any, data: RunData) -> Tensor:
    words = _words(labels, len(data.target.collection), "target")
    return class_indices(words, data.preparation.classes, "oracle_labels")


def _config(source: Any, target: Any, recipe: str | Recipe, start: Any, options: Mapping[str, Any]) -> RunConfig:
    """The options as the command line has them; what has no name there, a module or an estimator, is taken as it is."""
    known = {one.name for one in fields(RunConfig)} - {"settings", "recipe", "source", "target", "start"}
    given = {name: value for name, value in options.items() if name in known and value is not None}
    settings = {name: value for name, value in options.items() if name not in known}
    if isinstance(recipe, Recipe):
        get_recipe(recipe.name)  # one sentence if it has no name that a file could hold
        settings = {**recipe.settings(), **settings}
        recipe = recipe.name
    given |= {name: [given[name]] for name in ("columns", "drop") if isinstance(given.get(name), str)}
    given |= {name: list(given[name]) for name in ("columns", "drop") if isinstance(given.get(name), tuple)}
    for name in ("device", "backbone_weights", "target_labels"):
        if name in given:
            given[name] = str(given[name])
    objects = {name: given.pop(name) for name in _OBJECTS if not isinstance(given.get(name, ""), str)}
    places = {"source": _name(source, "source"), "target": _name(target, "target")}
    if is_named(start):
        places["start"] = os.fspath(start)
    config = RunConfig().changed({**given, **places, "recipe": recipe, "settings": settings}, "calida.adapt")
    return replace(config, **objects)


def _name(data: Any, name: str) -> str:
    if not is_named(data):
        return name
    return os.fspath(data)  # type: ignore[no-any-return]


def _open(config: RunConfig, source: Any, target: Any, tell: ReadingProgress) -> RunData:
    """Data in memory as those that are read from files."""
    inside = config.target_labels == INSIDE
    config = replace(config, target_labels=None) if inside else config
    config.check()
    choice = config.column_choice
    pair = _is_pair(source)
    samples, labels = source if pair else (source, None)
    texts = _are_texts(samples, config)
    found = collect(samples, domain_seeds(config, "source"), not pair, choice, None, "source", texts)
    if pair:
        found = replace(found, labels=_words(labels, len(found), "source"))
        if not isinstance(found.samples, Tensor) and all(isinstance(one, Path) for one in found.samples):
            refuse_two_labels("source", found.names, found.samples, found.labels)  # type: ignore[arg-type]
    met = collect(target, domain_seeds(config, "target"), False, choice, found.table, "target", texts)
    data = prepare_data(config, found, met, tell)
    return replace(data, truth=_labels_inside(config, target, data)) if inside else data


def _are_texts(samples: Any, config: RunConfig) -> bool:
    """Whether words in a list are texts: not if the first of them is a file."""
    if config.text is not None or is_frame(samples) or is_named(samples):
        return config.text is not None
    first = next(iter(samples), None)
    return isinstance(first, str) and not (len(first) < 4096 and "\0" not in first and Path(first).is_file())


def _words(labels: Any, count: int, name: str) -> list[str]:
    """Labels of any kind, one a sample, as words."""
    words = listed_labels(labels) or label_names(np.asarray(labels), name)
    if len(words) != count:
        raise InputError(f"{name} has {count:,} samples and {len(words):,} labels")
    return words


def _labels_inside(config: RunConfig, target: Any, data: RunData) -> Tensor:
    """The labels that a target frame carries, in the rows that were read."""
    frame = as_frame(target, "target") if is_frame(target) else None
    if frame is None or config.label is None or config.label not in frame.columns:
        raise InputError(f"the target has no column {config.label!r} with labels inside")
    return class_indices(label_words(frame[config.label], "target"), data.preparation.classes, "the target")


class _Follow(NamedTuple):
    observe: Observe
    tell: ReadingProgress


@contextmanager
def _following(progress: bool, observe: Observe | None) -> Iterator[_Follow]:
    """Who hears of the run: the observer, and bars if they are asked for."""
    if not progress:
        yield _Follow(observe or (lambda event: None), lambda name, done, total: None)
        return
    from calida.progress import training_progress, viewer

    with training_progress(viewer()) as bars:
        hear: Callable[[RunEvent], None] = observe or (lambda event: None)

        def both(event: RunEvent) -> None:
            bars.observe(event)
            hear(event)

        yield _Follow(both, bars.read)
