"""A phase of training as plain values: what to minimize, on what, for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calida.data import (
    UNCHANGED,
    Augmentation,
    Labeled,
    Samples,
    SourceBatch,
    TargetBatch,
    num_batches,
    shuffled_batches,
    stream,
)
from calida.model import Classifier, Prediction
from calida.objective import Domain, GradientVariance, Objective, Step
from calida.processes import ALONE, Processes, Share
from calida.seeds import Seeds
from calida.selection import Ramp, selector, smooth_over_neighbors, tempered_labels
from calida.shift import class_shares, mlls_shares, resample

Portion = Ramp | Literal["agreement"]
SelectionShares = Literal["predicted", "uniform", "source", "estimated"]
Labeler = Literal["own", "panel"]
Schedule = Literal["alternate", "joint"]
Optimizer = Literal["adam", "sgd"]


_MORE_PASSES = 5  # times as many as asked for, at most, for a domain that is small
_FIRST_RATE = 0.1  # of the learning rate, where it has to rise
SOURCE_PHASE = "pretrain"  # the phase that ends with the source-only classifier
FINETUNING_PHASE = "finetune"  # the phase that trains what came with weights


@dataclass(frozen=True)
class Domains:
    """All the data that training sees: the target has no labels here, and no place to put them."""

    source: Labeled
    validation: Labeled  # held out from source
    target: Samples
    num_classes: int
    source_weight: Tensor | None = None  # [S]: one of 2 is that sample twice; None where each counts once

    @cached_property
    def source_shares(self) -> Tensor:
        """How much of the source each class is: [K]."""
        if self.source_weight is None:
            return class_shares(self.source.y, self.num_classes)
        totals = torch.bincount(self.source.y, self.source_weight, self.num_classes)
        return totals / totals.sum()

    @cached_property
    def relative_weight(self) -> Tensor | None:
        """Weights of the source's samples with mean 1, for a loss that is a mean: [S]."""
        return None if self.source_weight is None else (self.source_weight / self.source_weight.mean()).float()

    def inputs(self, domain: Domain) -> Samples:
        return self.source.x if domain == "source" else self.target


@dataclass(frozen=True)
class PseudoLabeler:
    """How a round makes pseudo-labels from its predictions on target.

    `class_shares` are those that a portion is taken of: those of the predictions, equal ones, the source's, or an
    estimate of the target's. `portion` goes by the clock, or by "agreement": the share of samples that keep their label
    in an augmented view, so that a classifier which contradicts itself teaches less. The `labeler` is the classifier
    itself, or the consensus of a panel of check classifiers and it. Predictions are first spread over each sample's
    nearest `neighbors`, which have `neighbors_share` in the result. `temperature` 0 gives hard labels.
    Soft labels are normalized by class threshold if `normalize` is set (CRST) and plain powers of the prediction
    otherwise (annealing).
    """

    selection: str = "reweighted"
    portion: Portion = Ramp(0.3, 0.05, 0.6)
    temperature: Ramp = Ramp(0.0)
    normalize: bool = True
    class_shares: SelectionShares = "predicted"
    neighbors: int = 10
    neighbors_share: float = 0.0
    labeler: Labeler = "own"

    def __call__(
        self,
        target: Prediction,
        round_index: int,
        rounds: int,
        source_shares: Tensor,
        agreement: Callable[[], float] = lambda: 1.0,
    ) -> PseudoLabels:
        portion = self.portion(round_index, rounds) if isinstance(self.portion, Ramp) else agreement()
        log_probs = smooth_over_neighbors(target.log_probs, target.features, self.neighbors, self.neighbors_share)
        chosen = selector(self.selection)(log_probs, portion, self._shares(log_probs, source_shares))
        temperature = self.temperature(round_index, rounds)
        if temperature == 0:
            labels = torch.nn.functional.one_hot(chosen.labels, log_probs.shape[-1]).to(log_probs)
        else:
            thresholds = chosen.log_threshold if self.normalize else None
            labels = tempered_labels(log_probs, temperature, thresholds)
        return PseudoLabels(labels, chosen.selected)

    def _shares(self, log_probs: Tensor, source_shares: Tensor) -> Tensor | None:
        """How frequent each class should be among the target's samples, [K]; None where predictions say."""
        if self.class_shares == "predicted":
            return None
        if self.class_shares == "uniform":
            return torch.full_like(source_shares, 1 / len(source_shares))
        return source_shares if self.class_shares == "source" else mlls_shares(log_probs, source_shares)


