"""Signs, in the records of a run, that it goes wrong: sentences for the user, none of which needs a target label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calida.validation.choice import is_preferred, returned_record

Record = Mapping[str, Any]

_FORGOTTEN = 0.9  # share of what the source-only classifier was better than chance by
_LOSS = 0.05  # of source accuracy that is told of
_FALSELY_SURE = 0.02  # of the entropy on source


def dominant_class(shares: Sequence[float], expected: Sequence[float]) -> int | None:
    """The class that takes far more of the target than it had of the source, if there is one."""
    largest = max(range(len(shares)), key=lambda index: shares[index])
    usual = expected[largest]
    too_much = min(max(3 * usual, 3 / len(shares)), usual + (1 - usual) / 2)
    return largest if shares[largest] > too_much else None


def collapse(record: Record, history: Sequence[Record], names: Sequence[str] | None = None) -> str | None:
    """A sentence if training should stop here: one class taking over, false certainty, or the source forgotten.

    The latter two are also signs of an easy target, or of BatchNorm that now has the target's statistics: they count
    only where most validators do not find the round better than the source-only classifier.
    """
    start = next((past for past in history if "validators" in past), None)
    if start is None:
        return None
    shares = record["target"]["class_shares"]
    # Shares of source as they were before: a network that collapses gives the source to the same class.
    taken = dominant_class(shares, start["source"]["class_shares"])
    # The source-only classifier may lean on a class too; what counts is that adaptation drives it further.
    if taken is not None and shares[taken] > 1.5 * start["target"]["class_shares"][taken]:
        return f"stopped: class {_name(taken, names)} is taking over, {shares[taken]:.0%} of the target"
    if is_preferred(record, start):
        return None
    if record["target"]["entropy"] < _FALSELY_SURE * record["source"]["entropy"]:
        return (
            f"stopped: entropy on target fell to {record['target']['entropy']:.2g} nats, far under the "
            f"{record['source']['entropy']:.2g} on source"
        )
    chance = 1 / len(shares)
    before, now = start["source"]["accuracy"], record["source"]["accuracy"]
    if before > chance and before - now > _FORGOTTEN * (before - chance):
        return f"stopped: accuracy on source validation fell from {before:.0%} to {now:.0%}"
    return None


def warnings_of(history: Sequence[Record], names: Sequence[str] | None = None) -> list[str]:
    """What the guard saw before adaptation, during it, and in what is returned."""
    judged = [record for record in history if "validators" in record]
    stops = [record for record in history if "stopped" in record]
    return [
        *_balance_warnings(judged[0], names),
        *(f"Round {stop['round'] + 1} was {stop['stopped']}." for stop in stops),
        *_moved_warnings(judged[0], returned_record(history)),
        *_source_warnings(judged[0], returned_record(history)),
    ]


def _balance_warnings(start: Record, names: Sequence[str] | None) -> list[str]:
    """Classes that the source-only classifier already finds far more or far less often on target than on source."""
    shares, expected = start["target"]["class_shares"], start["source"]["class_shares"]
    taken = dominant_class(shares, expected)
    if taken is None:
        return []
    return [
        f"Before adaptation, class {_name(taken, names)} already got {shares[taken]:.0%} of the target and "
        f"{expected[taken]:.0%} of source validation: classes may be out of balance, or the inputs not comparable."
    ]


def _moved_warnings(start: Record, returned: Record) -> list[str]:
    """Class shares that moved further than errors explain: two classifiers that err on e are at most 2 e apart.

    No reason to stop: a source-only classifier that is falsely sure of everything looks the same, and gains most.
    """
    shares = zip(start["target"]["class_shares"], returned["target"]["class_shares"], strict=True)
    moved, doubt = sum(abs(now - then) for then, now in shares) / 2, 1 - start["target"]["confidence"]
    if moved <= 2 * doubt:
        return []
    return [
        f"Adaptation moved class shares by {moved:.1%} of the target; the source-only classifier doubted {doubt:.1%}. "
        "If its doubts are about right, classes differ in frequency, and adaptation took that for a shift: compare "
        "both on a few labelled samples."
    ]


def _source_warnings(start: Record, returned: Record) -> list[str]:
    before, after = start["source"]["accuracy"], returned["source"]["accuracy"]
    if before - after < _LOSS:
        return []
    return [f"Source validation accuracy fell from {before:.1%} to {after:.1%}: adaptation forgot some of the source."]


def _name(label: int, names: Sequence[str] | None) -> str:
    return str(label) if names is None else names[label]
