"""What the answers of the returned classifier give reason to worry about."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from calida.panel import share_equal
from calida.run_warnings import RunWarning, WarningCode, shown_name
from calida.validation import DRIVEN, WEAK_SOURCE, DomainPredictions, RoundRecord, dominant_class

_EXPECTED = 10  # target samples that a class has to be expected to have before it is missed
_MISSED = 0.1  # of the samples that are expected of a class
_SURER = 0.1  # than right on source
_LOSS = 0.05  # of source accuracy that is told of


def look_at_answers(
    start: RoundRecord,
    predictions: DomainPredictions,
    temperature: float,
    adapted: bool,
    known: Collection[WarningCode] = (),
    names: Sequence[str] | None = None,
) -> list[RunWarning]:
    """Class shares and certainty on target, beside those on source; `start` is the source-only classifier's record.

    `adapted` says whether the classifier is another than that one. What is `known` is not told twice.
    """
    found = _classes(start, predictions, names) + _moves(start, predictions)
    if adapted:
        found += _certainty(start, predictions)
    return found + [one for one in _weakness(start, predictions, temperature) if one.code not in known]


def _classes(start: RoundRecord, predictions: DomainPredictions, names: Sequence[str] | None) -> list[RunWarning]:
    """One class that adaptation let take over, or a class of the source that the target never gets.

    What the source-only classifier leaned to by itself is told as that: no class has collapsed.
    """
    classes = predictions.target.log_probs.shape[-1]
    expected, shares = (_shares(labels, classes) for labels in (predictions.labels, predictions.target.labels))
    called = [shown_name(name) for name in names or map(str, range(classes))]
    found = []
    taken = dominant_class(shares, expected)
    if taken is not None and shares[taken] > DRIVEN * start.on_target.class_shares[taken]:
        values = {"name": called[taken], "share": shares[taken], "expected": expected[taken]}
        found.append(RunWarning(WarningCode.CLASS_COLLAPSED, values))
    count = len(predictions.target)
    lost = [
        name
        for name, share, usual in zip(called, shares, expected, strict=True)
        if share < _MISSED * usual and usual * count >= _EXPECTED
    ]
    if lost:
        told = ", ".join(lost[:5]) + ", ..." * (len(lost) > 5)
        found.append(RunWarning(WarningCode.CLASS_LOST, {"names": told}))
    return found


def _moves(start: RoundRecord, predictions: DomainPredictions) -> list[RunWarning]:
    """Class shares that moved further than errors explain, and a source that is known less well than before.

    Two classifiers that err on e are at most 2 e apart. That is no reason to stop a run: a source-only classifier that
    is falsely sure of everything looks the same, and gains most.
    """
    found = []
    then, now = start.on_target.class_shares, _shares(predictions.target.labels, len(start.on_target.class_shares))
    moved, doubt = (
        sum(abs(one - other) for one, other in zip(then, now, strict=True)) / 2,
        1 - start.on_target.confidence,
    )
    if moved > 2 * doubt:
        found.append(RunWarning(WarningCode.SHARES_MOVED, {"moved": moved, "doubt": doubt}))
    before, known = start.source.accuracy, share_equal(predictions.validation.labels, predictions.labels)
    if len(predictions.labels) and before - known >= _LOSS:
        found.append(RunWarning(WarningCode.SOURCE_LOSS, {"before": before, "now": known}))
    return found


def _certainty(start: RoundRecord, predictions: DomainPredictions) -> list[RunWarning]:
    """Entropy far under the source's, both before calibration, is certainty that the source never earned."""
    source, target = start.source.entropy, float(predictions.target.entropy.mean())
    if target >= 0.5 * source or source < 0.02 * math.log(predictions.target.log_probs.shape[-1]):
        return []
    return [RunWarning(WarningCode.TOO_CERTAIN, {"target": target, "source": source})]


def _weakness(start: RoundRecord, predictions: DomainPredictions, temperature: float) -> list[RunWarning]:
    """A classifier that has not learned the source, or is surer of the target than it is right on source."""
    accuracy = start.source.accuracy
    confidence = float(predictions.target.tempered(temperature).confidence.mean())
    found = []
    if accuracy < WEAK_SOURCE:
        found.append(RunWarning(WarningCode.WEAK_SOURCE, {"accuracy": accuracy}))
    if confidence > accuracy + _SURER:
        found.append(RunWarning(WarningCode.OVERCONFIDENT, {"confidence": confidence, "accuracy": accuracy}))
    return found


def _shares(labels: Tensor, classes: int) -> list[float]:
    counts = torch.bincount(labels, minlength=classes).double()
    shares: list[float] = (counts / counts.sum().clamp(min=1)).tolist()
    return shares
