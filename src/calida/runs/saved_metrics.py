"""What metrics.json must hold before a command believes it; what else it holds is checked where it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from calida.adaptation import Trust
from calida.run_warnings import RunWarning
from calida.validation import VALIDATORS


@dataclass(frozen=True)
class SavedDomain:
    """Where a domain's samples came from, and what was done to them."""

    origin: str
    notes: list[str]
    total: int | None = None


@dataclass(frozen=True)
class SavedData:
    """Both domains."""

    source: SavedDomain
    target: SavedDomain
    findings: tuple[RunWarning, ...] = ()


@dataclass(frozen=True)
class SavedTargetFigures:
    """What one classifier says of the target."""

    entropy: float
    aleatoric: float
    epistemic: float
    confidence: float
    class_shares: list[float]


@dataclass(frozen=True)
class SavedSide:
    """The figures of one classifier, before or after adaptation."""

    source: dict[str, float]
    target: SavedTargetFigures
    oracle: dict[str, float | dict[str, float]] | None = None
    oracle_uncalibrated: dict[str, float] | None = None


@dataclass(frozen=True)
class SavedMetrics:
    """The figures of a finished run."""

    format: int
    classes: list[str]
    data: SavedData
    recipe: str
    settings: dict[str, Any]
    seed: int
    trust: Trust
    validators: dict[str, float]
    names: str  # a digest of those of the target's samples
    rounds: int
    training_seconds: float
    source_only: SavedSide
    adapted: SavedSide
    place: str = "RUN"
    models: dict[str, str] = field(default_factory=dict)  # digests of both classifiers, by the name of their files

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise ValueError("the names of its classes are not all different")
        if absent := VALIDATORS.keys() - self.validators.keys():
            raise ValueError(f"it lacks the validator {min(absent)}")
        for side in (self.source_only, self.adapted):
            if len(side.target.class_shares) != len(self.classes):
                raise ValueError("it has shares of other classes")
