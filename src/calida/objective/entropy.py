"""Terms that shape the target's predictions without any label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calida.objective.step import Domain, Step
from calida.uncertainty import renyi_entropy


@dataclass(frozen=True)
class TargetEntropy:
    """Mean Renyi entropy of the averaged prediction on target, the constraint of Eq. 5 and the term of Eq. 7."""

    order: float = 1.0
    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        return renyi_entropy(step.log_probs("target"), self.order).mean()


@dataclass(frozen=True)
class Diversity:
    """log K - H(mean prediction on the batch): 0 when the classes share the batch evenly (Krause et al., 2010).

    Entropy alone is lowest when one class takes all; this term is what speaks against that.
    """

    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        log_probs = step.log_probs("target")
        mean = torch.logsumexp(log_probs, 0) - math.log(len(log_probs))
        return math.log(log_probs.shape[-1]) - renyi_entropy(mean)
