"""Validators of predictions alone against numpy, skada and their limits."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from calida.uncertainty import accuracy
from calida.validation import (
    class_correlation,
    ensemble_agreement,
    information,
    mean_entropy,
    nuclear_norm,
)

SIZES = pytest.mark.parametrize(("rows", "classes"), [(1, 2), (30, 2), (200, 7), (5, 40)])


def one_hot(labels, classes):
    """Log-probabilities of predictions that leave no doubt: 0 and -inf."""
    return torch.eye(classes, dtype=torch.float64)[labels].log()


def entropy(probs):
    return -sum(p * math.log(p) for p in probs if p > 0)


def test_accuracy_counts():
    log_probs = torch.tensor([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9], [0.2, 0.8]]).log()
    assert accuracy(log_probs, torch.tensor([0, 1, 1, 1])) == 0.75
    assert accuracy(log_probs, torch.tensor([1, 1, 0, 0])) == 0.0


@SIZES
def test_entropy_and_information_against_a_loop(random_log_probs, rows, classes):
    log_probs = random_log_probs(rows, classes)
    probs = log_probs.exp().numpy()
    expected = np.mean([entropy(row) for row in probs])
    assert mean_entropy(log_probs) == pytest.approx(expected, abs=1e-12)
    assert information(log_probs) == pytest.approx(entropy(probs.mean(0)) - expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 10, 345])
def test_entropy_and_information_at_their_ends(classes):
    each = one_hot(torch.arange(3 * classes) % classes, classes)
    assert mean_entropy(each) == pytest.approx(0, abs=1e-12)
    assert information(each) == pytest.approx(math.log(classes))
    undecided = torch.full((6, classes), -math.log(classes))
    assert mean_entropy(undecided) == pytest.approx(math.log(classes), rel=1e-6)
    for constant in (undecided, one_hot(torch.zeros(6, dtype=torch.long), classes)):
        assert information(constant) == pytest.approx(0, abs=1e-6)


def test_entropy_agrees_with_skada(skada_metrics, random_log_probs):
    """skada divides by the number of samples and classes, and turns the sign."""
    target = random_log_probs(50, 6)

    class Estimator:
        def predict_proba(self, x, sample_domain=None):
            return target[x[:, 0].astype(int)].exp().numpy()

        def predict_log_proba(self, x, sample_domain=None):
            return target[x[:, 0].astype(int)].numpy()

    rows = np.concatenate([np.arange(50), np.arange(50)])[:, None].astype(float)
    domain = np.repeat([1, -2], 50)
    labels = np.where(domain > 0, np.arange(100) % 6, -1)
    theirs = skada_metrics.PredictionEntropyScorer()(Estimator(), rows, labels, sample_domain=domain)
    assert mean_entropy(target) == pytest.approx(-6 * theirs, abs=1e-6)


@SIZES
def test_nuclear_norm_against_numpy(random_log_probs, rows, classes):
    log_probs = random_log_probs(rows, classes)
    expected = np.linalg.norm(log_probs.exp().numpy(), "nuc") / rows
    assert nuclear_norm(log_probs) == pytest.approx(expected, abs=1e-6)


def test_nuclear_norm_at_its_ends():
    """n certain samples of each of K classes have K singular values sqrt(n); a constant has one, sqrt(N)."""
    each, constant = one_hot(torch.arange(60) % 4, 4), one_hot(torch.zeros(60, dtype=torch.long), 4)
    assert nuclear_norm(each) == pytest.approx(4 * math.sqrt(15) / 60)
    assert nuclear_norm(constant) == pytest.approx(1 / math.sqrt(60))
    undecided = torch.full((60, 4), math.log(0.25), dtype=torch.float64)
    assert nuclear_norm(undecided) == pytest.approx(1 / math.sqrt(4 * 60), abs=1e-7)


@SIZES
def test_class_correlation_against_a_loop(random_log_probs, rows, classes):
    log_probs = random_log_probs(rows, classes)
    probs = log_probs.exp().numpy()
    correlation = np.array([[sum(probs[:, i] * probs[:, j]) for j in range(classes)] for i in range(classes)])
    expected = sum(correlation[k, k] for k in range(classes)) / math.sqrt((correlation**2).sum())
    assert class_correlation(log_probs) == pytest.approx(expected, abs=1e-12)


def test_class_correlation_at_its_ends():
    for classes in (2, 9):
        each = one_hot(torch.arange(5 * classes) % classes, classes)
        assert class_correlation(each) == pytest.approx(math.sqrt(classes))
        for constant in (one_hot(torch.zeros(8, dtype=torch.long), classes), torch.zeros(8, classes).log_softmax(-1)):
            assert class_correlation(constant) == pytest.approx(1)


def test_ensemble_agreement_against_a_loop(random_log_probs):
    candidates = [random_log_probs(80, 4, seed) for seed in range(5)]
    voted = [int(np.argmax(sum(c[row].exp().numpy() for c in candidates))) for row in range(80)]
    expected = [np.mean([int(c[row].argmax()) == voted[row] for row in range(80)]) for c in candidates]
    assert ensemble_agreement(candidates) == pytest.approx(expected)
    assert len(set(expected)) > 1


def test_the_ensemble_averages_probabilities_not_votes():
    sure, unsure = torch.tensor([[0.95, 0.05]]).log(), torch.tensor([[0.4, 0.6]]).log()
    assert Counter(int(c.argmax()) for c in (sure, unsure, unsure)) == {0: 1, 1: 2}
    assert ensemble_agreement([sure, unsure, unsure]) == [1.0, 0.0, 0.0]


def test_candidates_that_are_one_agree(random_log_probs):
    log_probs = random_log_probs(30, 3)
    assert ensemble_agreement([log_probs] * 4) == [1.0] * 4
    assert ensemble_agreement([log_probs]) == [1.0]
