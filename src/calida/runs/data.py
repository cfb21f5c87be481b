"""From the names of two data sets to samples in one form; all that can be wrong with them is found here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from calida.data import (
    Collection,
    Loaded,
    Loading,
    SavedPreparation,
    class_indices,
    class_names,
    load_new,
    load_samples,
    read_collection,
    read_labels,
    unify,
)
from calida.errors import InputError
from calida.runs.config import RunConfig
from calida.seeds import Seeds

Tell = Callable[[str, int, int], None]  # what is read, how many are done, how many there are


@dataclass(frozen=True)
class RunData:
    """Both domains in one form. `truth`, the target's true labels, is there if they were given, for oracle figures."""

    source: Loaded
    labels: Tensor
    target: Loaded
    truth: Tensor | None
    card: SavedPreparation


def open_data(config: RunConfig, tell: Tell = lambda name, done, total: None) -> RunData:
    """Read, compare and prepare both domains."""
    config.check()
    source = read_collection(config.source, domain_seeds(config, "source"), True, config.label)
    target = read_collection(config.target, domain_seeds(config, "target"), False, config.label, source.columns)
    classes = class_names(source.labels or ())
    if len(classes) < 2:
        raise InputError(f"the source {config.source} shows only the class {classes[0]!r}; a classifier needs two")
    first, second = unify(source, target, config.size, config.on_mismatch, config.skip_unreadable)  # type: ignore[arg-type]
    truth = read_truth(config, target, classes)  # before the long part of reading
    loading = config.loading
    loaded = load_samples(source, first, loading, lambda done, total: tell("source", done, total))
    met = load_samples(target, second, loading, lambda done, total: tell("target", done, total))
    if truth is not None and len(met.collection) < len(target):
        truth = read_truth(config, met.collection, classes)
    labels = class_indices(loaded.collection.labels or (), classes, config.source)
    card = SavedPreparation(classes, source.columns, first, second, tuple(loaded.notes), tuple(met.notes), config.label)
    return RunData(loaded, labels, met, truth, card)


def read_truth(config: RunConfig, target: Collection, classes: tuple[str, ...]) -> Tensor | None:
    """The target's true labels as indices of the source's classes, if the run was given any."""
    if config.target_labels is None:
        return None
    words = read_labels(config.target_labels, target, domain_seeds(config, "target"), config.label)
    return class_indices(words, classes, f"the target {config.target}")


def domain_seeds(config: RunConfig, domain: str) -> Seeds:
    return Seeds(config.seed).at(domain)


def open_new(
    text: str,
    card: SavedPreparation,
    loading: Loading,
    labelled: bool,
    label: str | None,
    domain: str,
    check_scale: bool = True,
) -> Loaded:
    """New data, prepared as this domain's data were when the classifier was trained."""
    collection = read_collection(text, Seeds(0), labelled, label or card.label, card.columns)
    return load_new(collection, card.source if domain == "source" else card.target, loading, check_scale)
