"""Weights of samples and classes: two is twice, zero is absent, balanced is balanced."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import calida
from calida.adaptation import RunOptions
from calida.adaptation.task import Task
from calida.adaptation.weights import joint_weights
from calida.data import Labeled, Scale, SourceBatch, tell_copies
from calida.model import Standardize
from calida.objective import Step
from calida.objective.likelihood import PredictiveLikelihood
from calida.seeds import Seeds
from calida.training import Domains

RANDOM = np.random.default_rng(0)
Y = np.arange(240) % 3
X = (RANDOM.normal(size=(240, 5)) + 1.2 * np.eye(5)[Y]).astype(np.float32)
TARGET = (RANDOM.normal(size=(150, 5)) + 1.2 * np.eye(5)[np.arange(150) % 3] + 0.4).astype(np.float32)
TIMES = RANDOM.integers(1, 4, 240)
QUICK = {"epochs": 2, "rounds": 2, "guard": False}


def trained(rows, weight, model, recipe):
    """Probabilities on target after training on these rows; the same samples are held out whatever the rows."""
    x, y, held = torch.from_numpy(X), torch.from_numpy(Y), torch.arange(30)
    options = RunOptions(recipe, model, seed=1, guard=False)
    weight = None if weight is None else torch.from_numpy(weight).double()
    domains = Domains(Labeled(x[rows], y[rows]), Labeled(x[held], y[held]), torch.from_numpy(TARGET), 3, weight)
    task = Task(options, domains, Scale.of(x), {}, None, None)
    adapted = task.train(options.recipes(vectors=True)[0], None, lambda event: None, False)
    return adapted.predict(TARGET, raw=True).probabilities


@pytest.mark.parametrize("recipe", ["source", "self-training"])
def test_a_weight_of_two_is_the_sample_twice(recipe):
    every = np.arange(len(Y))
    weighted = trained(every, TIMES, "logistic", recipe)
    repeated = trained(np.repeat(every, TIMES), None, "logistic", recipe)
    torch.testing.assert_close(weighted, repeated, atol=2e-3, rtol=0)  # as near as the solver ends
    assert (weighted - trained(every, None, "logistic", recipe)).abs().max() > 0.02


@pytest.mark.parametrize(("model", "framed"), [("network", False), ("logistic", True)])
def test_a_weight_of_zero_is_no_sample(model, framed):
    weight = (TIMES != 2) * 1.0
    x, target = (pd.DataFrame(rows, columns=list("abcde")) if framed else rows for rows in (X, TARGET))
    options = {"model": model, "recipe": "rer-inf", **QUICK}
    absent = calida.adapt((x[weight > 0], Y[weight > 0]), target, **options)
    weightless = calida.adapt((x, Y), target, sample_weight=weight, **options)
    states = [one.classifier.state_dict() for one in (absent, weightless)]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.mark.parametrize("recipe", ["brer-1-gvr", "calida"])
def test_equal_weights_change_nothing_in_a_network(recipe):
    plain, weighted = (
        calida.adapt((X, Y), TARGET, recipe, **QUICK, sample_weight=weight).predict(TARGET).log_probs
        for weight in (None, np.full(240, 3.0))
    )
    assert torch.equal(plain, weighted)


def test_weights_that_are_all_equal_are_none():
    """They leave class shares as they are, which other weights do not."""
    assert joint_weights(torch.arange(4) % 2, 2, torch.full((4,), 2.5), None) is None
    assert joint_weights(torch.arange(4) % 2, 2, None, "balanced") is None
    assert joint_weights(torch.arange(3) % 2, 2, None, "balanced") is not None


def test_a_networks_loss_is_weighted_and_so_is_its_gradient():
    x, y, weight = torch.from_numpy(X[:40]), torch.from_numpy(Y[:40]), torch.from_numpy(TIMES[:40] / 2).float()
    classifier = calida.adapt((X, Y), TARGET, "source", **QUICK).classifier.eval()
    loss = PredictiveLikelihood()(Step(classifier, {"source": SourceBatch(x, y, weight)}, Seeds(0)))
    log_probs = classifier(x).logits.mean.log_softmax(-1)
    expected = sum(-float(weight[row]) * log_probs[row, y[row]] for row in range(40)) / 40
    torch.testing.assert_close(loss, expected)
    halves = [part.weight for part in (SourceBatch(x, y, weight)[:20], SourceBatch(x, y, weight)[20:])]
    assert torch.equal(torch.cat(halves), weight)
    parameters = list(classifier.head.parameters())
    for ours, slow in zip(*(torch.autograd.grad(one, parameters) for one in (loss, expected)), strict=True):
        torch.testing.assert_close(ours, slow, atol=1e-5, rtol=1e-4)


def test_scales_count_samples_by_their_weights():
    x, times = torch.from_numpy(RANDOM.exponential(size=(101, 4))).float(), torch.from_numpy(RANDOM.integers(1, 5, 101))
    weighted = Standardize((4,)).fit(x, weight=times.double())
    repeated = Standardize((4,)).fit(x.repeat_interleave(times, 0))
    torch.testing.assert_close(weighted.state_dict(), repeated.state_dict())
    plain = Standardize((4,)).fit(x)
    assert torch.equal(Standardize((4,)).fit(x, weight=torch.ones(101).double()).scale, plain.scale)
    assert not torch.allclose(weighted.mean, plain.mean)


def test_balanced_is_scikit_learns():
    labels = torch.tensor([0] * 30 + [2] * 10 + [1] * 5)
    ours = joint_weights(labels, 3, None, "balanced").numpy()
    np.testing.assert_allclose(ours, compute_sample_weight("balanced", labels.numpy()))
    weight = torch.rand(45).double()
    both = joint_weights(labels, 3, weight, "balanced").numpy()
    theirs = compute_class_weight("balanced", classes=np.arange(3), y=labels.numpy(), sample_weight=weight.numpy())
    np.testing.assert_allclose(both, theirs[labels] * weight.numpy())
    assert joint_weights(labels, 3, weight, {1: 4}).tolist() == (weight * torch.where(labels == 1, 4, 1)).tolist()
    assert joint_weights(labels, 3, None, None) is None


@pytest.mark.parametrize("model", ["network", "logistic"])
def test_a_heavy_class_is_answered_more_often(model):
    options = {"model": model, "recipe": "source", "epochs": 2, "guard": False}
    plain, heavy = (
        calida.adapt((X, Y), TARGET, class_weight=weight, **options).predict(TARGET).labels for weight in (None, {2: 9})
    )
    assert (heavy == 2).sum() > (plain == 2).sum() + 20


def test_class_shares_are_those_of_the_weights():
    x, y, weight = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(np.where(Y == 1, 4.0, 1.0))
    domains = Domains(Labeled(x, y), Labeled(x, y), x, 3, weight)
    torch.testing.assert_close(domains.source_shares, torch.tensor([1 / 6, 4 / 6, 1 / 6]).double())
    assert float(domains.relative_weight.mean()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sample_weight": np.ones(5)}, r"240 samples but sample_weight of shape \(5,\)"),
        ({"sample_weight": -np.ones(240)}, "-1.0 at index 0; weights are finite and at least 0"),
        ({"sample_weight": np.full(240, np.nan)}, "nan at index 0"),
        ({"sample_weight": np.zeros(240)}, "0 for every sample"),
        ({"sample_weight": ["heavy"] * 240}, "must hold a number for each sample"),
        ({"class_weight": "equal"}, "'balanced' or a mapping from classes to weights, not 'equal'"),
        ({"class_weight": {0: 0.0}}, "the weight of class 0 must be a number above 0"),
        ({"class_weight": {7: 2.0}}, "names the class 7; there are 0..2"),
    ],
)
def test_weights_that_mean_nothing_are_refused(options, sentence):
    with pytest.raises(calida.InputError, match=sentence):
        calida.adapt((X, Y), TARGET, **options)


def test_weights_in_scikit_learns_manner():
    both, domain = np.concatenate([X, TARGET]), np.repeat([1, -1], [240, 150])
    names = np.array(["x", "y", "z"])
    adapter = calida.CalibratedAdapter("rer-inf", {"epochs": 2, "rounds": 2}, class_weight={"z": 2}, guard=False)
    weights, labels = np.concatenate([TIMES, np.full(150, -7.0)]), np.concatenate([names[Y], np.full(150, "?")])
    marked = adapter.fit(both, labels, weights, sample_domain=domain).predict_proba(TARGET)
    direct = calida.adapt((X, Y), TARGET, "rer-inf", **QUICK, sample_weight=TIMES, class_weight={2: 2.0})
    np.testing.assert_allclose(marked, direct.predict(TARGET).probabilities.numpy(), atol=1e-6)


def test_classes_with_names_are_weighted_by_their_names():
    labels = torch.tensor([0, 1, 1, 2])
    names = ["ant", "bee", "cow"]
    assert joint_weights(labels, 3, None, {"bee": 4.0}, names).tolist() == [1, 4, 4, 1]
    for unknown in ("dog", 0):
        with pytest.raises(calida.InputError, match=r"there are ant, bee, cow"):
            joint_weights(labels, 3, None, {unknown: 2.0}, names)
    adapter = calida.CalibratedAdapter(class_weight={"dog": 2.0}, settings={"epochs": 1, "rounds": 1})
    x = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(calida.InputError, match="'dog'"):
        adapter.fit(x, np.array(names)[np.arange(60) % 3], X_target=x)


def test_copies_of_measured_rows_are_told_and_repeated_categories_are_not():
    x, y = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 2
    with pytest.warns(calida.CalidaWarning, match="50 of 100 rows of the source are copies"):
        tell_copies(torch.cat([x, x]), torch.cat([y, y]), "the source")
    with pytest.warns(calida.CalidaWarning, match=f"are copies of others, {len(x)} of them with another label"):
        tell_copies(torch.cat([x, x]), torch.cat([y, 1 - y]), "the source")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_copies(x, y, "the source")
        tell_copies((x > 0).float(), y, "the source")
