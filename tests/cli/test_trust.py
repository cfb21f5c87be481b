"""Choosing, calibrating, guarding and abstaining, as a user types them."""

import json

import numpy as np
import pytest
import torch
from commands import QUICK, calida_command, read_csv, succeed
from pictures import class_folders

import calida
from calida.adaptation import AUTO_RECIPES
from calida.validation import DECIDING

DATA = ["--source", "photos", "--target", "camera", "--target-labels", "inside"]


@pytest.fixture(scope="module")
def other(place):
    """A second run on the same target, by another recipe and seed."""
    succeed("adapt", *DATA, "--recipe", "rer-1", "--seed", 1, "--out", "other", *QUICK, cwd=place)
    return place / "other"


def test_a_run_says_what_it_returned_and_how_far_to_trust_it(place):
    metrics = json.loads((place / "run" / "metrics.json").read_text())
    trust = metrics["trust"]
    assert trust["returned"] == "source only" or trust["returned"].startswith("round ")
    assert 0 <= trust["accuracy"]["low"] <= trust["accuracy"]["value"] <= trust["accuracy"]["high"] <= 1
    assert calida.load(place / "run").temperature == trust["temperature"] > 0
    rounds = [json.loads(line) for line in (place / "run" / "metrics.jsonl").read_text().splitlines()]
    kept = [record for record in rounds if "validators" in record and record["kept"]][-1]
    assert metrics["validators"] == kept["validators"]
    assert trust["returned"] in ("source only", f"round {kept['round'] + 1} of 2")


def probabilities(path):
    rows = read_csv(path)
    names = [name for name in rows[0] if name.startswith("p_")]
    return np.array([[float(row[name]) for name in names] for row in rows])


def test_predict_gives_calibrated_probabilities_and_raw_ones_if_asked(place, tmp_path):
    temperature = calida.load(place / "run").temperature
    assert temperature != 1
    for flag in ([], ["--raw"]):
        succeed("predict", "run", "camera", "--out", tmp_path / f"{len(flag)}.csv", *flag, cwd=place)
    calibrated, raw = (probabilities(tmp_path / name) for name in ("0.csv", "1.csv"))
    scaled = raw ** (1 / temperature)
    np.testing.assert_allclose(calibrated, scaled / scaled.sum(1, keepdims=True), atol=2e-4)
    assert calibrated.argmax(1).tolist() == raw.argmax(1).tolist()


def test_abstaining_leaves_the_least_certain_without_a_label(place, tmp_path):
    out = tmp_path / "some.csv"
    done = succeed("predict", "run", "camera", "--coverage", 0.75, "--out", out, "--json", cwd=place)
    rows = read_csv(out)
    kept = np.array([row["abstained"] == "no" for row in rows])
    assert kept.sum() == round(0.75 * len(rows))
    assert json.loads(done.stdout)["coverage"] == kept.mean()
    assert all(bool(row["label"]) == answered for row, answered in zip(rows, kept, strict=True))
    sure = probabilities(out).max(1)
    assert sure[kept].min() >= sure[~kept].max() - 1e-6


def test_sets_name_classes_and_grow_with_the_level(place, tmp_path):
    adapted, sizes = calida.load(place / "run"), []
    for level in (0.5, 0.75):
        out = tmp_path / f"{level}.csv"
        done = succeed("predict", "run", "camera", "--sets", level, "--coverage", 1, "--out", out, "--json", cwd=place)
        rows, summary = read_csv(out), json.loads(done.stdout)
        found = [set(json.loads(row["set"])) for row in rows]
        expected = adapted.predict_sets(_camera(place), level)
        assert found == [{adapted.preparation.classes[k] for k in row.nonzero().flatten().tolist()} for row in expected]
        assert [int(row["set_size"]) for row in rows] == [len(one) for one in found]
        assert all(row["label"] in one for row, one in zip(rows, found, strict=True))
        assert summary["set_size"] == pytest.approx(expected.sum(1).double().mean().item())
        sizes.append(summary["set_size"])
    assert sizes[0] <= sizes[1]


def test_a_risk_is_kept_and_no_more_is_given_away_than_that_needs(place, tmp_path):
    sure = np.sort(1 - torch.amax(calida.load(place / "run").predict(_camera(place)).probabilities, 1).double().numpy())
    risks = np.cumsum(sure) / np.arange(1, len(sure) + 1)
    limit = float(np.median(risks))
    out = tmp_path / "some.csv"
    done = succeed("predict", "run", "camera", "--max-risk", limit + 1e-9, "--out", out, "--json", cwd=place)
    summary = json.loads(done.stdout)
    assert summary["expected_risk"] <= limit + 1e-6
    assert round(summary["coverage"] * len(sure)) == int((risks <= limit + 1e-9).sum())


