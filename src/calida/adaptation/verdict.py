"""The verdict on a run: did adaptation help, can it be used, what worries most, and the one thing to do next.

One function decides, from findings, estimate and labels; the report, the terminal and programs all take its words.
Their readers are people with data, not with a paper at hand: no validator, nat or temperature is named here.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from calida.estimation import Estimate
from calida.run_warnings import RunWarning, Severity, WarningCode, by_severity
from calida.terminal import counted
from calida.validation import VOTERS, Decision, Reason, Returned

_GOOD = 0.9  # right answers that most uses can live with
_GOOD_AT_WORST = 0.8  # at the low end of the interval
_POOR = 0.5  # more wrong than right
_WIDE = 0.25  # an interval that decides nothing
SURE = 0.8  # share of the samples that is answered, where it abstains
BUDGET, _LARGER_BUDGET = 50, 200  # labels
_WORTH = 0.75  # abstaining has to leave no more than this part of the errors


class Level(str, Enum):
    """How good an answer is, and the color that it has."""

    GOOD = "good"
    NEUTRAL = "neutral"
    CARE = "care"
    BAD = "bad"


class Use(str, Enum):
    """The short answer to whether it can be used."""

    YES = "Yes"
    WHERE_SURE = "Where it is sure"
    CHECK = "Not before a check"
    MORE_LABELS = "Not before more labels"
    NOT_AS_IT_IS = "No, not as it is"
    NO = "No"


_LEVELS = {Severity.NOTE: Level.NEUTRAL, Severity.CARE: Level.CARE, Severity.ALARM: Level.BAD}


@dataclass(frozen=True)
class Measured:
    """Accuracy on target by labels, before and after, and how many labels; `gain` is 1, 0 or -1 where it is clear."""

    before: Estimate
    after: Estimate
    labels: int
    gain: int
    all: bool = True  # whether every target sample has a label


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    `sure` is the share of wrong answers among the surest four fifths, expected, or counted where labels are known.
    `install` is the command that installs an encoder. `run` is the folder, for commands.
    """

    decision: Decision
    estimate: Estimate
    findings: Sequence[RunWarning]
    classes: int
    samples: int  # of the target
    measured: Measured | None = None
    sure: float | None = None
    install: str = ""
    run: str = "RUN"


@dataclass(frozen=True)
class Answer:
    """To one of the two questions: a word or two, and the sentence behind it."""

    level: Level
    short: str
    words: str


@dataclass(frozen=True)
class Action:
    """The one thing to do next, with a command; or in a sentence for those who have the classifier in Python."""

    words: str
    command: str
    in_python: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Verdict:
    """Two questions apart, the most important finding, and one action."""

    use: Answer
    helped: Answer
    estimate: str  # in words, with its interval
    action: Action
    findings: tuple[RunWarning, ...] = ()  # what worries most first

    @property
    def finding(self) -> RunWarning | None:
        """The most important one."""
        return self.findings[0] if self.findings else None

    @property
    def level(self) -> Level:
        """The color of the whole."""
        return self.use.level if self.missed is None else _LEVELS[self.missed.severity]

    @property
    def missed(self) -> RunWarning | None:
        """That the estimate missed what labels say, if it did: then nothing is more important."""
        return self.finding if self.finding and self.finding.code in _MISSED else None

    @property
    def headline(self) -> str:
        return f"{self.use.short}. {self.use.words}" if self.missed is None else str(self.missed)

    def to_json(self) -> dict[str, Any]:
        """For programs, and for the terminal."""
        return {
            "level": self.level.value,
            "headline": self.headline,
            "use": vars(self.use),
            "helped": vars(self.helped),
            "estimate": self.estimate,
            "finding": None if self.finding is None else self.finding.to_json(),
            "findings": len(self.findings),
            "action": {"words": self.action.words, "command": self.action.command},
        }


_MISSED = (WarningCode.ESTIMATE_TOO_HIGH, WarningCode.ESTIMATE_TOO_LOW)
# What labels settle: a fall that was expected, by a few of them; what might be wrong with the target, by all.
_SETTLED_BY_SOME = (WarningCode.ACCURACY_FALLS, WarningCode.OVERCONFIDENT)
_SETTLED_BY_ALL = (
    *_SETTLED_BY_SOME,
    WarningCode.OUTSIDE,
    WarningCode.CONTESTED,
    WarningCode.DOMAINS_APART,
    WarningCode.SHARES_MOVED,
    WarningCode.SOURCE_LOSS,
    WarningCode.TOO_CERTAIN,
    WarningCode.WEAK_SOURCE,
    WarningCode.LABEL_SHIFT,
)


def judge(evidence: Evidence) -> Verdict:
    """Weigh it: labels before estimates, alarms before figures."""
    missed = _miss(evidence)
    evidence = replace(evidence, findings=_unsettled(evidence))
    findings = (*([missed] if missed else []), *by_severity(evidence.findings))
    use = _can_be_used(evidence)
    return Verdict(use, _has_helped(evidence), _estimate_words(evidence), _next(evidence, use), findings)


