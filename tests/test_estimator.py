"""The scikit-learn face: the same numbers as `calida.adapt`, in scikit-learn's and skada's own tools."""

import copy
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import shift
import sklearn
import torch
from people import people
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import calida
from calida.estimator import CalibratedAdapter, label_free_score

ROWS = 192
SETTINGS = {"batch_size": 60, "epochs": 2, "rounds": 2, "passes": 1}
(_X, _Y), _TARGET, _ = shift.make(rows=ROWS)
X, Y, TARGET = _X.double().numpy(), _Y.numpy(), _TARGET.double().numpy()
FEATURES = [f"feature {index}" for index in range(X.shape[1])]
# Both domains in one table, as skada has it: rows of the two taken in turn, several domains on either side.
BOTH = np.stack([X, TARGET], 1).reshape(2 * ROWS, -1)
DOMAIN = np.stack([1 + Y % 2, -1 - Y % 3], 1).ravel()
MASKED = np.stack([Y, np.full(ROWS, -1)], 1).ravel()


def make(recipe="rer-inf", random_state=3, **settings):
    return CalibratedAdapter(recipe, {**SETTINGS, **settings}, random_state=random_state, device="cpu")


def phases(estimator):
    return [record.phase for record in estimator.history_]


def assert_same_weights(first, second):
    """Bit for bit; two estimators, or an estimator and what `calida.adapt` gives."""
    states = [getattr(one, "adapted_", one).classifier.state_dict() for one in (first, second)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.fixture(scope="module")
def adapted():
    return make().fit(X, Y, X_target=TARGET)


@pytest.fixture(scope="module")
def bayesian():
    return make("brer-inf").fit(X, Y, X_target=TARGET)


# A part of the source is held out at random: of rows that are there twice, other ones than of rows with a weight of 2.
# tests/adaptation/test_weights.py holds the same rows out of both.
HELD_OUT = {"check_sample_weight_equivalence_on_dense_data": "repeated rows are held out otherwise"}


@parametrize_with_checks(
    [
        CalibratedAdapter(settings={"epochs": 5, "pretraining.learning_rate": 0.01}, device="cpu"),
        CalibratedAdapter(model="logistic", guard=False),
        CalibratedAdapter(model="hgb", guard=False, settings={"fitting.average": False}),
        CalibratedAdapter(estimator=GaussianNB(), guard=False),
    ],
    expected_failed_checks=lambda estimator: HELD_OUT,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("recipe", "names"), [("rer-inf", ["b", "c", "d", "e"]), ("brer-inf", [-7, -1, 0, 40]), ("dual", [0, 1, 2, 3])]
)
def test_fitting_is_adapting(recipe, names):
    names = np.array(names)
    direct = calida.adapt((_X, _Y), _TARGET, recipe, seed=3, device="cpu", **SETTINGS)
    estimator = make(recipe).fit(X, names[Y], X_target=TARGET)
    assert_same_weights(estimator, direct)
    assert estimator.adapted_.recipe == direct.recipe
    prediction = direct.predict(_TARGET)
    log_probs = prediction.log_probs.double().log_softmax(-1).numpy()
    assert np.array_equal(estimator.predict_log_proba(TARGET), log_probs)
    assert np.array_equal(estimator.predict_proba(TARGET), np.exp(log_probs))
    assert np.array_equal(estimator.predict(TARGET), names[prediction.labels.numpy()])
    for name, values in estimator.predict_uncertainty(TARGET).items():
        assert np.array_equal(values, getattr(prediction, name).double().numpy())


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8])
def test_samples_of_any_kind_are_the_numbers_they_hold(kind):
    x, target = (np.clip(np.round(10 * values) + 60, 0, 127) for values in (X, TARGET))
    of_floats = make("rer-1").fit(x, Y, X_target=target)
    of_kind = make("rer-1").fit(x.astype(kind), Y, X_target=target.astype(kind))
    assert_same_weights(of_kind, of_floats)
    assert np.array_equal(of_kind.predict_proba(target.astype(kind)), of_floats.predict_proba(target))


