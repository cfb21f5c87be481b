"""Source and target told apart: whether they can be, importance weights, and the risk under them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:  # imported late: it takes as long as torch
    from sklearn.linear_model import LogisticRegression

_FEWEST, _MOST = 10, 2000  # samples of a domain that the domains are told apart by
_FOLDS = 5


class Separation(NamedTuple):
    """How well two domains are told apart: the area under the ROC curve, and what it rarely reaches for equal ones."""

    auc: float
    by_chance: float

    @property
    def differs(self) -> bool:
        return self.auc > self.by_chance


def domain_separation(source: Tensor, target: Tensor) -> Separation | None:
    """A classifier's two-sample test (Lopez-Paz and Oquab, 2017): [S, D], [T, D]; None for too few samples to tell.

    A logistic regression says of each sample which domain it is from, after having seen the others. Chance reaches two
    standard deviations of the rank statistic over a half, which about one of twenty pairs of equal domains exceeds.
    Source samples should be such as the network has not learnt.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    source, target = (part[:: math.ceil(len(part) / _MOST)] for part in (source, target))
    sizes = len(source), len(target)
    if min(sizes) < _FEWEST:
        return None
    both, domain = _standardised(source, target)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    odds = cross_val_predict(_regression(both.shape[1]), both, domain, cv=folds, method="decision_function")
    spread = math.sqrt((sum(sizes) + 1) / (12 * math.prod(sizes)))
    return Separation(float(roc_auc_score(domain, odds)), 0.5 + 2 * spread)


def importance_weights(source: Tensor, target: Tensor) -> Tensor:
    """p(target) / p(source) at each source sample by a logistic regression on features: [S, D], [T, D] -> [S].

    Features are standardised and the regression is regularised, without which the domains of a deep network are
    told apart perfectly and all weights are 0 or infinite.
    """
    both, domain = _standardised(source, target)
    log_odds = torch.from_numpy(_regression(both.shape[1]).fit(both, domain).decision_function(both[: len(source)]))
    return (log_odds + math.log(len(source) / len(target))).exp()


def _standardised(source: Tensor, target: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Both domains' features at one scale, [S + T, D], and which rows are the target's, [S + T]."""
    both = torch.cat([source, target]).double()
    spread = both.std(0)
    both = (both - both.mean(0)) / torch.where(spread > 0, spread, 1.0)
    return both.cpu().numpy(), np.repeat([0, 1], [len(source), len(target)])


def _regression(features: int) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / features, max_iter=200)


def weighted_risk(losses: Tensor, weights: Tensor, normalised: bool = False) -> float:
    """Mean loss under importance weights with a control variate (DEV; You et al., 2019): [V], [V] -> scalar.

    mean(w l) + eta mean(w) - eta with eta = -cov(w l, w) / var(w), which lowers the variance, as mean(w) is 1.
    `normalised` (DEVN; Musgrave, 2022) first divides the weights by their largest value and brings their mean to 1.
    """
    losses, weights = losses.double(), weights.double()
    if normalised:
        weights = weights / weights.max().clamp(min=1e-300)
        weights = weights / weights.mean()
    weighted = weights * losses
    # Equal weights are told by their number: their variance is 0 up to rounding, and would be divided by.
    if len(weights.unique()) < 2 or float(weights.var()) == 0:
        return float(weighted.mean())
    eta = -float(torch.cov(torch.stack([weighted, weights]))[0, 1] / weights.var())
    return float(weighted.mean()) + eta * float(weights.mean()) - eta
