"""Views of one target sample should be given one class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from calida.model import Classifier, scratch_buffers
from calida.objective.likelihood import mean_of_selected
from calida.objective.step import Domain, Step
from calida.uncertainty import mean_log_probs, nll


@dataclass(frozen=True)
class Consistency:
    """Cross-entropy of the augmented view and the label of the plain one, where that label is sure (Sohn et al., 2020).

    The plain view is labelled by the step's teacher without dropout, on the statistics of its own batch, which for a
    target batch are the target's. The mean is over the whole batch, so a batch of which little is sure weighs little.
    """

    threshold: float = 0.9
    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        batch = step.target
        unchanged = batch.x if batch.plain is None else batch.plain
        teacher = step.teacher
        with torch.no_grad(), scratch_buffers(teacher), _without_dropout(teacher):
            plain = mean_log_probs(step.draw("target", teacher(unchanged).logits))
        confidence, labels = plain.exp().max(-1)
        sure = (confidence >= self.threshold).to(plain.dtype)
        return mean_of_selected(nll(step.log_probs("target"), labels), sure) * sure.mean()


@contextmanager
def _without_dropout(model: Classifier) -> Iterator[None]:
    dropouts = [part for part in model.modules() if isinstance(part, nn.modules.dropout._DropoutNd) and part.training]
    for part in dropouts:
        part.eval()
    try:
        yield
    finally:
        for part in dropouts:
            part.train()
