"""A small network that is sure of the target and uses all classes there: information maximization as a check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from calida.panel.views import Floats

_HIDDEN, _DROPOUT, _SMOOTHING = 128, 0.3, 0.05
_SOURCE_STEPS, _TARGET_STEPS, _FEWEST_STEPS = 700, 500, 60
_EPOCHS = 30  # where samples are few, steps are as many as these take
_SOURCE_BATCH, _TARGET_BATCH = 64, 128
_WEIGHT = 0.5  # of the target's information beside the source's likelihood


def classify_by_information(
    x: Floats, y: np.ndarray, groups: list[Floats], classes: int, seed: int
) -> list[np.ndarray]:
    """Train on labeled rows, then also for H(p_i) small and H(mean p) large on the last group, the target.

    The first wants boundaries where there are no samples, the second that no class is lost (Krause et al., 2010).
    Steps are few, however large the data are.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # first weights and dropout know no other generator
        network = nn.Sequential(
            nn.Linear(x.shape[1], _HIDDEN), nn.BatchNorm1d(_HIDDEN), nn.ReLU(), nn.Dropout(_DROPOUT),
            nn.Linear(_HIDDEN, classes),
        )  # fmt: skip
        rows, labels, target = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(groups[-1])
        balance = 1 / torch.bincount(labels).double()[labels]

        def likelihood() -> Tensor:
            drawn = torch.multinomial(balance, _SOURCE_BATCH, True, generator=generator)
            return nn.functional.cross_entropy(network(rows[drawn]), labels[drawn], label_smoothing=_SMOOTHING)

        def information() -> Tensor:
            drawn = torch.randint(len(target), (_TARGET_BATCH,), generator=generator)
            log_probs = network(target[drawn]).log_softmax(-1)
            mean = log_probs.exp().mean(0)
            doubt = -(log_probs.exp() * log_probs).sum(-1).mean()
            diversity = -(mean * mean.clamp(min=1e-9).log()).sum()
            found: Tensor = doubt - diversity
            return found

        network.train()
        enough = max(_EPOCHS * max(len(rows), len(target)) // _SOURCE_BATCH, _FEWEST_STEPS)
        _descend(network, likelihood, min(_SOURCE_STEPS, enough), 2e-3)
        _descend(network, lambda: likelihood() + _WEIGHT * information(), min(_TARGET_STEPS, enough), 1e-3)
    network.eval()
    with torch.no_grad():
        return [network(torch.from_numpy(group)).double().softmax(-1).numpy() for group in groups]


def _descend(network: nn.Module, loss: Callable[[], Tensor], steps: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=1e-2, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
        schedule.step()
