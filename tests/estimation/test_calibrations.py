"""Every way to calibrate: what it fits, and one contract for all of them."""

import math

import pytest
import torch

from calida.errors import InputError
from calida.estimation import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    CalibrationData,
    check_calibration,
    confidence_difference,
    fit_temperature,
    matched_temperature,
    name_calibration,
    pseudocal_temperature,
    source_temperature,
    thresholded_confidence,
    transcal_temperature,
)
from calida.estimation.temperature import HIGHEST, LOWEST, lowest_temperature
from calida.uncertainty import mean_confidence, temper

EVERY = pytest.mark.parametrize("name", CALIBRATIONS)


def temperature_of(name, known):
    return CALIBRATIONS[name].temperature(known)


def with_weights(known, weights):
    """The same data with these importance weights, in place of those of a regression."""
    copy = CalibrationData(known.predictions, known.mixed)
    copy.__dict__["weights"] = weights
    return copy


def test_each_fits_on_its_own_samples(drawn, as_grounds):
    """Source is too sure by a factor of two, mixed pairs by one of five."""
    source, labels = drawn(20_000, seed=1)
    target, _ = drawn(50, seed=2)
    pairs, first = drawn(20_000, seed=3)
    known = as_grounds((2 * source).log_softmax(-1), labels, target.log_softmax(-1), (5 * pairs).log_softmax(-1), first)
    assert source_temperature(known) == pytest.approx(2, rel=0.05)
    assert pseudocal_temperature(known) == pytest.approx(5, rel=0.05)
    assert temperature_of("none", known) == 1.0


def test_fits_are_those_of_the_temperature_module(data):
    known = data()
    assert source_temperature(known) == fit_temperature(known.validation, known.predictions.labels)
    assert pseudocal_temperature(known) == fit_temperature(known.mixed.log_probs, known.mixed.first)


def test_with_equal_weights_transcal_is_the_source_temperature(data):
    known = data()
    for weight in (1.0, 0.3):
        equal = with_weights(known, torch.full((300,), weight, dtype=torch.float64))
        assert transcal_temperature(equal) == pytest.approx(source_temperature(known), rel=1e-6)


def test_transcal_counts_a_sample_as_often_as_its_weight(data, as_grounds):
    """Weights that are whole numbers are the same samples, repeated."""
    known = data(validation=80)
    times = torch.arange(80) % 4
    repeated = as_grounds(
        known.validation.repeat_interleave(times, 0), known.predictions.labels.repeat_interleave(times), known.target
    )
    weighted = with_weights(known, times.double())
    assert transcal_temperature(weighted) == pytest.approx(source_temperature(repeated), rel=1e-4)
    assert transcal_temperature(weighted) != pytest.approx(source_temperature(known), rel=1e-2)


def test_a_class_counts_as_often_as_it_became(data, as_grounds):
    """Where classes differ in frequency alone, and one is three times as frequent as the others; for all estimates."""
    known = data(validation=4000)
    times = torch.where(known.predictions.labels == 1, 3, 1)
    repeated = as_grounds(
        known.validation.repeat_interleave(times, 0), known.predictions.labels.repeat_interleave(times), known.target
    )
    told = CalibrationData(
        known.predictions, known.mixed, torch.tensor([0.5, 1.5, 0.5, 0.5], dtype=torch.float64).log()
    )
    assert (
        transcal_temperature(told) == source_temperature(told) == pytest.approx(source_temperature(repeated), rel=0.02)
    )
    for estimate in (thresholded_confidence, confidence_difference):
        assert estimate(told) == pytest.approx(estimate(repeated), abs=0.01)


def test_transcal_follows_the_part_of_the_source_that_looks_like_the_target(drawn, as_grounds):
    """Half of the source is right as it is, the other too sure by a factor of four; features tell which is which."""
    logits, labels = drawn(8000)
    half = torch.arange(8000) % 2
    log_probs = torch.where(half[:, None] == 1, 4 * logits, logits).log_softmax(-1)
    generator = torch.Generator().manual_seed(3)
    for looks_like, expected in ((0, 1), (1, 4)):
        noise = 0.3 * torch.randn(8000 + 2000, 1, generator=generator)
        source, target = half[:, None] + noise[:8000], looks_like + noise[8000:]
        known = as_grounds(log_probs, labels, log_probs[:2000], features=(source, target))
        found = transcal_temperature(known)
        both = source_temperature(known)
        assert abs(math.log(found / expected)) < 0.5 * abs(math.log(both / expected))


def test_matched_confidence_is_the_accuracy_that_source_confidences_let_one_expect(data):
    for seed in range(3):
        known = data(seed=seed)
        expected = (thresholded_confidence(known) + confidence_difference(known)) / 2
        matched = temper(known.target, matched_temperature(known))
        assert mean_confidence(matched) == pytest.approx(expected, abs=1e-9)


