"""Who trains in a round: what rounds ask of a network's trainer and of any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from calida.model import AnyClassifier
from calida.objective import MultiplierState
from calida.seeds import Seeds
from calida.training.checkpoint import Checkpoint, Progress
from calida.training.phase import Phase, PseudoLabels
from calida.validation import DomainPredictions, RoundRecord

if TYPE_CHECKING:
    from calida.training.rounds import Run


@dataclass(frozen=True)
class RoundStart:
    """What a round begins with."""

    number: int  # in its phase
    seeds: Seeds
    pseudo_labels: PseudoLabels
    before: DomainPredictions | None  # made before the round; None where the target plays no part
    history: Sequence[RoundRecord]


@dataclass(frozen=True)
class RoundWork:
    """What was done in a round: the mean of every term, steps taken, samples run through the classifier."""

    terms: Mapping[str, float]
    steps: int
    samples: int


@dataclass(frozen=True)
class RoundDiagnosis:
    """What a trainer measures once the round's predictions are made."""

    multipliers: Mapping[str, MultiplierState] = field(default_factory=dict)
    gradient_variance: Mapping[str, float] = field(default_factory=dict)


class Trainer(Protocol):
    """Trains one classifier through the rounds of one phase."""

    shown: AnyClassifier  # who predicts, and is kept

    def begin(self, progress: Progress, checkpoint: Checkpoint | None) -> None:
        """Get ready for the first round, or for the one after a checkpoint."""

    def train(self, start: RoundStart) -> RoundWork:
        """Train one round."""

    def diagnose(self) -> RoundDiagnosis:
        """More of the round's record, once its predictions are made."""

    def state(self) -> dict[str, Tensor]:
        """What the next round depends on beside the model's own tensors."""

    def finish(self) -> None:
        """Leave the phase's result in the model."""


MakeTrainer = Callable[["Run", Phase, AnyClassifier], Trainer]
