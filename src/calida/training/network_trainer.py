"""How a network is trained in a round: by steps of gradient descent, with a teacher where a phase has one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from calida.data import UNCHANGED, Augmentation, shuffled_batches
from calida.errors import NonFiniteError
from calida.model import AnyClassifier, Classifier, follow, make_teacher, scratch_buffers
from calida.objective import Domain, DualAscent, GradientVariance, MultiplierState, Step, TargetEntropy, Term
from calida.shift import balancing_weights, chance_distance, class_shares
from calida.training.checkpoint import Checkpoint, Progress, optimizer_state
from calida.training.events import StepTaken
from calida.training.loop import train
from calida.training.phase import Phase, StepPlan, build_steps
from calida.training.records import target_shares
from calida.training.store import with_prefix
from calida.training.trainer import RoundDiagnosis, RoundStart, RoundWork
from calida.uncertainty import renyi_entropy
from calida.validation import DomainPredictions, RoundRecord

if TYPE_CHECKING:
    from calida.training.rounds import Run

_SECONDS_BETWEEN_STEP_RECORDS = 0.5
_STATISTICS_ROWS = 512  # of a domain, from which BatchNorm statistics are taken, at least


class NetworkTrainer:
    """A network's optimizer and teacher in one phase; a `_Round` is made for each round."""

    def __init__(self, run: Run, phase: Phase, model: AnyClassifier) -> None:
        assert isinstance(model, Classifier)
        self.run, self.phase, self.model = run, phase, model
        regularized = phase.objective.gradient_variance is not None
        model.lay_out(torch.contiguous_format if regularized else torch.channels_last)
        self.optimizer = phase.make_optimizer(model.parameter_groups(phase.pretrained_rate_fraction))
        self.teacher = make_teacher(model) if phase.teacher_memory else None
        self.shown: AnyClassifier = model if self.teacher is None else self.teacher
        self.multipliers: dict[str, MultiplierState] = {}
        self.round: _Round | None = None

    def begin(self, progress: Progress, checkpoint: Checkpoint | None) -> None:
        """Start with fresh moments and multipliers, or with those of the checkpoint."""
        if checkpoint is None:
            progress.multipliers = self.phase.objective.multipliers()
        else:
            checkpoint.restore_optimizer(self.optimizer)
            if self.teacher is not None:
                checkpoint.restore(self.teacher, "teacher")
        self.multipliers = progress.multipliers

    def train(self, start: RoundStart) -> RoundWork:
        """Take the round's steps."""
        self.round = _Round(self, start)
        return self.round.train()

    def diagnose(self) -> RoundDiagnosis:
        """Where the multipliers stand, and the gradient variance of adaptation."""
        assert self.round is not None
        multipliers = {name: replace(state) for name, state in self.multipliers.items()}
        return RoundDiagnosis(multipliers, self.round.gradient_variances() if self.phase.uses_target else {})

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments and the teacher's weights."""
        teacher = {} if self.teacher is None else self.teacher.state_dict()
        return with_prefix("optimizer", optimizer_state(self.optimizer)) | with_prefix("teacher", teacher)

    def finish(self) -> None:
        """What the teacher has learned is the phase's result."""
        if self.teacher is not None:
            self.model.load_state_dict(self.teacher.state_dict())


