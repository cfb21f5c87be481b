"""Rounds on top of the loop: look at both domains, select, train, record, save."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.data import UNCHANGED, Augmentation, shuffled_batches
from calida.errors import InputError, NonFiniteError
from calida.model import Classifier, follow, make_teacher, scratch_buffers
from calida.objective import Domain, DualAscent, GradientVariance, Step, TargetEntropy, Term
from calida.seeds import Seeds
from calida.shift import Classified, balancing_weights, chance_distance, class_shares, measure_shift
from calida.training.checkpoint import Progress, copied_weights, has_checkpoint, read_checkpoint, save_checkpoint
from calida.training.judge import Judge, Judgement, KeepLast, Record
from calida.training.loop import train
from calida.training.phase import SOURCE_PHASE, Domains, Phase, PseudoLabels, StepPlan, build_steps
from calida.training.records import describe_labeled, describe_pseudo_labels, describe_target, target_shares
from calida.uncertainty import renyi_entropy
from calida.validation import DomainPredictions, Predictor

_SECONDS_BETWEEN_STEP_RECORDS = 0.5


@dataclass(frozen=True)
class Run:
    """What a run is made of.

    `observe` gets every record: one of kind "start" when all is checked and training begins, one of kind "round" a
    round, and now and then one of kind "step" in between. The `judge` measures rounds and says which to keep; nothing
    that it measures reaches training.
    `identity` tells runs apart, so that the checkpoint of another run is refused. `begun` are the records of a first
    phase that was done before: the model that is to be trained then has its weights.
    """

    phases: Sequence[Phase]
    domains: Domains
    seeds: Seeds
    num_samples: int = 1  # for prediction, as is the next
    batch_size: int = 500
    folder: Path | None = None
    identity: Mapping[str, Any] | None = None
    observe: Callable[[Record], None] = lambda record: None
    judge: Judge = KeepLast()
    begun: Sequence[Record] = ()

    @property
    def predictor(self) -> Predictor:
        return Predictor(self.domains.validation, self.domains.target, self.num_samples, self.seeds, self.batch_size)


def run_rounds(run: Run, model: Classifier, resume: bool = False) -> Progress:
    """Train `model` in place through all phases, and leave it as it was after the round to keep.

    What is given back has one record a round and the weights of the source-only classifier.

    With a folder, each round ends with a checkpoint: a run that is killed at any moment can be resumed and ends with
    the same weights, bit for bit. Resuming where nothing was saved yet starts at the beginning.
    """
    progress, checkpoint = Progress(), None
    if run.folder is not None and has_checkpoint(run.folder):
        if not resume:
            raise InputError(f"{run.folder} already holds a run: resume it, or choose another folder")
        checkpoint = read_checkpoint(run.folder, run.identity or {})
        checkpoint.restore(model)
        progress = checkpoint.progress
    elif run.begun:
        progress = Progress(phase=1, history=[*run.begun[:-1], _seen_again(run, model)])
        progress.source_only = copied_weights(model)
    run.observe(_starting(run, progress))
    while progress.phase < len(run.phases) and not progress.stopped:
        phase = run.phases[progress.phase]
        regularised = phase.objective.gradient_variance is not None
        model.lay_out(torch.contiguous_format if regularised else torch.channels_last)
        optimizer = phase.make_optimizer(model.parameters())
        teacher = make_teacher(model) if phase.teacher_memory else None
        if checkpoint is not None:
            checkpoint.restore_optimizer(optimizer)
            if teacher is not None:
                checkpoint.restore(teacher, "teacher")
            checkpoint = None
        else:
            progress.multipliers = phase.objective.multipliers()
        shown = model if teacher is None else teacher  # who predicts, and is kept
        # Looked at anew in each phase: another memory layout rounds otherwise, and a resumed run starts here too.
        predictions: DomainPredictions | None = None
        while progress.rounds_done < phase.rounds and not progress.stopped:
            if predictions is None and phase.uses_target:
                predictions = run.predictor.predict_domains(shown)
            progress.set_aside(shown)
            started = time.perf_counter()
            record, predictions = _Round(run, phase, progress, model, teacher, predictions).train(optimizer)
            record["seconds"] = round(time.perf_counter() - started, 3)
            judgement = Judgement() if predictions is None else run.judge.judge(record, progress.history)
            record["kept"] = judgement.keep
            if judgement.keep:
                progress.kept = None
            if judgement.stop:
                record["stopped"] = judgement.stop
            progress.history.append(record)
            progress.rounds_done += 1
            if phase.name == SOURCE_PHASE and progress.rounds_done == phase.rounds:
                progress.source_only = copied_weights(shown)
            if run.folder is not None:
                save_checkpoint(run.folder, model, optimizer, progress, run.identity or {}, teacher)
            run.observe(copy.deepcopy(record))
        if teacher is not None:
            model.load_state_dict(teacher.state_dict())
        progress.phase += 1
        progress.rounds_done = 0
    if progress.kept is not None:
        model.load_state_dict(progress.kept)
    return progress


def _seen_again(run: Run, model: Classifier) -> Record:
    """The last record of a phase done before, as this run sees both domains."""
    predictions = run.predictor.predict_domains(model)
    source = describe_labeled(predictions.validation, run.domains.validation.y)
    target = describe_target(predictions.target)
    seen = {"source": source, "target": target, **_measure_shift(run, predictions)}
    return {**run.begun[-1], **seen, **run.judge.measure(predictions), "kept": True}


def _measure_shift(run: Run, predictions: DomainPredictions) -> Record:
    """What differs between two tables; images of two domains never mix."""
    (source, labels), target = run.domains.source, run.domains.target
    if not (isinstance(source, Tensor) and isinstance(target, Tensor) and target.ndim == 2):
        return {}
    said = Classified(predictions.validation.log_probs, predictions.labels, predictions.target.log_probs)
    return measure_shift(source, labels, target, said, run.seeds.at("neighbours"))


def _starting(run: Run, progress: Progress) -> Record:
    """What lies ahead, about how many samples each phase will run through the network, and what is done already."""
    source, target = len(run.domains.source.y), len(run.domains.target)
    phases = [
        {"phase": phase.name, "rounds": phase.rounds, "samples": phase.rounds * phase.estimate_samples(source, target)}
        for phase in run.phases
    ]
    return {"kind": "start", "phases": phases, "history": copy.deepcopy(progress.history)}


class _Round:
    """One round: what it starts from, how it trains, and what it records."""

    def __init__(
        self,
        run: Run,
        phase: Phase,
        progress: Progress,
        model: Classifier,
        teacher: Classifier | None,
        before: DomainPredictions | None,
    ) -> None:
        self.run, self.phase, self.model, self.teacher = run, phase, model, teacher
        self.shown = model if teacher is None else teacher
        self.number = progress.rounds_done
        self.multipliers = progress.multipliers
        self.seeds = run.seeds.at(phase.name, self.number)
        self.place: Record = {"phase": phase.name, "round": self.number, "rounds": phase.rounds}
        self.pseudo_labels = PseudoLabels.none(len(run.domains.target), run.domains.num_classes)
        if before is not None and phase.pseudo_labeler is not None:
            shares = class_shares(run.domains.source.y, run.domains.num_classes)
            agreement = partial(self._agreement, before)
            self.pseudo_labels = phase.pseudo_labeler(before.target, self.number, phase.rounds, shares, agreement)
        weights = {} if before is None else self._class_weights(before, progress.history)
        self.pools = phase.pools(run.domains, self.pseudo_labels, self.number, self.seeds, weights)
        if before is not None:
            self._set_budgets(before)

    def _class_weights(self, before: DomainPredictions, history: Sequence[Record]) -> dict[Domain, Tensor]:
        """Weights that give every class its equal share of batches, where classes are out of balance.

        Each domain's batches are normalised by themselves: other class shares in the one than in the other would pass
        for a shift. Source labels are known; source shares that one batch could have by chance stay as they are.
        Target labels are those of today, and how frequent they are is asked of the source-only classifier.
        """
        if self.phase.uniform_prior_slack == math.inf:
            return {}
        classes, source = self.run.domains.num_classes, self.run.domains.source.y
        tolerance = chance_distance(classes, self.phase.batch_size)
        expected = target_shares(history, self.phase.uniform_prior_slack)
        weights: dict[Domain, Tensor | None] = {
            "source": balancing_weights(source, class_shares(source, classes).float(), tolerance),
            "target": balancing_weights(before.target.labels, expected),
        }
        return {domain: weight for domain, weight in weights.items() if weight is not None}

    def _agreement(self, before: DomainPredictions) -> float:
        return self.run.predictor.agreement(self.shown, before.target.labels, self.phase.augmentation)

    def train(self, optimizer: torch.optim.Optimizer) -> tuple[Record, DomainPredictions | None]:
        plans = self.phase.plan(self.pools, self.seeds)
        steps = self._steps(plans, optimizer)
        told, samples = time.perf_counter(), 0

        def tell(index: int, values: Mapping[str, float]) -> None:
            nonlocal told, samples
            samples += plans[index].size
            if time.perf_counter() - told >= _SECONDS_BETWEEN_STEP_RECORDS:
                told = time.perf_counter()
                here = {"kind": "step", **self.place, "step": index + 1, "steps": len(plans), "samples": samples}
                self.run.observe({**here, "terms": dict(values)})

        try:
            terms = train(self.model, optimizer, self.phase.objective, steps, self.multipliers, tell)
        except NonFiniteError as error:
            raise NonFiniteError(f"{self._name()}: {error}; {self._last_good()}") from None
        if not all(bool(parameter.isfinite().all()) for parameter in self.model.parameters()):
            raise NonFiniteError(f"{self._name()}: a gradient made the weights infinite or NaN; {self._last_good()}")
        self._recompute_statistics()
        return self._record(plans, terms)

    def _steps(self, plans: Sequence[StepPlan], optimizer: torch.optim.Optimizer) -> Iterator[Step]:
        """The round's steps, each with the learning rate of its moment."""
        augmentation, teacher = self.phase.augmentation, self.teacher
        memory = min(self.phase.teacher_memory * len(plans), self.phase.teacher_max_steps)  # in steps
        decay = 0.0 if teacher is None else math.exp(-1 / memory)
        steps = build_steps(plans, self.model, self.run.domains, self.pseudo_labels, augmentation, teacher)
        for index, step in enumerate(steps):
            rate = self.phase.rate((self.number + index / len(plans)) / self.phase.rounds)
            for group in optimizer.param_groups:
                group["lr"] = rate
            yield step
            if teacher is not None:  # the step has been taken when the next is asked for
                follow(teacher, self.model, decay)

    @torch.no_grad()
    def _recompute_statistics(self, batches: int = 8) -> None:
        """Average BatchNorm's statistics over a few batches of each domain (precise BatchNorm, Wu and Johnson, 2021).

        The running averages of training lean on the last few batches, which moves the target's entropy by tens of per
        cent from round to round while the weights hardly move.
        """
        norms = [part for part in self.shown.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
        if not norms:
            return
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain average of all that follows
        domains = [domain for domain in self.pools if domain in self.phase.statistics] or list(self.pools)
        for steps in zip(*(self._samples(domain, batches, model=self.shown) for domain in domains), strict=True):
            for step in steps:
                for domain in step.batches:
                    step.output(domain)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

    def _set_budgets(self, before: DomainPredictions) -> None:
        for name, state in self.multipliers.items():
            term, rule = self.phase.objective.terms[name]
            if isinstance(rule, DualAscent) and isinstance(term, TargetEntropy):
                looks = (before.validation, before.target)
                source, target = (float(renyi_entropy(look.log_probs, term.order).mean()) for look in looks)
                state.measure(rule, source, target, self._training_mean(term))

    @torch.no_grad()
    def _training_mean(self, term: Term, batches: int = 8) -> float:
        """A target term as training sees it, with dropout and batch statistics, before any step is taken."""
        with scratch_buffers(self.model):
            return (
                sum(float(term(step)) for step in self._samples("target", batches, self.phase.augmentation)) / batches
            )

    def _record(self, plans: Sequence[StepPlan], terms: dict[str, float]) -> tuple[Record, DomainPredictions | None]:
        record: Record = {"kind": "round", **self.place, "steps": len(plans), "terms": terms}
        record["samples"] = sum(plan.size for plan in plans)
        labels = self.run.domains.validation.y
        # Predicting the whole target is work that only adaptation, and the moment before it, has a use for.
        if not self.phase.uses_target and self.number + 1 < self.phase.rounds:
            validation = self.run.predictor.predict(self.shown, self.run.domains.validation.x)
            return {**record, "source": describe_labeled(validation, labels)}, None
        after = self.run.predictor.predict_domains(self.shown)
        record["source"] = describe_labeled(after.validation, labels)
        record["target"] = describe_target(after.target)
        if self.phase.pseudo_labeler is not None:
            record["selected"] = describe_pseudo_labels(self.pseudo_labels)
        if self.multipliers:
            record["multipliers"] = {name: asdict(state) for name, state in self.multipliers.items()}
        if self.phase.uses_target:
            record["gradient_variance"] = self._gradient_variances()
        else:
            record |= _measure_shift(self.run, after)
        return {**record, **self.run.judge.measure(after)}, after

    def _gradient_variances(self) -> dict[Domain, float]:
        """Eq. 4 on one batch of each domain, by the terms that need no other: a diagnostic, optimised or not."""
        objective = self.phase.objective
        regularizer = objective.gradient_variance or GradientVariance()
        variances: dict[Domain, float] = {}
        for domain in self.pools:
            (step,) = self._samples(domain, 1)
            weights = objective.active(step.batches, self.multipliers)
            weights |= {name: 1.0 for name in weights if name in self.multipliers}  # even while it stands at 0
            if weights:
                here = replace(regularizer, domain=domain)
                variances[domain] = here.measure(step, partial(objective.loss, weights=weights))
        return variances

    def _samples(
        self, domain: Domain, count: int, augmentation: Augmentation = UNCHANGED, model: Classifier | None = None
    ) -> Iterator[Step]:
        """A few training-mode steps on one domain, to look at and not to take."""
        model = (model or self.model).train()
        order = shuffled_batches(self.pools[domain], self.phase.batch_size, self.seeds.at("sample", domain))
        plans = [
            StepPlan({domain: next(order)}, self.seeds.at("sample", domain, index), self.phase.num_samples)
            for index in range(count)
        ]
        return build_steps(plans, model, self.run.domains, self.pseudo_labels, augmentation, self.teacher)

    def _name(self) -> str:
        return f"{self.phase.name} round {self.number + 1}"

    def _last_good(self) -> str:
        if self.run.folder is not None and has_checkpoint(self.run.folder):
            return f"the last good round is saved in {self.run.folder}"
        return "nothing was saved"
