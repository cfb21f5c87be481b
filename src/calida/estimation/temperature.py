"""The temperature that probabilities need, found from labels, or from how often answers should be right."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from calida.uncertainty import nll, temper

LOWEST, HIGHEST = 0.1, 20.0
# Where all of a few samples are answered rightly, the likelihood alone would sharpen without end.
_SAMPLES_TO_SHARPEN = 30.0


def fit_temperature(log_probs: Tensor, labels: Tensor) -> float:
    """The temperature of the smallest mean negative log-likelihood (Guo et al., 2017): [N, K], [N] -> scalar.

    It is never under `lowest_temperature(N)`.
    """
    exact, lowest = finite(log_probs), lowest_temperature(len(labels))
    return minimize(lambda temperature: float(nll(temper(exact, temperature), labels).mean()), lowest)


def lowest_temperature(count: float) -> float:
    """How far so many samples allow to sharpen: not at all up to 30 of them, to 0.1 from 300 on."""
    return min(max(LOWEST, _SAMPLES_TO_SHARPEN / max(count, 1)), 1.0)


def match_confidence(log_probs: Tensor, accuracy: float) -> float:
    """The temperature at which the mean confidence is this accuracy: [N, K] -> scalar.

    Confidence falls from 1 to 1 / K as the temperature rises, so there is one, unless the accuracy lies outside.
    """
    exact = finite(log_probs)
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(50):
        middle = (low + high) / 2
        sure = float(temper(exact, math.exp(middle)).amax(-1).exp().mean()) > accuracy
        low, high = (middle, high) if sure else (low, middle)
    return math.exp((low + high) / 2)


def minimize(loss: Callable[[float], float], lowest: float = LOWEST) -> float:
    """The temperature with the smallest loss, between the lowest and 20."""
    from scipy.optimize import minimize_scalar  # imported late, as scikit-learn is

    bounds = (math.log(lowest), math.log(HIGHEST))
    found = minimize_scalar(lambda place: loss(math.exp(place)), bounds=bounds, method="bounded")
    return math.exp(float(found.x))


def finite(log_probs: Tensor) -> Tensor:
    """In float64, probability zero as a very small one: -inf divided by a temperature says nothing of it."""
    return log_probs.double().clamp(min=-100.0)