@pytest.fixture(scope="module")
def of_two_classes():
    return make("rer-1").fit(X, Y % 2, X_target=TARGET)


@pytest.mark.parametrize("classes", [[False, True], [-1, 1], [-1.0, 1.0], ["no", "yes"], [0, 10**12]], ids=str)
def test_labels_of_any_kind_come_back(of_two_classes, classes):
    names = np.array(classes)
    estimator = make("rer-1").fit(X, names[Y % 2], X_target=TARGET)
    assert np.array_equal(estimator.classes_, names)
    assert np.array_equal(estimator.predict_proba(TARGET), of_two_classes.predict_proba(TARGET))
    assert estimator.predict(TARGET).dtype == names.dtype
    assert np.array_equal(estimator.predict(TARGET), names[of_two_classes.predict(TARGET)])
    assert estimator.score(X, names[Y % 2]) == of_two_classes.score(X, Y % 2)


def test_adaptation_pays_on_target(adapted):
    source_only = make().fit(X, Y)
    assert phases(source_only) == ["pretrain"] * 2
    assert phases(adapted) == ["pretrain"] * 2 + ["adapt"] * 2
    assert adapted.score(X, Y) > 0.95
    assert source_only.score(X, Y) > 0.95
    assert adapted.score(TARGET, Y) > source_only.score(TARGET, Y) + 0.05


@pytest.mark.parametrize(
    ("recipe", "trained"), [("rer-inf", "source"), ("brer-inf", "bsource"), ("rer-1-gvr", "source"), ("dual", "source")]
)
def test_without_a_target_it_is_the_source_recipe(recipe, trained):
    direct = calida.adapt((_X, _Y), _X, trained, seed=3, device="cpu", **{**SETTINGS, "rounds": 0})
    assert_same_weights(make(recipe).fit(X, Y), direct)


def test_rows_of_negative_domain_are_the_target(adapted):
    marked = make().fit(BOTH, MASKED, sample_domain=DOMAIN)
    assert_same_weights(marked, adapted)
    assert_same_weights(make().fit(BOTH, MASKED, sample_domain=np.where(DOMAIN == 1, 0, DOMAIN)), adapted)
    assert np.array_equal(marked.predict(TARGET, sample_domain=DOMAIN[1::2]), adapted.predict(TARGET))
    assert np.array_equal(marked.predict_proba(TARGET, sample_domain=DOMAIN[1::2]), adapted.predict_proba(TARGET))


@pytest.mark.parametrize("garbage", [7, -5, np.nan, "truth"], ids=str)
def test_what_is_said_of_target_rows_is_never_read(adapted, garbage):
    labels = MASKED.astype(object if isinstance(garbage, str) else np.float64)
    labels = np.array([str(label) for label in labels], object) if isinstance(garbage, str) else labels
    labels[DOMAIN < 0] = garbage
    spoiled = make().fit(BOTH, labels, sample_domain=DOMAIN)
    assert_same_weights(spoiled, adapted)
    assert len(spoiled.classes_) == shift.CLASSES
    assert spoiled.target_score_ == adapted.target_score_


def test_a_real_class_of_minus_one_is_no_mask():
    estimator = make("rer-1").fit(X, Y - 1)
    assert np.array_equal(estimator.classes_, [-1, 0, 1, 2])
    assert "adapt" not in phases(estimator)