class _Round:
    """One round of steps: what it draws on, how it trains, and what it measures."""

    def __init__(self, trainer: NetworkTrainer, start: RoundStart) -> None:
        self.run, self.phase, self.model, self.teacher = trainer.run, trainer.phase, trainer.model, trainer.teacher
        self.optimizer, self.multipliers = trainer.optimizer, trainer.multipliers
        self.shown = self.model if self.teacher is None else self.teacher
        self.number, self.seeds = start.number, start.seeds
        self.pseudo_labels, before = start.pseudo_labels, start.before
        weights = {} if before is None else self._class_weights(before, start.history)
        self.pools = self.phase.pools(self.run.domains, self.pseudo_labels, self.number, self.seeds, weights)
        if before is not None:
            self._set_budgets(before)

    def _class_weights(self, before: DomainPredictions, history: Sequence[RoundRecord]) -> dict[Domain, Tensor]:
        """Weights that give every class its equal share of batches, where classes are out of balance.

        Each domain's batches are normalized by themselves: other class shares in the one than in the other would pass
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

    def train(self) -> RoundWork:
        plans = self.phase.plan(self.pools, self.seeds)
        steps = self._steps(plans)
        told, samples = time.perf_counter(), 0

        def tell(index: int, values: Mapping[str, float]) -> None:
            nonlocal told, samples
            samples += plans[index].size
            if time.perf_counter() - told >= _SECONDS_BETWEEN_STEP_RECORDS:
                told = time.perf_counter()
                place = (self.phase.name, self.number, self.phase.rounds)
                self.run.observe(StepTaken(*place, index + 1, len(plans), samples, dict(values)))

        terms = train(
            self.model,
            self.optimizer,
            self.phase.objective,
            steps,
            self.multipliers,
            tell,
            self.run.processes.average_gradients,
        )
        if not all(bool(parameter.isfinite().all()) for parameter in self.model.parameters()):
            raise NonFiniteError("a gradient made the weights infinite or NaN")
        self._recompute_statistics()
        return RoundWork(terms, len(plans), sum(plan.size for plan in plans))

    def _steps(self, plans: Sequence[StepPlan]) -> Iterator[Step]:
        """The round's steps, each with the learning rate of its moment."""
        augmentation, teacher = self.phase.augmentation, self.teacher
        memory = min(self.phase.teacher_memory * len(plans), self.phase.teacher_max_steps)  # in steps
        decay = 0.0 if teacher is None else math.exp(-1 / memory)
        shared = (self.run.processes, self.phase.objective.gradient_variance)
        steps = build_steps(plans, self.model, self.run.domains, self.pseudo_labels, augmentation, teacher, *shared)
        for index, step in enumerate(steps):
            rate = self.phase.rate((self.number + index / len(plans)) / self.phase.rounds)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["fraction"]
            yield step
            if teacher is not None:  # the step has been taken when the next is asked for
                follow(teacher, self.model, decay)

    @torch.no_grad()
    def _recompute_statistics(self) -> None:
        """Average BatchNorm's statistics over a few batches of each domain (precise BatchNorm, Wu and Johnson, 2021).

        The running averages of training lean on the last few batches, which moves the target's entropy by tens of per
        cent from round to round while the weights hardly move.
        """
        norms = self.shown.moving_norms()
        if not norms:
            return
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain average of all that follows
        batches = max(8, -(-_STATISTICS_ROWS // self.phase.batch_size))
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
                seen = (before.validation, before.target)
                source, target = (float(renyi_entropy(part.log_probs, term.order).mean()) for part in seen)
                state.measure(rule, source, target, self._training_mean(term))

    @torch.no_grad()
    def _training_mean(self, term: Term, batches: int = 8) -> float:
        """A target term as training sees it, with dropout and batch statistics, before any step is taken."""
        with scratch_buffers(self.model):
            return (
                sum(float(term(step)) for step in self._samples("target", batches, self.phase.augmentation)) / batches
            )

    def gradient_variances(self) -> dict[str, float]:
        """Eq. 4 on one batch of each domain, by the terms that need no other: a diagnostic, optimized or not."""
        objective = self.phase.objective
        regularizer = objective.gradient_variance or GradientVariance()
        variances: dict[str, float] = {}
        for domain in self.pools:
            here = replace(regularizer, domain=domain)
            (step,) = self._samples(domain, 1, regularizer=here)
            weights = objective.active(step.batches, self.multipliers)
            weights |= {name: 1.0 for name in weights if name in self.multipliers}  # even while it stands at 0
            if weights:
                variances[domain] = here.measure(step, partial(objective.loss, weights=weights))
        return variances

    def _samples(
        self,
        domain: Domain,
        count: int,
        augmentation: Augmentation = UNCHANGED,
        model: Classifier | None = None,
        regularizer: GradientVariance | None = None,
    ) -> Iterator[Step]:
        """A few training-mode steps on one domain, to look at and not to take."""
        model = (model or self.model).train()
        order = shuffled_batches(self.pools[domain], self.phase.batch_size, self.seeds.at("sample", domain))
        plans = [
            StepPlan({domain: next(order)}, self.seeds.at("sample", domain, index), self.phase.num_samples)
            for index in range(count)
        ]
        shared = (self.run.processes, regularizer)
        return build_steps(plans, model, self.run.domains, self.pseudo_labels, augmentation, self.teacher, *shared)
