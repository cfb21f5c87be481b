"""Self-training around any classifier: it learns the target, is judged, saved and resumed as a network is."""

import numpy as np
import pytest
import shift
import torch
from commands import calida_command, read_csv, succeed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB

import calida
from calida.families import FAMILIES

SOURCE, TARGET, TRUTH = shift.make(rows=600)


def adapt(model, **options):
    return calida.adapt(SOURCE, TARGET, model=model, **options)


def accuracy(adapted, truth=TRUTH):
    return float((adapted.predict(TARGET).labels == truth).double().mean())


@pytest.fixture(scope="module")
def runs():
    return {name: adapt(name, oracle_labels=TRUTH) for name in FAMILIES}


@pytest.mark.parametrize("name", FAMILIES)
def test_self_training_follows_classes_that_have_turned(runs, name):
    before, after = accuracy(runs[name].source_only), accuracy(runs[name])
    assert before < 0.95
    assert after > before + (0.04 if name != "hgb" else 0.0)  # steep trees have less room to turn
    assert [record.phase for record in runs[name].history] == ["pretrain", *["adapt"] * 5]
    shares = [record.selected.share for record in runs[name].history[1:]]
    np.testing.assert_allclose(shares, [0.2, 0.35, 0.5, 0.65, 0.8], atol=0.02)


def test_no_round_is_source_only():
    adapted = adapt("logistic", recipe="source")
    assert torch.equal(adapted.predict(TARGET, raw=True).log_probs, adapted.source_only.predict(TARGET).log_probs)


def test_pseudo_labels_of_weight_zero_teach_nothing():
    plain, weightless = adapt("logistic", recipe="source"), adapt("logistic", multiplier=0.0, guard=False)
    first, second = (one.predict(TARGET, raw=True).log_probs for one in (plain, weightless))
    torch.testing.assert_close(first, second, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_target_labels_change_nothing(runs, name):
    garbage = adapt(name, oracle_labels=TRUTH.flip(0))
    assert torch.equal(garbage.predict(TARGET).log_probs, runs[name].predict(TARGET).log_probs)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_saved_classifier_predicts_the_same(runs, name, tmp_path):
    runs[name].save(tmp_path)
    loaded = calida.load(tmp_path)
    for one, other in ((loaded, runs[name]), (loaded.source_only, runs[name].source_only)):
        assert torch.equal(one.predict(TARGET).log_probs, other.predict(TARGET).log_probs)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(runs, tmp_path):
    def stop(record):
        if getattr(record, "phase", "") == "adapt" and record.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt("hgb", folder=tmp_path, observe=stop)
    resumed = adapt("hgb", folder=tmp_path, resume=True)
    assert len(resumed.history) == 6
    assert torch.equal(resumed.predict(TARGET).log_probs, runs["hgb"].predict(TARGET).log_probs)


def test_a_start_is_not_fitted_again(runs):
    started = calida.adapt(SOURCE, TARGET, model="logistic", start=runs["logistic"].source_only)
    assert torch.equal(started.predict(TARGET).log_probs, runs["logistic"].predict(TARGET).log_probs)


def test_soft_labels_are_weights():
    adapted = adapt("logistic", recipe="annealed", rounds=3)
    assert adapted.history[-1].samples > adapted.history[1].samples / 2
    assert accuracy(adapted) > 0.7


def test_an_estimator_of_ones_own(tmp_path):
    bayes = adapt(GaussianNB())
    assert accuracy(bayes) > accuracy(bayes.source_only)
    with pytest.raises(calida.InputError, match="cannot be saved"):
        bayes.save(tmp_path / "never")
    with pytest.raises(calida.InputError, match="cannot be saved"):
        adapt(GaussianNB(), folder=tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_the_scikit_learn_face_takes_an_estimator():
    names = np.array(["a", "b", "c", "d"])
    adapter = calida.CalibratedAdapter(estimator=HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5))
    adapter.fit(SOURCE[0].numpy(), names[SOURCE[1]], X_target=TARGET.numpy())
    assert (adapter.predict(TARGET.numpy()) == names[TRUTH]).mean() > 0.7
    alone = calida.CalibratedAdapter(model="logistic").fit(SOURCE[0].numpy(), names[SOURCE[1]])
    assert (alone.predict(SOURCE[0].numpy()) == names[SOURCE[1]]).mean() > 0.95
    assert adapter.adapted_.network.model == "estimator"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "xgb"}, "unknown model 'xgb'"),
        ({"model": "hgb", "recipe": "rer-1"}, "trains networks"),
        ({"model": "hgb", "recipe": "brer-inf"}, "trains networks"),
        ({"model": "hgb", "backbone": "mlp"}, "a backbone belongs to a network"),
    ],
)
def test_what_does_not_go_together_is_refused(options, words):
    with pytest.raises(calida.InputError, match=words):
        calida.adapt(SOURCE, TARGET, **options)


def test_images_are_refused_by_trees():
    images = torch.rand(40, 1, 8, 8)
    with pytest.raises(calida.InputError, match="reads feature vectors"):
        calida.adapt((images, torch.arange(40) % 2), images, model="forest")


def test_the_commands_adapt_and_predict_a_table(tmp_path):
    (x, y), columns = SOURCE, [f"f{index}" for index in range(6)]
    for name, rows, labels in (("source", x, y), ("target", TARGET, TRUTH)):
        lines = [
            ",".join([*(f"{value:.5f}" for value in row), f"c{label}"]) for row, label in zip(rows, labels, strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join([*columns, "kind"]), *lines]))
    words = ["adapt", "--source", "source.csv", "--target", "target.csv", "--label", "kind", "--out", "run"]
    succeed(*words, "--model", "forest", cwd=tmp_path)
    succeed("predict", "run", "target.csv", "--out", "p.csv", cwd=tmp_path)
    rows = read_csv(tmp_path / "p.csv")
    assert [row["label"] for row in rows] == [row["label"] for row in read_csv(tmp_path / "run" / "predictions.csv")]
    assert np.mean([row["label"] == f"c{label}" for row, label in zip(rows, TRUTH, strict=True)]) > 0.75
    assert 'model = "forest"' in (tmp_path / "run" / "config.toml").read_text()
    done = calida_command(*words[:-1], "other", "--model", "trees", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown model 'trees'" in done.stderr
    assert not (tmp_path / "other").exists()