@pytest.mark.filterwarnings("ignore:The number of unique classes", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"X_target": TARGET, "sample_domain": DOMAIN[::2]}, "the target is given twice"),
        ({"sample_domain": np.ones(ROWS)}, r"192 samples as source \(0 or more\) and 0 as target"),
        ({"sample_domain": -np.ones(ROWS)}, r"0 samples as source \(0 or more\) and 192 as target"),
        ({"sample_domain": np.ones(5)}, "inconsistent numbers of samples"),
        ({"sample_domain": np.full(ROWS, np.nan)}, "sample_domain contains NaN"),
        ({"y": None, "sample_domain": np.arange(ROWS) - 5}, "requires y to be passed"),
        ({"X_target": TARGET[:, :3]}, "X has 3 features, but CalibratedAdapter is expecting 6"),
        ({"X_target": TARGET[0]}, "Expected 2D array, got 1D array"),
        ({"X_target": TARGET * np.nan}, "X_target contains NaN"),
        ({"X_target": TARGET * 1e300}, "X_target contains infinity or a value too large"),
        ({"X_target": TARGET[:1]}, "1 sample"),
        ({"y": Y[:-1]}, "inconsistent numbers of samples"),
        ({"y": Y * 0}, "only one class"),
        ({"y": np.arange(ROWS)}, "no class has two samples"),
    ],
)
def test_what_cannot_be_fitted_is_said(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        make().fit(**{"X": X, "y": Y, **change})


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"recipe": "rer-infty"}, "unknown recipe 'rer-infty'"),
        ({"settings": {"round": 3}}, "unknown setting 'round'; did you mean adaptation.rounds"),
        ({"settings": [3]}, r"settings is a mapping from names to values, not \[3\]"),
        ({"validation": 1.5}, "validation share"),
        ({"backbone": "dtn"}, "reads images"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"random_state": "zero"}, "cannot be used to seed"),
    ],
)
def test_parameters_are_judged_when_fitting(parameters, sentence):
    estimator = CalibratedAdapter(**parameters)
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(X, Y)


def test_nothing_is_predicted_before_fitting_or_of_other_features(adapted):
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_uncertainty"):
        with pytest.raises(NotFittedError):
            getattr(make(), method)(X)
        with pytest.raises(ValueError, match="X has 4 features, but CalibratedAdapter is expecting 6 features"):
            getattr(adapted, method)(X[:, :4])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_names_that_must_agree(adapted, library):
    frames = pytest.importorskip(library)

    def frame(values):
        return frames.DataFrame(dict(zip(FEATURES, values.T, strict=True)))

    labels = frames.Series(np.array(list("abcd"))[Y])
    named = make().fit(frame(X), labels, X_target=frame(TARGET))
    assert_same_weights(named, adapted)
    assert list(named.feature_names_in_) == FEATURES
    assert named.n_features_in_ == len(FEATURES)
    assert np.array_equal(named.predict(frame(TARGET)), np.array(list("abcd"))[adapted.predict(TARGET)])
    marked = make().fit(frame(BOTH), frames.Series(MASKED), sample_domain=frames.Series(DOMAIN))
    assert_same_weights(marked, adapted)
    assert list(marked.feature_names_in_) == FEATURES
    for other in (frame(TARGET)[FEATURES[::-1]], frame(TARGET).rename({"feature 0": "x"}, **_axis(library))):
        with pytest.raises(ValueError, match="feature names should match"):
            make().fit(frame(X), Y, X_target=other)
        with pytest.raises(ValueError, match="feature names should match"):
            named.predict(other)


