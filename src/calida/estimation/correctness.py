"""How likely each answer is right: the panel's vote and the classifier's own confidence, brought to the estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# Of log-odds: how much a vote of the panel and how much the classifier's confidence tells. Logistic regressions over 52
# real shifts gave 0.69 and 0.20 for source-only networks (0.37 and 0.46 for adapted ones), seed 0.
_VOTE, _CONFIDENCE = 0.7, 0.2
_LEAST = 0.02
_GROUPS = 20  # of equally many samples, by confidence


def probability_right(votes: Tensor, confidence: Tensor, accuracy: float) -> Tensor:
    """From shares of the panel that agree, [N], and confidences, [N]: probabilities whose mean is the accuracy."""
    return _with_mean(_VOTE * _log_odds(votes) + _CONFIDENCE * _log_odds(confidence), accuracy)


def worth_of_confidence(confidence: Tensor, right: Tensor) -> tuple[tuple[float, float], ...]:
    """What a confidence is worth: confidences that rise, and how likely answers of each are right, which never falls.

    From samples that the panel was asked about, [N] each, for those that come after it and that it never sees.
    """
    from sklearn.isotonic import isotonic_regression  # imported late: it takes as long as torch

    order = confidence.argsort(stable=True)
    groups = [rows for rows in np.array_split(order.numpy(), min(_GROUPS, len(order))) if len(rows)]
    means = [[float(values[rows].double().mean()) for rows in groups] for values in (confidence, right)]
    worth = isotonic_regression(means[1], sample_weight=[len(rows) for rows in groups], y_min=0.0, y_max=1.0)
    return tuple((min(sure, 1.0), float(share)) for sure, share in zip(means[0], worth, strict=True))


def right_by_confidence(worth: Sequence[tuple[float, float]], confidence: Tensor) -> Tensor:
    """How likely answers of these confidences are right, [N], on straight lines between the points of `worth`."""
    sure, share = zip(*worth, strict=True)
    return torch.from_numpy(np.interp(confidence.double().numpy(), sure, share))


def with_mean(probabilities: Tensor, accuracy: float) -> Tensor:
    """The same order of probabilities, [N], moved by one step of log-odds so that their mean is the accuracy."""
    return _with_mean(torch.logit(probabilities.double(), eps=1e-9), accuracy)


def _with_mean(score: Tensor, accuracy: float) -> Tensor:
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if float((score + middle).sigmoid().mean()) > accuracy else (middle, high)
    return (score + (low + high) / 2).sigmoid()


def _log_odds(share: Tensor) -> Tensor:
    return torch.logit(share.double().clamp(_LEAST, 1 - _LEAST))
