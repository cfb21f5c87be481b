"""One temperature: its limits, and fits against a fine grid, scipy and temperatures that are known."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize_scalar
from sklearn.metrics import log_loss

from calida.estimation import fit_temperature, match_confidence
from calida.estimation.temperature import HIGHEST, LOWEST, lowest_temperature
from calida.uncertainty import renyi_entropy, temper

TEMPERATURES = (0.05, 0.3, 1.0, 1.7, 6.0, 20.0)


def one_hot(labels, classes=4):
    return torch.eye(classes, dtype=torch.float64)[labels].log()


def test_tempering_is_a_power_of_probabilities(drawn):
    log_probs = drawn(50)[0].log_softmax(-1)
    for temperature in TEMPERATURES:
        powers = log_probs.exp().numpy() ** (1 / temperature)
        expected = powers / powers.sum(1, keepdims=True)
        np.testing.assert_allclose(temper(log_probs, temperature).exp(), expected, rtol=1e-10)
    assert temper(log_probs, 1.0) is log_probs


def test_tempering_twice_is_tempering_by_the_product(drawn):
    log_probs = drawn(50)[0].log_softmax(-1)
    torch.testing.assert_close(temper(temper(log_probs, 3.0), 0.7), temper(log_probs, 2.1))
    torch.testing.assert_close(temper(temper(log_probs, 3.0), 1 / 3), log_probs)


def test_labels_never_change_and_entropies_grow_with_the_temperature(drawn):
    log_probs = drawn(300, classes=7)[0].log_softmax(-1)
    entropies = []
    for temperature in TEMPERATURES:
        tempered = temper(log_probs, temperature)
        assert torch.equal(tempered.argsort(-1), log_probs.argsort(-1))
        entropies.append(renyi_entropy(tempered))
    assert all((cooler < warmer).all() for cooler, warmer in itertools.pairwise(entropies))


def test_the_limits_are_uniform_and_certain(drawn):
    log_probs = drawn(50)[0].log_softmax(-1)
    torch.testing.assert_close(temper(log_probs, 1e9).exp(), torch.full_like(log_probs, 0.25))
    torch.testing.assert_close(temper(log_probs, 1e-9).exp(), one_hot(log_probs.argmax(-1)).exp())


@pytest.mark.parametrize("factor", [0.25, 0.8, 1.0, 3.0, 15.0])
def test_a_known_temperature_is_found_again(drawn, factor):
    """Labels are drawn from softmax(logits); log-probabilities of factor * logits are right at T = factor."""
    logits, labels = drawn(20_000)
    exact = fit_temperature(logits.log_softmax(-1), labels)
    assert exact == pytest.approx(1, abs=0.03)  # an error of 1 / sqrt(20,000 times the information, about 1)
    assert fit_temperature((factor * logits).log_softmax(-1), labels) == pytest.approx(factor * exact, rel=1e-3)


@pytest.mark.parametrize(("rows", "classes"), [(5, 2), (40, 3), (300, 10)])
@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_a_fit_against_a_fine_grid(drawn, rows, classes, factor):
    logits, labels = drawn(rows, classes)
    log_probs = (factor * logits).log_softmax(-1)
    grid = np.exp(np.linspace(math.log(lowest_temperature(rows)), math.log(HIGHEST), 2001))
    scores = log_probs.numpy() / grid[:, None, None]
    losses = (np.log(np.exp(scores).sum(-1)) - scores[:, np.arange(rows), labels]).mean(-1)
    found = fit_temperature(log_probs, labels)
    assert found == pytest.approx(grid[int(losses.argmin())], rel=2 * math.log(grid[1] / grid[0]))
    assert log_loss(labels, temper(log_probs, found).exp(), labels=range(classes)) <= losses.min() * (1 + 1e-4) + 1e-9


def test_a_fit_against_another_minimiser_of_another_parameter(drawn):
    """The negative log-likelihood is convex in 1 / T: Brent's method without bounds ends in the same place."""
    logits, labels = drawn(500)
    rows = np.arange(500)
    scores = 2 * logits.numpy()

    def loss(inverse):
        return np.mean(np.log(np.exp(inverse * scores).sum(1)) - inverse * scores[rows, labels])

    expected = 1 / minimize_scalar(loss, bracket=(0.1, 1.0)).x
    assert fit_temperature((2 * logits).log_softmax(-1), labels) == pytest.approx(expected, rel=1e-4)