@pytest.mark.filterwarnings("ignore:table")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_words_dates_and_gaps(library):
    source, target = people(160, 1), people(120, 2, 3.0)
    labels, truth = source.pop("state"), target.pop("state")
    if library == "polars":
        source, target = pl.from_pandas(source), pl.from_pandas(target)
    estimator = make("rer-1", epochs=10).fit(source, labels, X_target=target)
    assert list(estimator.feature_names_in_) == list(source.columns)
    assert estimator.table_.columns == ("age", "city", "smokes", "seen", "note")
    assert estimator.score(target, truth) > 0.8
    one = estimator.predict_proba(target[5:6])
    np.testing.assert_allclose(one, estimator.predict_proba(target)[5:6], rtol=1e-5)
    both = pd.concat([people(160, 1), people(120, 2, 3.0)], ignore_index=True)
    marked = make("rer-1", epochs=10)
    marked.fit(both.drop(columns="state"), both["state"], sample_domain=np.repeat([1, -2], [160, 120]))
    assert_same_weights(marked, estimator)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(target[["age", "city"]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(source, labels[:-1], X_target=target)


@pytest.mark.filterwarnings("ignore:table")
def test_a_pipeline_of_columns_reaches_the_target():
    """A ColumnTransformer of the user's own, fitted on source and applied to both domains."""
    source, target = people(160, 1), people(120, 2, 3.0)
    labels, truth = source["state"], target["state"]
    parts = [
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
    ]
    columns = make_column_transformer(*parts, ("passthrough", ["smokes"]))
    fitted = clone(columns).fit(source)
    by_hand = make("rer-1").fit(fitted.transform(source), labels, X_target=fitted.transform(target))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(columns, make("rer-1"), transform_input=["X_target"]).fit(
            source, labels, X_target=target
        )
    assert_same_weights(pipeline[-1], by_hand)
    assert pipeline.score(target, truth) > 0.8
    framed = make_pipeline(clone(columns).set_output(transform="pandas"), make("rer-1"), transform_input=["X_target"])
    with sklearn.config_context(enable_metadata_routing=True):
        framed.fit(source, labels, X_target=target)
    assert list(framed[-1].feature_names_in_) == list(framed[0].get_feature_names_out())
    with pytest.raises(ValueError, match=r"X_target a data frame with words: .* transform_input=\['X_target'\]"):
        make_pipeline(columns, make()).fit(source, labels, calibratedadapter__X_target=target)


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_std=False),
        MinMaxScaler(),
        MaxAbsScaler(),
        RobustScaler(),
        Normalizer(),
        QuantileTransformer(n_quantiles=50, output_distribution="normal"),
        KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
        PCA(),
        FunctionTransformer(np.log1p, feature_names_out="one-to-one"),
    ],
    ids=repr,
)
def test_a_step_that_does_not_reach_the_target_is_warned_of(scaler, output):
    x, target = 150 + 20 * X, 150 + 20 * TARGET
    fitted = clone(scaler).fit(x).set_output(transform=output)
    scaled = fitted.transform(x)
    passed_by = target if output == "default" else pd.DataFrame(target, columns=scaled.columns)
    quick = make("source", epochs=1).set_params(guard=False)
    with pytest.warns(UserWarning, match="X is scaled and X_target seems not to be"):
        quick.fit(scaled, Y, X_target=passed_by)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for same in ((x, target), (fitted.transform(x), fitted.transform(target))):
            quick.fit(same[0], Y, X_target=same[1])


def _axis(library):
    return {"axis": 1} if library == "pandas" else {}


