"""The verdict at the top of a report: words, and the figures that they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from calida.report.run_predictions import ClassifierPredictions
from calida.report.run_results import RunResults
from calida.uncertainty import renyi_entropy
from calida.validation import dominant_class

Level = Literal["good", "care", "bad"]
_POOR_ECE = 0.1
_WEAK = 0.7  # accuracy on source below which adaptation has little to build on


@dataclass(frozen=True)
class Verdict:
    """A level, a headline, sentences of which each carries its figures, and what to be warned of."""

    level: Level
    headline: str
    sentences: list[str]
    checked: bool  # whether target labels were there to check it
    warnings: list[str]  # of the guard, and of the figures

    @property
    def badge(self) -> str:
        if self.level == "good":
            return "✓ good" if self.checked else "no warning sign"
        return {"care": "! take care", "bad": "✕ warning"}[self.level]


def judge(results: RunResults) -> Verdict:
    """Judge a run by what is known of it; only an oracle's labels allow a word on target accuracy."""
    worries = [str(warning) for warning in results.trust.warnings]
    if not results.prior_corrected:  # its class shares, and so its certainty, are meant to differ from the source's
        worries += [*_collapse(results), *_certainty(results)]
    if "oracle" in results.after:
        return _with_oracle(results, worries)
    worries += _weakness(results)  # what an oracle's figures would say better
    facts = [
        _estimate_sentence(results),
        results.trust.reason,
        _entropy_sentence(results),
        _classes_sentence(results),
    ]
    if not results.adapted:
        return Verdict("care", "Trained on source only: nothing was adapted to the target", facts, False, worries)
    if results.fell_back:
        headline = "The source-only classifier was returned: there is no sign that adaptation helped"
        return Verdict("care", headline, facts, False, worries)
    if results.prior_corrected:
        headline = "Classes differ in frequency: the source-only classifier was told, nothing else was adapted"
        return Verdict("care", headline, facts, False, worries)
    if worries:
        level: Level = "bad" if _collapse(results) else "care"
        return Verdict(level, "Look twice before you use this classifier", facts, False, worries)
    return Verdict("good", "No sign of trouble, as far as can be told without target labels", facts, False, [])


def _with_oracle(results: RunResults, worries: list[str]) -> Verdict:
    before, after = results.before["oracle"], results.after["oracle"]
    gain = 100 * (after["accuracy"] - before["accuracy"])
    share = f"from {before['accuracy']:.1%} to {after['accuracy']:.1%}"
    compared = f" (the source-only classifier's {before['ece']:.1%})" if results.changed else ""
    calibration = (
        f"Its calibration error (ECE) on target is {after['ece']:.1%}{compared}: mean confidence "
        f"{results.after['target']['confidence']:.1%} for {after['accuracy']:.1%} right answers. "
        f"Without calibration it would be {results.after['oracle_uncalibrated']['ece']:.1%}."
    )
    sentences = [
        "Oracle figures: measured with the target labels that were given, which training never saw.",
        calibration,
        _estimate_sentence(results),
        results.trust.reason,
        _entropy_sentence(results),
    ]
    if not results.adapted:
        return Verdict(
            "care", f"Source only: {after['accuracy']:.1%} right on target (oracle)", sentences, True, worries
        )
    if results.fell_back:
        headline = f"The guard returned the source-only classifier: {after['accuracy']:.1%} right on target (oracle)"
        return Verdict("care", headline, sentences, True, worries)
    clear = _is_clear(results)
    if clear and gain >= 0.5:
        level: Level = "care" if worries or after["ece"] > _POOR_ECE else "good"
        doing = "Knowing how frequent classes are" if results.prior_corrected else "Adaptation"
        return Verdict(level, f"{doing} raised target accuracy {share} (oracle)", sentences, True, worries)
    if not clear or gain > -0.5:
        return Verdict(
            "care", f"Adaptation left target accuracy where it was, {share} (oracle)", sentences, True, worries
        )
    return Verdict("bad", f"Adaptation lowered target accuracy {share} (oracle)", sentences, True, worries)


