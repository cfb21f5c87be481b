"""What is recorded of a round: plain figures, none of which needs a target label but those called oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from calida.json_values import from_json, to_json
from calida.model import Prediction
from calida.objective import MultiplierState
from calida.run_warnings import RunWarning
from calida.shift import MeasuredShift, class_shares
from calida.uncertainty import measure_answers
from calida.validation.validators import VALIDATORS


@dataclass(frozen=True)
class PredictionSummary:
    """Means over a domain, and the share of each class among its predictions."""

    entropy: float
    aleatoric: float
    epistemic: float
    confidence: float
    class_shares: tuple[float, ...]


@dataclass(frozen=True)
class LabeledSummary(PredictionSummary):
    """The same, and how predictions fare against labels."""

    accuracy: float
    mean_class_accuracy: float
    nll: float
    brier: float
    ece: float


@dataclass(frozen=True)
class PseudoLabelSummary:
    """How much of the target got a pseudo-label, and how those spread over the classes."""

    share: float
    class_shares: tuple[float, ...]


@dataclass(frozen=True)
class RoundRecord:
    """One round of training. Rounds that looked at the target have `target`; those that were judged, `validators`."""

    phase: str
    round: int  # in its phase, from 0
    rounds: int
    source: LabeledSummary  # on source validation
    terms: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0
    samples: int = 0
    seconds: float = 0.0
    target: PredictionSummary | None = None
    selected: PseudoLabelSummary | None = None
    multipliers: Mapping[str, MultiplierState] = field(default_factory=dict)
    gradient_variance: Mapping[str, float] = field(default_factory=dict)
    shift: MeasuredShift | None = None
    validators: Mapping[str, float] = field(default_factory=dict)
    oracle: LabeledSummary | None = None  # measured with target labels
    kept: bool = True
    stopped: RunWarning | None = None  # why it was the last
    recipe: str | None = None  # where several are tried

    def __post_init__(self) -> None:
        if self.validators and (absent := VALIDATORS.keys() - self.validators.keys()):
            raise ValueError(f"a judged round lacks the validator {min(absent)}")
        if self.validators and self.target is None:
            raise ValueError("a judged round lacks its figures on target")
        if self.target is not None and len(self.target.class_shares) != len(self.source.class_shares):
            raise ValueError("a round has other classes on target than on source")

    @property
    def on_target(self) -> PredictionSummary:
        """`target`, for those who know that the round looked at it."""
        if self.target is None:
            raise ValueError(f"{self.phase} round {self.round + 1} did not look at the target")
        return self.target

    def to_json(self) -> dict[str, Any]:
        """What there is; figures that were not taken have no key."""
        values = {key: value for key, value in to_json(self).items() if value is not None and value != {}}
        return {"kind": "round", **values} | ({} if self.stopped is None else {"stopped": self.stopped.to_json()})

    @staticmethod
    def from_json(values: Any, place: str = "a round's record") -> RoundRecord:
        return from_json(RoundRecord, values, place)


def describe_target(prediction: Prediction) -> PredictionSummary:
    """What can be said of a prediction without labels."""
    return PredictionSummary(
        float(prediction.entropy.mean()),
        float(prediction.aleatoric.mean()),
        float(prediction.epistemic.mean()),
        float(prediction.confidence.mean()),
        tuple(class_shares(prediction.labels, prediction.log_probs.shape[-1]).tolist()),
    )


def describe_labeled(prediction: Prediction, labels: Tensor) -> LabeledSummary:
    """The same, and how it fares against labels: for source validation, or for an oracle's figures on target."""
    measured: Mapping[str, Any] = measure_answers(prediction.log_probs, labels)
    return LabeledSummary(**vars(describe_target(prediction)), **measured)
