"""A floor for accuracy on target: how far a critic can disagree there that agrees on source.

Dis^2 (Rosenfeld and Garg, 2023): among linear functions of the logits that agree with the classifier f on source, find
one that disagrees most with it on target. If the truth is no worse than that critic, then

    accuracy_t >= accuracy_s - (agreement_s - agreement_t) - sqrt((n_s + 4 n_t) ln(1 / delta) / (2 n_s n_t)).

Critics minimize -log p_y on source and -log(1 - p_y) on target, y being the label of f. Half of the samples train them,
the other half measures. The floor is wide, and after feature alignment it may fail: the authors say both.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calida.seeds import Seeds
from calida.uncertainty import accuracy

_CRITICS, _STEPS, _RATE = 5, 100, 0.1
_MOST = 4000  # samples of a domain that critics see
_DELTA = 0.1


def disagreement_floor(validation: Tensor, labels: Tensor, target: Tensor, seeds: Seeds) -> float:
    """From log-probabilities on source validation [V, K], its labels [V], and on target [T, K]; 0 says nothing."""
    if min(len(validation), len(target)) < 4:
        return 0.0
    generator = seeds.generator("critics")
    parts = [part[torch.randperm(len(part), generator=generator)[:_MOST]] for part in (validation, target)]
    said = [part.argmax(-1) for part in parts]
    mean, spread = parts[0].mean(0), parts[0].std(0).clamp(min=1e-6)
    seen = [((part - mean) / spread).clamp(-10, 10).double() for part in parts]
    gap = max(_largest_gap(seen, said, validation.shape[-1], generator) for _ in range(_CRITICS))
    counts = [len(part) // 2 for part in parts]
    chance = math.sqrt((counts[0] + 4 * counts[1]) * math.log(1 / _DELTA) / (2 * counts[0] * counts[1]))
    return max(accuracy(validation, labels) - gap - chance, 0.0)


def _largest_gap(seen: list[Tensor], said: list[Tensor], classes: int, generator: torch.Generator) -> float:
    """Held-out agreement on source less that on target, the largest over a critic's steps."""
    halves = [torch.randperm(len(part), generator=generator) for part in seen]
    fit, held = ([order[start::2] for order in halves] for start in (0, 1))
    start = torch.randn(seen[0].shape[1] + 1, classes, generator=generator, dtype=torch.float64)
    weight = (0.1 * start).requires_grad_()
    optimizer = torch.optim.Adam([weight], _RATE)
    gap = 0.0
    for _ in range(_STEPS):
        own, other = (
            _scores(part[rows], weight).log_softmax(-1).gather(1, label[rows][:, None])
            for part, label, rows in zip(seen, said, fit, strict=True)
        )
        # log(1 - p) from log p; where p is 1 the slope would be infinite.
        loss = -own.mean() - torch.log1p(-other.exp().clamp(max=1 - 1e-6)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            source, target = (
                float((_scores(part[rows], weight).argmax(-1) == label[rows]).double().mean())
                for part, label, rows in zip(seen, said, held, strict=True)
            )
        gap = max(gap, source - target)
    return gap


def _scores(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight[:-1] + weight[-1]
