"""From a run's results to what the verdict rests on."""

from __future__ import annotations

import math

import torch

from calida.adaptation import SURE, Evidence, Measured, Verdict, judge
from calida.estimation import Estimate
from calida.report.run_results import RunResults
from calida.run_warnings import WarningCode
from calida.uncertainty import risk_coverage


def judge_results(results: RunResults) -> Verdict:
    """The verdict on a finished run."""
    return judge(evidence_of(results))


def evidence_of(results: RunResults) -> Evidence:
    """What is known of a finished run: findings, the estimate, and labels where there are any."""
    findings = [*results.trust.warnings, *results.data_findings]
    missing = next((one for one in findings if one.code == WarningCode.NO_ENCODER), None)
    return Evidence(
        results.trust.decision,
        results.trust.accuracy,
        findings,
        len(results.classes),
        len(results.predictions.after.target),
        _measured(results),
        _wrong_where_sure(results),
        "" if missing is None else str(missing.values["command"]),
        results.place,
    )


def _measured(results: RunResults) -> Measured | None:
    """By all of the target's labels, or by a few."""
    if "oracle" in results.after and results.truth is not None:
        before, after = (_exactly(side["oracle"]["accuracy"]) for side in (results.before, results.after))
        return Measured(before, after, len(results.truth), _gain(results))
    if labeled := results.metrics.get("labeled"):
        before, after = (
            Estimate(**{end: labeled[side][end] for end in ("value", "low", "high")})
            for side in ("source_only", "adapted")
        )
        gain = int(after.low > before.high) - int(after.high < before.low)
        return Measured(before, after, labeled["labels"], gain, labeled["labels"] == len(results.names))
    return None


def _exactly(share: float) -> Estimate:
    return Estimate(share, share, share)


def _gain(results: RunResults) -> int:
    """1 or -1 where more answers turned right than wrong, or the reverse, than chance would have it (McNemar, 1947)."""
    right = [
        view.target.argmax(-1) == results.predictions.truth
        for view in (results.predictions.before, results.predictions.after)
    ]
    gained, lost = int((right[1] & ~right[0]).sum()), int((right[0] & ~right[1]).sum())
    difference = gained - lost
    clear = abs(difference) > 2 * math.sqrt(gained + lost) and abs(difference) >= 0.005 * len(right[0])
    return clear * (1 if difference > 0 else -1)


def _wrong_where_sure(results: RunResults) -> float:
    """The share of wrong answers among the surest: counted where labels are known, expected otherwise."""
    unsure = 1 - results.probability_right
    loss = unsure if results.truth is None else torch.from_numpy(results.answers != results.truth).double()
    risk = risk_coverage(unsure, loss).risk
    return float(risk[max(round(SURE * len(risk)), 1) - 1])
