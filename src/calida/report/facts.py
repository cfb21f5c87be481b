"""What stands behind the verdict, in sentences and figures before and after: for those who unfold the details."""

from __future__ import annotations

from typing import Any

from calida.estimation import CALIBRATIONS
from calida.report.run_predictions import ClassifierPredictions
from calida.report.run_results import RunResults
from calida.terminal import counted
from calida.uncertainty import renyi_entropy

_TILES = (
    ("target accuracy", "oracle", "accuracy", True),
    ("target ECE", "oracle", "ece", True),
    ("target confidence", "target", "confidence", True),
    ("target entropy", "target", "entropy", False),
    ("source accuracy", "source", "accuracy", True),
)


def sentences(results: RunResults) -> list[str]:
    """Why this classifier was returned, how it is calibrated, how sure it is."""
    trust, tried = results.trust, len(results.trust.candidates)
    recipe = f"recipe {results.metrics['recipe']}" + (f", the best ranked of {tried}" if tried else "")
    method = CALIBRATIONS.get(trust.calibration)
    how = f"{trust.calibration} ({method.summary})" if method else trust.calibration
    told = [
        f"Returned: {trust.returned} ({recipe}). {trust.reason}",
        f"Calibration: {how}, temperature {trust.temperature:.2f}.",
        *_calibration(results),
        _entropy(results),
        _classes(results),
    ]
    if labeled := results.metrics.get("labeled"):
        found, count = labeled["adapted"], labeled["labels"]
        span = f"{found['low']:.1%} to {found['high']:.1%} at {labeled['level']:.0%}"
        told.append(f"By {counted(count, 'label')}, {found['value']:.1%} are right ({span}).")
        told.append(labeled["verdict"])
    return told


def tiles(results: RunResults) -> list[dict[str, Any]]:
    """Figures with a name, before, after, and whether labels were needed for them."""
    found = []
    for name, part, key, share in _TILES:
        if part in results.after:
            before, after = (
                f"{side[part][key]:.1%}" if share else f"{side[part][key]:.3f}"
                for side in (results.before, results.after)
            )
            found.append({"name": name, "before": before, "after": after, "oracle": part == "oracle"})
    return found


def _calibration(results: RunResults) -> list[str]:
    if "oracle" not in results.after:
        return []
    before, after, sure = results.before["oracle"], results.after["oracle"], results.after["target"]["confidence"]
    compared = f" (the source-only classifier's {before['ece']:.1%})" if results.changed else ""
    return [
        f"Its calibration error (ECE) on target is {after['ece']:.1%}{compared}, measured with labels that training "
        f"never saw: mean confidence {sure:.1%} for {after['accuracy']:.1%} right answers. "
        f"Without calibration it would be {results.after['oracle_uncalibrated']['ece']:.1%}."
    ]


def raw_entropy(view: ClassifierPredictions) -> float:
    """Mean predictive entropy on target, before calibration."""
    return float(renyi_entropy(view.uncalibrated).mean())


def _entropy(results: RunResults) -> str:
    before, after = (raw_entropy(view) for view in (results.predictions.before, results.predictions.after))
    moved = f"went from {before:.3f} to {after:.3f} nats" if results.changed else f"is {after:.3f} nats"
    target, source = results.after["target"]["entropy"], results.after["source"]["entropy"]
    return (
        f"Mean predictive entropy on target {moved} before calibration; calibrated, it is {target:.3f}, and "
        f"{source:.3f} on source validation."
    )


def _classes(results: RunResults) -> str:
    shares = results.after["target"]["class_shares"]
    used = sum(share > 0 for share in shares)
    return f"The target is given {used:,} of {len(shares):,} classes, the largest to {max(shares):.1%} of it."
