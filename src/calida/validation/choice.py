"""Which round to keep, decided from records alone: a rule, and what the guard demands before it trusts a round."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from calida.errors import InputError
from calida.shift.diagnosis import explain_no_shift, is_shifted, prior_offsets
from calida.validation.validators import VALIDATORS

Record = Mapping[str, Any]

DEFAULT_RULE, LAST = "default", "last"
SOURCE_ONLY = "source only"  # the candidate that no adaptation has touched
PRIOR_CORRECTED = "source only, with the target's class shares"
# Measured in docs/trust.md: among rounds that most voters prefer to the source-only classifier, the one whose
# predictions tell the classes apart best. Less than half a percent is no difference, from that classifier or among
# rounds: of such rounds the last is kept, since training settles towards its end.
VOTERS = ("im", "corr-c", "snd", "class-ami", "mixval")
DECIDING = "corr-c"
TOLERANCE = 0.005


def check_rule(rule: str) -> None:
    """Refuse the name of no rule."""
    known = (DEFAULT_RULE, LAST, *VALIDATORS)
    if rule not in known:
        near = difflib.get_close_matches(str(rule), known, n=3) or known
        raise InputError(f"unknown choice {rule!r}; did you mean {', '.join(near)}")


def votes(record: Record, start: Record) -> list[str]:
    """The voters that find a round better than the source-only classifier."""
    now, then = record["validators"], start["validators"]
    return [name for name in VOTERS if VALIDATORS[name].key(now[name]) > VALIDATORS[name].key(then[name])]


def is_preferred(record: Record, start: Record) -> bool:
    """Whether most voters find a round better than the source-only classifier."""
    return 2 * len(votes(record, start)) > len(VOTERS)


def prefers(rule: str, record: Record, history: Sequence[Record], guard: bool) -> bool:
    """Whether this round is to be kept instead of the best one before it.

    `history` are the records before it; the first of them that was judged is the source-only classifier. With the
    guard it is a rival like any round before, the target must differ from the source at all, and a round must win most
    votes against it; without, the first round of adaptation is better than none.
    """
    judged = [past for past in history if "validators" in past]
    start, rivals = judged[0], _rivals(judged, guard)
    if guard and not (is_shifted(start) and is_preferred(record, start)):
        return False
    if rule == LAST or not rivals:
        return True
    best = max(merit(rule, past) for past in rivals)
    if rule == DEFAULT_RULE:
        return merit(rule, record) >= best - TOLERANCE * abs(best)
    return merit(rule, record) > best


def _rivals(judged: Sequence[Record], guard: bool) -> list[Record]:
    """What a round has to beat: those kept before it and, with the guard, the source-only classifier, the first."""
    return [*judged[: 1 if guard else 0], *(past for past in judged[1:] if past["kept"])]


def merit(rule: str, record: Record) -> float:
    """A round's standing by a rule; more is better."""
    name = DECIDING if rule == DEFAULT_RULE else rule
    return VALIDATORS[name].key(record["validators"][name])


def returned_record(history: Sequence[Record]) -> Record:
    """The record of the round that is returned: the last that was kept."""
    return [record for record in history if "validators" in record and record["kept"]][-1]


def explain_choice(history: Sequence[Record], rule: str, guard: bool) -> tuple[str, str]:
    """Which candidate was kept, and why, in a sentence."""
    judged = [record for record in history if "validators" in record]
    start, kept = judged[0], returned_record(history)
    if len(judged) == 1:
        return SOURCE_ONLY, "The recipe trains on source alone."
    name = DECIDING if rule == DEFAULT_RULE else rule
    if kept is start and guard and not is_shifted(start):
        return (SOURCE_ONLY if prior_offsets(start) is None else PRIOR_CORRECTED), explain_no_shift(start)
    if kept is start:
        stops = [record for record in judged if "stopped" in record]
        value = f"as good a value of {name} as" if rule == DEFAULT_RULE else f"a better value of {name} than"
        also = "" if rule == LAST else f" and had {value} the source-only classifier"
        end = f"; round {stops[0]['round'] + 1} was stopped and does not count" if stops else ""
        return SOURCE_ONLY, (
            "Nothing that can be seen without target labels says that adaptation helped: no round won "
            f"{len(VOTERS) // 2 + 1} of {len(VOTERS)} votes ({', '.join(VOTERS)}){also}{end}."
        )
    place = f"round {kept['round'] + 1} of {kept['rounds']}"
    by = "it was the last" if rule == LAST else f"it has the best {name}"
    if rule == DEFAULT_RULE:
        best = max(_rivals(judged, guard), key=lambda past: merit(rule, past))
        if best is start:
            by = f"it is the last whose {name} is less than {TOLERANCE:.1%} under that classifier's"
        elif merit(rule, kept) < merit(rule, best):
            by = f"it is the last whose {name} is the best or less than {TOLERANCE:.1%} from it"
    if not guard:
        return place, f"Of all rounds, {by}; the guard was off."
    found = votes(kept, start)
    return place, (
        f"Of the rounds that most validators prefer to the source-only classifier, {by}; "
        f"{len(found)} of {len(VOTERS)} prefer it ({', '.join(found)})."
    )
