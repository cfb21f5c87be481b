"""Signs, in the records of a run, that it goes wrong: warnings, none of which needs a target label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calida.run_warnings import RunWarning, WarningCode, shown_name
from calida.validation.choice import is_preferred
from calida.validation.round_record import RoundRecord

WEAK_SOURCE = 0.7  # accuracy on source below which there is little to build on
DRIVEN = 1.5  # times a class's share before adaptation, from which it is adaptation's doing
_FORGOTTEN = 0.9  # share of what the source-only classifier was better than chance by
_FALSELY_SURE = 0.02  # of the entropy on source


def dominant_class(shares: Sequence[float], expected: Sequence[float]) -> int | None:
    """The class that takes far more of the target than it had of the source, if there is one."""
    largest = max(range(len(shares)), key=lambda index: shares[index])
    usual = expected[largest]
    too_much = min(max(3 * usual, 3 / len(shares)), usual + (1 - usual) / 2)
    return largest if shares[largest] > too_much else None


def collapse(
    record: RoundRecord, history: Sequence[RoundRecord], names: Sequence[str] | None = None
) -> RunWarning | None:
    """A warning if training should stop here: one class taking over, false certainty, or the source forgotten.

    The latter two are also signs of an easy target, or of BatchNorm that now has the target's statistics: they count
    only where most validators do not find the round better than the source-only classifier.
    """
    start = next((past for past in history if past.validators), None)
    if start is None:
        return None
    shares = record.on_target.class_shares
    # Shares of source as they were before: a network that collapses gives the source to the same class.
    taken = dominant_class(shares, start.source.class_shares)
    # The source-only classifier may lean on a class too; what counts is that adaptation drives it further.
    if taken is not None and shares[taken] > DRIVEN * start.on_target.class_shares[taken]:
        return RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": _name(taken, names), "share": shares[taken]})
    if is_preferred(record, start):
        return None
    target, source = record.on_target.entropy, record.source.entropy
    if target < _FALSELY_SURE * source:
        return RunWarning(WarningCode.FALSE_CERTAINTY, {"target": target, "source": source})
    chance = 1 / len(shares)
    before, now = start.source.accuracy, record.source.accuracy
    if before > chance and before - now > _FORGOTTEN * (before - chance):
        return RunWarning(WarningCode.SOURCE_FORGOTTEN, {"before": before, "now": now})
    return None


def warnings_of(history: Sequence[RoundRecord], names: Sequence[str] | None = None) -> list[RunWarning]:
    """What the guard saw before adaptation and during it."""
    start = next(record for record in history if record.validators)
    found = [
        _weakness_warning(start),
        _balance_warning(start, names),
        *(record.stopped and replace(record.stopped, round=record.round) for record in history),
    ]
    return [warning for warning in found if warning is not None]


def _weakness_warning(start: RoundRecord) -> RunWarning | None:
    """A source-only classifier that has learned little, which leaves little to build on."""
    accuracy = start.source.accuracy
    return RunWarning(WarningCode.WEAK_SOURCE, {"accuracy": accuracy}) if accuracy < WEAK_SOURCE else None


def _balance_warning(start: RoundRecord, names: Sequence[str] | None) -> RunWarning | None:
    """Classes that the source-only classifier already finds far more or far less often on target than on source."""
    shares, expected = start.on_target.class_shares, start.source.class_shares
    taken = dominant_class(shares, expected)
    if taken is None:
        return None
    values = {"name": _name(taken, names), "share": shares[taken], "expected": expected[taken]}
    return RunWarning(WarningCode.DOMINANT_BEFORE, values)


def _name(label: int, names: Sequence[str] | None) -> str:
    return str(label) if names is None else shown_name(names[label])
