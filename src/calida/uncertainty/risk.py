"""What abstaining buys: the error rate among the samples that are kept, most certain first."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class RiskCoverage(NamedTuple):
    """Mean loss of the most certain samples, `risk`, at each share of samples kept, `coverage`: [N] each."""

    coverage: Tensor
    risk: Tensor


def risk_coverage(uncertainty: Tensor, loss: Tensor) -> RiskCoverage:
    """Risk-coverage curve (El-Yaniv and Wiener, 2010): [N] scores and [N] losses -> N points.

    Samples with equal scores cannot be told apart, so each stands for the mean of its tie: the curve does not
    depend on the order in which samples are given.
    """
    order = uncertainty.argsort(stable=True)
    _, tie, size = uncertainty[order].unique_consecutive(return_inverse=True, return_counts=True)
    loss = loss.to(torch.get_default_dtype() if not loss.is_floating_point() else loss.dtype)
    tied_mean = loss.new_zeros(len(size)).index_add_(0, tie, loss[order]) / size
    kept = torch.arange(1, len(loss) + 1, device=loss.device, dtype=loss.dtype)
    return RiskCoverage(kept / max(len(loss), 1), tied_mean[tie].cumsum(0) / kept)


def aurc(uncertainty: Tensor, loss: Tensor) -> Tensor:
    """Area under the risk-coverage curve, the mean risk over all coverages: a scalar (Geifman et al., 2019)."""
    return risk_coverage(uncertainty, loss).risk.mean()
