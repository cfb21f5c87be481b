"""From the names of two data sets to samples in one form; all that can be wrong with them is found here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from torch import Tensor

from calida.adaptation import Tuning, frames_of
from calida.adaptation.encoded import encode, load_encoded
from calida.data import (
    Collection,
    Loaded,
    SavedEncoder,
    SavedPreparation,
    class_indices,
    class_names,
    load_samples,
    read_collection,
    read_labels,
    unify,
)
from calida.encoders import standardizing
from calida.errors import InputError, warn_user
from calida.run_warnings import RunWarning
from calida.runs.config import RunConfig
from calida.runs.encoding import (
    ChosenEncoder,
    choose_encoder,
    missed_encoder,
)
from calida.seeds import Seeds

_NOTHING_TO_TUNE = (
    "fine-tuning takes an encoder of images, and photographs that it reads: name one, or see which are installed with "
    "calida encoders"
)
_MANY_CLASSES = 30
ReadingProgress = Callable[[str, int, int], None]  # what is read, how many are done, how many there are


@dataclass(frozen=True)
class RunData:
    """Both domains in one form. `truth`, the target's true labels, is there if they were given, for oracle figures."""

    source: Loaded
    labels: Tensor
    target: Loaded
    truth: Tensor | None
    preparation: SavedPreparation
    embedded: Embeddings | None = None  # beside images that are to be fine-tuned on
    findings: tuple[RunWarning, ...] = ()


class Embeddings(NamedTuple):
    """An encoder's features of both domains, each to mean 0 and spread 1, and what fine-tuning needs beside them."""

    source: Tensor
    target: Tensor
    tuning: Tuning


def domain_in_words(config: RunConfig, name: str) -> str:
    """The source or the target by where it comes from; arrays and frames come from nowhere that has a name."""
    origin = getattr(config, name)
    return f"the {name}" if origin in ("", name) else f"the {name} {origin}"


def open_data(config: RunConfig, tell: ReadingProgress = lambda name, done, total: None) -> RunData:
    """Read, compare and prepare both domains."""
    config.check()
    choice = config.column_choice
    source = read_collection(config.source, domain_seeds(config, "source"), True, choice)
    target = read_collection(config.target, domain_seeds(config, "target"), False, choice, source.table)
    return prepare_data(config, source, target, tell)


def prepare_data(config: RunConfig, source: Collection, target: Collection, tell: ReadingProgress) -> RunData:
    """Compare and prepare two domains that are read already."""
    choice = config.column_choice
    if choice.id and target.id is None:
        raise InputError(f"{domain_in_words(config, 'target')} has no column {choice.id!r} that would name its rows")
    classes = class_names(source.labels or ())
    if not classes:
        raise InputError("the source has no labels; give them beside its samples")
    if len(classes) < 2:
        raise InputError(
            f"{domain_in_words(config, 'source')} shows only the class {classes[0]!r}; a classifier needs two"
        )
    if len(classes) > _MANY_CLASSES and 5 * len(classes) > len(source) and all(map(_is_number, classes)):
        warn_user(
            f"the label takes {len(classes):,} different numbers in {len(source):,} rows: calida classifies, so cut a "
            "quantity into a few classes first"
        )
    chosen = choose_encoder(config, source, target, tell)
    if config.finetune:
        if chosen is None or {source.kind, chosen.encoder.reads} != {"images"}:
            raise InputError(_NOTHING_TO_TUNE, "encoder")
        return _open_images(config, chosen, source, target, classes, tell)
    if chosen is not None:
        return _open_encoded(config, chosen, source, target, classes, tell)
    first, second = unify(source, target, config.size, config.on_mismatch, config.skip_unreadable, config.max_pixels)  # type: ignore[arg-type]
    truth = read_truth(config, target, classes)  # before the long part of reading
    loading = config.loading
    loaded = load_samples(source, first, loading, lambda done, total: tell("source", done, total))
    met = load_samples(target, second, loading, lambda done, total: tell("target", done, total))
    if truth is not None and len(met.collection) < len(target):
        truth = read_truth(config, met.collection, classes)
    labels = class_indices(loaded.collection.labels or (), classes, config.source)
    found = missed_encoder(config, source, target)
    notes = (*loaded.notes, *map(str, found)), tuple(met.notes)
    preparation = SavedPreparation(classes, source.table, first, second, *notes, config.label)
    return RunData(loaded, labels, met, truth, preparation, findings=found)


def _open_encoded(
    config: RunConfig,
    chosen: ChosenEncoder,
    source: Collection,
    target: Collection,
    classes: tuple[str, ...],
    tell: ReadingProgress,
) -> RunData:
    """Both domains as standardized features of an encoder."""
    encoder = chosen.encoder
    read_truth(config, target, classes)  # what is wrong with labels is to be known before the long part
    found = {
        name: encode(domain, encoder, config.loading, config.device, partial(tell, f"embedding {name}"))
        for name, domain in (("source", source), ("target", target))
    }
    before, after = (standardizing(encoded.features) for encoded in found.values())
    first, second = (
        load_encoded(encoded, steps, encoder) for encoded, steps in zip(found.values(), (before, after), strict=True)
    )
    labels = class_indices(first.collection.labels or (), classes, config.source)
    truth = read_truth(config, second.collection, classes)
    notes = (*first.notes, *chosen.notes), tuple(second.notes)
    saved = SavedEncoder(encoder.name, encoder.weights, config.size)
    preparation = SavedPreparation(classes, None, before, after, *notes, config.label, config.text, saved)
    return RunData(first, labels, second, truth, preparation)


def _open_images(
    config: RunConfig,
    chosen: ChosenEncoder,
    source: Collection,
    target: Collection,
    classes: tuple[str, ...],
    tell: ReadingProgress,
) -> RunData:
    """Both domains as images that an encoder's network reads, and as its features."""
    features = _open_encoded(config, chosen, source, target, classes, tell)
    loaded = []
    for name, domain in (("source", features.source.collection), ("target", features.target.collection)):
        frames = frames_of(chosen.encoder, domain.samples)
        loaded.append((load_samples(domain, frames, config.loading, partial(tell, f"reading {name}")), frames))
    (first, before), (second, after) = loaded
    x, y = features.source.samples, features.target.samples
    assert isinstance(x, Tensor)
    assert isinstance(y, Tensor)
    tuning = Tuning(chosen.encoder, features.preparation.target, first.samples, second.samples)
    notes = features.preparation.source_notes, features.preparation.target_notes
    preparation = SavedPreparation(classes, None, before, after, *notes, config.label)
    embedded = Embeddings(x, y, tuning)
    return RunData(first, features.labels, second, features.truth, preparation, embedded)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_truth(config: RunConfig, target: Collection, classes: tuple[str, ...]) -> Tensor | None:
    """The target's true labels as indices of the source's classes, if the run was given any."""
    if config.target_labels is None:
        return None
    words = read_labels(config.target_labels, target, domain_seeds(config, "target"), config.label)
    return class_indices(words, classes, domain_in_words(config, "target"))


def domain_seeds(config: RunConfig, domain: str) -> Seeds:
    return Seeds(config.seed).at(domain)
