"""Estimates of target accuracy against loops over samples, formulas and cases with a known answer."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from calida.estimation import (
    DEFAULT_ESTIMATE,
    ESTIMATES,
    CalibrationData,
    Estimate,
    confidence_difference,
    estimate_accuracy,
    fit_temperature,
    mixed_confidence,
    thresholded_confidence,
)
from calida.uncertainty import mean_confidence, temper, wilson
from calida.validation import Mixed

EVERY = pytest.mark.parametrize("estimate", ESTIMATES.values(), ids=ESTIMATES)


def slow_threshold(validation, labels, target):
    """The confidence below which lie as many source samples as are wrong, and the target's share from there on."""
    sure = sorted(max(row) for row in validation)
    wrong = sum(int(np.argmax(row) != label) for row, label in zip(validation, labels, strict=True))
    threshold = sure[min(wrong, len(sure) - 1)]
    return sum(max(row) >= threshold for row in target) / len(target)


@pytest.mark.parametrize("seed", range(4))
def test_thresholded_confidence_against_a_loop(data, seed):
    known = data(validation=37 + seed, target=113, seed=seed)
    expected = slow_threshold(known.validation.numpy(), known.predictions.labels.numpy(), known.target.numpy())
    assert thresholded_confidence(known) == pytest.approx(expected, abs=1e-12)
    assert 0.1 < expected < 0.95


@pytest.mark.parametrize("rows", [1, 2, 7, 50, 333])
def test_a_target_that_is_the_source_has_the_sources_accuracy(drawn, as_grounds, rows):
    """Of distinct confidences, exactly; by a difference of confidences, always."""
    logits, labels = drawn(rows)
    log_probs = (2 * logits).log_softmax(-1)
    labels[0] = log_probs[0].argmax()  # one at least is right
    known = as_grounds(log_probs, labels, log_probs)
    right = float((log_probs.argmax(-1) == labels).double().mean())
    assert thresholded_confidence(known) == pytest.approx(right, abs=1e-12)
    assert confidence_difference(known) == pytest.approx(right, abs=1e-12)


def test_ties_at_the_threshold_count_as_above_it(as_grounds):
    log_probs = torch.tensor([[0.6, 0.4]] * 4, dtype=torch.float64).log()
    known = as_grounds(log_probs, torch.tensor([0, 0, 1, 1]), log_probs)
    assert thresholded_confidence(known) == 1.0


def test_a_source_that_is_all_right_or_all_wrong(drawn, as_grounds):
    log_probs, _ = drawn(60)
    log_probs = log_probs.log_softmax(-1)
    other = (0.5 * log_probs).log_softmax(-1)
    all_right = as_grounds(log_probs, log_probs.argmax(-1), other)
    lowest = float(log_probs.amax(-1).min())
    assert thresholded_confidence(all_right) == pytest.approx(float((other.amax(-1) >= lowest).double().mean()))
    assert thresholded_confidence(as_grounds(log_probs, log_probs.argmin(-1), log_probs)) == pytest.approx(1 / 60)
    assert confidence_difference(as_grounds(log_probs, log_probs.argmin(-1), other)) == 0.0


def test_difference_of_confidences_against_its_formula(data):
    known = data()
    source, target = (part.exp().numpy() for part in (known.validation, known.target))
    right = np.mean(source.argmax(1) == known.predictions.labels.numpy())
    expected = right - (source.max(1).mean() - target.max(1).mean())
    assert confidence_difference(known) == pytest.approx(expected, abs=1e-12)
    assert mean_confidence(known.target) == pytest.approx(target.max(1).mean(), abs=1e-12)


def test_confidence_on_mixed_pairs_is_right_where_pairs_are_like_the_target(drawn, as_grounds):
    """Target and pairs are both too sure by a factor of three; the truth is the confidence before it."""
    target, truth = drawn(5000, seed=1)
    pairs, first = drawn(5000, seed=2)
    tripled, mixed = ((3 * part).log_softmax(-1) for part in (target, pairs))
    known = as_grounds(tripled, truth, tripled, mixed, first)
    temperature = fit_temperature(mixed, first)
    assert mixed_confidence(known) == pytest.approx(mean_confidence(temper(tripled, temperature)), abs=1e-12)
    assert mixed_confidence(known) == pytest.approx(float((target.argmax(-1) == truth).double().mean()), abs=0.02)


@EVERY
def test_estimates_are_shares_on_extreme_predictions(as_grounds, estimate):
    labels = torch.arange(20) % 4
    certain = torch.eye(4)[labels].log()
    undecided = torch.zeros(20, 4).log_softmax(-1)
    for validation in (certain, undecided):
        for truth in (labels, (labels + 1) % 4, labels.flip(0)):
            for target in (certain, undecided, certain[:1]):
                assert 0 <= estimate(as_grounds(validation, truth, target)) <= 1


