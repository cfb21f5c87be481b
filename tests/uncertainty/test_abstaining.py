"""Which samples to answer for: against loops over samples, and at both ends."""

import itertools

import numpy as np
import pytest
import torch

from calida.uncertainty import SCORES, accepted, coverage_at_risk, ranked, rejection_scores, risk_coverage


def uniform(rows, seed=0):
    return torch.rand(rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("coverage", [0.0, 0.1, 0.5, 0.737, 1.0])
def test_the_most_certain_are_accepted(coverage):
    scores = uniform(83)
    keep = accepted(scores, coverage)
    best = sorted(range(83), key=lambda row: float(scores[row]))[: round(coverage * 83)]
    assert keep.dtype == torch.bool
    assert keep.nonzero().flatten().tolist() == sorted(best)


def test_more_coverage_keeps_all_that_less_kept():
    scores = uniform(40).round(decimals=1)  # with ties
    masks = [accepted(scores, coverage) for coverage in np.linspace(0, 1, 41)]
    assert [int(mask.sum()) for mask in masks] == list(range(41))
    assert all((more | ~less).all() for less, more in itertools.pairwise(masks))


def test_of_equal_scores_the_first_are_accepted():
    assert accepted(torch.zeros(6), 0.5).tolist() == [True] * 3 + [False] * 3
    assert accepted(torch.tensor([0.9, 0.5, 0.1, 0.5, 0.5]), 0.6).tolist() == [False, True, True, True, False]
    assert accepted(torch.zeros(0), 0.5).tolist() == []


def test_a_second_score_tells_equals_apart():
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randint(4, (200,), generator=generator).double(), torch.rand(200, generator=generator)
    places = ranked(first, second)
    assert places.argsort().tolist() == np.lexsort([second.numpy(), first.numpy()]).tolist()


@pytest.mark.parametrize("max_risk", [0.0, 0.05, 0.2, 0.3, 0.45, 1.0])
def test_coverage_at_a_risk_against_a_loop(max_risk):
    """The longest run of the most certain samples whose mean loss is small enough, though a shorter one is not."""
    scores, loss = uniform(200), uniform(200, 1) * uniform(200)
    order = sorted(range(200), key=lambda row: float(scores[row]))
    means = [np.mean([float(loss[row]) for row in order[:kept]]) for kept in range(1, 201)]
    expected = max((kept / 200 for kept, mean in enumerate(means, 1) if mean <= max_risk), default=0.0)
    assert coverage_at_risk(scores, loss, max_risk) == pytest.approx(expected, abs=1e-12)


def test_a_dip_at_the_end_counts():
    """Risks are 1, 1/2, 1/3: the last is small enough though those before it are not."""
    assert coverage_at_risk(torch.arange(3.0), torch.tensor([1.0, 0, 0]), 0.4) == 1.0
    assert coverage_at_risk(torch.arange(3.0), torch.tensor([0.0, 0, 1]), 0.3) == pytest.approx(2 / 3)


def test_the_ends_of_risk():
    scores = torch.arange(8.0)
    assert coverage_at_risk(scores, torch.full((8,), 0.5), 0.0) == 0.0
    assert coverage_at_risk(scores, torch.full((8,), 0.5), 0.5) == 1.0
    assert coverage_at_risk(scores, torch.ones(8), 1.0) == 1.0
    assert coverage_at_risk(scores, (scores > 4).double(), 0.0) == 5 / 8


def test_more_risk_never_covers_less():
    scores, loss = uniform(100), uniform(100, 1)
    found = [coverage_at_risk(scores, loss, risk) for risk in np.linspace(0, 1, 30)]
    assert found == sorted(found)
    assert found[-1] == 1.0


def test_ties_stand_for_their_mean():
    """A score that knows nothing answers for all or for none; the order of samples does not matter."""
    loss = torch.tensor([0.0, 0, 0, 1], dtype=torch.float64)
    assert coverage_at_risk(torch.zeros(4), loss, 0.2) == 0.0
    assert coverage_at_risk(torch.zeros(4), loss, 0.25) == 1.0
    scores = uniform(60).round(decimals=1)
    loss = uniform(60, 1)
    moved = torch.randperm(60, generator=torch.Generator().manual_seed(2))
    for risk in (0.3, 0.45, 0.5):
        assert coverage_at_risk(scores[moved], loss[moved], risk) == coverage_at_risk(scores, loss, risk)


def test_what_is_accepted_keeps_to_the_risk():
    scores, loss = uniform(150), uniform(150, 1) * uniform(150)
    for max_risk in (0.1, 0.2, 0.3):
        share = coverage_at_risk(scores, loss, max_risk)
        keep = accepted(scores, share)
        assert int(keep.sum()) == round(150 * share) > 0
        assert float(loss[keep].mean()) <= max_risk + 1e-12
        curve = risk_coverage(scores, loss)
        assert (curve.risk[curve.coverage > share] > max_risk).all()


def test_scores_put_the_least_certain_last():
    confidence, entropy, epistemic = (uniform(20, seed) for seed in range(3))
    found = rejection_scores(confidence, entropy, epistemic)
    assert tuple(found) == SCORES
    expected = {
        "confidence": 1 - confidence,
        "entropy": entropy,
        "mutual-information": epistemic,
        "sum": entropy + epistemic,
    }
    for name, values in expected.items():
        assert torch.equal(found[name], values)
