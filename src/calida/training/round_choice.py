"""Who says which round is kept and whether training goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from calida.run_warnings import RunWarning
from calida.validation import DomainPredictions, LabeledSummary, RoundRecord


class RoundChoice(NamedTuple):
    """Whether a round is the one to keep so far, and a warning if it should be the last."""

    keep: bool = True
    stop: RunWarning | None = None


@dataclass(frozen=True)
class RoundMeasures:
    """What a chooser adds to a round's record."""

    validators: Mapping[str, float] = field(default_factory=dict)
    oracle: LabeledSummary | None = None


class RoundChooser(Protocol):
    """Who measures a round from what it predicts, and says whether to keep it and whether to go on."""

    def measure(self, predictions: DomainPredictions) -> RoundMeasures:
        """More figures for a round's record."""

    def choose(self, record: RoundRecord, history: Sequence[RoundRecord]) -> RoundChoice:
        """Whether to keep this round, by its record and those before it."""


class KeepLast:
    """Measures nothing and keeps what comes last."""

    def measure(self, predictions: DomainPredictions) -> RoundMeasures:
        return RoundMeasures()

    def choose(self, record: RoundRecord, history: Sequence[RoundRecord]) -> RoundChoice:
        return RoundChoice()