@pytest.mark.parametrize("recipe", ["brer-inf", "rer-1-gvr", "dual", "mmd"])
@pytest.mark.parametrize(("source", "target", "batch"), [(24, 9, 20), (24, 2, 20), (9, 30, 5), (6, 6, 4)])
def test_batches_shrink_to_what_the_source_has(recipe, source, target, batch):
    settings = {"epochs": 2, "rounds": 2}
    estimator = CalibratedAdapter(recipe, settings, device="cpu").fit(X[:source], Y[:source], X_target=TARGET[:target])
    assert estimator.adapted_.recipe.optimization.batch_size == batch
    assert estimator.adapted_.recipe.gradient_variance.groups == min(10, batch // 2)
    assert np.allclose(estimator.predict_proba(TARGET).sum(1), 1)
    assert np.isfinite(estimator.predict_log_proba(TARGET)).all()


def test_the_smallest_data():
    smallest = CalibratedAdapter(settings={"epochs": 2}).fit([[0.0], [0.1], [1.0]], list("aab"))
    assert smallest.adapted_.recipe.optimization.batch_size == 2
    tiny = make("rer-inf").fit(X[:9], [0] * 8 + [1], X_target=TARGET[:2])
    assert tiny.predict_proba(TARGET).shape == (ROWS, 2)


def test_enough_data_leaves_the_recipe_alone():
    own = calida.get_recipe("rer-1").with_settings(**SETTINGS, groups=30)
    assert CalibratedAdapter(own, device="cpu").fit(X, Y, X_target=TARGET).adapted_.recipe == own


def test_uncertainties_make_a_table(bayesian):
    probabilities, told = bayesian.predict_proba(TARGET), bayesian.predict_uncertainty(TARGET)
    np.testing.assert_allclose(told["entropy"], -(probabilities * np.log(probabilities)).sum(1), atol=1e-5)
    np.testing.assert_allclose(told["entropy"], told["aleatoric"] + told["epistemic"], atol=1e-6)
    np.testing.assert_allclose(told["confidence"], probabilities.max(1), atol=1e-6)
    assert told["epistemic"].mean() > 1e-4
    alone = make().set_params(guard=False).fit(X, Y, X_target=TARGET)  # one network, no average of two
    np.testing.assert_allclose(alone.predict_uncertainty(TARGET)["epistemic"], 0, atol=1e-6)
    table = pytest.importorskip("pandas").DataFrame(told)
    assert list(table) == ["confidence", "entropy", "aleatoric", "epistemic"]
    assert len(table) == ROWS


def test_prediction_sets_are_those_of_the_adapted_classifier(adapted):
    sets = adapted.predict_sets(TARGET, 0.8)
    assert sets.shape == (ROWS, len(adapted.classes_))
    assert np.array_equal(sets, adapted.adapted_.predict_sets(_TARGET, 0.8).numpy())
    assert sets[np.arange(ROWS), np.searchsorted(adapted.classes_, adapted.predict(TARGET))].all()
    assert np.array_equal(adapted.predict_sets(TARGET[:5], 0.8), sets[:5])
    with pytest.raises(calida.InputError, match="between 0 and 1"):
        adapted.predict_sets(TARGET, 80)


def test_probabilities_satisfy_scikit_learns_metrics(adapted, recwarn):
    probabilities = adapted.predict_proba(TARGET)
    assert log_loss(Y, probabilities) == pytest.approx(-np.log(probabilities[np.arange(ROWS), Y]).mean())
    assert not [warning for warning in recwarn if "sum to one" in str(warning.message)]


def test_a_sample_is_predicted_alike_alone_and_in_company(adapted, bayesian):
    for estimator in (adapted, bayesian):
        together = estimator.predict_proba(TARGET)
        alone = np.concatenate([estimator.predict_proba(TARGET[[row]]) for row in range(40)])
        np.testing.assert_allclose(alone, together[:40], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(estimator.predict_proba(TARGET[7::-1])[::-1], together[:8], rtol=1e-6, atol=1e-8)


def test_copies_are_the_same_estimator(adapted):
    fresh = clone(adapted)
    assert not hasattr(fresh, "classes_")
    assert fresh.get_params() == adapted.get_params()
    assert_same_weights(fresh.fit(X, Y, X_target=TARGET), adapted)
    for same in (pickle.loads(pickle.dumps(adapted)), copy.deepcopy(adapted)):
        assert_same_weights(same, adapted)
        assert np.array_equal(same.predict_proba(TARGET), adapted.predict_proba(TARGET))
        assert same.history_ == adapted.history_
        assert label_free_score(same) == label_free_score(adapted)


def test_one_setting_can_be_set_by_name():
    estimator = make().set_params(settings__rounds=7, recipe="dual")
    assert estimator.settings == {**SETTINGS, "rounds": 7}
    assert estimator.recipe == "dual"
    assert CalibratedAdapter().set_params(settings__rounds=7).settings == {"rounds": 7}
    assert make().set_params(settings={"passes": 2}, settings__rounds=7).settings == {"passes": 2, "rounds": 7}
    pipeline = make_pipeline(StandardScaler(), make()).set_params(calibratedadapter__settings__rounds=7)
    assert pipeline[-1].settings == {**SETTINGS, "rounds": 7}
    given = {"rounds": 2}
    CalibratedAdapter(settings=given).set_params(settings__rounds=7)
    assert given == {"rounds": 2}
    with pytest.raises(ValueError, match="Invalid parameter 'rounds'"):
        make().set_params(rounds=7)


def test_random_states_become_seeds():
    def seed(state):
        return make("source", state, epochs=1).fit(X, Y).adapted_.seed

    assert seed(11) == seed(np.int64(11)) == 11
    assert seed(np.random.RandomState(11)) == seed(np.random.RandomState(11)) != 11
    stream = np.random.RandomState(11)
    assert seed(stream) != seed(stream)
    assert seed(None) != seed(None)


def test_verbose_prints_a_line_a_round(capsys):
    make().fit(X, Y, X_target=TARGET)
    assert capsys.readouterr().out == ""
    make().set_params(verbose=1).fit(X, Y, X_target=TARGET)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [phase, f"{n}/2"] for phase in ("pretrain", "adapt") for n in (1, 2)
    ]


def test_a_backbone_of_ones_own_stays_as_it_was():
    own = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
    before = own[0].weight.clone()
    estimator = clone(make("rer-1").set_params(backbone=own)).fit(X, Y, X_target=TARGET)
    direct = calida.adapt((_X, _Y), _TARGET, "rer-1", backbone=own, seed=3, device="cpu", **SETTINGS)
    assert_same_weights(estimator, direct)
    assert torch.equal(own[0].weight, before)


def class_correlation(log_probs):
    """tr(P'P) / |P'P|, as slowly as it is written."""
    rows = np.exp(np.asarray(log_probs, dtype=np.float64))
    products = sum(np.outer(row, row) for row in rows)
    return np.trace(products) / np.sqrt((products**2).sum())


def test_the_label_free_score_is_what_calida_select_decides_by():
    adapted = make().set_params(guard=False).fit(X, Y, X_target=TARGET)  # the round itself, no average
    raw = adapted.adapted_.predict(TARGET, raw=True).log_probs
    assert label_free_score(adapted) == adapted.target_score_ == pytest.approx(class_correlation(raw), rel=1e-5)
    source_only = make().fit(X, Y)
    raw = source_only.adapted_.predict(X, raw=True).log_probs
    assert label_free_score(source_only) == pytest.approx(class_correlation(raw), rel=1e-5)
    # Two points far apart, each in a class of its own: all that can be told apart, sqrt 2, and no more.
    sure = make("source", epochs=20).fit(np.sign(X) * [9, 0, 0, 0, 0, 0], X[:, 0] > 0)
    assert 1.3 < label_free_score(sure) < np.sqrt(2)
    # One point: whatever is said of it, it tells nothing apart.
    same = make().fit(X, Y, X_target=np.repeat(TARGET[:1], 50, 0))
    assert label_free_score(same) == pytest.approx(1, abs=1e-9)


def test_the_label_free_score_looks_at_no_label(adapted):
    for labels in (Y, Y[::-1], None, np.full(ROWS, np.nan), ["x"]):
        assert label_free_score(adapted, X, labels) == adapted.target_score_
    assert label_free_score(Pipeline([("last", adapted)])) == adapted.target_score_
    with pytest.raises(NotFittedError):
        label_free_score(make_pipeline(StandardScaler(), make()))
    with pytest.raises(calida.InputError, match="no fitted CalibratedAdapter in StandardScaler"):
        label_free_score(StandardScaler())


def test_a_search_over_settings_and_recipes_in_two_processes():
    grid = [{"settings": [{**SETTINGS, "rounds": 1}]}, {"recipe": ["rer-1"], "settings__rounds": [3]}]
    folds = PredefinedSplit(np.where(np.arange(ROWS) % 3 == 0, 0, -1))
    (train, _), *_ = folds.split()
    search = GridSearchCV(make(), grid, scoring=label_free_score, cv=folds, n_jobs=2, error_score="raise")
    search.fit(X, Y, X_target=TARGET[:100])
    for parameters, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_hand = make().set_params(**parameters).fit(X[train], Y[train], X_target=TARGET[:100])
        assert found == pytest.approx(by_hand.target_score_, abs=1e-6)
    assert search.best_index_ == search.cv_results_["mean_test_score"].argmax()
    best = make().set_params(**search.best_params_).fit(X, Y, X_target=TARGET[:100])
    assert_same_weights(search.best_estimator_, best)
    assert label_free_score(search) == best.target_score_


@pytest.fixture(scope="module")
def scaled():
    """By hand what a pipeline does: scales from source alone."""
    scaler = StandardScaler().fit(X)
    return make().fit(scaler.transform(X), Y, X_target=scaler.transform(TARGET)), scaler


@pytest.fixture(scope="module")
def scaled_by_both():
    scaler = StandardScaler().fit(BOTH)
    return make().fit(scaler.transform(X), Y, X_target=scaler.transform(TARGET)), scaler


def test_a_plain_pipeline_hands_the_target_over_untouched(scaled):
    by_hand, scaler = scaled
    pipeline = Pipeline([("scale", StandardScaler()), ("adapt", make())])
    pipeline.fit(X, Y, adapt__X_target=scaler.transform(TARGET))
    assert_same_weights(pipeline[-1], by_hand)
    with pytest.warns(UserWarning, match=r"made with transform_input=\['X_target'\]"):
        raw = clone(pipeline).fit(X, Y, adapt__X_target=TARGET)
    assert not np.array_equal(raw.predict_proba(TARGET), pipeline.predict_proba(TARGET))


def test_a_pipeline_can_transform_the_target_too(scaled):
    by_hand, scaler = scaled
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), make(), transform_input=["X_target"])
        assert_same_weights(pipeline.fit(X, Y, X_target=TARGET)[-1], by_hand)
        assert np.array_equal(pipeline.predict_proba(TARGET), by_hand.predict_proba(scaler.transform(TARGET)))
        search = GridSearchCV(pipeline, {"calibratedadapter__settings__rounds": [0, 1]}, scoring=label_free_score, cv=2)
        search.fit(X, Y, X_target=TARGET[:100])
        rounds = search.best_params_["calibratedadapter__settings__rounds"]
        assert phases(search.best_estimator_[-1]).count("adapt") == rounds