def _is_clear(results: RunResults) -> bool:
    """Whether more answers turned right than wrong, or the reverse, than chance would have it (McNemar, 1947)."""
    right = [
        view.target.argmax(-1) == results.predictions.truth
        for view in (results.predictions.before, results.predictions.after)
    ]
    gained, lost = int((right[1] & ~right[0]).sum()), int((right[0] & ~right[1]).sum())
    return abs(gained - lost) > 2 * math.sqrt(gained + lost)


def _estimate_sentence(results: RunResults) -> str:
    estimate = results.trust.accuracy
    told = f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"
    if "oracle" not in results.after:
        return f"No target label was given: its accuracy on target, {told}, is estimated and not measured."
    measured = results.after["oracle"]["accuracy"]
    held = "holds" if estimate.low <= measured <= estimate.high else "misses"
    return f"The estimate of target accuracy that needs no labels, {told}, {held} the measured {measured:.1%}."


def _entropy_sentence(results: RunResults) -> str:
    before, after = (_raw_entropy(view) for view in (results.predictions.before, results.predictions.after))
    moved = f"went from {before:.3f} to {after:.3f} nats" if results.changed else f"is {after:.3f} nats"
    target, source = results.after["target"]["entropy"], results.after["source"]["entropy"]
    return (
        f"Mean predictive entropy on target {moved} before calibration; calibrated, it is {target:.3f}, and "
        f"{source:.3f} on source validation."
    )


def _raw_entropy(view: ClassifierPredictions) -> float:
    return float(renyi_entropy(view.uncalibrated).mean())


def _classes_sentence(results: RunResults) -> str:
    shares = results.after["target"]["class_shares"]
    used = sum(share > 0 for share in shares)
    return f"The target is given {used} of {len(shares)} classes, the largest to {max(shares):.1%} of it."


def _collapse(results: RunResults) -> list[str]:
    """One class taking over, or a class of the source that the target never gets."""
    shares, expected = results.after["target"]["class_shares"], results.source_shares()
    found = []
    taken = dominant_class(shares, expected.tolist())
    if taken is not None:
        found.append(
            f"The class {results.classes[taken]} takes {shares[taken]:.1%} of the target and had "
            f"{expected[taken]:.1%} of the source: the classes may have collapsed."
        )
    lost = [index for index, share in enumerate(shares) if share < 0.1 * expected[index]]
    if lost:
        names = ", ".join(results.classes[index] for index in lost[:5])
        found.append(f"Hardly any target sample is given the class {names}; on source it is not rare.")
    return found


def _weakness(results: RunResults) -> list[str]:
    """A classifier that has not learnt the source, or is surer of the target than it is right on source."""
    accuracy, confidence = results.before["source"]["accuracy"], results.after["target"]["confidence"]
    found = []
    if accuracy < _WEAK:
        found.append(f"It is right on only {accuracy:.1%} of held-out source: train longer, or with a larger network.")
    if confidence > accuracy + 0.1 and not results.prior_corrected:
        found.append(
            f"Its mean confidence on target is {confidence:.1%}, but even on source it is right only {accuracy:.1%} of "
            "the time: take its probabilities as too high."
        )
    return found


def _certainty(results: RunResults) -> list[str]:
    """Entropy far under the source's, both before calibration, is certainty that the source never earned."""
    source, target = results.before["source"]["entropy"], _raw_entropy(results.predictions.after)
    checked = results.after.get("oracle")
    if checked and checked["ece"] < 0.03:
        return []
    if not results.changed or target >= 0.5 * source or source < 0.02 * math.log(len(results.classes)):
        return []
    return [
        f"Before calibration it is far more certain on target (entropy {target:.3f}) than the source-only classifier "
        f"was on source ({source:.3f}): its probabilities are only as good as their calibration."
    ]
