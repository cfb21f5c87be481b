"""Which target samples may teach, and what: pure functions of the target's log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from calida.errors import InputError


class Selection(NamedTuple):
    """Labels for every target sample, which of them to use, and the confidence each class had to reach."""

    labels: Tensor  # [N]
    selected: Tensor  # [N], bool
    class_threshold: Tensor  # [K], exp(-k_c); 1 for a class nobody predicts, inf where nothing may be selected


def select_global(log_probs: Tensor, portion: float) -> Selection:
    """The most confident `portion` of all samples: one threshold for every class."""
    top, labels = log_probs.max(-1)
    everyone = torch.zeros_like(labels)
    threshold = _thresholds(top, everyone, 1, portion).expand(log_probs.shape[-1])
    return Selection(labels, top >= threshold[0], threshold.exp())


def select_class_balanced(log_probs: Tensor, portion: float) -> Selection:
    """The most confident `portion` of the samples of each predicted class (CBST, Zou et al., 2018)."""
    top, labels = log_probs.max(-1)
    threshold = _thresholds(top, labels, log_probs.shape[-1], portion)
    return Selection(labels, top >= threshold[labels], threshold.exp())


def select_reweighted(log_probs: Tensor, portion: float) -> Selection:
    """CBST with normalised argmax: label = argmax_c p_c / threshold_c, used where that ratio is at least 1.

    A class that the model finds hard has a low threshold and so gains samples from the classes it finds easy.
    """
    top, predicted = log_probs.max(-1)
    threshold = _thresholds(top, predicted, log_probs.shape[-1], portion)
    if portion == 0:  # every ratio is zero: nothing to compare
        return Selection(predicted, torch.zeros_like(predicted, dtype=torch.bool), threshold.exp())
    ratio, labels = (log_probs - threshold).max(-1)
    return Selection(labels, ratio >= 0, threshold.exp())


def _thresholds(top: Tensor, groups: Tensor, num_groups: int, portion: float) -> Tensor:
    """Log-confidence at rank portion * N_c of each group, so that samples tied with it are in as well: [num_groups]."""
    if not 0 <= portion <= 1:
        raise ValueError(f"a portion is a number in [0, 1], not {portion}")
    count = torch.bincount(groups, minlength=num_groups)
    if portion == 0:
        return torch.where(count > 0, math.inf, 0.0).to(top)
    order = top.argsort(descending=True, stable=True)
    order = order[groups[order].argsort(stable=True)]  # by group, most confident first
    first = count.cumsum(0) - count
    # 0.1 * 30 is a little over 3 in floating point; it means 3.
    rank = (portion * count.double() - 1e-9).ceil().long().clamp(min=1)
    threshold = top[order][(first + rank - 1).clamp(max=len(top) - 1)]
    return torch.where(count > 0, threshold, torch.zeros_like(threshold))


SELECTORS: dict[str, Callable[[Tensor, float], Selection]] = {
    "global": select_global,
    "class-balanced": select_class_balanced,
    "reweighted": select_reweighted,
}


def selector(name: str) -> Callable[[Tensor, float], Selection]:
    if name not in SELECTORS:
        raise InputError(f"unknown selection {name!r}; there are {', '.join(SELECTORS)}")
    return SELECTORS[name]


def tempered_labels(log_probs: Tensor, temperature: float, class_threshold: Tensor | None = None) -> Tensor:
    """Label distributions proportional to (p / threshold)^(1/T): [N, K] -> [N, K], rows sum to 1.

    One formula for three kinds: T = 0 is hard labels; T > 0 without thresholds the sharpened labels of
    deterministic-annealing EM (T from 1 to 0 leads from order 1 to order infinity); T = 0.25 with thresholds the soft
    labels of CRST (LRENT, Zou et al., 2019).
    """
    score = log_probs
    if class_threshold is not None:
        score = log_probs - torch.where(class_threshold.isfinite(), class_threshold, 1.0).log()
    if temperature == 0:
        return torch.nn.functional.one_hot(score.argmax(-1), score.shape[-1]).to(log_probs.dtype)
    if not temperature > 0:
        raise ValueError(f"a label temperature is at least 0, not {temperature}")
    return torch.softmax(score / temperature, -1)
