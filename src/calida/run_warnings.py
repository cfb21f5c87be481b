"""What a user should be warned of: a code for programs, the values behind it, and one sentence a code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from calida.json_values import from_json, to_json


class WarningCode(str, Enum):
    """What is wrong; the words are in the table below."""

    PIXEL_SPREAD = "pixel spread"
    BACKGROUND = "background"
    FRAMING = "framing"
    FEATURE_SCALE = "feature scale"
    RARE_CLASS = "rare class"
    DOMINANT_BEFORE = "dominant class before adaptation"
    CLASS_TAKES_OVER = "class takes over"
    FALSE_CERTAINTY = "false certainty"
    SOURCE_FORGOTTEN = "source forgotten"
    SHARES_MOVED = "class shares moved"
    SOURCE_LOSS = "source accuracy lost"
    BUDGET_UNMET = "entropy budget unmet"
    DOMAINS_APART = "domains apart"
    CONTESTED = "contested groups"
    OUTSIDE = "outside the source"
    WEAK_SOURCE = "weak source"
    FEW_SAMPLES = "few samples"
    FINETUNING_UNDONE = "fine-tuning undone"
    ACCURACY_FALLS = "accuracy falls"
    LABEL_SHIFT = "label shift"
    NO_ENCODER = "no encoder"
    CLASS_COLLAPSED = "class collapsed"
    CLASS_LOST = "class lost"
    TOO_CERTAIN = "too certain"
    OVERCONFIDENT = "overconfident"
    ESTIMATE_TOO_HIGH = "estimate too high"
    ESTIMATE_TOO_LOW = "estimate too low"


WORDS = {
    WarningCode.PIXEL_SPREAD: (
        "Pixel values spread by {source:.3g} on source and by {target:.3g} on target: one scale?"
    ),
    WarningCode.BACKGROUND: "The background is {source:.0%} bright on source and {target:.0%} on target: inverted?",
    WarningCode.FRAMING: (
        "Content fills {source:.0%} of the frame on source and {target:.0%} on target: framed alike?"
    ),
    WarningCode.FEATURE_SCALE: (
        "Feature {feature} is {source_mean:.3g} +- {source_std:.3g} on source and {target_mean:.3g} +- "
        "{target_std:.3g} on target ({count} such): one scale?"
    ),
    WarningCode.RARE_CLASS: "Class {name} has {share:.2%} of the source ({count} of {classes} are that rare).",
    WarningCode.DOMINANT_BEFORE: (
        "Before adaptation, class {name} already got {share:.0%} of the target and {expected:.0%} of source "
        "validation: classes may be out of balance, or the inputs not comparable."
    ),
    WarningCode.CLASS_TAKES_OVER: "stopped: class {name} is taking over, {share:.1%} of the target",
    WarningCode.FALSE_CERTAINTY: "stopped: it doubts its answers on target {times} less than those on source",
    WarningCode.SOURCE_FORGOTTEN: "stopped: accuracy on source validation fell from {before:.0%} to {now:.0%}",
    WarningCode.SHARES_MOVED: (
        "Adaptation moved class shares by {moved:.1%} of the target; the source-only classifier doubted {doubt:.1%}. "
        "If its doubts are about right, classes differ in frequency, and adaptation took that for a shift: compare "
        "both on a few labeled samples."
    ),
    WarningCode.SOURCE_LOSS: (
        "Source validation accuracy fell from {before:.1%} to {now:.1%}: adaptation forgot some of the source."
    ),
    WarningCode.BUDGET_UNMET: (
        "The budget of {budget:.3g} for doubt about the target was not reached: it ended at {reached:.3g}, with the "
        "multiplier at its maximum of {maximum:g}."
    ),
    WarningCode.DOMAINS_APART: (
        "Source and target look different to a classifier: it tells them apart in {auc:.0%} of pairs. They hardly "
        "overlap, so the estimate relies on agreement between different classifiers."
    ),
    WarningCode.CONTESTED: (
        "Classifiers of other kinds disagree about {share:.0%} of the target: it may have classes that the source does "
        "not have, or the shift is too large to bridge. Look at these samples first."
    ),
    WarningCode.OUTSIDE: (
        "{share:.0%} of the target lies farther from the source than nearly all held-out source samples: new classes, "
        "other units or columns, or noise."
    ),
    WarningCode.WEAK_SOURCE: (
        "The source-only classifier is right on only {accuracy:.0%} of held-out source: little to build on."
    ),
    WarningCode.FINETUNING_UNDONE: (
        "Fine-tuning is undone: classifiers of other kinds put the fine-tuned network at {after:.0%} right on target, "
        "and the one before it at {before:.0%}."
    ),
    WarningCode.ACCURACY_FALLS: (
        "Accuracy is expected to fall from {source:.0%} on held-out source to about {target:.0%} on target: the shift "
        "is too large to bridge, or the target has classes that the source lacks. Label a few samples before you rely "
        "on it."
    ),
    WarningCode.LABEL_SHIFT: (
        "Classes seem to differ in frequency: {name} has {source:.0%} of the source and about {target:.0%} of the "
        "target ({low:.0%} to {high:.0%}), if its samples look alike in both."
    ),
    WarningCode.FEW_SAMPLES: ("{domain} has {count} samples: estimates are rough."),
    WarningCode.NO_ENCODER: (
        "No pre-trained encoder is installed, which on photographs gives far better features than training from "
        "nothing: {command}"
    ),
    WarningCode.CLASS_COLLAPSED: (
        "The class {name} takes {share:.1%} of the target and had {expected:.1%} of the source: the classes may have "
        "collapsed."
    ),
    WarningCode.CLASS_LOST: "Hardly any target sample is given the class {names}; on source it is not rare.",
    WarningCode.TOO_CERTAIN: (
        "Before calibration it doubts its answers on target {times} less than the source-only classifier doubted its "
        "own on source: its probabilities are only as good as their calibration."
    ),
    WarningCode.OVERCONFIDENT: (
        "Its mean confidence on target is {confidence:.1%}, but even on source it is right only {accuracy:.1%} of the "
        "time: take its probabilities as too high."
    ),
    WarningCode.ESTIMATE_TOO_HIGH: (
        "The estimate missed: it said {estimate:.1%} right ({low:.1%} to {high:.1%}), and by {labels:,} labels it is "
        "{measured:.1%}."
    ),
    WarningCode.ESTIMATE_TOO_LOW: (
        "The estimate missed: it said {estimate:.1%} right ({low:.1%} to {high:.1%}), and by {labels:,} labels it is "
        "even {measured:.1%}."
    ),
}


_MANY_TIMES = 1000
_LONGEST = 60  # letters of a name; longer ones lose their middle


def shown_name(name: str, number: int | None = None) -> str:
    """A name as people are shown it: whole, or its ends, with a number that tells it from others cut alike."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:36]}…{name[-16:]}" + ("" if number is None else f" (class {number})")


