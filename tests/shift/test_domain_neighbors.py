"""Domains that mix and domains that do not, by their nearest neighbours."""

import numpy as np
import pytest
import torch

from calida.seeds import Seeds
from calida.shift import neighbor_test


def points(rows, width=5, seed=0):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_two_draws_of_one_domain_mix():
    """The larger of two scores that are about standard normal, also for unequal sizes, wild scales and many ties."""
    scales = torch.tensor([1e-9, 1.0, 1e6, 3.0, 5.0], dtype=torch.float64)
    draws = {
        "equal": lambda seed, rows: points(rows, seed=seed) * scales,
        "ties": lambda seed, rows: points(rows, seed=seed).sign(),
    }
    for draw in draws.values():
        scores = [neighbor_test(draw(seed, 60), draw(100 + seed, 200), Seeds(seed)) for seed in range(40)]
        assert 0 < np.mean(scores) < 1
        assert 0.4 < np.std(scores) < 1.3
        assert max(scores) < 3.5


@pytest.mark.parametrize("rows", [100, 400])
def test_domains_that_moved_turned_or_spread_do_not_mix(rows):
    source = points(rows, 2) * torch.tensor([3.0, 0.3])
    other = points(rows, 2, seed=1) * torch.tensor([3.0, 0.3])
    assert neighbor_test(source, other + torch.tensor([0.0, 1.0]), Seeds(0)) > 5
    assert neighbor_test(source, other.flip(1), Seeds(0)) > 5
    assert neighbor_test(source, 4 * other, Seeds(0)) > 5
    assert neighbor_test(source, source, Seeds(0)) < 0  # each sample's twin is of the other domain


def test_constant_features_change_nothing():
    source, target = points(200), points(200, seed=1) + 0.5
    constant = torch.tensor([0.1, 0.0, -7e8], dtype=torch.float64).expand(200, 3)
    beside = (torch.cat([domain, constant], 1) for domain in (source, target))
    assert neighbor_test(*beside, Seeds(0)) == neighbor_test(source, target, Seeds(0)) > 3


def test_few_samples_say_nothing_and_many_are_thinned_out():
    assert neighbor_test(points(10), points(500), Seeds(0)) is None
    assert neighbor_test(points(500), points(10), Seeds(0)) is None
    assert neighbor_test(points(300), points(300, seed=1) + 3, Seeds(0), most=20) > 3


def test_noise_around_the_source_does_not_mix_either():
    """Its nearest neighbours are source samples, and theirs are too: on the whole, that passes for chance."""
    source, noisy = points(400, 30) * 0.3, points(400, 30, seed=1)
    for domain in (source, noisy):
        domain[:, 0] += torch.arange(400) % 2 * 10  # at one scale only
    assert neighbor_test(source, noisy, Seeds(0)) > 10
