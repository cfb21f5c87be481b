"""How samples lie beside each other: validators whose memory does not grow with N squared, and a test of domains."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn.functional import normalize

from calida.seeds import Seeds

_ORDERS = 200


def neighbourhood_density(points: Tensor, temperature: float = 0.05, block: int = 1024) -> float:
    """Mean entropy of softmax(cosine / temperature) over the other samples (SND; Saito et al., 2021): [N, D].

    High means that each sample has many near ones: dense neighbourhoods. `points` are probabilities, or features.
    One block of rows against all others is held at a time: block x N numbers.
    """
    if len(points) < 2:
        return 0.0
    unit = normalize(points.double(), dim=-1)
    total = 0.0
    for start in range(0, len(unit), block):
        rows = unit[start : start + block]
        similarity = rows @ unit.T / temperature
        places = torch.arange(len(rows), device=unit.device)
        similarity[places, start + places] = -torch.inf
        log_shares = similarity.log_softmax(-1)
        log_shares[places, start + places] = 0.0  # 0 log 0 is 0, not NaN
        shares = log_shares.exp()
        shares[places, start + places] = 0.0
        total -= float((shares * log_shares).sum())
    return total / len(unit)


def cluster_information(features: Tensor, labels: Tensor, num_classes: int, seeds: Seeds) -> float:
    """Adjusted mutual information of predicted labels and k-means clusters of features (ClassAMI; Musgrave, 2022)."""
    from sklearn.cluster import KMeans  # imported late: it takes as long as torch
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_mutual_info_score

    count = min(num_classes, len(features))
    points = normalize(features.double(), dim=-1).cpu().numpy()
    model = KMeans(count, n_init=1, random_state=seeds.integer("clusters") % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a collapsed network has fewer points than clusters
        clusters = model.fit_predict(points)
    return float(adjusted_mutual_info_score(labels.cpu().numpy(), clusters))


def neighbour_test(source: Tensor, target: Tensor, seeds: Seeds, neighbours: int = 5, most: int = 2000) -> float | None:
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
