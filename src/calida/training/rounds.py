"""Rounds on top of a trainer: look at both domains, select, train, record, save."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from calida.errors import CheckpointError, InputError, NonFiniteError
from calida.model import AnyClassifier
from calida.panel import Opinion, Panel, PanelRows
from calida.processes import ALONE, Processes
from calida.seeds import Seeds
from calida.shift import Classified, MeasuredShift, measure_shift
from calida.training.checkpoint import (
    Progress,
    copied_weights,
    differing_names,
    has_checkpoint,
    load_weights,
    read_checkpoint,
    save_checkpoint,
)
from calida.training.events import Observe, PhasePlan, RunStarted
from calida.training.network_trainer import NetworkTrainer
from calida.training.phase import SOURCE_PHASE, Domains, Phase, PseudoLabels
from calida.training.records import describe_pseudo_labels
from calida.training.round_choice import KeepLast, RoundChoice, RoundChooser
from calida.training.trainer import MakeTrainer, RoundStart, Trainer
from calida.validation import DomainPredictions, Predictor, RoundRecord, describe_labeled, describe_target


@dataclass(frozen=True)
class Run:
    """What a run is made of.

    `observe` hears that the run starts, of every round, and now and then of a step in between. The `chooser` measures
    rounds and says which to keep; nothing that it measures reaches training.
    `identity` tells runs apart, so that the checkpoint of another run is refused. `begun` are the records, if any, of a
    first phase that was done before: the model that is to be trained then has its weights. None begins with it.
    `continued` is how far another run has come, on the same samples in another form, whose model this one goes on with.
    """

    phases: Sequence[Phase]
    domains: Domains
    seeds: Seeds
    num_samples: int = 1  # for prediction, as is the next
    batch_size: int = 500
    folder: Path | None = None
    identity: Mapping[str, Any] | None = None
    observe: Observe = lambda event: None
    chooser: RoundChooser = KeepLast()
    begun: Sequence[RoundRecord] | None = None
    trainer: MakeTrainer = NetworkTrainer
    panel: Panel | None = None  # check classifiers, for pseudo-labels by consensus
    panel_rows: PanelRows | None = None  # those that they were asked about; None is all
    continued: Progress | None = None
    memory: int | None = None  # of a step, in bytes, where somebody asked
    processes: Processes = ALONE  # that train the model together

    @property
    def predictor(self) -> Predictor:
        seen = (self.domains.validation, self.domains.target)
        return Predictor(*seen, self.num_samples, self.seeds, self.batch_size, self.processes)


def run_rounds(run: Run, model: AnyClassifier, resume: bool = False) -> Progress:
    """Train `model` in place through all phases, and leave it as it was after the round to keep.

    What is given back has one record a round and the weights of the source-only classifier.

    With a folder, each round ends with a checkpoint: a run that is killed at any moment can be resumed and ends with
    the same weights, bit for bit. Resuming where nothing was saved yet starts at the beginning.
    """
    _check_alike(run)
    progress, checkpoint = Progress(), None
    if run.folder is not None and resume:
        checkpoint = read_checkpoint(run.folder, run.identity or {}, run.processes)
    elif run.folder is not None and run.processes.first and has_checkpoint(run.folder):
        raise InputError(f"{run.folder} already holds a run: resume it, or choose another folder")
    if checkpoint is not None:
        progress = checkpoint.progress
        _check_progress(run, progress)
        checkpoint.restore(model)
        for weights in filter(None, (progress.kept, progress.source_only)):
            # Fails now if they do not fit, not in the end.
            load_weights(copy.deepcopy(model), weights, checkpoint.folder)
    run.processes.from_first(model.state_dict().values())  # a module of somebody's own may have random weights
    if checkpoint is None and run.begun is not None:
        progress = Progress(phase=1, history=[*run.begun[:-1], _seen_again(run, model)])
        progress.source_only = copied_weights(model)
    elif checkpoint is None and run.continued is not None:
        progress = run.continued
    run.observe(_starting(run, progress))
    while progress.phase < len(run.phases) and not progress.stopped:
        phase = run.phases[progress.phase]
        trainer = run.trainer(run, phase, model)
        trainer.begin(progress, checkpoint)
        checkpoint = None
        # Looked at anew in each phase: another memory layout rounds otherwise, and a resumed run starts here too.
        predictions: DomainPredictions | None = None
        while progress.rounds_done < phase.rounds and not progress.stopped:
            if predictions is None and phase.uses_target:
                predictions = run.predictor.predict_domains(trainer.shown)
            progress.set_aside(trainer.shown)
            started = time.perf_counter()
            record, predictions = _train_round(run, phase, progress, trainer, predictions)
            record = _alike(run, partial(_judged, run, phase, record, predictions, progress.history, started))
            if record.kept:
                progress.kept = None
            progress.history.append(record)
            progress.rounds_done += 1
            if phase.name == SOURCE_PHASE and progress.rounds_done == phase.rounds:
                progress.source_only = copied_weights(trainer.shown)
            if run.folder is not None and run.processes.first:
                save_checkpoint(run.folder, model, progress, run.identity or {}, trainer.state())
            run.observe(copy.deepcopy(record))
        trainer.finish()
        progress.phase += 1
        progress.rounds_done = 0
    if progress.kept is not None:
        model.load_state_dict(progress.kept)
    return progress


def _check_progress(run: Run, progress: Progress) -> None:
    """Refuse a checkpoint whose place in the run and whose records do not tell the same."""
    place, phases = f"the checkpoint in {run.folder}", run.phases
    if not 0 <= progress.phase < len(phases) or not 1 <= progress.rounds_done <= phases[progress.phase].rounds:
        raise CheckpointError(
            f"{place} is not what calida wrote: round {progress.rounds_done} of phase {progress.phase + 1} is none of "
            "this run"
        )
    behind = [(phase.name, number) for phase in phases[: progress.phase] for number in range(phase.rounds)]
    if run.begun is not None:  # the first phase is that of another run
        others = [(record.phase, record.round) for record in run.begun] or [(SOURCE_PHASE, 0)]
        behind = others + behind[phases[0].rounds :]
    behind += [(phases[progress.phase].name, number) for number in range(progress.rounds_done)]
    if [(record.phase, record.round) for record in progress.history] != behind:
        raise CheckpointError(f"{place} is not what calida wrote: its records are not of the rounds that are done")
    if any(len(record.source.class_shares) != run.domains.num_classes for record in progress.history):
        raise CheckpointError(f"{place} is not what calida wrote: a round has shares of other classes")


def _train_round(
    run: Run, phase: Phase, progress: Progress, trainer: Trainer, before: DomainPredictions | None
) -> tuple[RoundRecord, DomainPredictions | None]:
    """One round: what it starts from, how it trains, and what it records."""
    number = progress.rounds_done
    pseudo_labels = _pseudo_labels(run, phase, number, trainer.shown, before)
    start = RoundStart(number, run.seeds.at(phase.name, number), pseudo_labels, before, progress.history)
    try:
        done = trainer.train(start)
    except NonFiniteError as error:
        saved = run.folder is not None and has_checkpoint(run.folder)
        last = f"the last good round is saved in {run.folder}" if saved else "nothing was saved"
        raise NonFiniteError(f"{phase.name} round {number + 1}: {error}; {last}") from None
    labels = run.domains.validation.y
    if number + 1 == phase.rounds and _keeps_best(run, phase):
        _go_back_to_best(run, trainer, progress)
    # Predicting the whole target is work that only adaptation, and the moment before it, has a use for.
    if not phase.uses_target and number + 1 < phase.rounds:
        validation = run.predictor.predict(trainer.shown, run.domains.validation.x)
        source = describe_labeled(validation, labels)
        return RoundRecord(phase.name, number, phase.rounds, source, **vars(done)), None
    after = run.predictor.predict_domains(trainer.shown)
    record = RoundRecord(
        phase.name,
        number,
        phase.rounds,
        describe_labeled(after.validation, labels),
        **vars(done),
        **vars(trainer.diagnose()),
        selected=None if phase.pseudo_labeler is None else describe_pseudo_labels(pseudo_labels),
    )
    return record, after


def _keeps_best(run: Run, phase: Phase) -> bool:
    return phase.keep_best and not phase.uses_target and len(run.domains.validation.y) > 0


def _go_back_to_best(run: Run, trainer: Trainer, progress: Progress) -> None:
    """Give the classifier the weights of the best round so far, if that knew held-out source clearly better.

    Clearly is by more than a standard error of the mean difference: among rounds that know it about alike, the last
    one has settled most.
    """
    if progress.kept is None:
        return
    x, y = run.domains.validation
    last, weights = run.predictor.predict(trainer.shown, x), copied_weights(trainer.shown)
    trainer.shown.load_state_dict(progress.kept)
    best = run.predictor.predict(trainer.shown, x)
    rows = torch.arange(len(y))
    lost = (best.log_probs[rows, y] - last.log_probs[rows, y]).double()
    if float(lost.mean()) <= float(lost.std(correction=0)) / math.sqrt(len(y)):
        trainer.shown.load_state_dict(weights)
    run.processes.from_first(trainer.shown.state_dict().values())  # another kind of processor may round otherwise


def _judged(
    run: Run,
    phase: Phase,
    record: RoundRecord,
    predictions: DomainPredictions | None,
    history: Sequence[RoundRecord],
    started: float,
) -> RoundRecord:
    """With what predictions say of the round, and whether it is kept."""
    choice = RoundChoice()
    if _keeps_best(run, phase) and record.round + 1 < phase.rounds:  # in the end what is left is the one to keep
        choice = RoundChoice(record.source.nll <= min((one.source.nll for one in history), default=math.inf))
    if predictions is not None:
        if not phase.uses_target:
            record = replace(record, shift=_measure_shift(run, predictions))
        record = _with_measures(record, run, predictions)
        choice = run.chooser.choose(record, history)
    seconds = round(time.perf_counter() - started, 3)
    return replace(record, seconds=seconds, kept=choice.keep, stopped=choice.stop)


def _alike(run: Run, make: Callable[[], RoundRecord]) -> RoundRecord:
    """A record that the first process makes and all have: what it says decides how training goes on."""
    if run.processes.alone:
        return make()
    record = make() if run.processes.first else None
    said = run.processes.say(None if record is None else json.dumps(record.to_json()).encode())
    return record or RoundRecord.from_json(json.loads(said), "a round")


def _check_alike(run: Run) -> None:
    """Refuse processes that were given different data or settings."""
    if run.processes.alone:
        return
    first, *others = map(json.loads, run.processes.everyones(json.dumps(run.identity or {})))
    for other in others:
        if differing := differing_names(first, other):
            raise InputError(
                f"the processes were not given the same: they differ in {', '.join(differing)}; "
                f"whatever is drawn at random needs a seed"
            )


def _pseudo_labels(
    run: Run, phase: Phase, number: int, shown: AnyClassifier, before: DomainPredictions | None
) -> PseudoLabels:
    if before is None or phase.pseudo_labeler is None:
        return PseudoLabels.none(len(run.domains.target), run.domains.num_classes)
    made = _made_pseudo_labels(run, phase, number, shown, before)
    run.processes.from_first(made)  # another kind of processor may round a threshold otherwise
    return made


def _made_pseudo_labels(
    run: Run, phase: Phase, number: int, shown: AnyClassifier, before: DomainPredictions
) -> PseudoLabels:
    assert phase.pseudo_labeler is not None
    target = before.target
    if phase.pseudo_labeler.labeler == "panel":
        target = replace(target, log_probs=_consensus(run, before))
    return phase.pseudo_labeler(
        target,
        number,
        phase.rounds,
        run.domains.source_shares,
        lambda: run.predictor.agreement(shown, before.target.labels, phase.augmentation),
    )


def _consensus(run: Run, before: DomainPredictions) -> Tensor:
    """Log-probabilities of the panel and the classifier itself as one more member: [T, K].

    Of samples that the panel was not asked about, the classifier's own.
    """
    assert run.panel is not None
    validation, target = run.panel_rows or (slice(None), slice(None))
    log_probs = before.target.log_probs.clone()
    own = Opinion("own", "network", before.validation.probabilities[validation], log_probs[target].exp())
    log_probs[target] = run.panel.with_opinions(own).consensus().clamp(min=1e-12).log().to(log_probs)
    return log_probs


def _seen_again(run: Run, model: AnyClassifier) -> RoundRecord:
    """The last record of a phase done before, or a new one, as this run sees both domains."""
    predictions = run.predictor.predict_domains(model)
    source = describe_labeled(predictions.validation, run.domains.validation.y)
    last = run.begun[-1] if run.begun else RoundRecord(SOURCE_PHASE, 0, 1, source)

    def judged() -> RoundRecord:
        seen = replace(last, source=source, shift=_measure_shift(run, predictions), kept=True)
        return _with_measures(seen, run, predictions)

    return _alike(run, judged)


def _with_measures(record: RoundRecord, run: Run, predictions: DomainPredictions) -> RoundRecord:
    """With what predictions say of the target."""
    found = run.chooser.measure(predictions)
    target = describe_target(predictions.target)
    return replace(record, target=target, validators=found.validators, oracle=found.oracle)


def _measure_shift(run: Run, predictions: DomainPredictions) -> MeasuredShift | None:
    """What differs between two tables; images of two domains never mix.

    A classifier of weighted samples is meant to answer otherwise than class shares say, and must not be put right.
    """
    (source, labels), target = run.domains.source, run.domains.target
    if run.domains.source_weight is not None:
        return None
    if not (isinstance(source, Tensor) and isinstance(target, Tensor) and target.ndim == 2):
        return None
    said = Classified(predictions.validation.log_probs, predictions.labels, predictions.target.log_probs)
    return measure_shift(source, labels, target, said, run.seeds.at("neighbors"))


def _starting(run: Run, progress: Progress) -> RunStarted:
    source, target = len(run.domains.source.y), len(run.domains.target)
    phases = (
        PhasePlan(phase.name, phase.rounds, phase.rounds * phase.estimate_samples(source, target))
        for phase in run.phases
    )
    return RunStarted(tuple(phases), tuple(copy.deepcopy(progress.history)), memory=run.memory)