def extremes():
    labels = torch.arange(20) % 4
    certain = torch.eye(4)[labels].log()
    undecided = torch.zeros(20, 4).log_softmax(-1)
    return {
        "certain and right": (certain, labels, certain),
        "certain and wrong": (certain, (labels + 1) % 4, certain),
        "certain and once wrong": (certain, torch.cat([torch.ones(1, dtype=torch.long), labels[1:]]), certain),
        "undecided": (undecided, labels, undecided),
        "one class": (certain[:1].expand(20, -1), labels, certain[:1].expand(20, -1)),
        "one sample": (undecided[:1], labels[:1], undecided[:1]),
        "one certain sample": (certain[:1], labels[1:2], certain[:1]),
    }


@EVERY
@pytest.mark.parametrize("case", extremes())
@pytest.mark.parametrize("told_apart", [False, True])
def test_temperatures_are_finite_on_extreme_predictions(as_grounds, name, case, told_apart):
    validation, labels, target = extremes()[case]
    features = (
        torch.arange(float(len(validation)))[:, None] / 10,
        torch.arange(float(len(target)))[:, None] / 10 + told_apart,
    )
    known = as_grounds(validation, labels, target, first=target.argmax(-1), features=features)
    assert LOWEST <= temperature_of(name, known) <= HIGHEST


@pytest.mark.parametrize("name", ["source", "transcal", "pseudocal"])
def test_certain_and_wrong_asks_for_no_certainty_at_all(as_grounds, name):
    """Labels that were ruled out, of probability zero, must not make the loss infinite at every temperature."""
    labels = torch.arange(20) % 4
    certain = torch.eye(4)[labels].log()
    features = (torch.arange(20.0)[:, None], torch.arange(20.0)[:, None] + 3)
    wrong = (labels + 1) % 4
    known = as_grounds(certain, wrong, certain, certain, wrong, features)
    assert temperature_of(name, known) == pytest.approx(HIGHEST, rel=1e-3)
    soft = certain.clamp(min=-0.3).log_softmax(-1)
    right = as_grounds(soft, labels, certain, soft, labels, features)
    assert temperature_of(name, right) == pytest.approx(lowest_temperature(20), rel=1e-3)


@EVERY
def test_names_of_classes_do_not_matter(data, as_grounds, name):
    known = data()
    names = torch.tensor([2, 0, 3, 1])
    new = names.argsort()
    renamed = as_grounds(
        known.validation[:, names],
        new[known.predictions.labels],
        known.target[:, names],
        known.mixed.log_probs[:, names],
        new[known.mixed.first],
        (known.predictions.validation.features, known.predictions.target.features),
    )
    assert temperature_of(name, renamed) == pytest.approx(temperature_of(name, known), rel=1e-4)


@pytest.mark.parametrize(("name", "near"), [("pseudo", "pseudocal"), ("transcall", "transcal"), ("Source", "source")])
def test_an_unknown_calibration_gets_the_nearest_names(name, near):
    with pytest.raises(InputError, match=f"unknown calibration '{name}'; did you mean .*{near}"):
        check_calibration(name)


def test_a_name_like_no_other_gets_them_all():
    with pytest.raises(InputError, match=", ".join(CALIBRATIONS)):
        check_calibration("zzz")
    for name in (*CALIBRATIONS, DEFAULT_CALIBRATION):
        check_calibration(name)


def test_what_is_left_out_goes_by_the_kind_of_data():
    assert [name_calibration(DEFAULT_CALIBRATION, images, False) for images in (True, False)] == [
        "pseudocal",
        "transcal",
    ]
    assert [name_calibration(DEFAULT_CALIBRATION, images, True) for images in (True, False)] == ["pseudocal", "matched"]
    for name in CALIBRATIONS:
        assert name_calibration(name, images=False, checked=True) == name


def test_mixed_pairs_sharpen_no_classifier_beyond_what_was_seen_of_it(as_grounds):
    """Right on a quarter of the source and sure of all mixed pairs: it stays as it is, and is not made surer."""
    generator = torch.Generator().manual_seed(0)
    said = torch.randn(400, 4, generator=generator, dtype=torch.float64).log_softmax(-1)
    labels = torch.randint(4, (400,), generator=generator)
    known = as_grounds(said, labels, said)  # mixed pairs are answered as the classifier answers: all right
    right = float((said.argmax(-1) == labels).double().mean())
    assert right < 0.3 < mean_confidence(said) < mean_confidence(temper(said, fit_temperature(said, said.argmax(-1))))
    assert pseudocal_temperature(known) == 1.0
    trusted = CalibrationData(known.predictions, known.mixed, accuracy=0.8)  # by classifiers of other kinds
    assert mean_confidence(temper(known.target, pseudocal_temperature(trusted))) == pytest.approx(0.8, abs=1e-6)


def test_mixed_pairs_that_ask_for_more_doubt_are_believed(as_grounds):
    """A target that is easier than the source: what the classifier says of itself is not taken from it."""
    generator = torch.Generator().manual_seed(0)
    said = 6 * torch.randn(400, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(4, (400,), generator=generator)
    wrong = torch.rand(400, generator=generator) < 0.3
    pairs = torch.where(wrong, (said.argmax(-1) + 1) % 4, said.argmax(-1))
    known = as_grounds(said.log_softmax(-1), labels, said.log_softmax(-1), said.log_softmax(-1), pairs)
    assert pseudocal_temperature(known) == fit_temperature(said.log_softmax(-1), pairs) > 1
