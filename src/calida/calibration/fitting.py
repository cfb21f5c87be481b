"""Temperatures fitted without target labels: on source validation, as it is or weighted, and on mixed target pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from calida.calibration.temperature import finite, fit_temperature, lowest_temperature, minimise, temper
from calida.selection import resample
from calida.uncertainty import nll
from calida.validation import Mixed, Outlook, importance_weights, weighted_risk

_ENOUGH = 5000  # target samples for a density ratio


@dataclass(frozen=True)
class Grounds:
    """What a temperature can be found from: an outlook, and target pairs in which one part clearly prevails.

    `share_offsets` are the logarithms of how much more frequent each class became, [K], where only that differs.
    """

    outlook: Outlook
    mixed: Mixed
    share_offsets: Tensor | None = None

    @cached_property
    def rows(self) -> Tensor:
        """Rows of source validation, each as often as its class became more frequent: [V]."""
        labels = self.outlook.labels
        ratios = torch.ones(len(labels)) if self.share_offsets is None else self.share_offsets.exp()[labels]
        return resample(ratios, torch.Generator().manual_seed(0))

    @property
    def validation(self) -> Tensor:
        return self.outlook.validation.log_probs.double()[self.rows]

    @property
    def labels(self) -> Tensor:
        return self.outlook.labels[self.rows]

    @property
    def target(self) -> Tensor:
        return self.outlook.target.log_probs.double()

    @cached_property
    def weights(self) -> Tensor:
        """That make these rows look like the target, with a mean of 1: [V]."""
        if self.share_offsets is not None:
            return torch.ones(len(self.rows), dtype=torch.float64)
        features = self.outlook.target.features
        step = max(len(features) // _ENOUGH, 1)
        return importance_weights(self.outlook.validation.features, features[::step])


def source_temperature(grounds: Grounds) -> float:
    """Fitted on source validation (Guo et al., 2017): right for the source, a hope for the target."""
    return fit_temperature(grounds.validation, grounds.labels)


def transcal_temperature(grounds: Grounds) -> float:
    """Fitted on source validation weighted to look like the target (TransCal, after Wang et al., 2020).

    The loss is the log-likelihood, as the paper's binned error is flat almost everywhere in the temperature. Weights
    have a mean of 1, which lowers the variance as the paper's control variate does, and keeps losses positive.
    """
    exact, labels = finite(grounds.validation), grounds.labels
    return minimise(
        lambda temperature: weighted_risk(nll(temper(exact, temperature), labels), grounds.weights, True),
        lowest_temperature(len(labels)),
    )


def pseudocal_temperature(grounds: Grounds) -> float:
    """Fitted on mixed target pairs with the predicted label of the part that prevails (Hu et al., 2024).

    A classifier errs on such pairs about as often as on the target itself, and here the right answer is known.
    """
    return fit_temperature(grounds.mixed.log_probs, grounds.mixed.first)
