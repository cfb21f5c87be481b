"""One contract for every validator: finite, a plain number, blind to the names of classes and the order of samples."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from calida.model import predict
from calida.seeds import Seeds
from calida.validation import (
    MIXVAL_SHARE,
    VALIDATORS,
    DomainPredictions,
    Mixed,
    Predictor,
    Validator,
    cluster_information,
    importance_weights,
    neighborhood_density,
    predict_mixed,
    validate,
    validators,
)

EVERY = pytest.mark.parametrize("name", VALIDATORS)
CLASSES = 4
SEEDS = Seeds(0)


@pytest.fixture
def make_outlook(as_prediction):
    """Classes that lie apart in the features, and predictions that are often right, in single precision."""

    def make(rows=120, source_rows=60, seed=0):
        generator = torch.Generator().manual_seed(seed)

        def draw(count):
            truth = torch.arange(count) % CLASSES
            features = 3 * torch.eye(6)[truth] + 0.3 * torch.randn(count, 6, generator=generator)
            logits = 2 * torch.eye(CLASSES)[truth] + torch.randn(count, CLASSES, generator=generator)
            return as_prediction(logits.log_softmax(-1), features), truth

        validation, labels = draw(source_rows)
        target, _ = draw(rows)
        logits = torch.randn(rows, CLASSES, generator=generator)
        mixed = Mixed(logits.log_softmax(-1), target.labels, target.labels.roll(1))
        return DomainPredictions(validation, labels, target, mixed)

    return make


@pytest.fixture
def certain(as_prediction):
    """Log-probabilities of 0 and -inf, wrong ones on source too, and the same for finite but extreme logits."""

    def make(low):
        def draw(labels):
            logits = torch.full((len(labels), CLASSES), low)
            logits[torch.arange(len(labels)), labels] = 0.0
            features = 3 * torch.eye(6)[labels] + torch.arange(len(labels))[:, None] / 100
            return as_prediction(logits.log_softmax(-1), features)

        truth = torch.arange(20) % CLASSES
        mixed = Mixed(draw(truth).log_probs, truth.roll(1), truth)
        return DomainPredictions(draw((truth + truth // 2) % CLASSES), truth, draw(truth), mixed)

    return make


def reference(predictions):
    """Every value again, in numpy and scikit-learn where there is a formula for it."""
    source, target = (part.log_probs.double() for part in (predictions.validation, predictions.target))
    probs, mean = target.exp().numpy(), target.exp().mean(0).numpy()
    entropy = -(probs * np.log(probs)).sum(1).mean()
    gram = probs.T @ probs
    weights = importance_weights(predictions.validation.features, predictions.target.features).numpy()
    losses = -source.numpy()[np.arange(len(source)), predictions.labels]
    (_, covariance), (_, variance) = np.cov(weights * losses, weights)
    right = (predictions.mixed.log_probs.argmax(1) == predictions.mixed.first).numpy()
    same = (predictions.mixed.first == predictions.mixed.second).numpy()
    return {
        "source": (source.argmax(1) == predictions.labels).numpy().mean(),
        "entropy": entropy,
        "im": -(mean * np.log(mean)).sum() - entropy,
        "bnm": np.linalg.norm(probs, "nuc") / len(probs),
        "corr-c": np.trace(gram) / np.linalg.norm(gram),
        "snd": neighborhood_density(target.exp()),
        "dev": (weights * losses).mean() - covariance / variance * (weights.mean() - 1),
        "class-ami": cluster_information(predictions.target.features, predictions.target.labels, CLASSES, SEEDS),
        "mixval": (right[same].mean() + right[~same].mean()) / 2,
    }


def test_each_name_stands_for_its_formula(make_outlook):
    predictions = make_outlook()
    values, expected = validate(predictions, SEEDS), reference(predictions)
    assert list(values) == list(expected) == list(VALIDATORS)
    assert values == pytest.approx(expected, abs=1e-6)
    assert len({round(value, 4) for value in values.values()}) == len(values)


@EVERY
def test_values_are_plain_numbers(make_outlook, name):
    value = validate(make_outlook(), SEEDS)[name]
    assert type(value) is float
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@EVERY
@pytest.mark.parametrize("low", [-torch.inf, -1e4, -1e30])
def test_extreme_predictions_stay_finite(certain, name, low):
    assert math.isfinite(validate(certain(low), SEEDS)[name])


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fewer points than clusters
def test_a_collapsed_network_stays_finite(make_outlook, as_prediction, name):
    """One prediction and one feature vector for every sample of both domains."""
    predictions = make_outlook()
    row = torch.tensor([[0.0, -50.0, -50.0, -50.0]]).log_softmax(-1)
    source, target = (as_prediction(row.expand(rows, -1), torch.full((rows, 6), 0.1)) for rows in (60, 120))
    mixed = Mixed(target.log_probs, target.labels, target.labels)
    collapsed = replace(predictions, validation=source, target=target, mixed=mixed)
    assert math.isfinite(validate(collapsed, SEEDS)[name])


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_sample_a_domain_is_enough(make_outlook, name):
    assert math.isfinite(validate(make_outlook(rows=1, source_rows=1), SEEDS)[name])


@EVERY
def test_names_of_classes_do_not_matter(make_outlook, name):
    predictions = make_outlook()
    names = torch.tensor([2, 0, 3, 1])  # column c now holds what was class names[c]
    new = names.argsort()
    mixed = predictions.mixed
    renamed = DomainPredictions(
        replace(predictions.validation, log_probs=predictions.validation.log_probs[:, names]),
        new[predictions.labels],
        replace(predictions.target, log_probs=predictions.target.log_probs[:, names]),
        Mixed(mixed.log_probs[:, names], new[mixed.first], new[mixed.second]),
    )
    assert not torch.equal(renamed.target.labels, predictions.target.labels)
    assert validate(renamed, SEEDS)[name] == pytest.approx(validate(predictions, SEEDS)[name], abs=1e-9)


@EVERY
def test_the_order_of_samples_does_not_matter(make_outlook, as_prediction, name):
    predictions = make_outlook()
    generator = torch.Generator().manual_seed(1)
    source, target, pairs = (torch.randperm(rows, generator=generator) for rows in (60, 120, 120))
    moved = DomainPredictions(
        as_prediction(predictions.validation.log_probs[source], predictions.validation.features[source]),
        predictions.labels[source],
        as_prediction(predictions.target.log_probs[target], predictions.target.features[target]),
        Mixed(*(part[pairs] for part in predictions.mixed)),
    )
    # the weights come from an optimizer, which stops a little elsewhere
    assert validate(moved, SEEDS)[name] == pytest.approx(validate(predictions, SEEDS)[name], abs=1e-5)


def test_the_same_seeds_give_the_same_values(make_outlook):
    predictions = make_outlook()
    state = torch.get_rng_state()
    torch.manual_seed(1)
    first = validate(predictions, SEEDS)
    torch.manual_seed(2)
    assert validate(predictions, SEEDS) == first
    torch.set_rng_state(state)


def test_costly_validators_look_at_a_part_of_the_target(make_outlook, monkeypatch):
    predictions = make_outlook()
    whole = validate(predictions, SEEDS)
    monkeypatch.setattr(validators, "_ENOUGH", 30)
    part, again, other = (validate(predictions, seeds) for seeds in (SEEDS, SEEDS, Seeds(1)))
    assert part == again
    assert part["snd"] <= math.log(29)
    assert part["snd"] != other["snd"]
    for name in ("source", "entropy", "im", "bnm", "corr-c", "mixval"):
        assert part[name] == whole[name]


def test_more_is_better_by_the_key():
    assert Validator("", lambda inputs: 0.0).key(0.3) == 0.3
    assert Validator("", lambda inputs: 0.0, higher_is_better=False).key(0.3) == -0.3
    assert {name for name, judge in VALIDATORS.items() if not judge.higher_is_better} == {"entropy", "dev"}
    assert all(judge.summary for judge in VALIDATORS.values())


def test_a_good_classifier_beats_a_collapsed_and_a_guessing_one(make_outlook, as_prediction):
    predictions = make_outlook()
    truth = torch.arange(120) % CLASSES
    guesses = torch.randn(120, CLASSES, generator=torch.Generator().manual_seed(2))

    def keys(logits):
        judged = replace(predictions, target=as_prediction(logits.log_softmax(-1), predictions.target.features))
        return {name: VALIDATORS[name].key(value) for name, value in validate(judged, SEEDS).items()}

    good, guessing = keys(6 * torch.eye(CLASSES)[truth]), keys(guesses)
    collapsed = keys(6 * torch.eye(CLASSES)[torch.zeros_like(truth)])
    for name in ("im", "bnm", "corr-c", "class-ami"):
        assert good[name] > 1.2 * collapsed[name], name
        assert good[name] > 1.2 * guessing[name], name
    # entropy alone, and density too, cannot tell a collapse from certainty: no more is promised of them
    assert good["entropy"] > guessing["entropy"] + 0.1
    assert collapsed["entropy"] == pytest.approx(good["entropy"], abs=1e-6)
    assert collapsed["snd"] == pytest.approx(math.log(119), abs=1e-6)


@pytest.mark.parametrize("better", ["source", "dev"])
def test_validators_of_source_prefer_the_one_that_is_right_on_source(make_outlook, better):
    predictions = make_outlook()
    right = torch.log_softmax(4 * torch.eye(CLASSES)[predictions.labels], -1)
    wrong = right.roll(1, -1)
    keys = [
        VALIDATORS[better].key(
            validate(replace(predictions, validation=replace(predictions.validation, log_probs=log_probs)), SEEDS)[
                better
            ]
        )
        for log_probs in (right, wrong)
    ]
    assert keys[0] > keys[1] + 0.5


def test_a_predictor_predicts_both_domains_and_pairs(classifier, labeled):
    model, x = classifier(), torch.randn(30, 5, generator=torch.Generator().manual_seed(5))
    predictions = Predictor(labeled, x, num_samples=4, seeds=SEEDS, batch_size=7).predict_domains(model)
    source, target = (predict(model, part, 4, SEEDS, 7) for part in (labeled.x, x))
    mixed = predict_mixed(model, x, target.labels, MIXVAL_SHARE, 4, SEEDS, 7)
    assert torch.equal(predictions.labels, labeled.y)
    for ours, expected in ((predictions.validation, source), (predictions.target, target)):
        assert torch.equal(ours.log_probs, expected.log_probs)
        assert torch.equal(ours.features, expected.features)
    assert all(torch.equal(ours, expected) for ours, expected in zip(predictions.mixed, mixed, strict=True))
    assert list(validate(predictions, SEEDS)) == list(VALIDATORS)
