"""Target samples that the source may know nothing of: groups that nobody agrees on, and samples far outside."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calida.panel.panel import Panel
from calida.panel.views import seen_as
from calida.seeds import Seeds

_GROUPS_A_CLASS, _GROUP_SIZE = 3, 20
_AGREED = 0.6  # of the panel, by weight, on average over a group
_NEIGHBORS, _USUAL = 5, 0.99
_MOST = 4000


def contested_share(panel: Panel, target: Tensor, seeds: Seeds) -> float:
    """The share of the target in groups on whose labels the panel does not agree: [T, D].

    One contested sample may lie between two classes. A whole group of samples that are near each other, contested, is
    a class that nobody taught, or one that has moved too far.
    """
    from sklearn.cluster import KMeans

    said = panel.consensus().argmax(-1)
    same = torch.stack([(one.target.argmax(-1) == said).double() for one in panel.opinions])
    agreed = (panel.weights @ same).numpy()
    rows = _some(len(target), seeds, "groups")
    _, scale = seen_as("own", target.float().numpy(), target.float().numpy())
    points, agreed = scale(target[rows].float().numpy()), agreed[rows.numpy()]
    count = min(_GROUPS_A_CLASS * panel.num_classes, len(points) // _GROUP_SIZE)
    if count < 2:
        return float((agreed < _AGREED).mean())
    group = KMeans(count, n_init=1, random_state=seeds.integer("groups") % 2**32).fit(points).labels_
    sizes = np.bincount(group, minlength=count)
    mean = np.bincount(group, agreed, count) / np.maximum(sizes, 1)
    return float(sizes[mean < _AGREED].sum() / sizes.sum())


def outside_share(source: Tensor, validation: Tensor, target: Tensor, seeds: Seeds) -> float:
    """The share of the target farther from the source than 99 % of held-out source, each domain on its own scale."""
    from sklearn.neighbors import NearestNeighbors

    parts = [part[_some(len(part), seeds, name)].float().numpy() for name, part in
             (("source", source), ("validation", validation), ("target", target))]  # fmt: skip
    if min(len(part) for part in parts) <= _NEIGHBORS:
        return 0.0
    first, second = seen_as("own", parts[0], parts[2])
    near = NearestNeighbors(n_neighbors=_NEIGHBORS).fit(first(parts[0]))
    held, met = (near.kneighbors(rows)[0].mean(1) for rows in (first(parts[1]), second(parts[2])))
    return float((met > np.quantile(held, _USUAL)).mean())


def _some(count: int, seeds: Seeds, name: str) -> Tensor:
    return torch.randperm(count, generator=seeds.generator(f"outliers {name}"))[:_MOST].sort().values