def test_domains_pass_through_any_pipeline(scaled_by_both):
    by_hand, _ = scaled_by_both
    pipeline = make_pipeline(StandardScaler(), make())
    assert_same_weights(clone(pipeline).fit(BOTH, MASKED, calibratedadapter__sample_domain=DOMAIN)[-1], by_hand)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(pipeline).fit(BOTH, MASKED, sample_domain=DOMAIN)
        assert_same_weights(routed[-1], by_hand)
        assert label_free_score(routed) == by_hand.target_score_
        unasked = make().set_fit_request(sample_domain=False).get_metadata_routing()
        assert unasked.fit.requests == {"X_target": True, "sample_domain": False, "sample_weight": True}


@pytest.fixture
def skada():
    """skada switches metadata routing on for good; here it ends with the test."""
    with sklearn.config_context():
        module = pytest.importorskip("skada")
        sklearn.set_config(enable_metadata_routing=True)
        yield module


def test_skadas_pipeline_hands_over_the_target(skada, scaled_by_both):
    by_hand, scaler = scaled_by_both
    pipeline = skada.make_da_pipeline(StandardScaler(), make())
    truth = np.repeat(Y, 2)  # skada masks the target's labels itself
    pipeline.fit(BOTH, truth.copy(), sample_domain=DOMAIN)
    assert_same_weights(pipeline[-1].base_estimator_, by_hand)
    assert phases(pipeline[-1].base_estimator_).count("adapt") == 2
    assert np.array_equal(pipeline.predict(TARGET), by_hand.predict(scaler.transform(TARGET)))
    probabilities = pipeline.predict_proba(TARGET, sample_domain=DOMAIN[1::2], allow_source=True)
    assert np.array_equal(probabilities, by_hand.predict_proba(scaler.transform(TARGET)))
    assert label_free_score(pipeline) == by_hand.target_score_
    blind = skada.make_da_pipeline(StandardScaler(), make().set_fit_request(sample_domain=False))
    blind.fit(BOTH, truth.copy(), sample_domain=DOMAIN)
    assert "adapt" not in phases(blind[-1].base_estimator_)
    assert pipeline.score(TARGET, Y) > blind.score(TARGET, Y) + 0.05


