"""Does a confidence of 80 % mean right 80 % of the time? Reliability bins and calibration errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Binning = Literal["width", "mass"]


class ReliabilityBins(NamedTuple):
    """Per bin: how many samples, their mean confidence and how often they are right (0 where empty)."""

    counts: Tensor
    confidence: Tensor
    accuracy: Tensor


def reliability_bins(
    confidence: Tensor, correct: Tensor, num_bins: int = 15, binning: Binning = "width"
) -> ReliabilityBins:
    """Bin samples by confidence: [N] and [N] -> three times [num_bins].

    "width": equal intervals of [0, 1], a value on an edge belongs to the bin above, 1 to the last.
    "mass": equally many samples a bin, ordered by confidence (ties in input order).
    """
    correct = correct.to(confidence.dtype)
    if binning == "width":
        edges = torch.linspace(0, 1, num_bins + 1, dtype=confidence.dtype, device=confidence.device)
        index = (torch.bucketize(confidence.contiguous(), edges, right=True) - 1).clamp(0, num_bins - 1)
    elif binning == "mass":
        rank = torch.empty_like(confidence, dtype=torch.long)
        rank[confidence.argsort(stable=True)] = torch.arange(len(confidence), device=confidence.device)
        index = rank * num_bins // max(len(confidence), 1)
    else:
        raise ValueError(f'binning is "width" or "mass", not {binning!r}')
    totals = confidence.new_zeros(3, num_bins)
    totals.index_add_(1, index, torch.stack([torch.ones_like(confidence), confidence, correct]))
    filled = totals[0].clamp(min=1)
    return ReliabilityBins(totals[0], totals[1] / filled, totals[2] / filled)


def binned_error(bins: ReliabilityBins) -> Tensor:
    """Mean gap of confidence and accuracy, weighted by the bins' counts (0 without samples): a scalar."""
    share = bins.counts / bins.counts.sum().clamp(min=1)
    return (share * (bins.confidence - bins.accuracy).abs()).sum()


def calibration_error(log_probs: Tensor, labels: Tensor, num_bins: int = 15, binning: Binning = "width") -> Tensor:
    """Expected calibration error of the top label: [N, K] and [N] -> a scalar (Naeini et al., 2015).

    `binning="mass"` gives the adaptive error (Nguyen and O'Connor, 2015).
    """
    top, prediction = log_probs.max(-1)
    return binned_error(reliability_bins(top.exp(), prediction == labels, num_bins, binning))


def classwise_calibration_error(
    log_probs: Tensor, labels: Tensor, num_bins: int = 15, binning: Binning = "width"
) -> Tensor:
    """Mean over classes of the error of P_k as a forecast of "the label is k" (Kull et al., 2019): a scalar."""
    probs = log_probs.exp()
    errors = [
        binned_error(reliability_bins(probs[:, k], labels == k, num_bins, binning)) for k in range(probs.shape[-1])
    ]
    return torch.stack(errors).mean()
