"""Photographs and texts through an encoder: which one, and both domains as features of one scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isfinite
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from calida.adaptation.encoded import encode
from calida.data import (
    Collection,
    UnreadableImageError,
    class_indices,
    class_names,
    digest,
    image_facts,
    split_validation,
)
from calida.encoders import (
    Encoder,
    Remembered,
    install_command,
    installed_encoders,
    load_encoder,
    standardizing,
)
from calida.errors import InputError, MissingExtraError
from calida.panel import fit_panel
from calida.run_warnings import RunWarning, WarningCode
from calida.runs.config import AUTO_ENCODER, NO_ENCODER, RunConfig
from calida.seeds import Seeds
from calida.threads import one_thread

Progress = Callable[[int, int], None]
_SMALL = 64  # pixels: up to here, small networks see all there is
_LOOKED_AT = 32
_COMPARED = 400  # samples of a domain by which encoders are compared
_SCORES = Remembered[float]("encoders.json", lambda value: isinstance(value, float) and isfinite(value))


class ChosenEncoder(NamedTuple):
    """An encoder, and a sentence on how it was chosen where there was a choice."""

    encoder: Encoder
    notes: tuple[str, ...] = ()


def choose_encoder(
    config: RunConfig, source: Collection, target: Collection, tell: Callable[[str, int, int], None]
) -> ChosenEncoder | None:
    """The encoder that is named, or the best that is installed, where data are of the kind that needs one."""
    if config.encoder == NO_ENCODER:
        if source.is_texts:
            raise InputError("texts need an encoder, and none is what was asked for", "encoder")
        return None
    if config.encoder != AUTO_ENCODER:
        return ChosenEncoder(load_encoder(config.encoder, config.size))
    if source.is_texts:
        names = installed_encoders("texts")
        if not names:
            raise MissingExtraError(f"texts need an encoder, and none is installed: {install_command('texts')}")
        return ChosenEncoder(load_encoder(names[0]))
    if config.backbone != "auto" or not all(map(are_photographs, (source, target))):
        return None
    names = installed_encoders("images")
    if len(names) < 2:
        return ChosenEncoder(load_encoder(names[0], config.size)) if names else None
    scores = {name: score_encoder(load_encoder(name, config.size), config, source, target, tell) for name in names}
    best = max(scores, key=lambda name: scores[name])
    told = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
    note = f"{best} chosen among {told}: how far classifiers of several kinds agree on target, 1 at most"
    return ChosenEncoder(load_encoder(best, config.size), (note,))


def has_encoder(config: RunConfig, source: Collection, target: Collection) -> bool:
    """Whether `choose_encoder` will find one, which this does without loading or comparing any."""
    if config.encoder != AUTO_ENCODER:
        return config.encoder != NO_ENCODER
    photographs = config.backbone == "auto" and all(map(are_photographs, (source, target)))
    return source.is_texts or (photographs and bool(installed_encoders("images")))


def score_encoder(
    encoder: Encoder, config: RunConfig, source: Collection, target: Collection, tell: Callable[[str, int, int], None]
) -> float:
    """How good features are, without a target label, by a few hundred samples of each domain.

    Classifiers of several kinds that learn the source and then agree on the target, both beyond chance, have found the
    same classes in both.
    """
    seeds = Seeds(config.seed).at("encoders")
    found = []
    for name, domain in (("source", source), ("target", target)):
        few = domain.subset(min(len(domain), _COMPARED), seeds.at(name))
        encoded = encode(few, encoder, config.loading, config.device, partial(tell, f"comparing encoders, {name}"))
        found.append(replace(encoded.domain, samples=standardizing(encoded.features)(encoded.features)))
    x, t = (domain.samples for domain in found)
    assert isinstance(x, Tensor)
    assert isinstance(t, Tensor)
    classes = class_names(found[0].labels or ())
    labels = class_indices(found[0].labels or (), classes, config.source)
    return _SCORES.get((digest(x, labels, t), len(classes), config.seed), lambda: _score(x, labels, t, seeds))


def _score(x: Tensor, labels: Tensor, target: Tensor, seeds: Seeds) -> float:
    kept, held = split_validation(labels, 0.3, seeds)
    with one_thread():
        panel = fit_panel(x[kept], labels[kept], x[held], labels[held], target, int(labels.max()) + 1, seeds)
    return float(panel.weights @ torch.minimum(panel.skill, panel.peer_agreement))


def missed_encoder(config: RunConfig, source: Collection, target: Collection) -> tuple[RunWarning, ...]:
    """That photographs are read by no encoder because none is installed."""
    wanted = config.encoder == AUTO_ENCODER and config.backbone == "auto" and not installed_encoders("images")
    if not wanted or not all(map(are_photographs, (source, target))):
        return ()
    return (RunWarning(WarningCode.NO_ENCODER, {"command": install_command("images")}),)


def are_photographs(domain: Collection) -> bool:
    """Whether images have colors and are larger than what small networks are made for."""
    if not domain.is_images:
        return False
    if isinstance(domain.samples, Tensor):
        return domain.samples.shape[1] >= 3 and max(domain.samples.shape[2:]) > _SMALL
    step = max(len(domain) // _LOOKED_AT, 1)
    facts = []
    for path in domain.files[::step]:
        try:
            facts.append(image_facts(path))
        except UnreadableImageError:  # told where it is read, or passed over
            continue
    if not facts:
        return False
    colored = sum(channels == 3 for _, _, channels in facts)
    return median(max(height, width) for height, width, _ in facts) > _SMALL and 2 * colored > len(facts)