def test_skadas_labels_may_be_right_wrong_or_masked(skada, scaled_by_both):
    by_hand, _ = scaled_by_both
    for labels in (MASKED, np.where(DOMAIN < 0, 3, MASKED)):
        for mask in (True, False):
            pipeline = skada.make_da_pipeline(StandardScaler(), make(), mask_target_labels=mask)
            pipeline.fit(BOTH, labels.copy(), sample_domain=DOMAIN)
            assert_same_weights(pipeline[-1].base_estimator_, by_hand)


@pytest.mark.parametrize("piped", [True, False], ids=["pipeline", "alone"])
def test_skadas_scorers_and_splits(skada, piped):
    from skada.metrics import CircularValidation, PredictionEntropyScorer
    from skada.model_selection import SourceTargetShuffleSplit

    scores = cross_validate(
        skada.make_da_pipeline(StandardScaler(), make()) if piped else make(),
        BOTH,
        MASKED,
        params={"sample_domain": DOMAIN},
        cv=SourceTargetShuffleSplit(n_splits=1, test_size=0.5, random_state=0),
        scoring={"entropy": PredictionEntropyScorer(), "circle": CircularValidation()},
        return_estimator=True,
        return_indices=True,
        error_score="raise",
    )
    (fitted,), (held,) = scores["estimator"], scores["indices"]["test"]
    assert phases(fitted[-1].base_estimator_ if piped else fitted).count("adapt") == 2
    source, target = held[DOMAIN[held] > 0], held[DOMAIN[held] < 0]
    probabilities = fitted.predict_proba(BOTH[target])
    assert -scores["test_entropy"][0] == pytest.approx(-(probabilities * np.log(probabilities)).mean(), abs=1e-9)
    # The circle: what was predicted on target teaches a second estimator, which is judged on source.
    scale = StandardScaler().fit(BOTH[held]).transform if piped else np.asarray
    back = make().fit(scale(BOTH[target]), fitted.predict(BOTH[target]), X_target=scale(BOTH[source]))
    assert scores["test_circle"][0] == balanced_accuracy_score(MASKED[source], back.predict(scale(BOTH[source])))