def _camera(place):
    from calida.adaptation import open_new
    from calida.data import Loading

    preparation = calida.load(place / "run").preparation
    return open_new(str(place / "camera"), preparation, Loading(), False, None, "target").samples


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--coverage", "1.5"], "between 0 and 1"),
        (["--coverage", "0.5", "--max-risk", "0.1"], "choose one"),
        (["--order-by", "luck", "--coverage", "0.5"], "mutual-information"),
        (["--raw", "--max-risk", "0.1"], "calibrated"),
        (["--sets", "90"], "between 0 and 1"),
        (["--sets", "0.99"], "held-out source samples"),
    ],
)
def test_abstention_that_makes_no_sense_is_refused(place, tmp_path, options, words):
    done = calida_command("predict", "run", "camera", "--out", tmp_path / "no.csv", *options, cwd=place)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "no.csv").exists()


def test_select_chooses_among_runs_and_says_how_far_validators_disagree(place, other):
    done = succeed("select", "run", "other", "--json", cwd=place)
    said = json.loads(done.stdout)
    assert said["chosen"] in ("run", "other")
    assert set(said["picks"].values()) <= {"run", "other"}
    assert -1 <= said["agreement"] <= 1
    assert set(said["oracle_accuracy"]) == {"run", "other"}
    known = {run: json.loads((place / run / "metrics.json").read_text()) for run in ("run", "other")}
    assert said["estimates"] == {run: metrics["trust"]["accuracy"]["value"] for run, metrics in known.items()}
    best = {run: row[DECIDING] for run, row in said["table"].items()}
    assert best[said["chosen"]] == max(best.values())
    assert "disagree" in succeed("select", "run", "other", cwd=place).stderr or said["agreement"] >= 0.3


def test_select_refuses_what_cannot_be_compared(place, tmp_path):
    assert "at least two" in calida_command("select", "run", cwd=place).stderr
    assert "twice" in calida_command("select", "run", "./run", cwd=place).stderr
    class_folders(tmp_path / "elsewhere", 24, 2)
    words = ["--source", place / "photos", "--target", tmp_path / "elsewhere", "--out", tmp_path / "third"]
    succeed("adapt", *words, *QUICK)
    done = calida_command("select", place / "run", tmp_path / "third")
    assert done.returncode == 2
    assert "cannot be compared" in done.stderr


def test_the_recipe_auto_tries_several_and_returns_one(place):
    done = succeed("adapt", *DATA, "--recipe", "auto", "--out", "auto", "--json", *QUICK, cwd=place)
    metrics = json.loads(done.stdout)
    tried = {"calida", *AUTO_RECIPES[1:]}  # samples are images
    assert set(metrics["trust"]["candidates"]) == tried
    assert metrics["recipe"] in tried
    succeed("adapt", *DATA, "--recipe", metrics["recipe"], "--out", "alone", *QUICK, cwd=place)
    alone, auto = ((place / name / "predictions.csv").read_text() for name in ("alone", "auto"))
    assert alone == auto
    again = calida_command("adapt", "--resume", "--out", "auto", cwd=place)
    assert again.returncode == 0
    assert (place / "auto" / "predictions.csv").read_text() == auto


def test_choice_calibration_and_guard_are_options_that_the_configuration_keeps(place, tmp_path):
    options = ["--choice", "last", "--calibration", "none", "--no-guard"]
    succeed("adapt", *DATA, *options, "--out", tmp_path / "run", *QUICK, cwd=place)
    trust = json.loads((tmp_path / "run" / "metrics.json").read_text())["trust"]
    assert trust["temperature"] == 1
    assert trust["returned"] == "round 2 of 2"
    assert not trust["warnings"]
    succeed("adapt", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again")
    assert json.loads((tmp_path / "again" / "metrics.json").read_text())["trust"] == trust
    for option, word in (("--choice", "corr-c"), ("--calibration", "pseudocal")):
        done = calida_command("adapt", *DATA, option, word[:-1], "--out", tmp_path / "no", *QUICK, cwd=place)
        assert done.returncode == 2
        assert word in done.stderr
        assert not (tmp_path / "no").exists()