def _unsettled(evidence: Evidence) -> list[RunWarning]:
    """Findings that no label has answered."""
    if evidence.measured is None:
        return list(evidence.findings)
    settled = _SETTLED_BY_ALL if evidence.measured.all else _SETTLED_BY_SOME
    return [one for one in evidence.findings if one.code not in settled]


def in_words(share: float) -> str:
    """A share as people read it: 97.3%."""
    return f"{share:.1%}"


def _wrong(share_right: float) -> str:
    """How many answers in 100 are wrong: a number that a use can be asked about."""
    wrong = 100 * (1 - share_right)
    return f"{wrong:.0f}" if wrong >= 1.5 or wrong == 0 else f"{wrong:.1f}"


def _miss(evidence: Evidence) -> RunWarning | None:
    """Whether labels say otherwise: an interval that does not reach what they allow."""
    measured, estimate = evidence.measured, evidence.estimate
    if measured is None:
        return None
    found = measured.after
    values = {
        "estimate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "measured": found.value,
        "labels": measured.labels,
    }
    if found.high < estimate.low:
        return RunWarning(WarningCode.ESTIMATE_TOO_HIGH, values)
    return RunWarning(WarningCode.ESTIMATE_TOO_LOW, values) if found.low > estimate.high else None


def _estimate_words(evidence: Evidence) -> str:
    estimate = evidence.estimate
    told = f"{in_words(estimate.value)} right on target, {in_words(estimate.low)} to {in_words(estimate.high)}, "
    told += "estimated without labels"
    if evidence.measured is None:
        return f"{told}."
    found, count = evidence.measured.after, evidence.measured.labels
    span = "" if evidence.measured.all else f" ({in_words(found.low)} to {in_words(found.high)})"
    return f"{told}. Measured with {counted(count, 'label')}: {in_words(found.value)}{span}."


def _can_be_used(evidence: Evidence) -> Answer:
    """By labels where there are any; else by alarms, by the estimate and its interval, by what asks for care."""
    # A round that was stopped is not the one that is returned: the guard has seen to it.
    alarmed = any(one.severity == Severity.ALARM and one.round is None for one in evidence.findings)
    careful = any(one.severity != Severity.NOTE for one in evidence.findings)
    known = evidence.estimate if evidence.measured is None else evidence.measured.after
    wrong, at_worst = _wrong(known.value), _wrong(known.low)
    if evidence.measured is not None:
        return _by_labels(known, evidence.measured.all, alarmed)
    if alarmed:
        return Answer(Level.BAD, Use.NOT_AS_IT_IS.value, "Look at the finding below first.")
    if known.value < _POOR:
        return Answer(Level.BAD, Use.NO.value, f"About {wrong} of 100 answers are expected to be wrong.")
    if known.low <= max(1 / evidence.classes, _POOR) or known.high - known.low > _WIDE:
        span = f"between {_wrong(known.high)} and {at_worst}"
        return Answer(Level.CARE, Use.CHECK.value, f"Without labels, {span} of 100 answers may be wrong.")
    if careful:
        words = f"If the finding below is harmless, expect about {wrong} wrong answers in 100."
        return Answer(Level.CARE, Use.CHECK.value, words)
    if known.value >= _GOOD and known.low >= _GOOD_AT_WORST:
        words = f"Expect about {wrong} wrong answers in 100, at worst {at_worst}, as far as can be told without labels."
        return Answer(Level.GOOD, Use.YES.value, words)
    return Answer(Level.CARE, Use.WHERE_SURE.value, f"About {wrong} of 100 answers are expected to be wrong.")


def _by_labels(known: Estimate, every: bool, alarmed: bool) -> Answer:
    wrong = _wrong(known.value)
    told = f"{wrong} of 100 answers are wrong, measured with labels."
    if not every:
        told = f"About {wrong} of 100 answers are wrong; judging by the labels, at most {_wrong(known.low)}."
    if known.value < _POOR:
        return Answer(Level.BAD, Use.NO.value, told)
    if not every and known.high - known.low > _WIDE:
        return Answer(Level.CARE, Use.MORE_LABELS.value, told)
    if known.value < _GOOD:
        return Answer(Level.CARE, Use.WHERE_SURE.value, told)
    return Answer(Level.CARE if alarmed else Level.GOOD, Use.YES.value, told)


def _has_helped(evidence: Evidence) -> Answer:
    if evidence.decision.reason == Reason.SOURCE_RECIPE:
        return Answer(Level.NEUTRAL, "Nothing was adapted", "The recipe trains on source alone.")
    if evidence.measured is not None:
        return _helped_by_labels(evidence.decision, evidence.measured)
    return _helped_by_signs(evidence.decision)


