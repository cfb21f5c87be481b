"""Which candidate was returned and why: codes and values when it is taken, words where somebody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from calida.json_values import from_json, to_json
from calida.shift import MeasuredShift, explain_no_shift

DEFAULT_RULE, LAST = "default", "last"
SOURCE_ONLY = "source only"  # the candidate that no adaptation has touched
# Measured in reproduction/notes/trust.md: among rounds that most voters prefer to the source-only classifier, the one
# whose predictions tell the classes apart best. Less than half a percent is no difference, from that classifier or
# among rounds: of such rounds the last is kept, since training settles towards its end.
VOTERS = ("im", "corr-c", "snd", "class-ami", "mixval")
DECIDING = "corr-c"
TOLERANCE = 0.005


class Returned(str, Enum):
    """The kinds of candidates."""

    SOURCE_ONLY = SOURCE_ONLY
    PRIOR_CORRECTED = "source only, with the target's class shares"
    ROUND = "round"
    AVERAGE = "average of source only and adapted"


class Reason(str, Enum):
    """Why this candidate."""

    SOURCE_RECIPE = "the recipe trains on source alone"
    NO_SHIFT = "no shift to adapt to"
    NO_ROUND_HELPED = "no sign that a round helped"
    LAST_ROUND = "last round"
    BEST = "best value"
    NEAR_BEST = "last of those about as good as the best"
    NEAR_SOURCE_ONLY = "last of those about as good as source only"
    AGREEMENT = "agreement of check classifiers"


_COMPARED = (Returned.SOURCE_ONLY.value, Returned.ROUND.value, Returned.AVERAGE.value)
_FOR_ROUNDS = (Reason.LAST_ROUND, Reason.BEST, Reason.NEAR_BEST, Reason.NEAR_SOURCE_ONLY)


@dataclass(frozen=True)
class Decision:
    """What is returned, the rule that says so, and what it rests on."""

    returned: Returned
    reason: Reason
    rule: str = DEFAULT_RULE
    guard: bool = True
    round: int | None = None  # of adaptation, from 0
    rounds: int | None = None
    votes: tuple[str, ...] = ()  # for the returned round, against the source-only classifier
    stopped_round: int | None = None
    shift: MeasuredShift | None = None  # where there is nothing to adapt to
    weighs_classes: bool = False  # an adapted classifier that was given the target's class shares
    tried: int = 1  # recipes
    picks: Mapping[str, str] = field(default_factory=dict)  # validator -> the recipe that it would choose
    family: str | None = None  # the model that was chosen, where several were tried
    estimates: Mapping[str, float] = field(default_factory=dict)  # model -> accuracy by agreement
    compared: Mapping[str, float] = field(default_factory=dict)  # kind of candidate -> accuracy by agreement

    def __post_init__(self) -> None:
        for_round = self.returned in (Returned.ROUND, Returned.AVERAGE)
        by_agreement = self.reason == Reason.AGREEMENT
        if by_agreement != (self.compared.keys() == set(_COMPARED)):
            raise ValueError("a decision by agreement has an estimate of each candidate, and no other has")
        if not by_agreement and (self.returned == Returned.AVERAGE or for_round != (self.reason in _FOR_ROUNDS)):
            raise ValueError(f"{self.reason.value!r} is no reason to return {self.candidate}")
        if for_round and self.round is None:
            raise ValueError(f"{self.candidate} is returned, and no round is named")
        if not for_round and not by_agreement and self.round is not None:
            raise ValueError(f"{self.candidate} is returned, and a round is named")
        if (self.reason == Reason.NO_SHIFT) != (self.shift is not None):
            raise ValueError(f"the reason {self.reason.value!r} does not go with what was measured of a shift")
        if self.picks and DECIDING not in self.picks:
            raise ValueError(f"the recipe that {DECIDING} would choose is missing")

    @property
    def candidate(self) -> str:
        """The candidate's name: "source only", or "round 3 of 10"."""
        if self.returned != Returned.ROUND or self.round is None:
            return self.returned.value
        return f"round {self.round + 1} of {self.rounds}"

    def to_json(self) -> dict[str, Any]:
        """What there is."""
        return {key: value for key, value in to_json(self).items() if value is not None}

    @staticmethod
    def from_json(values: Any, place: str = "a decision") -> Decision:
        return from_json(Decision, values, place)