@EVERY
def test_names_of_classes_do_not_matter(data, as_grounds, estimate):
    known = data()
    names = torch.tensor([2, 0, 3, 1])
    new = names.argsort()
    mixed = known.mixed
    renamed = as_grounds(
        known.validation[:, names],
        new[known.predictions.labels],
        known.target[:, names],
        mixed.log_probs[:, names],
        new[mixed.first],
    )
    assert estimate(renamed) == pytest.approx(estimate(known), abs=1e-6)


def test_the_estimate_is_the_default_one_and_its_interval_holds_all(data):
    for seed, (validation, target) in enumerate([(50, 80), (80, 50), (50, 50), (90, 50), (50, 90)]):
        known = data(seed=seed, validation=validation, target=target)  # the fewer decide what chance leaves
        values = [estimate(known) for estimate in ESTIMATES.values()]
        found = estimate_accuracy(known)
        assert found.value == pytest.approx(ESTIMATES[DEFAULT_ESTIMATE](known), abs=1e-12)
        assert found.low == pytest.approx(_end_of_interval(min(values), 50, 0.0), abs=1e-9)
        assert found.high == pytest.approx(_end_of_interval(max(values), 50, 1.0), abs=1e-9)
        assert all(0 <= found.low <= value <= found.high <= 1 for value in [*values, found.value])


def test_another_calibration_moves_the_estimate(data):
    known = data()
    found = estimate_accuracy(known, lambda _: 3.0)
    assert found.value == pytest.approx(mean_confidence(temper(known.target, 3.0)), abs=1e-12)
    assert found.low <= found.value <= found.high


def test_the_interval_shrinks_with_samples_to_what_the_estimates_differ_by(data):
    """The same samples again and again: estimates stay, chance goes."""
    known = data(validation=400, target=400)
    widths = []

    def repeated(prediction, times):
        parts = {name: value for name, value in vars(prediction).items() if isinstance(value, torch.Tensor)}
        return replace(prediction, **{name: value.repeat_interleave(times, 0) for name, value in parts.items()})

    for times in (1, 4, 100):
        validation, target = (repeated(one, times) for one in (known.predictions.validation, known.predictions.target))
        labels = known.predictions.labels.repeat_interleave(times)
        more = type(known.predictions)(validation, labels, target, known.predictions.mixed)
        found = estimate_accuracy(CalibrationData(more, known.mixed))
        widths.append(found.high - found.low)
    values = [estimate(known) for estimate in ESTIMATES.values()]
    spread = max(values) - min(values)
    assert widths[0] > widths[1] > widths[2] > spread
    assert widths[2] - spread == pytest.approx((widths[0] - spread) / 10, rel=0.2)


def test_estimates_need_no_target_label(data):
    """There is none among them: the second labels of mixed pairs are the only ones left unread, and may be anything."""
    known = data()
    other = CalibrationData(known.predictions, Mixed(known.mixed.log_probs, known.mixed.first, known.mixed.second * 0))
    assert estimate_accuracy(known) == estimate_accuracy(other)


def test_an_estimate_is_plain_json():
    estimate = Estimate(0.5, 0.25, 0.75)
    assert Estimate(**json.loads(json.dumps(asdict(estimate)))) == estimate


def test_an_interval_reaches_to_another_estimate_and_never_shrinks():
    estimate = Estimate(0.8, 0.7, 0.9)
    assert estimate.reaching(0.6) == Estimate(0.8, 0.6, 0.9)
    assert estimate.reaching(0.95) == Estimate(0.8, 0.7, 0.95)
    assert estimate.reaching(0.85) == estimate


def _end_of_interval(share, count, end):
    """The true share, on the side of `end`, from which the observed one is 1.96 standard errors away: by bisection."""
    near, far = share, end
    for _ in range(60):
        middle = (near + far) / 2
        inside = abs(share - middle) <= 1.96 * math.sqrt(middle * (1 - middle) / count)
        near, far = (middle, far) if inside else (near, middle)
    return near


def test_even_a_perfect_share_leaves_room():
    assert wilson(1.0, 40)[0] == pytest.approx(_end_of_interval(1.0, 40, 0.0))
    assert wilson(1.0, 40)[1] == pytest.approx(1)
    assert wilson(1.0, 10**6)[0] == pytest.approx(1, abs=1e-5)
    assert wilson(0.0, 2)[1] > 0.5
