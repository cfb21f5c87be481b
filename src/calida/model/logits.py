"""Gaussian logits, the one output type of every classifier."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Logits(NamedTuple):
    """Logits mu + sigma * eps with eps ~ N(0, I) (Kendall and Gal, 2017); std 0 is a point network."""

    mean: Tensor  # [B, K]
    std: Tensor  # [B, K]

    def sample_log_probs(self, noise: Tensor) -> Tensor:
        """log softmax(mean + std * noise): noise [M, B, K], or [M, 1, K] for one draw shared by all samples."""
        return torch.log_softmax(self.mean + self.std * noise, -1)


def draw_noise(num_samples: int, logits: Logits, generator: torch.Generator | None, shared: bool = False) -> Tensor:
    """Standard normal noise for `num_samples` draws, [M, B, K], or [M, 1, K] when shared by the batch."""
    rows, classes = logits.mean.shape
    shape = (num_samples, 1 if shared else rows, classes)
    return torch.randn(shape, generator=generator, device=logits.mean.device, dtype=logits.mean.dtype)
