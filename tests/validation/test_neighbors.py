"""Neighborhoods and clusters against full matrices, scikit-learn and limits."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_mutual_info_score
from torch.overrides import TorchFunctionMode

from calida.seeds import Seeds
from calida.validation import cluster_information, neighborhood_density


def points(rows, width=5, seed=0):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slow_density(x, temperature):
    """Row by row over all others, in float64."""
    unit = x.numpy() / np.linalg.norm(x.numpy(), axis=1, keepdims=True)
    entropies = []
    for row in range(len(unit)):
        others = np.delete(unit, row, axis=0) @ unit[row] / temperature
        shares = np.exp(others - others.max())
        shares /= shares.sum()
        entropies.append(-sum(p * math.log(p) for p in shares if p > 0))
    return np.mean(entropies)


@pytest.mark.parametrize("temperature", [0.05, 1.0, 1e-3])
def test_density_against_the_full_matrix(temperature):
    x = points(60)
    assert neighborhood_density(x, temperature) == pytest.approx(slow_density(x, temperature), abs=1e-10)


@pytest.mark.parametrize("block", [1, 7, 50, 51])
def test_the_block_does_not_matter(block):
    x = points(50).softmax(-1)
    assert neighborhood_density(x, block=block) == pytest.approx(neighborhood_density(x), abs=1e-12)


def test_density_of_known_neighborhoods():
    assert neighborhood_density(torch.full((9, 3), 0.2)) == pytest.approx(math.log(8))
    assert neighborhood_density(points(1)) == 0.0
    assert neighborhood_density(points(2)) == 0.0  # one other takes all
    crowds = torch.eye(4, dtype=torch.float64).repeat_interleave(6, 0)
    assert neighborhood_density(crowds, temperature=1e-3) == pytest.approx(math.log(5))
    assert neighborhood_density(points(40), temperature=1e9) == pytest.approx(math.log(39))


def test_density_knows_directions_only():
    x = points(30)
    lengths = points(30, 1, seed=1).exp()
    assert neighborhood_density(lengths * x) == pytest.approx(neighborhood_density(x), abs=1e-10)
    with_nothing = torch.cat([x, torch.zeros(2, 5)])  # ReLU features may be all zero
    assert math.isfinite(neighborhood_density(with_nothing))


class Largest(TorchFunctionMode):
    """Keeps the number of elements of the largest tensor that is made inside."""

    numel = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.numel = max(self.numel, made.numel())
        return made


def test_memory_grows_with_the_block_not_with_the_square():
    x = points(2000, 4)
    with Largest() as largest:
        neighborhood_density(x, block=50)
    assert largest.numel == 50 * 2000


def blobs(classes=4, each=40, seed=0):
    """Features of length 3 on average, each class in a direction of its own, and the classes."""
    labels = torch.arange(classes * each) % classes
    return 3 * torch.eye(classes + 2)[labels] + 0.2 * points(len(labels), classes + 2, seed).float(), labels


def test_clusters_and_labels_that_are_one():
    features, labels = blobs()
    assert cluster_information(features, labels, 4, Seeds(0)) == pytest.approx(1)


def test_cluster_information_is_that_of_scikit_learn():
    """Blobs are found without a mistake, so the blobs themselves stand for the clusters."""
    features, blob = blobs()
    noisy = torch.where(torch.arange(len(blob)) % 5 == 0, (blob + 1) % 4, blob)
    for labels in (blob // 2, noisy, noisy // 2):
        expected = adjusted_mutual_info_score(labels, blob)
        assert 0.2 < expected < 0.95
        assert cluster_information(features, labels, 4, Seeds(0)) == pytest.approx(expected, abs=1e-9)


def test_labels_that_know_nothing_have_no_information():
    features, _ = blobs(each=200)
    labels = torch.randint(4, (800,), generator=torch.Generator().manual_seed(1))
    assert cluster_information(features, labels, 4, Seeds(0)) == pytest.approx(0, abs=0.02)


def test_names_of_classes_and_lengths_of_features_change_nothing():
    features, blob = blobs()
    labels = torch.where(torch.arange(len(blob)) % 5 == 0, (blob + 1) % 4, blob)
    value = cluster_information(features, labels, 4, Seeds(0))
    renamed = torch.tensor([2, 0, 3, 1])[labels]
    assert cluster_information(features, renamed, 4, Seeds(0)) == pytest.approx(value, abs=1e-12)
    lengths = points(len(blob), 1).exp().float()
    assert cluster_information(lengths * features, labels, 4, Seeds(0)) == pytest.approx(value, abs=1e-9)


def test_fewer_samples_than_classes():
    features = 3 * torch.eye(3)
    assert cluster_information(features, torch.arange(3), 10, Seeds(0)) == pytest.approx(1)
