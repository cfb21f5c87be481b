"""Terms that fit labels: given ones on source, pseudo-labels on target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calida.objective.step import Domain, Step
from calida.uncertainty import nll


@dataclass(frozen=True)
class ExpectedLikelihood:
    """-E_m log P(y | x, w_m), expectation outside the log: term (I) of the ELBO, Eq. 3, for pre-training.

    Term (II), the KL divergence to the prior, has no term here: dropout samples the approximate posterior and the
    optimizer's weight decay is the KL part (Gal and Ghahramani, 2016).
    """

    smoothing: float = 0.0  # share of a label that is spread over all classes
    domains: ClassVar[tuple[Domain, ...]] = ("source",)

    def __call__(self, step: Step) -> Tensor:
        samples = step.sample_log_probs("source")  # [M, B, K]
        return _weighed(_smoothed_nll(samples, step.source.y.expand(samples.shape[:-1]), self.smoothing), step)


@dataclass(frozen=True)
class PredictiveLikelihood:
    """-log E_m P(y | x, w_m), expectation inside the log: the cross-entropy of Eq. 5, for adaptation."""

    smoothing: float = 0.0
    domains: ClassVar[tuple[Domain, ...]] = ("source",)

    def __call__(self, step: Step) -> Tensor:
        return _weighed(_smoothed_nll(step.log_probs("source"), step.source.y, self.smoothing), step)


def _weighed(values: Tensor, step: Step) -> Tensor:
    """The mean over source samples, [..., B], each by its weight where there are any."""
    weight = step.source.weight
    return values.mean() if weight is None else (values * weight).mean()


def _smoothed_nll(log_probs: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy with labels of which a share is spread evenly (Szegedy et al., 2016): [..., K], [...] -> [...]."""
    plain = nll(log_probs, labels)
    return plain if smoothing == 0 else torch.lerp(plain, -log_probs.mean(-1), smoothing)


@dataclass(frozen=True)
class PseudoLabelLikelihood:
    """Cross-entropy of pseudo-labels and the averaged prediction, Eq. 8, mean over the selected samples.

    With hard labels from the same model this is the min-entropy, the Renyi entropy of order infinity. A batch
    without a selected sample gives 0.
    """

    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        cross_entropy = -(step.target.labels * step.log_probs("target")).sum(-1)
        return mean_of_selected(cross_entropy, step.target.selected)


@dataclass(frozen=True)
class UniformDivergence:
    """MRKLD of CRST (Zou et al., 2019): KL(uniform || P), mean over the selected samples.

    It keeps pseudo-labeled samples from being fitted with full confidence; 0 at the uniform prediction.
    """

    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        log_probs = step.log_probs("target")
        classes = torch.tensor(float(log_probs.shape[-1]), device=log_probs.device, dtype=log_probs.dtype)
        return mean_of_selected(-log_probs.mean(-1) - classes.log(), step.target.selected)


def mean_of_selected(values: Tensor, selected: Tensor) -> Tensor:
    """Mean of the values with weight 1, 0 where there are none: [B] and [B] -> a scalar."""
    return (values * selected).sum() / selected.sum().clamp(min=1)
