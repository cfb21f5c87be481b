"""Prediction sets: the quantile by its definition, coverage by simulation, and what is refused."""

import math

import pytest
import torch

from calida.errors import InputError
from calida.estimation import SetCalibration, effective_size, mass_thresholds, weighted_quantile
from calida.uncertainty import mean_confidence, temper


def quantile_by_definition(scores, weights, extra, level):
    """The smallest of the points at which the distribution function reaches the level."""
    total = sum(weights) + extra
    for point in sorted(scores):
        if sum(w for s, w in zip(scores, weights, strict=True) if s <= point) / total >= level - 1e-9:
            return point
    return math.inf


@pytest.mark.parametrize("level", [0.05, 0.3, 0.5, 0.9, 0.99])
def test_the_quantile_is_the_definitions(level):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(40, generator=generator, dtype=torch.float64).mul(10).round() / 10  # with ties
    weights = torch.rand(40, generator=generator, dtype=torch.float64) ** 3
    extra = torch.tensor([0.0, 0.1, 1.0, 30.0])
    found = weighted_quantile(scores, weights, extra, level).tolist()
    assert found == [quantile_by_definition(scores.tolist(), weights.tolist(), one, level) for one in extra.tolist()]


def test_with_equal_weights_the_quantile_is_that_of_split_conformal():
    """The ceil((n + 1) level)-th smallest score, and infinity where there is none."""
    scores = torch.randperm(19, generator=torch.Generator().manual_seed(1)).double()
    for level in (0.1, 0.5, 0.9, 0.95):
        rank = math.ceil(20 * level - 1e-9)
        assert weighted_quantile(scores, torch.ones(19), torch.ones(()), level) == rank - 1
    assert weighted_quantile(scores, torch.ones(19), torch.ones(()), 0.96) == math.inf


def test_a_weight_stays_with_its_score():
    order = torch.randperm(30, generator=torch.Generator().manual_seed(2))
    scores, weights = torch.arange(30.0), torch.arange(30.0) ** 2
    one, other = (
        weighted_quantile(s, w, torch.ones(()), 0.7) for s, w in ((scores, weights), (scores[order], weights[order]))
    )
    assert one == other


def test_effective_size_of_equal_and_of_single_weights():
    assert effective_size(torch.full((7,), 3.0)) == pytest.approx(7)
    assert effective_size(torch.tensor([1.0, 0.0, 0.0])) == pytest.approx(1)
    assert effective_size(torch.ones(0)) == 0


def test_classes_above_the_threshold_sum_to_the_level():
    probabilities = torch.randn(500, 6, generator=torch.Generator().manual_seed(3)).mul(2).softmax(-1).double()
    thresholds = mass_thresholds(probabilities)
    for level in (0.2, 0.5, 0.9, 0.999):
        at = float(thresholds[round(level * 1000) - 1])
        assert float(probabilities[probabilities >= at].sum()) / 500 >= level - 1e-9
        assert float(probabilities[probabilities > at].sum()) / 500 < level
    assert bool((thresholds.diff() <= 0).all())
    assert float(thresholds[-1]) == pytest.approx(float(probabilities.min()), rel=1e-3)


def made(as_grounds, validation, labels, target, accuracy):
    return SetCalibration.of(as_grounds(validation, labels, target).predictions, accuracy)


def covered(sets, labels):
    return float(sets.gather(1, labels[:, None]).double().mean())


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_exchangeable_samples_are_covered_whatever_the_probabilities(drawn, as_grounds, level):
    """Conformal sets need no calibrated classifier: here it is three times too sure, and the estimate is its own."""
    shares, sizes = [], []
    for seed in range(40):
        logits, labels = drawn(1200, classes=4, seed=seed)
        wrong = torch.log_softmax(3 * logits, -1)
        target = wrong[200:]
        calibration = made(as_grounds, wrong[:200], labels[:200], target, mean_confidence(target))
        sets = calibration.sets(target, level)
        shares.append(covered(sets, labels[200:]))
        sizes.append(float(sets.sum(1).double().mean()))
    # The most probable class is in every set, so that coverage can only be larger than by the thresholds alone.
    assert level - 0.01 < sum(shares) / len(shares) < level + 0.04
    assert 1 <= sum(sizes) / len(sizes) < 3


