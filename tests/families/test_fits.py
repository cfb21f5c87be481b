"""What a fitted estimator has learned, kept as arrays, predicts as the estimator itself does."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calida.errors import InputError
from calida.families import FAMILIES, FittedClassifier, OpaqueFit, TreeFit, own_family, store
from calida.families.small_trees import MOST_LEAVES, small_trees, tree_sums
from calida.model import Sampling, predict
from calida.seeds import Seeds

ESTIMATORS = {
    "logistic": LogisticRegression(),
    "boosting": HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=3),
    "extra trees": ExtraTreesClassifier(9, random_state=0),
    "random forest": RandomForestClassifier(9, random_state=0),
    "bayes": GaussianNB(),
}


def whole_numbers(classes, rows=300, seed=0):
    """Small whole numbers: many samples lie just on a threshold, or at the middle between two values."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 7, (rows, 5)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] * x[:, 2]).astype(int) % classes


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_probabilities_are_the_estimators_own(name, classes):
    x, y = whole_numbers(classes)
    estimator = ESTIMATORS[name].fit(x, y)
    probabilities = store(estimator, classes).log_probs(x).exp().numpy()
    expected = estimator.predict_proba(x)
    if "tree" in name or "forest" in name:  # as if one more tree had said that all classes are equally likely
        expected = (9 * expected + 1 / classes) / 10
    np.testing.assert_allclose(probabilities, expected, atol=2e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_class_without_samples_is_next_to_impossible(name):
    x, y = whole_numbers(2)
    log_probs = store(ESTIMATORS[name].fit(x, 2 * y + 1), 4).log_probs(x)  # classes 1 and 3 of 4
    assert log_probs.shape == (300, 4)
    assert bool(log_probs.isfinite().all())
    assert float(log_probs[:, [0, 2]].exp().max()) <= 1 / 40 + 1e-6  # of nine trees and one more, a fourth
    np.testing.assert_array_equal(log_probs.argmax(-1) // 2, ESTIMATORS[name].predict(x) // 2)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "bayes"])
def test_a_state_read_back_predicts_the_same(name):
    x, y = whole_numbers(3)
    model, other = FittedClassifier(5, 3), FittedClassifier(5, 3)
    model.consist_of([store(ESTIMATORS[name].fit(x, y), 3), store(LogisticRegression().fit(x, y), 3)])
    model.move_logits(torch.tensor([0.5, 0.0, -1.0]))
    other.load_state_dict({key: value.clone() for key, value in model.state_dict().items()})
    assert other.storable
    assert torch.equal(predict(other, torch.from_numpy(x)).log_probs, predict(model, torch.from_numpy(x)).log_probs)


def test_members_are_averaged_and_what_they_disagree_about_is_epistemic():
    x, y = whole_numbers(3)
    fits = [store(ESTIMATORS[name].fit(x, y), 3) for name in ("logistic", "boosting")]
    model = FittedClassifier(5, 3)
    model.consist_of(fits)
    prediction = predict(model, torch.from_numpy(x))
    seen = model.standardize(torch.from_numpy(x)).numpy()
    first, second = (fit.log_probs(seen).double().exp() for fit in fits)
    mean = (first + second) / 2
    torch.testing.assert_close(prediction.probabilities.double(), mean, atol=1e-6, rtol=0)

    def entropy(p):
        return -(p * p.log()).sum(-1)

    expected = entropy(mean) - (entropy(first) + entropy(second)) / 2
    torch.testing.assert_close(prediction.epistemic.double(), expected, atol=1e-5, rtol=0)


def test_moved_logits_are_bayes_rule():
    x, y = whole_numbers(3)
    model = FittedClassifier(5, 3)
    model.consist_of([store(LogisticRegression().fit(x, y), 3)])
    before = predict(model, torch.from_numpy(x)).probabilities
    ratios = torch.tensor([3.0, 1.0, 0.5])
    model.move_logits(ratios.log())
    expected = before * ratios / (before * ratios).sum(-1, keepdim=True)
    torch.testing.assert_close(predict(model, torch.from_numpy(x)).probabilities, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda t: t + 5),
        ("children", lambda t: torch.zeros_like(t)),  # round in a circle
        ("children", lambda t: t + len(t)),
        ("children", lambda t: t[:-1]),
        ("roots", lambda t: -t - 1),
        ("classes", lambda t: t + 3),
        ("value", lambda t: t[:, :0]),
        ("start", lambda t: t[:-1]),
    ],
)
def test_arrays_that_are_no_trees_are_refused(name, change):
    x, y = whole_numbers(3)
    arrays = store(ESTIMATORS["boosting"].fit(x, y), 3).arrays()
    with pytest.raises(ValueError, match="trees"):
        TreeFit.from_arrays({**arrays, name: change(arrays[name])}, 5, 3)
    model = FittedClassifier(5, 3)
    broken = {f"members.0.trees.{key}": value for key, value in {**arrays, name: change(arrays[name])}.items()}
    with pytest.raises(RuntimeError, match="trees"):
        model.load_state_dict({**model.state_dict(), **broken})


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=7, max_leaf_nodes=MOST_LEAVES, early_stopping=False),
        HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=2, early_stopping=False),
        ExtraTreesClassifier(5, max_leaf_nodes=MOST_LEAVES, random_state=0),
    ],
    ids=["boosting", "stumps", "forest"],
)
def test_trees_of_few_leaves_sum_up_as_trees_of_many_do(estimator, classes):
    x, y = whole_numbers(classes)
    fit = store(estimator.fit(x, y), classes)
    trees = small_trees(fit.roots, fit.feature, fit.threshold, fit.children, fit.value)
    np.testing.assert_allclose(tree_sums(trees, x, len(fit.classes)), fit._sums(x), atol=1e-5)


