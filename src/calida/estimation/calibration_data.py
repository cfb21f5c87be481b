"""Temperatures fitted without target labels: on source validation, as it is or weighted, and on mixed target pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from calida.estimation.temperature import finite, fit_temperature, lowest_temperature, match_confidence, minimize
from calida.shift import resample
from calida.uncertainty import accuracy, nll, temper, wilson
from calida.validation import DomainPredictions, Mixed, importance_weights, weighted_risk

_ENOUGH = 5000  # target samples for a density ratio


@dataclass(frozen=True)
class CalibrationData:
    """What a temperature can be found from: what a classifier says of both domains and of mixed target pairs.

    `prior_offsets` are the logarithms of how much more frequent each class became, [K], where only that differs.
    """

    predictions: DomainPredictions
    mixed: Mixed
    prior_offsets: Tensor | None = None
    accuracy: float | None = None  # on target, as estimated

    @cached_property
    def rows(self) -> Tensor:
        """Rows of source validation, each as often as its class became more frequent: [V]."""
        labels = self.predictions.labels
        ratios = torch.ones(len(labels)) if self.prior_offsets is None else self.prior_offsets.exp()[labels]
        return resample(ratios, torch.Generator().manual_seed(0))

    @property
    def validation(self) -> Tensor:
        return self.predictions.validation.log_probs.double()[self.rows]

    @property
    def labels(self) -> Tensor:
        return self.predictions.labels[self.rows]

    @property
    def target(self) -> Tensor:
        return self.predictions.target.log_probs.double()

    @cached_property
    def weights(self) -> Tensor:
        """That make these rows look like the target, with a mean of 1: [V]."""
        if self.prior_offsets is not None:
            return torch.ones(len(self.rows), dtype=torch.float64)
        features = self.predictions.target.features
        step = max(len(features) // _ENOUGH, 1)
        return importance_weights(self.predictions.validation.features, features[::step])


def source_temperature(data: CalibrationData) -> float:
    """Fitted on source validation (Guo et al., 2017): right for the source, a hope for the target."""
    return fit_temperature(data.validation, data.labels)


def transcal_temperature(data: CalibrationData) -> float:
    """Fitted on source validation weighted to look like the target (TransCal, after Wang et al., 2020).

    The loss is the log-likelihood, as the paper's binned error is flat almost everywhere in the temperature. Weights
    have a mean of 1, which lowers the variance as the paper's control variate does, and keeps losses positive.
    """
    exact, labels = finite(data.validation), data.labels
    effective = float(data.weights.sum() ** 2 / (data.weights**2).sum())  # samples that the weights leave (Kish, 1965)
    return minimize(
        lambda temperature: weighted_risk(nll(temper(exact, temperature), labels), data.weights, True),
        lowest_temperature(effective),
    )


def pseudocal_temperature(data: CalibrationData) -> float:
    """Fitted on mixed target pairs with the predicted label of the part that prevails (Hu et al., 2024).

    A classifier errs on such pairs about as often as on the target itself, and here the right answer is known.
    """
    return _no_surer_than_known(fit_temperature(data.mixed.log_probs, data.mixed.first), data)


def _no_surer_than_known(temperature: float, data: CalibrationData) -> float:
    """No sharper than what was seen of the classifier allows; where it sharpens nothing, as it is.

    Pseudo-labels can contradict what is known: a classifier that is right on a quarter of its source was given a
    temperature of 0.14. It may be as often right on target as on source, with what chance leaves open, or as often as
    check classifiers agree with it. Mean confidence may be sharpened up to that, and no further.
    """
    if temperature >= 1:
        return temperature
    right = accuracy(data.validation, data.labels)
    ceiling = max(wilson(right, max(len(data.labels), 1))[1], data.accuracy or 0.0)
    return max(temperature, min(match_confidence(data.target, ceiling), 1.0))
