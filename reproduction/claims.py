"""What the paper asserts, tested on our runs: paired by seed, with Holm's correction over the whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import fmean
from typing import NamedTuple

from scipy import stats

from calida.studies import RunRecord, StudyTask, label_free
from reproduction.study import base_job, row_job
from reproduction.summary import Records, adaptation_rounds, last_round, oracle_round
from reproduction.tables import MNIST_USPS, SVHN_MNIST, TABLE1, TABLES

_LEVEL = 0.05
_NEGLIGIBLE = 0.5  # points: a difference that nobody would change a method for


class Verdict(str, Enum):
    """What a claim's runs say of it."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not settled"


class Interval(NamedTuple):
    """A mean over seeds and where it may lie; without bounds if there are too few seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """One claim on one task: the difference that was measured, in which unit, and what follows.

    `p_value` is that of a two-sided test against the border; `adjusted` is Holm's, over all findings of the table.
    """

    claim: str
    task: str
    measured: str
    interval: Interval
    border: float
    p_value: float
    seeds: int
    below: bool = False  # whether the claim holds under the border, not over it
    adjusted: float = 1.0

    @property
    def verdict(self) -> Verdict:
        """Settled where the interval keeps clear of the border and the adjusted test says so too."""
        mean, low, high = self.interval
        if self.adjusted > _LEVEL or low <= self.border <= high:
            return Verdict.OPEN
        return Verdict.HOLDS if (mean > self.border) != self.below else Verdict.FAILS


def of_differences(
    claim: str, task: str, measured: str, values: Sequence[float], border: float = 0.0, below: bool = False
) -> list[Finding]:
    """Student's t test and interval of paired differences; nothing where there is no seed with both runs."""
    if not values:
        return []
    if len(values) < 2:
        return [Finding(claim, task, measured, Interval(values[0], -math.inf, math.inf), border, 1.0, 1, below)]
    test = stats.ttest_1samp(values, border)
    bounds = test.confidence_interval(1 - _LEVEL)
    interval = Interval(fmean(values), float(bounds.low), float(bounds.high))
    if len(set(values)) == 1:  # no spread at all: scipy has no p-value for it
        return [Finding(claim, task, measured, interval, border, float(values[0] == border), len(values), below)]
    return [Finding(claim, task, measured, interval, border, float(test.pvalue), len(values), below)]


def with_holm(findings: Sequence[Finding]) -> list[Finding]:
    """Adjusted p-values: the i-th smallest of n times n - i + 1, never falling (Holm, 1979)."""
    order = sorted(range(len(findings)), key=lambda index: findings[index].p_value)
    adjusted, highest = [1.0] * len(findings), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min((len(findings) - rank) * findings[index].p_value, 1.0))
        adjusted[index] = highest
    return [replace(one, adjusted=value) for one, value in zip(findings, adjusted, strict=True)]


@dataclass(frozen=True)
class Runs:
    """The finished runs of one task by row and seed."""

    task: str
    rows: Mapping[str, Mapping[int, RunRecord]]

    @staticmethod
    def of(task: StudyTask, seeds: Sequence[int], records: Records) -> Runs:
        table = next(table for table in TABLES.values() if table.task == task.name)
        jobs = {row.name: [row_job(task, row, seed) for seed in seeds] for row in table.rows if row.recipe}
        jobs |= {row.name: [base_job(task, row, seed) for seed in seeds] for row in TABLE1[task.name]}
        jobs["dual"] = [task.job("dual", seed) for seed in seeds]
        found = {
            name: {job.config.seed: records[job.key] for job in some if job.key in records}
            for name, some in jobs.items()
        }
        return Runs(task.name, found)

    def each(self, names: Sequence[str], value: Callable[[Sequence[RunRecord]], float]) -> list[float]:
        """A value of the runs of these rows with one seed, for every seed that has them all."""
        tables = [self.rows[name] for name in names]
        return [value([table[seed] for table in tables]) for seed in sorted(set.intersection(*map(set, tables)))]

    def differences(
        self, pairs: Iterable[tuple[str, str]], value: Callable[[RunRecord], float], scale: float = 100.0
    ) -> list[float]:
        """First less second, averaged over pairs, seed by seed."""
        names = [name for pair in pairs for name in pair]
        return self.each(names, lambda runs: scale * fmean(value(a) - value(b) for a, b in _pairs(runs)))


def _pairs(runs: Sequence[RunRecord]) -> list[tuple[RunRecord, RunRecord]]:
    return list(zip(runs[::2], runs[1::2], strict=True))


def examine_claims(tasks: Mapping[str, StudyTask], seeds: Sequence[int], records: Records) -> list[Finding]:
    """Every claim on both digit tasks, as far as its runs are finished."""
    gathered = [Runs.of(tasks[name], seeds, records) for name in (MNIST_USPS, SVHN_MNIST)]
    return with_holm([finding for claim in CLAIMS for runs in gathered for finding in claim(runs)])


def _accuracy(record: RunRecord) -> float:
    return label_free(record).accuracy


def _self_training(runs: Runs) -> str:
    """Rows of order infinity without GVR that belong to those with it: of the same selection."""
    return "RER-inf" if runs.task == MNIST_USPS else "RER-inf, expected shares"


def _bayesian(runs: Runs) -> list[Finding]:
    names = ("RER-1", "RER-inf", "RER-inf, expected shares")
    values = runs.differences([(f"B{name}", name) for name in names], _accuracy)
    measured = "accuracy, BRER less RER (points)"
    return of_differences("Bayesian variants beat the point ones", runs.task, measured, values)


