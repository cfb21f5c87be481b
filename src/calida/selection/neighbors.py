"""Labels that spread over a graph of nearest neighbors: what a cluster is mostly taken for, all of it is."""

from __future__ import annotations

import torch
from torch import Tensor

_ANCHORS = 4096  # samples that neighbors are looked for among, at most: work stays linear in the number of samples
_ROWS = 2048  # compared with all anchors at a time
_STEPS = 20  # of spreading; what is left out after them is the share to their power


def smooth_over_neighbors(log_probs: Tensor, features: Tensor, neighbors: int, share: float) -> Tensor:
    """Solve Q = (1 - share) P + share W Q by iteration: label spreading (Zhou et al., 2004), [N, K] -> [N, K].

    A row of W holds the cosine similarities of a sample and its nearest neighbors by `features`, [N, D], as shares of
    their sum. Among very many samples, neighbors are looked for in an even part of them.
    """
    if share == 0 or len(log_probs) < 2:
        return log_probs
    anchors = torch.linspace(0, len(features) - 1, min(len(features), _ANCHORS), device=features.device).long()
    weights, places = _nearest(features, anchors, min(neighbors, len(anchors) - 1))
    plain = log_probs.exp()
    spread = plain
    for _ in range(_STEPS):
        spread = (1 - share) * plain + share * (weights[:, :, None] * spread[places]).sum(1)
    return spread.clamp(min=torch.finfo(spread.dtype).tiny).log()


def _nearest(features: Tensor, anchors: Tensor, neighbors: int) -> tuple[Tensor, Tensor]:
    """Shares of the nearest anchors, and which rows they are: [N, k] each; nobody is a neighbor of itself."""
    unit = torch.nn.functional.normalize(features.float(), dim=1)
    found = []
    for start in range(0, len(unit), _ROWS):
        similar = unit[start : start + _ROWS] @ unit[anchors].T  # [R, A]
        rows = torch.arange(start, start + len(similar), device=anchors.device)
        similar.masked_fill_(rows[:, None] == anchors, -2.0)
        found.append(similar.topk(neighbors, dim=1))
    values = torch.cat([part.values for part in found]).clamp(min=1e-6)
    places = anchors[torch.cat([part.indices for part in found])]
    return values / values.sum(1, keepdim=True), places
