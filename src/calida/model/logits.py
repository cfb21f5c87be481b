"""Gaussian logits, the one output type of every classifier."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Logits(NamedTuple):
    """Logits mu + sigma * eps with eps ~ N(0, I) (Kendall and Gal, 2017); std 0 is a point network."""

    mean: Tensor  # [..., B, K]
    std: Tensor  # [..., B, K]

    def sample_log_probs(self, noise: Tensor) -> Tensor:
        """log softmax(mean + std * noise): logits [M, B, K], or one for all M, and noise [M, B, K]."""
        return torch.log_softmax(self.mean + self.std * noise, -1)


def draw_noise(num_samples: int, logits: Logits, generator: torch.Generator | None) -> Tensor:
    """Standard normal noise, a draw of its own for every sample of the batch: [M, B, K]."""
    shape = (num_samples, *logits.mean.shape[-2:])
    return torch.randn(shape, generator=generator, device=logits.mean.device, dtype=logits.mean.dtype)
