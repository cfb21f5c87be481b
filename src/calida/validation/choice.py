"""Which round to keep, decided from records alone: a rule, and what the guard demands before it trusts a round."""

from __future__ import annotations

from collections.abc import Sequence

from calida.errors import InputError, suggest
from calida.shift import is_shifted, prior_offsets
from calida.validation.decision import (
    DEFAULT_RULE,
    LAST,
    TOLERANCE,
    VOTERS,
    Decision,
    Reason,
    Returned,
    deciding_validator,
)
from calida.validation.round_record import RoundRecord
from calida.validation.validators import VALIDATORS


def check_rule(rule: str) -> None:
    """Refuse the name of no rule."""
    known = (DEFAULT_RULE, LAST, *VALIDATORS)
    if rule not in known:
        raise InputError(f"unknown choice {rule!r}{suggest(rule, known)}")


def votes(record: RoundRecord, start: RoundRecord) -> list[str]:
    """The voters that find a round better than the source-only classifier."""
    now, then = record.validators, start.validators
    return [name for name in VOTERS if VALIDATORS[name].key(now[name]) > VALIDATORS[name].key(then[name])]


def is_preferred(record: RoundRecord, start: RoundRecord) -> bool:
    """Whether most voters find a round better than the source-only classifier."""
    return 2 * len(votes(record, start)) > len(VOTERS)


def prefers(rule: str, record: RoundRecord, history: Sequence[RoundRecord], guard: bool, checked: bool = False) -> bool:
    """Whether this round is to be kept instead of the best one before it.

    `history` are the records before it; the first of them that was judged is the source-only classifier. With the
    guard it is a rival like any round before, the target must differ from the source at all, and a round must win most
    votes against it; without, the first round of adaptation is better than none. What will be `checked` by other
    classifiers in the end needs no votes here, and by default its last round is kept.
    """
    judged = [past for past in history if past.validators]
    if checked:
        shifted = not guard or is_shifted(judged[0].shift)
        return shifted and (rule == DEFAULT_RULE or prefers(rule, record, history, False))
    start, rivals = judged[0], _rivals(judged, guard)
    if guard and not (is_shifted(start.shift) and is_preferred(record, start)):
        return False
    if rule == LAST or not rivals:
        return True
    best = max(merit(rule, past) for past in rivals)
    if rule == DEFAULT_RULE:
        return merit(rule, record) >= best - TOLERANCE * abs(best)
    return merit(rule, record) > best


def _rivals(judged: Sequence[RoundRecord], guard: bool) -> list[RoundRecord]:
    """What a round has to beat: those kept before it and, with the guard, the source-only classifier, the first."""
    return [*judged[: 1 if guard else 0], *(past for past in judged[1:] if past.kept)]


def merit(rule: str, record: RoundRecord) -> float:
    """A round's standing by a rule; more is better."""
    name = deciding_validator(rule)
    return VALIDATORS[name].key(record.validators[name])


def returned_record(history: Sequence[RoundRecord]) -> RoundRecord:
    """The record of the round that is returned: the last that was kept."""
    return [record for record in history if record.validators and record.kept][-1]


def decide(history: Sequence[RoundRecord], rule: str, guard: bool, checked: bool = False) -> Decision:
    """Which candidate is returned after the last round, and what says so.

    Where it will be `checked` by other classifiers, votes of validators do not count and the last round stands.
    """
    judged = [record for record in history if record.validators]
    start, kept = judged[0], returned_record(history)
    if len(judged) == 1:
        return Decision(Returned.SOURCE_ONLY, Reason.SOURCE_RECIPE, rule, guard)
    if kept is start and guard and not is_shifted(start.shift):
        returned = Returned.SOURCE_ONLY if prior_offsets(start.shift) is None else Returned.PRIOR_CORRECTED
        return Decision(returned, Reason.NO_SHIFT, rule, guard, shift=start.shift)
    if kept is start:
        stopped = next((record.round for record in judged if record.stopped), None)
        return Decision(Returned.SOURCE_ONLY, Reason.NO_ROUND_HELPED, rule, guard, stopped_round=stopped)
    if checked and rule == DEFAULT_RULE:
        rule = LAST
    reason = Reason.LAST_ROUND if rule == LAST else Reason.BEST
    if rule == DEFAULT_RULE:
        best = max(_rivals(judged, guard), key=lambda past: merit(rule, past))
        if best is start:
            reason = Reason.NEAR_SOURCE_ONLY
        elif merit(rule, kept) < merit(rule, best):
            reason = Reason.NEAR_BEST
    return Decision(Returned.ROUND, reason, rule, guard, kept.round, kept.rounds, tuple(votes(kept, start)))
