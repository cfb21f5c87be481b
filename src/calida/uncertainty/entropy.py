"""Renyi entropy of a categorical distribution, and its split over Monte-Carlo samples."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

# |order - 1| below which the expm1 form is used. At the border both forms are good to about 1e-6 in float32.
_NEAR_SHANNON = 0.1
# Beyond this, order * log P overflows in float32; the min-entropy is the same number.
_AS_GOOD_AS_INFINITE = 1e30


def renyi_entropy(log_probs: Tensor, order: float = 1.0) -> Tensor:
    """H_a(P) = log(sum_k P_k^a) / (1 - a), in nats, unreduced: [..., K] -> [...]. Eq. 1 (Renyi, 1961).

    Order 1 is Shannon's entropy, 2 the collision entropy, infinity the min-entropy; any order in (0, inf].
    Rows of `log_probs` are normalized; entries of -inf (probability zero) are allowed.
    """
    if not order > 0:
        raise ValueError(f"the order of a Renyi entropy is a number in (0, inf], not {order}")
    if order > _AS_GOOD_AS_INFINITE:
        return -log_probs.amax(-1)
    excess = order - 1
    if abs(excess) > _NEAR_SHANNON:
        # -inf times a gradient of zero is NaN, so probability zero enters as a very negative finite number.
        finite = log_probs.clamp(min=torch.finfo(log_probs.dtype).min / 4)
        return torch.logsumexp(order * finite, -1) / -excess
    # Near 1 the quotient above is 0/0. With sum P = 1, sum P^a = 1 + sum P expm1((a-1) log P), whose summands all
    # have one sign: nothing cancels, and the value is good to float precision however near to 1 the order is.
    log_probs = log_probs.clamp(min=math.log(torch.finfo(log_probs.dtype).tiny))
    if excess == 0:
        return -(log_probs.exp() * log_probs).sum(-1)
    return torch.log1p((log_probs.exp() * torch.expm1(excess * log_probs)).sum(-1)) / -excess


def mean_log_probs(sample_log_probs: Tensor) -> Tensor:
    """Log of the averaged prediction, log 1/M sum_m P_m: [M, ..., K] -> [..., K]. Eq. 2."""
    return torch.logsumexp(sample_log_probs, 0) - math.log(len(sample_log_probs))


class Uncertainty(NamedTuple):
    """Predictive entropy and its two parts, predictive = aleatoric + epistemic, each [...] in nats."""

    predictive: Tensor
    aleatoric: Tensor
    epistemic: Tensor


def decompose(sample_log_probs: Tensor, order: float = 1.0, mean: Tensor | None = None) -> Uncertainty:
    """Split the entropy of the averaged prediction: [M, ..., K] -> three times [...] (Depeweg et al., 2018).

    Aleatoric is the expected entropy of the samples; epistemic is the rest, which at order 1 is the mutual
    information of label and weights and never negative. `mean` is `mean_log_probs`, where that is known already.
    """
    predictive = renyi_entropy(mean_log_probs(sample_log_probs) if mean is None else mean, order)
    aleatoric = expected_entropy(sample_log_probs, order)
    return Uncertainty(predictive, aleatoric, predictive - aleatoric)


def predictive_entropy(sample_log_probs: Tensor, order: float = 1.0) -> Tensor:
    """H(E_m P_m): [M, ..., K] -> [...]."""
    return renyi_entropy(mean_log_probs(sample_log_probs), order)


def expected_entropy(sample_log_probs: Tensor, order: float = 1.0) -> Tensor:
    """E_m H(P_m): [M, ..., K] -> [...]."""
    return renyi_entropy(sample_log_probs, order).mean(0)


def mutual_information(sample_log_probs: Tensor) -> Tensor:
    """I(label; weights) = H(E_m P_m) - E_m H(P_m): [M, ..., K] -> [...], at least 0 up to rounding."""
    return decompose(sample_log_probs).epistemic