def _stable(runs: Runs) -> list[Finding]:
    """Spread over seeds, pooled over point and Bayesian: an F test of the ratio of two variances."""
    claim = "Self-training is more stable than Shannon entropy"
    pooled = []
    for names in (("RER-1", "BRER-1"), (_self_training(runs), f"B{_self_training(runs)}")):
        some = [[_accuracy(record) for record in runs.rows[name].values()] for name in names]
        if any(len(values) < 2 for values in some):
            return []
        squares = sum(sum((v - fmean(values)) ** 2 for v in values) for values in some)
        pooled.append((squares, sum(len(values) - 1 for values in some)))
    (one, n_one), (inf, n_inf) = pooled
    ratio = (one / n_one) / max(inf / n_inf, 1e-12)
    low, high = (math.sqrt(ratio / float(stats.f.ppf(q, n_one, n_inf))) for q in (1 - _LEVEL / 2, _LEVEL / 2))
    p_value = 2 * min(float(stats.f.sf(ratio, n_one, n_inf)), float(stats.f.cdf(ratio, n_one, n_inf)))
    interval, seeds = Interval(math.sqrt(ratio), low, high), min(map(len, some))
    measured = "spread over seeds, order 1 as a multiple of order inf"
    return [Finding(claim, runs.task, measured, interval, 1.0, min(p_value, 1.0), seeds)]


def _steady(runs: Runs) -> list[Finding]:
    """How far the last round has fallen from the best one, which takes target labels to see."""

    def fall(record: RunRecord) -> float:
        return oracle_round(record).accuracy - last_round(record).accuracy

    inf = _self_training(runs)
    values = runs.differences([("RER-1", inf), ("BRER-1", f"B{inf}")], fall)
    measured = "fall from best to last round, order 1 less order inf (points)"
    return of_differences("Self-training is more stable than Shannon entropy", runs.task, measured, values)


def _gvr(runs: Runs) -> list[Finding]:
    """Against the control that has the same groups and no variance term; point and Bayesian apart."""
    found: list[Finding] = []
    for kind, words in (("", "point"), ("B", "Bayesian")):
        for order in ("inf", "1"):
            pair = [(f"{kind}RER-{order}-GVR", f"{kind}RER-{order}, groups alone")]
            values = runs.differences(pair, _accuracy)
            if order == "inf":
                claim, border, below = f"GVR helps at order inf ({words})", 0.0, False
            else:
                claim, border, below = f"GVR does not help at order 1 ({words})", _NEGLIGIBLE, True
            measured = f"accuracy, with less groups alone (points; {'under' if below else 'over'} {border:g})"
            found += of_differences(claim, runs.task, measured, values, border, below)
    return found


def _more_samples(runs: Runs) -> list[Finding]:
    def accuracy(record: RunRecord, count: int) -> float:
        return float(record["by_samples"][str(count)]["oracle"]["accuracy"])

    found: list[Finding] = []
    for few in (1, 10):
        values = runs.each(
            ["BDTN-M100", f"BDTN-M{few}"],
            lambda both, few=few: 100 * (accuracy(both[0], 100) - accuracy(both[1], few)),  # type: ignore[misc]
        )
        measured = f"source-only accuracy on target, trained with M = 100 less M = {few} (points)"
        found += of_differences("Larger M helps", runs.task, measured, values)
    return found


def _variance(runs: Runs) -> list[Finding]:
    def log_ratio(record: RunRecord) -> float:
        pairs = [one["gradient_variance"] for one in adaptation_rounds(record)]
        return fmean(math.log(pair["source"] / max(pair["target"], 1e-12)) for pair in pairs)

    values = runs.each(["RER-inf", "BRER-inf"], lambda some: fmean(log_ratio(one) for one in some))
    claim = "Gradient variance is smaller on target than on source during self-training"
    return of_differences(claim, runs.task, "log of source over target, mean over rounds", values)


def _certainty(runs: Runs) -> list[Finding]:
    def gap(record: RunRecord) -> float:
        last = record["rounds"][-1]
        return float(last["target"]["entropy"] - last["source"]["entropy"])

    values = runs.each(["Source-DTN", "Source-BDTN"], lambda some: fmean(gap(one) for one in some))
    claim = "The source model is less certain on target than on source"
    return of_differences(claim, runs.task, "entropy, target less held-out source (nats)", values)


def _dual(runs: Runs) -> list[Finding]:
    """Ours: the constraint keeps ECE down, and accuracy is not the price."""
    pair, claim = [("dual", "RER-1")], "Dual ascent gives lower ECE at equal accuracy (ours)"
    accuracy = runs.differences(pair, _accuracy)
    ece = runs.differences(pair, lambda record: -float(record["returned"]["oracle_uncalibrated"]["ece"]))
    return [
        *of_differences(claim, runs.task, "ECE before calibration, RER-1 less dual (points)", ece),
        *of_differences(
            claim, runs.task, f"accuracy, dual less RER-1 (points; over {-_NEGLIGIBLE:g})", accuracy, -_NEGLIGIBLE
        ),
    ]


CLAIMS: tuple[Callable[[Runs], list[Finding]], ...] = (
    _bayesian,
    _stable,
    _steady,
    _gvr,
    _more_samples,
    _variance,
    _certainty,
    _dual,
)
