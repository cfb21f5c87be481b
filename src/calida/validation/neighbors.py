"""How samples lie beside each other: validators whose memory does not grow with N squared."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn.functional import normalize

from calida.seeds import Seeds
from calida.threads import threads_for


def neighborhood_density(points: Tensor, temperature: float = 0.05, block: int = 1024) -> float:
    """Mean entropy of softmax(cosine / temperature) over the other samples (SND; Saito et al., 2021): [N, D].

    High means that each sample has many near ones: dense neighborhoods. `points` are probabilities, or features.
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
    with threads_for(points.size), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a collapsed network has fewer points than clusters
        clusters = model.fit_predict(points)
    return float(adjusted_mutual_info_score(labels.cpu().numpy(), clusters))