def test_a_tree_of_more_leaves_goes_level_by_level():
    x, y = whole_numbers(2)
    fit = store(HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=12, min_samples_leaf=1).fit(x, y), 2)
    assert small_trees(fit.roots, fit.feature, fit.threshold, fit.children, fit.value) is None


def test_an_estimator_of_ones_own_predicts_and_goes_back_to_an_earlier_fit():
    x, y = whole_numbers(3)
    model = FittedClassifier(5, 3)
    first, second = (store(GaussianNB().fit(x[part], y[part]), 3) for part in (slice(150), slice(150, None)))
    assert isinstance(first, OpaqueFit)
    model.consist_of([first])
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    before = predict(model, torch.from_numpy(x)).log_probs
    model.consist_of([first, second])
    assert not torch.equal(predict(model, torch.from_numpy(x)).log_probs, before)
    model.load_state_dict(kept)
    assert torch.equal(predict(model, torch.from_numpy(x)).log_probs, before)
    assert not model.storable


def test_own_estimators_are_copied_and_checked():
    estimator = HistGradientBoostingClassifier(max_iter=3)
    family = own_family(estimator)
    assert family.storable
    x, y = whole_numbers(2)
    family.fit(x, y, np.ones(len(y)), 0, 2)
    assert not hasattr(estimator, "classes_")
    assert not own_family(GaussianNB()).storable
    assert not own_family(HistGradientBoostingClassifier(categorical_features=[0])).storable
    with pytest.raises(InputError, match="sample_weight"):
        own_family(make_pipeline(StandardScaler(), LogisticRegression()))
    with pytest.raises(InputError, match="predict_proba"):
        own_family(StandardScaler())


@pytest.mark.parametrize("name", FAMILIES)
def test_a_weight_counts_as_that_many_samples(name):
    """Weights 0 leave samples out: the fit is that of the rest."""
    x, y = whole_numbers(2, rows=200)
    weight = np.r_[np.ones(100), np.zeros(100)]
    wrong = np.r_[y[:100], 1 - y[100:]]
    right, other = FAMILIES[name].fit(x, wrong, weight, 0, 2), FAMILIES[name].fit(x[:100], y[:100], weight[:100], 0, 2)
    agree = (right.log_probs(x[:100]).argmax(-1) == other.log_probs(x[:100]).argmax(-1)).double().mean()
    assert float(agree) > 0.9


def test_one_batch_has_log_probabilities_of_every_member():
    x, y = whole_numbers(3)
    model = FittedClassifier(5, 3)
    model.consist_of([store(LogisticRegression().fit(x, y), 3)] * 2)
    samples, features = model.predict_batch(torch.from_numpy(x), Sampling(1, Seeds(0)))
    assert samples.shape == (2, 300, 3)
    torch.testing.assert_close(samples.exp().sum(-1), torch.ones(2, 300))
    torch.testing.assert_close(features, model.standardize(torch.from_numpy(x)))