def test_classes_of_other_frequencies_are_covered():
    """A class is rare in the source and frequent in the target: weighted scores cover it, equal weights do not."""
    normal = torch.distributions.Normal(torch.tensor([-1.0, 1.0]).double(), torch.tensor([1.0, 1.0]).double())
    weighted, plain = [], []
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)

        def sample(rows, rare, generator=generator):
            """Bayes' own log-probabilities, as the source's frequencies have them, and labels."""
            labels = (torch.rand(rows, generator=generator) < rare).long()
            position = 2.0 * labels - 1 + torch.randn(rows, generator=generator, dtype=torch.float64)
            return torch.log_softmax(normal.log_prob(position[:, None]) + torch.tensor([0.9, 0.1]).log(), -1), labels

        (known, labels), (target, truth) = sample(500, 0.1), sample(2000, 0.8)
        scores = 1 - known.exp().gather(1, labels[:, None]).squeeze(1)
        for shares, ratios in ((weighted, [0.2 / 0.9, 0.8 / 0.1]), (plain, [1.0, 1.0])):
            ratios = torch.tensor(ratios).double()
            calibration = SetCalibration(1.0, scores, labels, ratios, torch.ones(1000).double())
            shares.append(covered(calibration.sets(target, 0.9), truth))
    assert 0.89 < sum(weighted) / len(weighted) < 0.94
    assert sum(plain) / len(plain) < 0.8


def test_ratios_are_those_of_the_targets_probabilities(drawn, as_grounds):
    logits, labels = drawn(3000, seed=5)
    target = torch.log_softmax(drawn(3000, seed=6)[0] + torch.tensor([1.0, 0.0, 0.0, -1.0]), -1)
    calibration = made(as_grounds, torch.log_softmax(logits, -1), labels, target, mean_confidence(target))
    expected = target.exp().mean(0) * 3000 / labels.bincount()
    torch.testing.assert_close(calibration.ratios, expected, rtol=1e-6, atol=0)


def test_a_target_harder_than_the_source_is_covered_where_its_accuracy_is_known(drawn, as_grounds):
    """On target the classifier is far too sure: source scores alone cover too little, the estimate makes up for it."""
    logits, labels = drawn(400, seed=0, spread=6.0)
    hard, truth = drawn(4000, seed=1, spread=1.0)
    source, target = torch.log_softmax(logits, -1), torch.log_softmax(6 * hard, -1)
    accuracy = float((target.argmax(-1) == truth).double().mean())
    known = made(as_grounds, source, labels, target, accuracy)
    believed = made(as_grounds, source, labels, target, mean_confidence(target))
    assert covered(believed.sets(target, 0.9), truth) < 0.8
    assert covered(known.sets(target, 0.9), truth) == pytest.approx(0.9, abs=0.04)
    assert mean_confidence(temper(target, known.temperature)) == pytest.approx(accuracy, abs=1e-6)


def test_sets_grow_with_the_level_and_hold_the_most_probable_class(data):
    predictions = data().predictions
    calibration, target = SetCalibration.of(predictions, 0.7), predictions.target.log_probs
    smaller = calibration.sets(target, 0.5)
    for level in (0.7, 0.9, 0.98):
        larger = calibration.sets(target, level)
        assert bool((smaller <= larger).all())
        smaller = larger
    assert bool(calibration.sets(target, 0.01).gather(1, target.argmax(-1, keepdim=True)).all())


def test_tensors_keep_all_of_it(data):
    predictions = data().predictions
    calibration = SetCalibration.of(predictions, 0.7)
    again = SetCalibration.from_tensors(calibration.to_tensors(), len(calibration.ratios))
    assert again.temperature == calibration.temperature
    assert torch.equal(
        again.sets(predictions.target.log_probs, 0.9), calibration.sets(predictions.target.log_probs, 0.9)
    )


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 90.0, math.nan])
def test_a_level_that_is_none_is_refused(data, level):
    with pytest.raises(InputError, match="between 0 and 1"):
        SetCalibration.of(data().predictions, 0.7).class_thresholds(level)


def test_too_few_samples_for_the_level_are_refused(data):
    """Nine samples are enough for 90 % and not for 91."""
    predictions = data().predictions
    few = SetCalibration.of(predictions, 0.7)
    labels = torch.tensor([0, 1, 2] * 3)
    nine = SetCalibration(few.temperature, few.scores[:9], labels, torch.ones(4).double(), few.thresholds)
    assert bool(nine.class_thresholds(0.9).isfinite().all())
    with pytest.raises(InputError, match=r"ask for 0\.\d+ or less, or train with more"):
        nine.class_thresholds(0.91)
    uneven = SetCalibration(**{**vars(nine), "ratios": torch.tensor([9.0, 0.1, 0.1, 1.0]).double()})
    with pytest.raises(InputError, match=r"count as 3\.\d for"):
        uneven.class_thresholds(0.9)