def test_a_search_in_skadas_pipeline(skada):
    from skada.model_selection import StratifiedDomainShuffleSplit

    pipeline = skada.make_da_pipeline(StandardScaler(), make())
    grid = {"calibratedadapter__settings__rounds": [1, 4], "calibratedadapter__recipe": ["rer-inf", "source"]}
    splits = StratifiedDomainShuffleSplit(n_splits=1, random_state=0)
    search = GridSearchCV(pipeline, grid, scoring=label_free_score, cv=splits, error_score="raise")
    search.fit(BOTH, MASKED, sample_domain=DOMAIN)
    assert len(set(search.cv_results_["mean_test_score"])) == 4
    inner = search.best_estimator_[-1].base_estimator_
    assert phases(inner).count("adapt") == search.best_params_["calibratedadapter__settings__rounds"]
    assert label_free_score(search) == inner.target_score_


def test_skada_is_never_needed():
    package = Path(calida.__file__).parent
    assert not [path for path in package.rglob("*.py") if re.search(r"(import|from) skada", path.read_text())]


def test_without_a_target_nothing_is_claimed_of_one():
    x, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    quick = {"epochs": 2, "rounds": 1}
    assert calida.CalibratedAdapter(settings=quick).fit(x, y).trust_ is None
    assert calida.CalibratedAdapter(settings=quick).fit(x, y, X_target=x + 1).trust_.accuracy.value > 0
