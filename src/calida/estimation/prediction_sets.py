"""Prediction sets: for each sample the classes that hold the right one as often as the user asks.

Two thresholds on the probability of a class are found without target labels, and the lower of them counts.

- Weighted split conformal (Tibshirani et al., 2019; for label shift, Podkopaev and Ramdas, 2021). Scores are one less
  the true class's probability, of held-out source samples. Each is weighted by how much more frequent its class is in
  the target, and a candidate class y stands at infinity with its own weight: the quantile is that of
  sum_i w(y_i) delta(s_i) + w(y) delta(inf). This holds as far as class frequencies alone differ.
- Real targets are harder than that. So probabilities are taken at the temperature where mean confidence on target is
  its estimated accuracy. If they are right, classes above a threshold hold as many right answers as their probabilities
  sum to: the threshold is where this sum, a sample, is the level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from calida.errors import InputError
from calida.estimation.temperature import match_confidence
from calida.shift import class_shares
from calida.uncertainty import temper
from calida.validation import DomainPredictions

_ROUNDING = 1e-6
_STEPS = 1000  # levels that a threshold is kept for, each in place of those just below it


def weighted_quantile(scores: Tensor, weights: Tensor, extra: Tensor, level: float) -> Tensor:
    """The level's quantile of scores with weights [V] and a point at infinity with the weight `extra`, any shape.

    The smallest score up to which scores weigh `level` of all, or infinity where all of them weigh less.
    """
    order = scores.argsort()  # a weight stays with its score
    reached = weights[order].double().cumsum(0)
    # Rounding must not turn a sum that is just enough into one that is not.
    needed = level * (weights.double().sum() + extra.double()) * (1 - 1e-12)
    place = torch.searchsorted(reached, needed)
    ends = torch.cat([scores[order].double(), torch.tensor([torch.inf], dtype=torch.float64)])
    return ends[place]


def effective_size(weights: Tensor) -> float:
    """How many equally weighted samples vary as little as these do (Kish, 1965): (sum w)^2 / sum w^2."""
    weights = weights.double()
    return float(weights.sum() ** 2 / weights.square().sum()) if len(weights) else 0.0


def mass_thresholds(probabilities: Tensor, steps: int = _STEPS) -> Tensor:
    """For each level 1/steps, 2/steps, ..., 1 the probability down to which classes sum to it: [N, K] -> [steps]."""
    falling = probabilities.double().flatten().sort(descending=True).values
    mass = falling.cumsum(0) / len(probabilities)
    levels = torch.arange(1, steps + 1, dtype=torch.float64) / steps
    return falling[torch.searchsorted(mass, levels * (1 - 1e-12)).clamp(max=len(falling) - 1)]


@dataclass(frozen=True)
class SetCalibration:
    """All that prediction sets of a classifier need, at any level: fixed when its training ends."""

    temperature: float  # at which mean confidence on target is its estimated accuracy
    scores: Tensor  # [V] 1 - P(true class) of source validation
    labels: Tensor  # [V]
    ratios: Tensor  # [K] how much more frequent each class is in the target
    thresholds: Tensor  # [steps] of `mass_thresholds` on target

    @staticmethod
    def of(predictions: DomainPredictions, accuracy: float) -> SetCalibration:
        """From predictions at temperature 1 and the estimated accuracy on target."""
        temperature = match_confidence(predictions.target.log_probs, accuracy)
        validation, target = (
            temper(part.log_probs.double(), temperature).exp() for part in (predictions.validation, predictions.target)
        )
        labels, count = predictions.labels, len(predictions.labels)
        known = class_shares(labels, target.shape[-1]).clamp(min=0.5 / max(count, 1))
        ratios = target.mean(0).clamp(min=0.5 / len(target)) / known
        scores = 1 - validation.gather(-1, labels[:, None]).squeeze(-1)
        return SetCalibration(temperature, scores, labels, ratios, mass_thresholds(target))

    def class_thresholds(self, level: float) -> Tensor:
        """The probability from which on a class is in the set: [K]. Refused where too few samples would decide it."""
        check_level(level)
        weights = self.ratios[self.labels]
        there, needed = effective_size(weights), level / (1 - level)
        if there < needed * (1 - 1e-9):
            most = math.floor(100 * there / (there + 1)) / 100
            lower = f"ask for {most:g} or less, or " if there else ""
            raise InputError(
                f"prediction sets at {level:g} need {needed:.0f} held-out source samples or more, and there are "
                f"{len(self.labels):,}, which count as {there:.1f} for the target's class frequencies: "
                f"{lower}train with more source samples"
            )
        conformal = 1 - weighted_quantile(self.scores, weights, self.ratios, level)
        place = math.ceil(level * len(self.thresholds) - 1e-9) - 1
        return torch.minimum(conformal, self.thresholds[place])

    def sets(self, log_probs: Tensor, level: float) -> Tensor:
        """Which classes are in each sample's set, from log-probabilities at temperature 1: [N, K] -> [N, K] booleans.

        The most probable class always is.
        """
        probabilities = temper(log_probs.double(), self.temperature).exp()
        # Compared as scores were made, so that a sample of the calibration is not lost to rounding.
        inside = 1 - probabilities <= 1 - self.class_thresholds(level)
        return inside.scatter(-1, probabilities.argmax(-1, keepdim=True), True)

    def to_tensors(self) -> dict[str, Tensor]:
        return {one.name: torch.as_tensor(getattr(self, one.name)) for one in fields(self)} | {
            "temperature": torch.tensor(self.temperature, dtype=torch.float64)
        }

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor], num_classes: int) -> SetCalibration:
        """What `to_tensors` gave; ValueError for tensors that are none of it."""
        values = {one.name: tensors[one.name] for one in fields(SetCalibration)}
        scores, labels, ratios, thresholds = (values[name] for name in ("scores", "labels", "ratios", "thresholds"))
        fitting = (
            values["temperature"].numel() == 1
            and 0 < float(values["temperature"]) < math.inf
            and scores.ndim == thresholds.ndim == 1
            and scores.shape == labels.shape
            and ratios.shape == (num_classes,)
            and len(thresholds) > 0
            and labels.dtype == torch.long
            and bool(((labels >= 0) & (labels < num_classes)).all())
            and all(bool((part.isfinite() & (part >= -_ROUNDING)).all()) for part in (scores, ratios, thresholds))
        )
        if not fitting:
            raise ValueError("what prediction sets need does not belong together")
        return SetCalibration(**{**values, "temperature": float(values["temperature"])})  # type: ignore[arg-type]


def check_level(level: Any) -> None:
    """Refuse what is no share that sets could reach."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(f"the level of prediction sets is a share between 0 and 1, such as 0.9, not {level!r}")
