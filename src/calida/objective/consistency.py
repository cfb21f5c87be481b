"""Views of one target sample should be given one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calida.model import dropping_only, scratch_buffers
from calida.objective.likelihood import mean_of_selected
from calida.objective.step import Domain, Step
from calida.uncertainty import mean_log_probs, nll


@dataclass(frozen=True)
class Consistency:
    """Cross-entropy of the augmented view and the label of the plain one, where that label is sure (Sohn et al., 2020).

    The plain view is labeled by the step's teacher, with the masks of its weight samples and no other dropout, on the
    statistics of its own batch, which for a target batch are the target's. The mean is over the whole batch, so a batch
    of which little is sure weighs little.
    """

    threshold: float = 0.9
    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        batch = step.target
        unchanged = batch.own if batch.own_plain is None else batch.own_plain
        teacher = step.teacher
        quiet = dropping_only(teacher, teacher.sampled_layers())
        with torch.no_grad(), scratch_buffers(teacher), quiet:
            logits = step.run_own("target", teacher, teacher.standardize(unchanged), "labels").logits
        plain = mean_log_probs(step.draw("target", logits))
        confidence, labels = plain.exp().max(-1)
        sure = (confidence >= self.threshold).to(plain.dtype)
        return mean_of_selected(nll(step.log_probs("target"), labels), sure) * sure.mean()
