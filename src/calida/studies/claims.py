"""What the paper asserts, tested on our runs: paired by seed, with an interval, and a plain verdict each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from scipy import stats

from calida.studies.cells import adaptation_rounds, label_free, last_round, oracle_round
from calida.studies.job import RunRecord
from calida.studies.paper import MNIST_USPS, SVHN_MNIST
from calida.studies.tasks import StudyTask

HOLDS, FAILS, OPEN = "holds", "does not hold", "not settled"
_CONFIDENCE = 0.95
_NEGLIGIBLE = 0.5  # points: a difference that nobody would change a method for
_ENTROPY = (("rer-1", "rer-inf"), ("rer-1-gvr", "rer-inf-gvr"), ("brer-1", "brer-inf"), ("brer-1-gvr", "brer-inf-gvr"))
_BAYESIAN = tuple((f"b{name}", name) for name in ("rer-1", "rer-1-gvr", "rer-inf", "rer-inf-gvr"))


class Interval(NamedTuple):
    """A mean over seeds and where it may lie; without bounds if there are too few seeds."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Interval:
        """Student's t interval of paired differences."""
        mean, count = fmean(values), len(values)
        if count < 2:
            return Interval(mean, -math.inf, math.inf)
        error = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
        reach = float(stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)) * error
        return Interval(mean, mean - reach, mean + reach)

    def is_above(self, value: float = 0.0) -> str:
        """Whether the true mean is above a value."""
        return HOLDS if self.low > value else FAILS if self.high < value else OPEN


@dataclass(frozen=True)
class Finding:
    """One claim on one task: the difference that was measured, in which unit, and what follows."""

    claim: str
    task: str
    measured: str
    interval: Interval
    verdict: str
    seeds: int


@dataclass(frozen=True)
class _Runs:
    """The finished runs of one task by recipe and seed."""

    task: str
    by_recipe: Mapping[str, Mapping[int, RunRecord]]

    def each(self, recipes: Sequence[str], value: Callable[[Sequence[RunRecord]], float]) -> list[float]:
        """A value of the runs of these recipes with one seed, for every seed that has them all."""
        tables = [self.by_recipe[name] for name in recipes]
        seeds = sorted(set.intersection(*(set(table) for table in tables)))
        return [value([table[seed] for table in tables]) for seed in seeds]

    def differences(
        self, pairs: Sequence[tuple[str, str]], value: Callable[[RunRecord], float], scale: float = 100.0
    ) -> list[float]:
        """First less second, averaged over pairs, seed by seed."""
        names = [name for pair in pairs for name in pair]
        return self.each(names, lambda runs: scale * fmean(value(a) - value(b) for a, b in _pairs(runs)))


def _pairs(runs: Sequence[RunRecord]) -> list[tuple[RunRecord, RunRecord]]:
    return list(zip(runs[::2], runs[1::2], strict=True))


def examine_claims(
    tasks: Mapping[str, StudyTask], seeds: Sequence[int], records: Mapping[str, RunRecord]
) -> list[Finding]:
    """Every claim on both digit tasks, as far as its runs are finished."""
    claims = (_bayesian, _stable, _steady, _gvr_helps, _gvr_at_one, _more_samples, _variance, _certainty, _dual)
    gathered = [_gather(tasks[name], seeds, records) for name in (MNIST_USPS, SVHN_MNIST)]
    return [finding for claim in claims for runs in gathered for finding in claim(runs)]


def _gather(task: StudyTask, seeds: Sequence[int], records: Mapping[str, RunRecord]) -> _Runs:
    recipes = {"source", "bsource", "dual", *(name for pair in (*_ENTROPY, *_BAYESIAN) for name in pair)}
    jobs = {recipe: {seed: task.job(recipe, seed).key for seed in seeds} for recipe in recipes}
    known = {
        recipe: {seed: records[key] for seed, key in keys.items() if key in records} for recipe, keys in jobs.items()
    }
    return _Runs(task.name, known)


def _accuracy(record: RunRecord) -> float:
    return label_free(record).accuracy


def _finding(
    claim: str, runs: _Runs, measured: str, values: Sequence[float], verdict: Callable[[Interval], str] | None = None
) -> list[Finding]:
    if not values:
        return []
    interval = Interval.of(values)
    judge = verdict or Interval.is_above
    return [Finding(claim, runs.task, measured, interval, judge(interval), len(values))]


def _bayesian(runs: _Runs) -> list[Finding]:
    values = runs.differences(_BAYESIAN, _accuracy)
    return _finding("Bayesian variants beat the point ones", runs, "accuracy, BRER less RER (points)", values)


