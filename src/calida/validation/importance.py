"""Source validation weighted to look like the target: importance weights, and the risk under them."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from calida.threads import threads_for


def importance_weights(source: Tensor, target: Tensor) -> Tensor:
    """p(target) / p(source) at each source sample by a logistic regression on features: [S, D], [T, D] -> [S].

    Features are standardized and the regression is regularized, without which the domains of a deep network are
    told apart perfectly and all weights are 0 or infinite.
    """
    from sklearn.linear_model import LogisticRegression  # imported late: it takes as long as torch

    both = torch.cat([source, target]).double()
    spread = both.std(0)
    both = (both - both.mean(0)) / torch.where(spread > 0, spread, 1.0)
    domain = np.repeat([0, 1], [len(source), len(target)])
    with threads_for(both.numel()):
        model = LogisticRegression(C=1 / both.shape[1], max_iter=200).fit(both.cpu().numpy(), domain)
    log_odds = torch.from_numpy(model.decision_function(both[: len(source)].cpu().numpy()))
    return (log_odds + math.log(len(source) / len(target))).exp()


def weighted_risk(losses: Tensor, weights: Tensor, normalized: bool = False) -> float:
    """Mean loss under importance weights with a control variate (DEV; You et al., 2019): [V], [V] -> scalar.

    mean(w l) + eta mean(w) - eta with eta = -cov(w l, w) / var(w), which lowers the variance, as mean(w) is 1.
    `normalized` first divides the weights by their mean: then the control variate has nothing left to do.
    """
    losses, weights = losses.double(), weights.double()
    if normalized:
        weights = weights / weights.max().clamp(min=1e-300)  # a sum of huge ones would overflow
        weights = weights / weights.mean()
    weighted = weights * losses
    # Equal weights are told by their number: their variance is 0 up to rounding, and would be divided by.
    if len(weights.unique()) < 2 or float(weights.var()) == 0:
        return float(weighted.mean())
    eta = -float(torch.cov(torch.stack([weighted, weights]))[0, 1] / weights.var())
    return float(weighted.mean()) + eta * float(weights.mean()) - eta