def _helped_by_labels(decision: Decision, measured: Measured) -> Answer:
    before, after = in_words(measured.before.value), in_words(measured.after.value)
    by = "measured with labels" if measured.all else f"by {counted(measured.labels, 'label')}"
    if decision.returned == Returned.SOURCE_ONLY:
        return Answer(Level.NEUTRAL, "Not used", f"You get the classifier as it was before: {after} right, {by}.")
    if measured.gain > 0:
        return Answer(Level.GOOD, "Yes", f"From {before} to {after} right, {by}.")
    if measured.gain < 0:
        return Answer(Level.BAD, "No, it did harm", f"From {before} to {after} right, {by}.")
    return Answer(Level.NEUTRAL, "No clear difference", f"{before} right before and {after} after, {by}.")


def _helped_by_signs(decision: Decision) -> Answer:
    """What can be seen without labels; numbers of checks, not their names."""
    returned, reason = decision.returned, decision.reason
    if returned == Returned.PRIOR_CORRECTED:
        words = "Only the classes' frequencies differ. The classifier was told them, and nothing else was changed."
        return Answer(Level.NEUTRAL, "Little to adapt", words)
    if reason == Reason.NO_SHIFT:
        words = "No shift was found that adapting could mend, so you get the classifier as it was before."
        return Answer(Level.NEUTRAL, "Nothing to adapt", words)
    if returned == Returned.SOURCE_ONLY:
        return Answer(Level.NEUTRAL, "No sign of it", "You get the classifier as it was before.")
    if returned == Returned.AVERAGE:
        words = "The checks disagree on which is better, so you get the average of before and after."
        return Answer(Level.NEUTRAL, "Not clear", words)
    if not decision.guard:
        return Answer(Level.NEUTRAL, "Not checked", "The guard was off.")
    if (pair := _compared(decision)) is not None:
        words = f"Checks by other classifiers say {pair[0]:.0%} right before and {pair[1]:.0%} after."
        return Answer(Level.GOOD, "Probably", words)
    words = f"{len(decision.votes)} of {len(VOTERS)} checks that need no labels prefer the classifier after adaptation."
    return Answer(Level.GOOD, "Probably", words)


def _compared(decision: Decision) -> tuple[float, float] | None:
    """Accuracy by agreement, before and after, where check classifiers were asked."""
    if decision.compared:
        return decision.compared[Returned.SOURCE_ONLY.value], decision.compared[Returned.ROUND.value]
    if decision.family is not None and decision.family in decision.estimates:
        return next(iter(decision.estimates.values())), decision.estimates[decision.family]
    return None


def _next(evidence: Evidence, use: Answer) -> Action:
    """One action, the one that helps most."""
    run, measured = shlex.quote(evidence.run), evidence.measured
    if evidence.install and use.level != Level.GOOD:
        return Action("Install an encoder, then run again.", evidence.install)
    if measured is not None and measured.gain < 0:
        words = "Use the classifier without adaptation."
        again = shlex.quote(f"{evidence.run}-source")
        return Action(words, f"calida adapt --config {run}/config.toml --recipe source --out {again}")
    if use.level == Level.GOOD:
        command = f"calida predict {run} NEW_DATA --out new.csv"
        return Action("Use it on new data.", command, in_python="Use it on new data: predict(new_data).")
    if measured is not None and use.level == Level.BAD:
        again = shlex.quote(f"{evidence.run}-auto")
        return Action("Try other recipes.", f"calida adapt --config {run}/config.toml --recipe auto --out {again}")
    known = (evidence.estimate if measured is None else measured.after).value
    abstains = use.short in (Use.WHERE_SURE.value, Use.YES.value)
    if abstains and evidence.sure is not None and evidence.sure <= _WORTH * (1 - known):
        wrong = _wrong(1 - evidence.sure)
        words = f"Let it answer only the surest {SURE:.0%}: about {wrong} of 100 of those answers will be wrong."
        command = f"calida predict {run} NEW_DATA --coverage {SURE} --out new.csv"
        return Action(words, command, in_python=f"{words} predict(new_data).accepted({SURE}) says which.")
    if measured is not None and not measured.all:
        budget = min(_LARGER_BUDGET, evidence.samples)
        words = f"Label {budget}." if budget < evidence.samples else "Label all of the target."
        place = shlex.quote(f"{evidence.run}/label-{budget}")
        return Action(words, f"calida label {run} --budget {budget} --out {place}")
    if measured is not None:
        return Action("Look at the likely errors in the report.", f"calida report {run}")
    budget = min(BUDGET, evidence.samples)
    some, command = f"Label {counted(budget, 'sample')}", f"calida label {run} --budget {budget}"
    return Action(
        f"{some}: this command picks them.", command, in_python=f"{some}: calida label picks them from a run's folder."
    )
