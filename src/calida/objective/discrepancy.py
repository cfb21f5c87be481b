"""A term that draws the two domains' features together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calida.objective.step import Domain, Step


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared maximum mean discrepancy of source and target features (MMD, Long et al., 2015; a row of Table 3)."""

    domains: ClassVar[tuple[Domain, ...]] = ("source", "target")

    def __call__(self, step: Step) -> Tensor:
        return squared_mmd(step.features("source"), step.features("target"))


def squared_mmd(a: Tensor, b: Tensor) -> Tensor:
    """|mean k(a, .) - mean k(b, .)|^2 for five Gaussian kernels, [A, D] and [B, D] -> a scalar, never negative.

    k(u, v) = mean over s in 1/4, 1/2, 1, 2, 4 of exp(-|u - v|^2 / (s * bandwidth)), where the bandwidth is the mean
    squared distance over all pairs, taken as a constant: only the positions carry a gradient. The biased estimate is
    used (a sample is paired with itself as well), which is exactly 0 for equal sets.
    """
    both = torch.cat([a, b])
    squares = both.square().sum(1)
    distance = (squares[:, None] + squares[None, :] - 2 * both @ both.T).clamp(min=0)
    # Rows of the same sample are at distance 0 by definition; rounding must not say otherwise.
    distance = distance * (1 - torch.eye(len(both), device=both.device, dtype=both.dtype))
    bandwidth = (distance.detach().sum() / max(len(both) * (len(both) - 1), 1)).clamp(min=1e-12)
    kernel = torch.stack([(-distance / (bandwidth * scale)).exp() for scale in (0.25, 0.5, 1, 2, 4)]).mean(0)
    sign = torch.cat([both.new_full((len(a),), 1 / len(a)), both.new_full((len(b),), -1 / len(b))])
    return sign @ kernel @ sign
