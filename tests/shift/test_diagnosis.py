"""What differs between two tables, on samples whose distribution is known."""

import json

import pytest
import torch

from calida.json_values import from_json, to_json
from calida.seeds import Seeds
from calida.shift import Classified, MeasuredShift, is_shifted, measure_shift, prior_offsets

ROWS = 800


def table(share, moved=0.0, seed=0, apart=2.0):
    """Two classes `apart` on the first of three axes, which all `moved` along it; `share` of class 1."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(ROWS) < share * ROWS).long()
    x = torch.randn(ROWS, 3, generator=generator, dtype=torch.float64)
    x[:, 0] += apart * labels + moved
    return x, labels


def log_probs(x, share=0.5, apart=2.0):
    """By Bayes' rule, for a share of class 1."""
    odds = apart * (x[:, 0] - apart / 2) + torch.tensor(share / (1 - share)).log()
    return torch.stack([-odds, odds], 1).div(2).log_softmax(-1)


def measured(source, target, sharpness=1.0, **options):
    """A source with this share of class 1, a target with that one, and a classifier that is right for the former."""
    (x, y), (held, kept) = table(source), table(source, seed=2)
    other, truth = table(target, seed=1, **options)
    said = Classified(sharpness * log_probs(held, source), kept, sharpness * log_probs(other, source))
    return measure_shift(x, y, other, said, Seeds(0)), other, said.target, truth


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_nothing_differs(share):
    found, *_ = measured(share, share)
    assert not is_shifted(found)
    assert prior_offsets(found) is None


@pytest.mark.parametrize(("source", "target"), [(0.5, 0.1), (0.5, 0.95), (0.1, 0.5)])
def test_classes_that_differ_in_frequency_alone(source, target):
    """The offsets are those of Bayes' rule, and the expected gain is the true one."""
    found, x, predicted, truth = measured(source, target)
    assert found.separation > 3 > found.class_separation
    assert not is_shifted(found)
    assert from_json(MeasuredShift, json.loads(json.dumps(to_json(found))), "") == found
    offsets = prior_offsets(found)
    expected = torch.tensor([(1 - target) / (1 - source), target / source]).log().double()
    torch.testing.assert_close(offsets, expected, atol=0.35, rtol=0)
    before, after = predicted.argmax(-1), (predicted + offsets).argmax(-1)
    assert found.changed == int((before != after).sum())
    gain = int((after == truth).sum()) - int((before == truth).sum())
    assert found.gain == pytest.approx(gain, abs=25)
    best = log_probs(x, target).argmax(-1)
    assert (after == truth).double().mean() == pytest.approx(float((best == truth).double().mean()), abs=0.015)


def test_mirror_images_are_told_from_samples_that_moved():
    """Nine to one and one to nine look alike but for a move of the mean; a domain classifier sees the difference."""
    found, *_ = measured(0.9, 0.1)
    assert found.separation > 10
    assert found.class_separation < min(found.centred_separation, 4)


@pytest.mark.parametrize("target", [0.5, 0.2])
@pytest.mark.parametrize("moved", [1.0, -1.5])
def test_samples_that_lie_elsewhere(target, moved):
    """Along the axis of the classes, where the source-only classifier takes it for other shares."""
    found, *_ = measured(0.5, target, moved=moved)
    assert prior_offsets(found) is None
    assert is_shifted(found) or target != 0.5


@pytest.mark.parametrize("sharpness", [0.4, 0.1])
def test_a_classifier_that_doubts_too_much_is_not_believed(sharpness):
    """It finds shares on the source that are not there; a change of them in the target is no witness either."""
    found, *_ = measured(0.2, 0.6, sharpness)
    assert found.share_error > 0.15
    assert prior_offsets(found) is None


def test_a_classifier_without_doubts_has_nothing_to_gain():
    found, *_ = measured(0.5, 0.1, sharpness=50.0)
    assert prior_offsets(found) is None


def test_too_few_samples_say_nothing():
    (x, y), (target, _) = table(0.5), table(0.5, seed=1)
    seen = Classified(log_probs(x), y, log_probs(target[:6]))
    found = measure_shift(x, y, target[:6], seen, Seeds(0))
    assert found.separation is None
    assert is_shifted(found)
    assert prior_offsets(found) is None


def test_a_class_that_nobody_has_gets_no_more_frequent():
    """However many samples either domain has."""
    (x, y), (target, _) = table(0.5), table(0.1, seed=1)
    three = [torch.cat([log_probs(one), torch.full((ROWS, 1), -30.0)], 1).log_softmax(-1) for one in (x, target)]
    for rows in (ROWS, 100):
        seen = Classified(three[0], y, three[1][-rows:])
        found = measure_shift(x, y, target[-rows:], seen, Seeds(0))
        ratio = found.target_shares[2] / found.source_shares[2]
        assert 0 < ratio <= 1


def test_numbers_of_any_kind_are_compared():
    x, y = table(0.5)
    as_bytes = (20 * x + 128).clamp(0, 255).byte()
    found = measure_shift(as_bytes, y, as_bytes, Classified(log_probs(x), y, log_probs(x)), Seeds(0))
    assert not is_shifted(found)
