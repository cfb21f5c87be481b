"""A term that keeps predictions smooth around the samples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calida.model import full_precision, scratch_buffers
from calida.objective.step import Domain, Step
from calida.uncertainty import mean_log_probs


@dataclass(frozen=True)
class VirtualAdversarial:
    """KL(P(x) || P(x + r)) for the worst r of a given length (VAT, Miyato et al., 2016), on one domain.

    The direction is found by power iteration; inputs are standardized, so `radius` is in source standard deviations
    over the whole sample. Dropout masks and noise are those of the clean pass, and BatchNorm's running statistics
    are left alone by the passes that this term adds.
    """

    radius: float = 1.0
    probe: float = 0.1
    iterations: int = 1
    domain: Domain = "target"

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.domain,)

    def __call__(self, step: Step) -> Tensor:
        clean = step.log_probs(self.domain).detach()  # [B, K]
        standard = step.model.standardize(step.batches[self.domain].x)
        generator = step.seeds.generator(f"{self.domain} adversarial", standard.device)
        direction = torch.randn(standard.shape, generator=generator, device=standard.device, dtype=standard.dtype)
        rounded = step.model.precision != "fp32"
        with scratch_buffers(step.model), full_precision(step.model):  # in bf16 the probe would be lost in rounding
            if rounded:
                with torch.no_grad():
                    clean = self._log_probs(step, standard)
            for _ in range(self.iterations):
                probe = (self.probe * _unit(direction)).requires_grad_()
                with torch.enable_grad():
                    divergence = self._divergence(step, clean, standard + probe)
                    (direction,) = torch.autograd.grad(divergence, probe)
            return self._divergence(step, clean, standard + self.radius * _unit(direction))

    def _divergence(self, step: Step, clean: Tensor, standard: Tensor) -> Tensor:
        return (clean.exp() * (clean - self._log_probs(step, standard))).sum(-1).mean()

    def _log_probs(self, step: Step, standard: Tensor) -> Tensor:
        return mean_log_probs(step.draw(self.domain, step.run(self.domain, standard).logits))


def _unit(direction: Tensor) -> Tensor:
    """Each sample's direction at length 1; a sample without a direction stays at 0.

    Scaled by the largest entry first: the squares of a confident prediction's gradient underflow.
    """
    axes = tuple(range(1, direction.ndim))
    tiny = torch.finfo(direction.dtype).tiny
    scaled = direction / direction.abs().amax(axes, keepdim=True).clamp(min=tiny)
    return torch.div(scaled, torch.linalg.vector_norm(scaled, dim=axes, keepdim=True).clamp(min=0.5))
