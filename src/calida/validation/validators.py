"""The validators by name: what each makes of an outlook, and which end of its scale is the better one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.model import Prediction
from calida.seeds import Seeds
from calida.uncertainty import nll
from calida.validation.importance import importance_weights, weighted_risk
from calida.validation.mixing import mixed_accuracy
from calida.validation.neighbours import cluster_information, neighbourhood_density
from calida.validation.outlook import Outlook
from calida.validation.predictions import accuracy, class_correlation, information, mean_entropy, nuclear_norm

# Enough for three digits of those validators whose cost grows faster than the number of samples.
_ENOUGH = 5000
# Of a log-probability on source: a label that was ruled out makes the risk large, not infinite.
_LEAST = math.log(torch.finfo(torch.float64).tiny)


@dataclass(frozen=True)
class Sight:
    """An outlook, and what several validators need of it."""

    outlook: Outlook
    rows: Tensor  # of the target, no more than enough
    weights: Tensor  # [V] importance of source validation
    seeds: Seeds

    @staticmethod
    def of(outlook: Outlook, seeds: Seeds) -> Sight:
        target = outlook.target
        rows = torch.randperm(len(target), generator=seeds.generator("validators"))[:_ENOUGH].sort().values
        weights = importance_weights(outlook.validation.features, target.features[rows])
        return Sight(outlook, rows, weights, seeds)

    @property
    def target(self) -> Prediction:
        return self.outlook.target

    def risk(self) -> float:
        losses = nll(self.outlook.validation.log_probs.double().clamp(min=_LEAST), self.outlook.labels)
        return weighted_risk(losses, self.weights)


@dataclass(frozen=True)
class Validator:
    """A judge of classifiers without target labels."""

    summary: str
    score: Callable[[Sight], float]
    higher_is_better: bool = True

    def key(self, value: float) -> float:
        """The value turned so that more is better."""
        return value if self.higher_is_better else -value


VALIDATORS: dict[str, Validator] = {
    "source": Validator(
        "accuracy on source validation",
        lambda sight: accuracy(sight.outlook.validation.log_probs, sight.outlook.labels),
    ),
    "entropy": Validator(
        "mean entropy on target", lambda sight: mean_entropy(sight.target.log_probs), higher_is_better=False
    ),
    "im": Validator(
        "information maximisation: certain, and all classes in use", lambda sight: information(sight.target.log_probs)
    ),
    "bnm": Validator("nuclear norm of the target's probabilities", lambda sight: nuclear_norm(sight.target.log_probs)),
    "corr-c": Validator("class correlation", lambda sight: class_correlation(sight.target.log_probs)),
    "snd": Validator(
        "density of soft neighbourhoods among the target's predictions",
        lambda sight: neighbourhood_density(sight.target.log_probs[sight.rows].exp()),
    ),
    "dev": Validator(
        "source risk, weighted to look like the target", lambda sight: sight.risk(), higher_is_better=False
    ),
    "class-ami": Validator(
        "agreement of predicted labels with clusters of features",
        lambda sight: cluster_information(
            sight.target.features[sight.rows],
            sight.target.labels[sight.rows],
            sight.target.log_probs.shape[-1],
            sight.seeds,
        ),
    ),
    "mixval": Validator("accuracy on mixed pairs of target samples", lambda sight: mixed_accuracy(sight.outlook.mixed)),
}


def validate(outlook: Outlook, seeds: Seeds) -> dict[str, float]:
    """Every validator's value; nothing here knows a target label."""
    sight = Sight.of(outlook, seeds)
    return {name: validator.score(sight) for name, validator in VALIDATORS.items()}
