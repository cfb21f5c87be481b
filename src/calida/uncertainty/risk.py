"""What abstaining buys: the error rate among the samples that are kept, most certain first."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class RiskCoverage(NamedTuple):
    """Mean loss of the most certain samples, `risk`, at each share of samples kept, `coverage`: [N] each."""

    coverage: Tensor
    risk: Tensor


SCORES = ("confidence", "entropy", "mutual-information", "sum")


def rejection_scores(confidence: Tensor, entropy: Tensor, epistemic: Tensor) -> dict[str, Tensor]:
    """What samples can be ordered by, least certain last: each [N].

    One less the largest probability; the entropy; its epistemic part, the mutual information of label and weights; and
    the sum of both, which counts what the network does not know twice. A point network knows no epistemic part.
    """
    return dict(zip(SCORES, (1 - confidence, entropy, epistemic, entropy + epistemic), strict=True))


def accepted(uncertainty: Tensor, coverage: float) -> Tensor:
    """The most certain samples, this share of them rounded to a whole number: [N] -> [N] booleans."""
    keep = torch.zeros(len(uncertainty), dtype=torch.bool, device=uncertainty.device)
    keep[uncertainty.argsort(stable=True)[: round(coverage * len(uncertainty))]] = True
    return keep


def ranked(uncertainty: Tensor, among_equals: Tensor) -> Tensor:
    """Places from the most certain sample on; a second score tells equals of the first apart: [N], [N] -> [N]."""
    order = among_equals.argsort(stable=True)
    order = order[uncertainty[order].argsort(stable=True)]
    places = torch.empty(len(order), dtype=torch.float64, device=order.device)
    places[order] = torch.arange(len(order), dtype=torch.float64, device=order.device)
    return places


def coverage_at_risk(uncertainty: Tensor, expected_loss: Tensor, max_risk: float) -> float:
    """The largest share of samples, most certain first, whose mean expected loss is at most `max_risk`."""
    curve = risk_coverage(uncertainty, expected_loss)
    within = (curve.risk <= max_risk).nonzero().flatten()
    return float(curve.coverage[within[-1]]) if len(within) else 0.0


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
