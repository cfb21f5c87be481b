"""Do samples of two domains mix? A test by nearest neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from calida.seeds import Seeds

_ORDERS = 200


def neighbor_test(source: Tensor, target: Tensor, seeds: Seeds, neighbours: int = 5, most: int = 2000) -> float | None:
    """How much oftener the nearest neighbours are of one's own domain than by chance: [S, D], [T, D] -> a z-score.

    Two samples of one distribution mix (Schilling, 1986); chance is what other orders of the domains give on the same
    neighbourhoods. The domain that mixes less counts: all that is near to noise is of the other domain. Features are
    brought to one scale, and of a large domain `most` samples are taken. None: too few to tell.
    """
    domains = [part[torch.randperm(len(part), generator=seeds.generator("chosen"))[:most]] for part in (source, target)]
    sizes = [len(part) for part in domains]
    if min(sizes) <= 2 * neighbours:
        return None
    # In random order, so that equally near ones are not taken from the first domain.
    order = torch.randperm(sum(sizes), generator=seeds.generator("order"))
    points = torch.cat(domains)[order].double().cpu()
    mean, spread = points.mean(0), points.std(0)
    # What rounding leaves of a constant feature is no distance.
    points = torch.where(spread > 1e-9 * mean.abs(), (points - mean) / spread, 0.0)
    distances = torch.cdist(points, points).fill_diagonal_(torch.inf)
    nearest = distances.topk(neighbours, largest=False).indices  # [N, k]

    def own(domain: Tensor) -> Tensor:
        alike = (domain[nearest] == domain[:, None]).double().mean(1)
        return torch.stack([alike[~domain].mean(), alike[domain].mean()])

    domain = order >= sizes[0]
    generator = seeds.generator("chance")
    chance = torch.stack([own(domain[torch.randperm(len(domain), generator=generator)]) for _ in range(_ORDERS)])
    return float(((own(domain) - chance.mean(0)) / chance.std(0)).max())