class PseudoLabels(NamedTuple):
    """Pseudo-labels of a round, [N, K], and which of them to use, [N]."""

    labels: Tensor
    selected: Tensor

    @staticmethod
    def none(count: int, num_classes: int) -> PseudoLabels:
        """No pseudo-label for anyone (and no memory for saying so)."""
        return PseudoLabels(torch.zeros(()).expand(count, num_classes), torch.zeros((), dtype=torch.bool).expand(count))


@dataclass(frozen=True)
class Phase:
    """Rounds of training with one objective.

    A round is `passes` passes over the larger of the two domains (the smaller goes round again): as many more, up to
    five times, as `min_batches` turns take, and no more than `max_batches` turns. "alternate" takes a source step, then
    a target step, as the paper's Algorithm 1; "joint" puts both into every step. Target steps draw on all target
    samples, or on the selected ones only.
    """

    name: str
    objective: Objective
    rounds: int
    passes: int = 1
    min_batches: int = 1
    max_batches: int | None = None
    batch_size: int = 100
    num_samples: int = 1
    learning_rate: float = 1e-3
    final_rate_fraction: float = 1.0  # of the learning rate that is left at the end of the phase
    warmup_fraction: float = 0.0  # of the phase, in which the rate rises to its height
    optimizer: Optimizer = "adam"
    weight_decay: float = 5e-4
    pretrained_rate_fraction: float = 1.0  # of the learning rate that a pre-trained backbone has
    schedule: Schedule = "alternate"
    pseudo_labeler: PseudoLabeler | None = None
    selected_only: bool = False
    source_portion: Ramp = field(default=Ramp(1.0))
    augmentation: Augmentation = UNCHANGED
    teacher_memory: float = 0.0  # rounds an averaged network looks back, which labels and predicts; 0 has none
    teacher_max_steps: float = math.inf  # but at most so many steps
    uniform_prior_slack: float = math.inf  # of class shares, in expected errors; inf never balances classes
    keep_best: bool = False  # of rounds on source alone, the one with the lowest held-out loss, not the last
    statistics: tuple[Domain, ...] = ("source", "target")  # whose batches BatchNorm's averages are taken from

    def make_optimizer(self, parameters: Iterable[nn.Parameter] | list[dict[str, Any]]) -> torch.optim.Optimizer:
        """Adam, or SGD with Nesterov's momentum."""
        if self.optimizer == "adam":
            return torch.optim.Adam(parameters, self.learning_rate, weight_decay=self.weight_decay, fused=True)
        return torch.optim.SGD(parameters, self.learning_rate, 0.9, weight_decay=self.weight_decay, nesterov=True)

    def rate(self, done: float) -> float:
        """The learning rate when this share of the phase is done: one cycle (Smith and Topin, 2019).

        It rises in a straight line from a tenth, then falls by a half cosine to the final rate.
        """
        if done < self.warmup_fraction:
            return self.learning_rate * (_FIRST_RATE + (1 - _FIRST_RATE) * done / self.warmup_fraction)
        left = (1 + math.cos(math.pi * (done - self.warmup_fraction) / (1 - self.warmup_fraction))) / 2
        return self.learning_rate * (self.final_rate_fraction + (1 - self.final_rate_fraction) * left)

    @property
    def uses_target(self) -> bool:
        terms = self.objective.terms.values()
        return any("target" in term.domains for term, weight in terms if weight != 0)

    def pools(
        self,
        domains: Domains,
        pseudo_labels: PseudoLabels,
        round_index: int,
        seeds: Seeds,
        weights: Mapping[Domain, Tensor] = MappingProxyType({}),
    ) -> dict[Domain, Tensor]:
        """The rows that this round draws on, by domain; a domain too small for a batch of two is left out.

        Where a domain has weights, [N], its rows are drawn in proportion to them, some more than once.
        """
        pools: dict[Domain, Tensor] = {"source": self._source_pool(len(domains.source.y), round_index, seeds)}
        if self.uses_target:
            everyone = torch.arange(len(domains.target))
            pools["target"] = everyone[pseudo_labels.selected] if self.selected_only else everyone
        for domain in pools.keys() & weights.keys():
            drawn = resample(weights[domain][pools[domain]], seeds.generator(f"{domain} subset"))
            pools[domain] = pools[domain][drawn]
        return {domain: pool for domain, pool in pools.items() if len(pool) > 1}

    def plan(self, pools: dict[Domain, Tensor], seeds: Seeds) -> list[StepPlan]:
        """The round's steps in order; a batch is only fetched when its step is built."""
        orders = {domain: shuffled_batches(pool, self.batch_size, seeds.at(domain)) for domain, pool in pools.items()}
        turns = [tuple(orders)] if self.schedule == "joint" else [(domain,) for domain in orders]
        plans: list[StepPlan] = []
        for _ in range(self._turns(len(pool) for pool in pools.values())):
            for turn in turns:
                rows = {domain: next(orders[domain]) for domain in turn}
                plans.append(StepPlan(rows, seeds.at("step", len(plans)), self.num_samples))
        return plans

    def estimate_samples(self, source: int, target: int) -> int:
        """About how many samples a round runs through the network; how many will be selected is not known before."""
        pools = [source, target] if self.uses_target else [source]
        return self._turns(pools) * len(pools) * self.batch_size

    def _turns(self, pools: Iterable[int]) -> int:
        turns = self.passes * max(num_batches(pool, self.batch_size) for pool in pools)
        turns = max(turns, min(self.min_batches, _MORE_PASSES * turns))
        return turns if self.max_batches is None else min(turns, self.max_batches)

    def _source_pool(self, count: int, round_index: int, seeds: Seeds) -> Tensor:
        """A random share of source, drawn anew each round."""
        kept = max(round(self.source_portion(round_index, self.rounds) * count), min(count, self.batch_size))
        if kept >= count:
            return torch.arange(count)
        return torch.randperm(count, generator=seeds.generator("source subset"))[:kept]


