"""The domain classifier on domains whose distance is known."""

import math

import pytest
import torch

from calida.seeds import Seeds
from calida.shift.domain_classifier import domain_gap


def normal(count, seed, width=6):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def test_domains_of_one_distribution_mix():
    gap = domain_gap(normal(800, 0), normal(800, 1), Seeds(0))
    assert gap.auc == pytest.approx(0.5, abs=0.06)
    assert gap.apart < 0.12


@pytest.mark.parametrize("moved", [1.0, 3.0])
def test_two_normal_domains_have_the_area_of_the_closed_form(moved):
    x, y = normal(1500, 0), normal(1500, 1)
    y[:, 2] += moved
    gap = domain_gap(x, y, Seeds(0))
    assert gap.auc == pytest.approx(0.5 * (1 + math.erf(moved / 2)), abs=0.03)  # P(difference of the two > 0)
    assert gap.importance.argmax() == 2
    assert float(gap.importance.sum()) == pytest.approx(1.0, abs=1e-5)


def test_a_domain_that_only_spreads_wider_is_told_by_trees():
    assert domain_gap(normal(800, 0), 3 * normal(800, 1), Seeds(0)).auc > 0.9


def test_samples_that_look_like_the_source_have_low_scores():
    x, y = normal(600, 0), normal(600, 1)
    y[:300, 0] += 5
    scores = domain_gap(x, y, Seeds(0)).scores
    assert scores[:300].mean() > scores[300:].mean() + 0.4


def test_too_few_samples_say_nothing():
    assert domain_gap(normal(1, 0), normal(50, 1), Seeds(0)).auc == 0.5
