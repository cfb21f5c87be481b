"""What an observer hears of a run: that it starts, now and then a step, and every round's record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calida.validation import RoundRecord


@dataclass(frozen=True)
class PhasePlan:
    """A phase that is ahead: its rounds, and about how many samples they run through the network."""

    phase: str
    rounds: int
    samples: int


@dataclass(frozen=True)
class RunStarted:
    """All is checked and training begins; `history` are the rounds that a resumed run has behind it.

    `memory` is about what a step takes, in bytes, where a large network is trained.
    """

    phases: tuple[PhasePlan, ...]
    history: tuple[RoundRecord, ...] = ()
    recipe: str | None = None  # where several are tried
    memory: int | None = None


@dataclass(frozen=True)
class StepTaken:
    """How far a round is."""

    phase: str
    round: int
    rounds: int
    step: int
    steps: int
    samples: int
    terms: Mapping[str, float]
    recipe: str | None = None


RunEvent = RunStarted | StepTaken | RoundRecord
Observe = Callable[[RunEvent], None]