def test_a_fit_reads_single_precision_and_does_not_mind_the_order(drawn):
    logits, labels = drawn(400)
    log_probs = (2 * logits).log_softmax(-1)
    found = fit_temperature(log_probs, labels)
    assert fit_temperature(log_probs.float(), labels) == pytest.approx(found, rel=1e-4)
    assert fit_temperature(log_probs.flip(0), labels.flip(0)) == pytest.approx(found, rel=1e-6)


def test_fits_stay_between_their_bounds():
    """All right asks for T = 0, all wrong for T = infinity; probabilities of exactly zero stand on both sides."""
    labels = torch.arange(40) % 4
    soft = torch.log_softmax(one_hot(labels).exp(), -1)
    assert fit_temperature(soft, labels) == pytest.approx(lowest_temperature(40), rel=1e-3)
    assert fit_temperature(soft.repeat(20, 1), labels.repeat(20)) == pytest.approx(LOWEST, rel=1e-3)
    assert fit_temperature(soft, (labels + 1) % 4) == pytest.approx(HIGHEST, rel=1e-3)
    for truth in (labels, (labels + 1) % 4, labels.where(labels > 0, 1)):
        assert lowest_temperature(40) <= fit_temperature(one_hot(labels), truth) <= HIGHEST
    assert fit_temperature(one_hot(labels), (labels + 1) % 4) == pytest.approx(HIGHEST, rel=1e-3)  # not NaN everywhere


def test_with_two_levels_of_probability_the_fit_is_the_share_that_is_right():
    labels = torch.arange(40) % 4
    log_probs = one_hot(labels).clamp(min=-30)
    truth = torch.where(torch.arange(40) < 3, labels + 1, labels)
    confidence = temper(log_probs, fit_temperature(log_probs, truth)).amax(-1).exp()
    torch.testing.assert_close(confidence, torch.full_like(confidence, 37 / 40), atol=1e-4, rtol=0)


def mean_confidence(log_probs, temperature):
    return float(torch.softmax(log_probs / temperature, -1).amax(-1).mean())


@pytest.mark.parametrize("accuracy", [0.3, 0.5, 0.8, 0.95])
def test_confidence_is_brought_to_an_accuracy(drawn, accuracy):
    log_probs = drawn(300)[0].log_softmax(-1)
    found = match_confidence(log_probs, accuracy)
    assert mean_confidence(log_probs, found) == pytest.approx(accuracy, abs=1e-9)
    expected = brentq(lambda temperature: mean_confidence(log_probs, temperature) - accuracy, LOWEST, HIGHEST)
    assert found == pytest.approx(expected, rel=1e-6)


def test_more_accuracy_is_a_lower_temperature(drawn):
    log_probs = drawn(300)[0].log_softmax(-1)
    found = [match_confidence(log_probs, accuracy) for accuracy in np.linspace(0.3, 0.99, 12)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 12
    assert match_confidence(log_probs, mean_confidence(log_probs, 1.0)) == pytest.approx(1, rel=1e-6)


def test_an_accuracy_out_of_reach_gives_the_nearest_bound(drawn):
    log_probs = drawn(100)[0].log_softmax(-1)
    for accuracy in (0.0, 0.1, 1 / 4, -1.0):
        assert match_confidence(log_probs, accuracy) == pytest.approx(HIGHEST, rel=1e-6)
    for accuracy in (1.0, 2.0):
        assert match_confidence(log_probs, accuracy) == pytest.approx(LOWEST, rel=1e-6)
    assert match_confidence(torch.zeros(5, 4).log_softmax(-1), 0.9) == pytest.approx(LOWEST, rel=1e-6)
    assert LOWEST <= match_confidence(one_hot(torch.arange(5) % 4), 0.5) <= HIGHEST


def test_few_samples_sharpen_little():
    assert [lowest_temperature(count) for count in (1, 30, 60, 300, 10**6)] == [1, 1, 0.5, LOWEST, LOWEST]