class StepPlan(NamedTuple):
    """Which rows a step takes from each domain."""

    rows: dict[Domain, Tensor]
    seeds: Seeds
    num_samples: int

    @property
    def size(self) -> int:
        """Samples of both domains in this step."""
        return sum(len(rows) for rows in self.rows.values())


def build_steps(
    plans: Sequence[StepPlan],
    model: Classifier,
    domains: Domains,
    pseudo_labels: PseudoLabels,
    augmentation: Augmentation,
    teacher: Classifier | None = None,
    processes: Processes = ALONE,
    regularizer: GradientVariance | None = None,
) -> Iterator[Step]:
    """Build each step when it is asked for, on the model's device; only files are read ahead of their turn.

    Of several processes, each has its own rows of every batch: whole groups where a `regularizer` cuts a domain's
    batches into groups.
    """
    device = model.device

    def share(domain: Domain, rows: Tensor) -> Share:
        grouped = regularizer is not None and regularizer.domain == domain
        return processes.share(len(rows), regularizer.group_count(len(rows)) if regularizer and grouped else None)

    inputs = {
        domain: stream(
            domains.inputs(domain),
            [share(domain, rows).take(rows) for plan in plans for one, rows in plan.rows.items() if one == domain],
        )
        for domain in {domain for plan in plans for domain in plan.rows}
    }
    for plan in plans:
        batches: dict[Domain, SourceBatch | TargetBatch] = {}
        for domain, rows in plan.rows.items():
            plain = next(inputs[domain]).to(device, non_blocking=True)
            shared = share(domain, rows)
            x = augmentation(plain, plan.seeds.at(domain), shared)
            if domain == "source":
                weight = None if domains.relative_weight is None else domains.relative_weight[rows].to(device)
                y = domains.source.y[rows].to(device, non_blocking=True)
                batches[domain] = SourceBatch(x, y, weight, shared)
            else:
                labels = pseudo_labels.labels[rows].to(device, non_blocking=True)
                selected = pseudo_labels.selected[rows].to(device, pseudo_labels.labels.dtype, non_blocking=True)
                batches[domain] = TargetBatch(x, labels, selected, plain, shared)
        yield Step(model, batches, plan.seeds, plan.num_samples, teacher)
