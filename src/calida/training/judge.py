"""Who says which round is kept and whether training goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from calida.validation import DomainPredictions

Record = dict[str, Any]


class Judgement(NamedTuple):
    """Whether a round is the one to keep so far, and a sentence if it should be the last."""

    keep: bool = True
    stop: str | None = None


class Judge(Protocol):
    """Who measures a round from what it predicts, and says whether to keep it and whether to go on."""

    def measure(self, predictions: DomainPredictions) -> Mapping[str, Any]:
        """More columns of a round's record."""

    def judge(self, record: Record, history: Sequence[Record]) -> Judgement:
        """Whether to keep this round, by its record and those before it."""


class KeepLast:
    """A judge who measures nothing and keeps what comes last."""

    def measure(self, predictions: DomainPredictions) -> Mapping[str, Any]:
        return {}

    def judge(self, record: Record, history: Sequence[Record]) -> Judgement:
        return Judgement()
