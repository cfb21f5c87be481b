"""Importance weights against a known ratio of densities, and the weighted risk against numpy and skada."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from calida.validation import importance_weights, weighted_risk


def normal(rows, width, seed):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("rows", "width"), [(200, 3), (50, 64), (20, 1)])
def test_a_domain_has_weight_one_beside_itself(rows, width):
    x = normal(rows, width, 0)
    torch.testing.assert_close(importance_weights(x, x), torch.ones(rows, dtype=torch.float64), atol=1e-6, rtol=0)


def test_two_draws_of_one_domain_have_weights_about_one():
    weights = importance_weights(normal(2000, 4, 0), normal(1000, 4, 1))
    assert float(weights.log().square().mean().sqrt()) < 0.15  # four coefficients with an error of 0.04 each
    assert float(weights.mean()) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("sources", "targets"), [(4000, 4000), (6000, 2000), (2000, 6000)])
def test_weights_are_the_ratio_of_known_densities(sources, targets):
    """N(m, I) / N(0, I) at x is exp(x.m - |m|^2 / 2), whatever the numbers of samples."""
    shift = torch.tensor([0.8, -0.4, 0.0], dtype=torch.float64)
    source, target = normal(sources, 3, 0), normal(targets, 3, 1) + shift
    weights, expected = importance_weights(source, target), (source @ shift - shift.square().sum() / 2).exp()
    assert float((weights.log() - expected.log()).square().mean().sqrt()) < 0.1
    ranks = torch.stack([values.argsort().argsort().double() for values in (weights, expected)])
    assert float(torch.corrcoef(ranks)[0, 1]) > 0.99
    assert float(weights.mean()) == pytest.approx(1, abs=0.1)


def test_weights_know_no_units():
    """A feature in other units, another origin, and one that is constant: nothing changes."""
    source, target = normal(300, 3, 0), normal(200, 3, 1) + 0.5
    weights = importance_weights(source, target)
    units = torch.tensor([1e-4, 1.0, 1e5])
    torch.testing.assert_close(importance_weights(source * units + 7, target * units + 7), weights, atol=1e-4, rtol=0)
    source, target = (torch.cat([x, torch.full((len(x), 1), 0.1)], 1) for x in (source, target))
    # C is 1 / D: the constant takes part in the strength of the regularization alone
    torch.testing.assert_close(importance_weights(source, target).log(), weights.log(), atol=0.03, rtol=0)


def test_domains_that_are_told_apart_keep_usable_weights():
    weights = importance_weights(normal(100, 300, 0), normal(100, 300, 1) + 4)
    assert weights.isfinite().all()
    assert (weights > 0).all()


def losses_and_weights(rows=40, seed=0):
    losses = normal(rows, 1, seed).square().squeeze(1)
    return losses, (normal(rows, 1, seed + 1).squeeze(1) + 0.3 * losses).exp()


def slow_risk(losses, weights):
    losses, weights = losses.numpy(), weights.numpy()
    weighted = losses * weights
    rows = len(losses)
    covariance = sum((weighted - weighted.mean()) * (weights - weights.mean())) / (rows - 1)
    eta = -covariance / (sum((weights - weights.mean()) ** 2) / (rows - 1))
    return weighted.mean() + eta * (weights.mean() - 1)


@pytest.mark.parametrize("rows", [2, 3, 40])
def test_risk_against_a_loop(rows):
    losses, weights = losses_and_weights(rows)
    assert weighted_risk(losses, weights) == pytest.approx(slow_risk(losses, weights), abs=1e-10)
    # With weights of mean 1 the control variate is nothing, and the self-normalized mean is left.
    expected = float((weights * losses).sum() / weights.sum())
    assert weighted_risk(losses, weights, normalized=True) == pytest.approx(expected, abs=1e-10)


def test_risk_agrees_with_skada(skada_metrics):
    """skada's own class, given features that are row numbers, and probabilities of domains by row."""
    losses, weights = losses_and_weights(90)
    target = (weights / (1 + weights)).numpy()
    asked = []

    class Estimator:
        module_ = SimpleNamespace(layer_name="features")

        def predict_features(self, x):
            return x

        def predict_proba(self, x, **_):
            asked.extend(x[:, 0].astype(int))
            return x

    class Domains(BaseEstimator):
        def fit(self, x, y):
            return self

        def predict_proba(self, x):
            rows = x[:, 0].astype(int)
            return np.stack([target[rows], 1 - target[rows]], 1)

    rows, domain = np.arange(150.0)[:, None], np.repeat([1, -2], [90, 60])
    labels = np.where(domain > 0, np.arange(150) % 2, -1)
    scorer = skada_metrics.DeepEmbeddedValidation(
        Domains(), lambda y, predicted: losses.numpy()[predicted[:, 0].astype(int)][:, None], random_state=0
    )
    theirs = -scorer(Estimator(), rows, labels, sample_domain=domain)
    assert len(asked) == 30  # a third of the source; the other 60 are as many as there are of the target
    assert weighted_risk(losses[asked], weights[asked]) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 333])
@pytest.mark.parametrize("weight", [1.0, 0.1, 0.7, 3.3])
def test_equal_weights_give_the_plain_mean(rows, weight):
    """The variance of equal numbers is often a rounding error instead of 0, and must not be divided by."""
    losses, _ = losses_and_weights(rows)
    equal = torch.full((rows,), weight, dtype=torch.float64)
    assert weighted_risk(losses, equal) == pytest.approx(weight * float(losses.mean()), abs=1e-12)
    assert weighted_risk(losses, equal, normalized=True) == pytest.approx(float(losses.mean()), abs=1e-12)


@pytest.mark.parametrize("largest", [1e-200, 1e-6, 17.0, 1e308])
def test_normalized_risk_does_not_depend_on_the_scale_of_weights(largest):
    """Up to weights whose sum is too large for a float."""
    losses, weights = losses_and_weights()
    expected = weighted_risk(losses, weights, normalized=True)
    scaled = weights / weights.max() * largest
    assert weighted_risk(losses, scaled, normalized=True) == pytest.approx(expected, abs=1e-10)


def test_risk_is_linear_in_the_losses():
    losses, weights = losses_and_weights()
    for normalized in (False, True):
        value = weighted_risk(losses, weights, normalized)
        assert weighted_risk(3 * losses, weights, normalized) == pytest.approx(3 * value)
        # a constant loss has a known risk: the control variate takes the error of mean(w) out
        assert weighted_risk(losses + 2, weights, normalized) == pytest.approx(value + 2)


def test_risk_on_source_estimates_that_on_target_with_less_variance():
    """x^2 under N(1, 1) has mean 2, and 1 under N(0, 1), where the samples are from."""
    plain, controlled = [], []
    for seed in range(200):
        x = normal(400, 1, seed).squeeze(1)
        weights = (x - 0.5).exp()
        plain.append(float((weights * x.square()).mean()))
        controlled.append(weighted_risk(x.square(), weights))
    assert np.mean(controlled) == pytest.approx(2, abs=0.1)
    assert np.std(controlled) < 0.7 * np.std(plain)


def test_losses_may_be_single_precision():
    losses, weights = losses_and_weights()
    assert weighted_risk(losses.float(), weights) == pytest.approx(weighted_risk(losses, weights), abs=1e-5)
    assert math.isfinite(weighted_risk(losses, weights.float()))
