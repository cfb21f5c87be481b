"""How often predictions are right, and every figure that labels allow."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calida.uncertainty.calibration import calibration_error
from calida.uncertainty.scores import brier, nll


def accuracy(log_probs: Tensor, labels: Tensor) -> float:
    """Share of samples whose most probable class is their label: [N, K], [N] -> scalar."""
    return float((log_probs.argmax(-1) == labels).double().mean())


def mean_class_accuracy(log_probs: Tensor, labels: Tensor) -> float:
    """The mean over the classes that occur of the share of each that is found: [N, K], [N] -> scalar."""
    right = (log_probs.argmax(-1) == labels).double()
    return float(torch.stack([right[labels == label].mean() for label in labels.unique()]).mean())


def mean_confidence(log_probs: Tensor) -> float:
    """The mean of the largest probabilities: [N, K] -> scalar."""
    return float(log_probs.double().amax(-1).exp().mean())


def wilson(share: float, count: int, deviations: float = 1.96) -> tuple[float, float]:
    """The interval that a share of `count` samples leaves for its true value (Wilson, 1927); never empty at 0 or 1."""
    spread = deviations**2 / count
    middle = (share + spread / 2) / (1 + spread)
    width = math.sqrt(max(share * (1 - share), 0.0) * spread + spread**2 / 4) / (1 + spread)
    return max(middle - width, 0.0), min(middle + width, 1.0)


def measure_answers(log_probs: Tensor, labels: Tensor) -> dict[str, float]:
    """How predictions fare against labels, [N, K] and [N]: accuracies, log-likelihood, Brier score, ECE."""
    return {
        "accuracy": accuracy(log_probs, labels),
        "mean_class_accuracy": mean_class_accuracy(log_probs, labels),
        "nll": float(nll(log_probs, labels).mean()),
        "brier": float(brier(log_probs, labels).mean()),
        "ece": float(calibration_error(log_probs, labels)),
    }
