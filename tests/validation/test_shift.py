"""What differs between two tables, on samples whose distribution is known."""

import pytest
import torch

from calida.seeds import Seeds
from calida.validation import is_shifted, measure_shift, share_offsets

ROWS = 800


def table(share, moved=0.0, seed=0):
    """Two classes two apart on the first of three axes; `share` of class 1. The boundary of equal classes is at 1."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(ROWS) < share * ROWS).long()
    x = torch.randn(ROWS, 3, generator=generator, dtype=torch.float64)
    x[:, 0] += 2 * labels
    x[:, 1] += moved
    return x, labels


def log_probs(x, share=0.5):
    """By Bayes' rule, for a share of class 1."""
    odds = 2 * (x[:, 0] - 1) + torch.tensor(share / (1 - share)).log()
    return torch.stack([-odds, odds], 1).div(2).log_softmax(-1)


def measured(source_share, target_share, moved=0.0):
    (x, y), (target, truth) = table(source_share), table(target_share, moved, seed=1)
    predicted = log_probs(target, source_share)
    return measure_shift(x, y, target, predicted, Seeds(0)), target, predicted, truth


def test_nothing_differs():
    found, *_ = measured(0.5, 0.5)
    assert not is_shifted(found)
    assert share_offsets(found) is None


@pytest.mark.parametrize(("source", "target"), [(0.5, 0.1), (0.5, 0.95), (0.9, 0.1), (0.1, 0.5)])
def test_classes_that_differ_in_frequency_alone(source, target):
    """The offsets are those of Bayes' rule, and the expected gain is the true one."""
    found, x, predicted, truth = measured(source, target)
    assert found["separation"] > 3 > found["class_separation"]
    assert not is_shifted(found)
    offsets = share_offsets(found)
    expected = torch.tensor([(1 - target) / (1 - source), target / source]).log().double()
    torch.testing.assert_close(offsets, expected, atol=0.35, rtol=0)
    before, after = predicted.argmax(-1), (predicted + offsets).argmax(-1)
    frequencies = found["frequencies"]
    assert frequencies["changed"] == int((before != after).sum())
    gain = int((after == truth).sum()) - int((before == truth).sum())
    assert frequencies["gain"] == pytest.approx(gain, abs=25)
    best = log_probs(x, target).argmax(-1)
    assert (after == truth).double().mean() == pytest.approx(float((best == truth).double().mean()), abs=0.015)


@pytest.mark.parametrize("target", [0.5, 0.2])
def test_samples_that_lie_elsewhere(target):
    found, *_ = measured(0.5, target, moved=1.5)
    assert is_shifted(found)
    assert share_offsets(found) is None


def test_a_classifier_without_doubts_has_nothing_to_gain():
    (x, y), (target, _) = table(0.5), table(0.1, seed=1)
    found = measure_shift(x, y, target, 50 * log_probs(target), Seeds(0))
    assert not is_shifted(found)
    assert share_offsets(found) is None


def test_too_few_samples_say_nothing():
    (x, y), (target, _) = table(0.5), table(0.5, seed=1)
    found = measure_shift(x, y, target[:6], log_probs(target[:6]), Seeds(0))
    assert "separation" not in found
    assert is_shifted(found)


def test_a_class_that_the_source_lacks():
    (x, y), (target, _) = table(0.5), table(0.1, seed=1)
    three = torch.cat([log_probs(target), torch.full((ROWS, 1), -9.0)], 1).log_softmax(-1)
    offsets = share_offsets(measure_shift(x, y, target, three, Seeds(0)))
    assert torch.isfinite(offsets).all()
    assert offsets[0] > 0.4 > 0 > offsets[1]
