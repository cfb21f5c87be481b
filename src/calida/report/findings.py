"""What a run's figures give reason to worry about, beside what was found while it ran."""

from __future__ import annotations

import math

from calida.report.run_predictions import ClassifierPredictions
from calida.report.run_results import RunResults
from calida.run_warnings import RunWarning, WarningCode
from calida.uncertainty import renyi_entropy
from calida.validation import WEAK_SOURCE, dominant_class

_EXPECTED = 10  # target samples that a class has to be expected to have before it is missed


def find(results: RunResults) -> list[RunWarning]:
    """All findings: of the checks, of the data, and of the figures."""
    found = [*results.trust.warnings, *results.data_findings]
    if not results.prior_corrected:  # its class shares, and so its certainty, are meant to differ from the source's
        found += [*_classes(results), *_certainty(results)]
    if "oracle" not in results.after:  # labels say it better
        found += _weakness(results, {one.code for one in found})
    return found


def raw_entropy(view: ClassifierPredictions) -> float:
    """Mean predictive entropy on target, before calibration."""
    return float(renyi_entropy(view.uncalibrated).mean())


def _classes(results: RunResults) -> list[RunWarning]:
    """One class taking over, or a class of the source that the target never gets."""
    shares, expected = results.after["target"]["class_shares"], results.source_shares()
    found = []
    taken = dominant_class(shares, expected.tolist())
    if taken is not None:
        values = {"name": results.classes[taken], "share": shares[taken], "expected": float(expected[taken])}
        found.append(RunWarning(WarningCode.CLASS_COLLAPSED, values))
    count = len(results.predictions.after.target)
    lost = [k for k, share in enumerate(shares) if share < 0.1 * expected[k] and expected[k] * count >= _EXPECTED]
    if lost:
        names = ", ".join(results.classes[index] for index in lost[:5]) + ", ..." * (len(lost) > 5)
        found.append(RunWarning(WarningCode.CLASS_LOST, {"names": names}))
    return found


def _weakness(results: RunResults, known: set[WarningCode]) -> list[RunWarning]:
    """A classifier that has not learnt the source, or is surer of the target than it is right on source."""
    accuracy, confidence = results.before["source"]["accuracy"], results.after["target"]["confidence"]
    found = []
    if accuracy < WEAK_SOURCE and WarningCode.WEAK_SOURCE not in known:
        found.append(RunWarning(WarningCode.WEAK_SOURCE, {"accuracy": accuracy}))
    if confidence > accuracy + 0.1 and not results.prior_corrected:
        found.append(RunWarning(WarningCode.OVERCONFIDENT, {"confidence": confidence, "accuracy": accuracy}))
    return found


def _certainty(results: RunResults) -> list[RunWarning]:
    """Entropy far under the source's, both before calibration, is certainty that the source never earned."""
    source, target = results.before["source"]["entropy"], raw_entropy(results.predictions.after)
    checked = results.after.get("oracle")
    if checked and checked["ece"] < 0.03:
        return []
    if not results.changed or target >= 0.5 * source or source < 0.02 * math.log(len(results.classes)):
        return []
    return [RunWarning(WarningCode.TOO_CERTAIN, {"target": target, "source": source})]