def _stable(runs: _Runs) -> list[Finding]:
    """Spread over seeds, pooled over four recipes of each order: an F interval on the ratio of their variances."""
    pooled = []
    for order in (0, 1):
        tables = [runs.by_recipe[pair[order]] for pair in _ENTROPY]
        some = [[_accuracy(record) for record in table.values()] for table in tables]
        if any(len(values) < 2 for values in some):
            return []
        squares = sum(sum((v - fmean(values)) ** 2 for v in values) for values in some)
        pooled.append((squares, sum(len(values) - 1 for values in some)))
    (one, n_one), (inf, n_inf) = pooled
    ratio = math.sqrt((one / n_one) / max(inf / n_inf, 1e-12))
    tail = (1 - _CONFIDENCE) / 2
    low, high = (ratio / math.sqrt(float(stats.f.ppf(q, n_one, n_inf))) for q in (1 - tail, tail))
    interval = Interval(ratio, low, high)
    return [
        Finding(
            "Self-training is more stable than Shannon entropy",
            runs.task,
            "spread over seeds, order 1 as a multiple of order inf",
            interval,
            interval.is_above(1.0),
            min(len(table) for table in runs.by_recipe.values() if table),
        )
    ]


def _steady(runs: _Runs) -> list[Finding]:
    """How far the last round has fallen from the best one, which takes target labels to see."""

    def fall(record: RunRecord) -> float:
        return oracle_round(record).accuracy - last_round(record).accuracy

    values = runs.differences(_ENTROPY, fall)
    claim = "Self-training is more stable than Shannon entropy"
    return _finding(claim, runs, "fall from best to last round, order 1 less order inf (points)", values)


def _gvr_helps(runs: _Runs) -> list[Finding]:
    values = runs.differences([("rer-inf-gvr", "rer-inf"), ("brer-inf-gvr", "brer-inf")], _accuracy)
    return _finding("GVR helps at order inf", runs, "accuracy, with less without (points)", values)


def _gvr_at_one(runs: _Runs) -> list[Finding]:
    def verdict(interval: Interval) -> str:
        return HOLDS if interval.high < _NEGLIGIBLE else FAILS if interval.low > 0 else OPEN

    values = runs.differences([("rer-1-gvr", "rer-1"), ("brer-1-gvr", "brer-1")], _accuracy)
    measured = f"accuracy, with less without (points; holds if under {_NEGLIGIBLE})"
    return _finding("GVR does not help at order 1", runs, measured, values, verdict)


def _more_samples(runs: _Runs) -> list[Finding]:
    def accuracy(record: RunRecord, count: int) -> float:
        return float(record["by_samples"][str(count)]["oracle"]["accuracy"])

    found: list[Finding] = []
    for few in (1, 10):
        values = runs.each(["bsource"], lambda one, few=few: 100 * (accuracy(one[0], 100) - accuracy(one[0], few)))  # type: ignore[misc]
        measured = f"source-only accuracy on target, M = 100 less M = {few} (points)"
        found += _finding("Larger M helps", runs, measured, values)
    return found


def _variance(runs: _Runs) -> list[Finding]:
    def log_ratio(record: RunRecord) -> float:
        pairs = [one["gradient_variance"] for one in adaptation_rounds(record)]
        return fmean(math.log(pair["source"] / max(pair["target"], 1e-12)) for pair in pairs)

    values = runs.each(["rer-inf", "brer-inf"], lambda some: fmean(log_ratio(one) for one in some))
    claim = "Gradient variance is smaller on target than on source during self-training"
    return _finding(claim, runs, "log of source over target, mean over rounds", values)


def _certainty(runs: _Runs) -> list[Finding]:
    def gap(record: RunRecord) -> float:
        last = record["rounds"][-1]
        return float(last["target"]["entropy"] - last["source"]["entropy"])

    values = runs.each(["source", "bsource"], lambda some: fmean(gap(one) for one in some))
    claim = "The source model is less certain on target than on source"
    return _finding(claim, runs, "entropy, target less held-out source (nats)", values)


def _dual(runs: _Runs) -> list[Finding]:
    """Ours: the constraint keeps ECE down, and accuracy is not the price."""
    pair = [("dual", "rer-1")]
    accuracy = runs.differences(pair, _accuracy)
    ece = runs.differences(pair, lambda record: -float(record["returned"]["oracle_uncalibrated"]["ece"]))
    if not ece:
        return []
    kept = Interval.of(accuracy)
    lower, equal = Interval.of(ece).is_above(), kept.is_above(-_NEGLIGIBLE)
    verdict = HOLDS if lower == equal == HOLDS else FAILS if FAILS in (lower, equal) else OPEN
    claim = "Dual ascent gives lower ECE at equal accuracy (ours)"
    return [
        *_finding(claim, runs, "ECE before calibration, RER-1 less dual (points)", ece, lambda interval: verdict),
        *_finding(claim, runs, "accuracy, dual less RER-1 (points)", accuracy, lambda interval: verdict),
    ]
