"""How long the runs of a study will take, by a trial of a few steps on this machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import torch

from calida.adaptation import adapt_with
from calida.data import Collection, class_indices, class_names, load_samples, read_collection, unify
from calida.recipes import phases
from calida.runs.config import AUTO_ENCODER, NO_ENCODER, RunConfig
from calida.runs.data import domain_seeds
from calida.runs.encoding import has_encoder
from calida.studies.engine import starts_first
from calida.studies.job import Job
from calida.training import SOURCE_PHASE, RunEvent
from calida.validation import RoundRecord

_TRIED = 240  # samples of each domain: the time of a step does not depend on how many there are
_BRIEF = {"epochs": 2, "rounds": 1, "passes": 1, "min_batches_per_epoch": 3, "min_batches_per_round": 3}
_BESIDE_STEPS = 1.1  # reading, predicting, calibrating: 3 to 9 % of the runs in results/reproduction


class _TrialOverError(Exception):
    """A trial has taken as many steps as it needs."""


class _Rates(NamedTuple):
    """Seconds a sample takes in training on source and in adaptation."""

    source: float
    adaptation: float


def forecast_seconds(jobs: Sequence[Job], processes: int, device: str | None = None) -> float:
    """About how long these runs take, side by side in so many processes; starts that they share are counted once.

    One trial for each network and cost of a step: point or Bayesian, with or without gradient variance. Runs behind an
    encoder count nothing.
    """
    sizes: dict[tuple[str, str], tuple[Collection, Collection]] = {}
    rates: dict[tuple[object, ...], _Rates] = {}
    total = 0.0
    for job in starts_first(jobs):
        config = replace(job.config, device=device)
        if config.encoder not in (AUTO_ENCODER, NO_ENCODER):  # embeddings are kept, and a head on them takes seconds
            continue
        place = (config.source, config.target)
        if place not in sizes:
            sizes[place] = _read(config)
        recipe, (source, target) = job.recipe, sizes[place]
        if has_encoder(config, source, target):
            continue
        adapts = recipe.adaptation.rounds > 0
        cost = (*place, config.backbone, config.size, recipe.posterior, recipe.gradient_variance.grouped, adapts)
        if cost not in rates:
            rates[cost] = _try(job, config, source, target)
        labeled = round(len(source) * (1 - config.validation))
        for phase in phases(recipe, {}):
            done = phase.rounds * phase.estimate_samples(labeled, len(target))
            if phase.name == SOURCE_PHASE and job.start is None:
                total += done * rates[cost].source
            elif phase.name != SOURCE_PHASE:
                total += done * rates[cost].adaptation
    return _BESIDE_STEPS * total / processes


def _read(config: RunConfig) -> tuple[Collection, Collection]:
    source = read_collection(config.source, domain_seeds(config, "source"), True, config.column_choice)
    target = read_collection(config.target, domain_seeds(config, "target"), False, config.column_choice, source.table)
    return source, target


def _try(job: Job, config: RunConfig, source: Collection, target: Collection) -> _Rates:
    """Train on a few samples: two epochs, of which the first warms up, and a round of adaptation if there is any."""
    few = [
        domain.subset(min(len(domain), _TRIED), domain_seeds(config, name))
        for name, domain in (("source", source), ("target", target))
    ]
    steps = unify(few[0], few[1], config.size, config.on_mismatch, True)  # type: ignore[arg-type]
    loaded = [
        load_samples(one, how, config.loading, lambda done, all: None) for one, how in zip(few, steps, strict=True)
    ]
    classes = class_names(loaded[0].collection.labels or ())
    labels = class_indices(loaded[0].collection.labels or (), classes, config.source)
    adapts = job.recipe.adaptation.rounds > 0
    brief = {name: value for name, value in _BRIEF.items() if adapts or "epoch" in name}
    seen: dict[str, float] = {}

    def observe(event: RunEvent) -> None:
        if isinstance(event, RoundRecord) and event.samples:
            seen[event.phase] = min(seen.get(event.phase, math.inf), event.seconds / event.samples)
            if event.phase != SOURCE_PHASE or (event.round == 1 and not adapts):
                raise _TrialOverError

    trial = replace(config, settings={**config.settings, **brief}, guard=False, start=None)
    try:
        with _one_thread():
            adapt_with(
                trial,
                (loaded[0].samples, labels),
                loaded[1].samples,
                num_classes=len(classes),
                class_names=classes,
                start=None,
                folder=None,
                resume=False,
                observe=observe,
                terms={},
                oracle_labels=None,
            )
    except _TrialOverError:
        pass
    first = seen.get(SOURCE_PHASE, 0.0)
    return _Rates(first, next((rate for phase, rate in seen.items() if phase != SOURCE_PHASE), first))


@contextmanager
def _one_thread() -> Iterator[None]:
    """As the runs of a study have it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
