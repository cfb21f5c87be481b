"""One number that makes probabilities softer or sharper and changes no label."""

from __future__ import annotations

import torch
from torch import Tensor


def temper(log_probs: Tensor, temperature: float) -> Tensor:
    """log softmax(log P / T): [..., K] -> [..., K]; 1 leaves them as they are, more makes them less certain."""
    return log_probs if temperature == 1.0 else torch.log_softmax(log_probs / temperature, -1)
