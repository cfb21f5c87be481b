"""The validators by name: what each makes of predictions, and which end of its scale is the better one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.model import Prediction
from calida.seeds import Seeds
from calida.uncertainty import accuracy, nll
from calida.validation.importance import importance_weights, weighted_risk
from calida.validation.mixing import mixed_accuracy
from calida.validation.neighbors import cluster_information, neighborhood_density
from calida.validation.prediction_scores import class_correlation, information, mean_entropy, nuclear_norm
from calida.validation.predictor import DomainPredictions

# Enough for three digits of those validators whose cost grows faster than the number of samples.
_ENOUGH = 5000
# Of a log-probability on source: a label that was ruled out makes the risk large, not infinite.
_LEAST = math.log(torch.finfo(torch.float64).tiny)


@dataclass(frozen=True)
class ValidatorInputs:
    """Predictions, and what several validators need of it."""

    predictions: DomainPredictions
    rows: Tensor  # of the target, no more than enough
    weights: Tensor  # [V] importance of source validation
    seeds: Seeds

    @staticmethod
    def of(predictions: DomainPredictions, seeds: Seeds) -> ValidatorInputs:
        target = predictions.target
        rows = torch.randperm(len(target), generator=seeds.generator("validators"))[:_ENOUGH].sort().values
        weights = importance_weights(predictions.validation.features, target.features[rows])
        return ValidatorInputs(predictions, rows, weights, seeds)

    @property
    def target(self) -> Prediction:
        return self.predictions.target

    def risk(self) -> float:
        losses = nll(self.predictions.validation.log_probs.double().clamp(min=_LEAST), self.predictions.labels)
        return weighted_risk(losses, self.weights)


@dataclass(frozen=True)
class Validator:
    """A judge of classifiers without target labels."""

    summary: str
    score: Callable[[ValidatorInputs], float]
    higher_is_better: bool = True

    def key(self, value: float) -> float:
        """The value turned so that more is better."""
        return value if self.higher_is_better else -value


VALIDATORS: dict[str, Validator] = {
    "source": Validator(
        "accuracy on source validation",
        lambda inputs: accuracy(inputs.predictions.validation.log_probs, inputs.predictions.labels),
    ),
    "entropy": Validator(
        "mean entropy on target", lambda inputs: mean_entropy(inputs.target.log_probs), higher_is_better=False
    ),
    "im": Validator(
        "information maximisation: certain, and all classes in use", lambda inputs: information(inputs.target.log_probs)
    ),
    "bnm": Validator(
        "nuclear norm of the target's probabilities", lambda inputs: nuclear_norm(inputs.target.log_probs)
    ),
    "corr-c": Validator("class correlation", lambda inputs: class_correlation(inputs.target.log_probs)),
    "snd": Validator(
        "density of soft neighborhoods among the target's predictions",
        lambda inputs: neighborhood_density(inputs.target.log_probs[inputs.rows].exp()),
    ),
    "dev": Validator(
        "source risk, weighted to look like the target", lambda inputs: inputs.risk(), higher_is_better=False
    ),
    "class-ami": Validator(
        "agreement of predicted labels with clusters of features",
        lambda inputs: cluster_information(
            inputs.target.features[inputs.rows],
            inputs.target.labels[inputs.rows],
            inputs.target.log_probs.shape[-1],
            inputs.seeds,
        ),
    ),
    "mixval": Validator(
        "accuracy on mixed pairs of target samples", lambda inputs: mixed_accuracy(inputs.predictions.mixed)
    ),
}


def validate(predictions: DomainPredictions, seeds: Seeds) -> dict[str, float]:
    """Every validator's value; nothing here knows a target label."""
    inputs = ValidatorInputs.of(predictions, seeds)
    return {name: validator.score(inputs) for name, validator in VALIDATORS.items()}