class Severity(str, Enum):
    """How much a finding should worry."""

    NOTE = "note"  # good to know
    CARE = "care"  # look before use
    ALARM = "alarm"  # do not use as it is

    @property
    def rank(self) -> int:
        """0 for what worries least."""
        return list(Severity).index(self)


_SEVERITY = {
    WarningCode.RARE_CLASS: Severity.NOTE,
    WarningCode.DOMAINS_APART: Severity.NOTE,
    WarningCode.FEW_SAMPLES: Severity.NOTE,
    WarningCode.LABEL_SHIFT: Severity.NOTE,
    WarningCode.BUDGET_UNMET: Severity.NOTE,
    WarningCode.FINETUNING_UNDONE: Severity.NOTE,
    WarningCode.OUTSIDE: Severity.ALARM,
    WarningCode.ACCURACY_FALLS: Severity.ALARM,
    WarningCode.CLASS_TAKES_OVER: Severity.ALARM,
    WarningCode.CLASS_COLLAPSED: Severity.ALARM,
    WarningCode.ESTIMATE_TOO_HIGH: Severity.ALARM,
}


def severity_of(code: WarningCode) -> Severity:
    """How much a finding with this code worries; most ask for care."""
    return _SEVERITY.get(code, Severity.CARE)


@dataclass(frozen=True)
class RunWarning:
    """A code and its values; as a string, a sentence. One that ended a round also has the round's number, from 0."""

    code: WarningCode
    values: Mapping[str, Any] = field(default_factory=dict)
    round: int | None = None

    def __post_init__(self) -> None:
        try:
            str(self)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the warning {self.code.value!r} lacks or garbles {error}") from None

    def __str__(self) -> str:
        words = WORDS[self.code].format(**self.values, **_in_words(self.values))
        return words if self.round is None else f"Round {self.round + 1} was {words}."

    @property
    def severity(self) -> Severity:
        return severity_of(self.code)

    def to_json(self) -> dict[str, Any]:
        """With severity and sentence, for those who read the file."""
        return {**to_json(self), "severity": self.severity.value, "text": str(self)}

    @staticmethod
    def from_json(values: Any, place: str = "a warning") -> RunWarning:
        return from_json(RunWarning, values, place)


def _in_words(values: Mapping[str, Any]) -> dict[str, str]:
    """How many times as much of something source has as target: entropies say nothing to people."""
    source, target = values.get("source"), values.get("target")
    if not isinstance(source, float | int) or not isinstance(target, float | int):
        return {}
    times = source / target if target > 0 else math.inf
    return {"times": f"{times:.0f} times" if times < _MANY_TIMES else f"over {_MANY_TIMES:,} times"}


def by_severity(warnings: Iterable[RunWarning]) -> tuple[RunWarning, ...]:
    """What worries most first, each sentence once; among equals, in the order given.

    What ended a round comes last: that round is not the one that is returned.
    """
    once = {str(one): one for one in warnings}.values()
    return tuple(sorted(once, key=lambda one: (one.round is not None, -one.severity.rank)))