def deciding_validator(rule: str) -> str:
    """The validator that a rule goes by."""
    return DECIDING if rule == DEFAULT_RULE else rule


def explain(decision: Decision) -> str:
    """A decision in words."""
    if decision.family is not None:
        words = _explain_family(decision.family, decision.estimates)
    elif decision.reason == Reason.AGREEMENT:
        words = _explain_agreement(decision)
    elif decision.returned == Returned.ROUND:
        words = _explain_round(decision)
    else:
        words = _explain_source_only(decision)
    if decision.weighs_classes:
        words += " It learned from classes drawn equally often, and weighs them by how frequent they are in the target."
    return f"Of {decision.tried} recipes, {explain_picks(decision.picks)} {words}" if decision.picks else words


def explain_picks(picks: Mapping[str, str]) -> str:
    """Which candidate was chosen, and how many validators agree, in words."""
    own = [validator for validator, pick in picks.items() if pick == picks[DECIDING]]
    return f"{picks[DECIDING]} has the best {DECIDING}; {len(own)} of {len(picks)} validators would choose it."


def _explain_family(chosen: str, estimates: Mapping[str, float]) -> str:
    listed = "; ".join(f"{name} {estimate:.1%}" for name, estimate in estimates.items())
    best = max(estimates, key=lambda name: estimates[name])
    why = "it has the highest" if best == chosen else "no other is clearly better"
    return f"Accuracy on target, by agreement with check classifiers: {listed}. Returned is {chosen}, since {why}."


def _explain_agreement(decision: Decision) -> str:
    before, after = (decision.compared[kind.value] for kind in (Returned.SOURCE_ONLY, Returned.ROUND))
    found = (
        f"Classifiers of other kinds put the source-only classifier at {before:.0%} right on target and the adapted "
        f"one at {after:.0%}"
    )
    if decision.returned == Returned.ROUND:
        return f"{found}: adaptation helps, and the adapted one is returned."
    if decision.returned == Returned.AVERAGE:
        return f"{found}. The checks disagree on which is better, so the average of both is returned."
    if after > before:
        return f"{found}. Some checks find it worse, so the source-only classifier is returned."
    return f"{found}: adaptation does not help, and the source-only classifier is returned."


def _explain_source_only(decision: Decision) -> str:
    rule, name = decision.rule, deciding_validator(decision.rule)
    if decision.reason == Reason.SOURCE_RECIPE:
        return "The recipe trains on source alone."
    if decision.shift is not None:
        return explain_no_shift(decision.shift)
    value = f"as good a value of {name} as" if rule == DEFAULT_RULE else f"a better value of {name} than"
    also = "" if rule == LAST else f" and had {value} the source-only classifier"
    stopped = decision.stopped_round
    end = "" if stopped is None else f"; round {stopped + 1} was stopped and does not count"
    return (
        "Nothing that can be seen without target labels says that adaptation helped: no round won "
        f"{len(VOTERS) // 2 + 1} of {len(VOTERS)} votes ({', '.join(VOTERS)}){also}{end}."
    )


def _explain_round(decision: Decision) -> str:
    name = deciding_validator(decision.rule)
    by = {
        Reason.LAST_ROUND: "it was the last",
        Reason.BEST: f"it has the best {name}",
        Reason.NEAR_BEST: f"it is the last whose {name} is the best or less than {TOLERANCE:.1%} from it",
        Reason.NEAR_SOURCE_ONLY: f"it is the last whose {name} is less than {TOLERANCE:.1%} under that classifier's",
    }[decision.reason]
    if not decision.guard:
        return f"Of all rounds, {by}; the guard was off."
    return (
        f"Of the rounds that most validators prefer to the source-only classifier, {by}; "
        f"{len(decision.votes)} of {len(VOTERS)} prefer it ({', '.join(decision.votes)})."
    )
