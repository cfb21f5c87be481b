"""Heads: features [B, D] -> Gaussian logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from calida.errors import InputError
from calida.model.logits import Logits

# A log-variance beyond these is no different in float32 but overflows in exp; std stays within 6e-4 and 1.8e3.
_LOG_VARIANCE_RANGE = (-15.0, 15.0)


class Head(nn.Module):
    """Mean of the logits and, with a second branch, their log-variance; without one the std is 0."""

    def __init__(self, mean: nn.Module, log_variance: nn.Module | None = None) -> None:
        super().__init__()
        self.mean = mean
        self.log_variance = log_variance

    def forward(self, features: Tensor) -> Logits:
        mean = self.mean(features)
        if self.log_variance is None:
            return Logits(mean, torch.zeros_like(mean))
        return Logits(mean, (0.5 * self.log_variance(features).clamp(*_LOG_VARIANCE_RANGE)).exp())


def _linear(features: int, classes: int) -> nn.Module:
    return nn.Linear(features, classes)


def _dtn(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Linear(features, classes))


def _visda(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 512), nn.ReLU(), nn.Linear(512, classes))


BRANCHES: dict[str, Callable[[int, int], nn.Module]] = {"linear": _linear, "dtn": _dtn, "visda": _visda}


def build_head(kind: str, features: int, classes: int, gaussian: bool) -> Head:
    """A head of a named kind; a Gaussian one carries a second branch of the same shape for the log-variance."""
    if kind not in BRANCHES:
        raise InputError(f"unknown head {kind!r}; there are {', '.join(BRANCHES)}")
    branch = BRANCHES[kind]
    return Head(branch(features, classes), branch(features, classes) if gaussian else None)
