"""Proper scores of predictions against labels, unreduced: [..., K] and [...] -> [...]."""

from __future__ import annotations

import torch
from torch import Tensor


def nll(log_probs: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood, -log P(label)."""
    return -log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def brier(log_probs: Tensor, labels: Tensor) -> Tensor:
    """Brier score over all classes, sum_k (P_k - [k = label])^2, between 0 and 2 (Brier, 1950)."""
    probs = log_probs.exp()
    truth = torch.zeros_like(probs).scatter_(-1, labels.unsqueeze(-1), 1.0)
    return (probs - truth).square().sum(-1)
