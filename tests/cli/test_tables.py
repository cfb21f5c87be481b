"""Tables as their owners have them, from the command line to predictions of raw rows."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from commands import calida_command, read_csv, succeed
from people import people

import calida
from calida.estimation import right_by_confidence

BRIEF = ["--set", "epochs=10", "--set", "min_batches_per_epoch=1", "--set", "rounds=2", "--set", "batch_size=32"]
SOURCE, TARGET, MORE = people(200, 1), people(150, 2, 3.0, ("Rome", "Oslo", "Kiel")), people(40, 3, 3.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run from CSV to Parquet whose rows have names; the target's labels lie apart, in another order."""
    folder = tmp_path_factory.mktemp("tables")
    SOURCE.to_csv(folder / "source.csv", index=False)
    TARGET.drop(columns=["state", "code"]).to_parquet(folder / "target.parquet")
    MORE.drop(columns=["state", "code"]).to_csv(folder / "more.tsv", index=False, sep="\t")
    TARGET[["patient", "state"]][::-1].to_csv(folder / "truth.csv", index=False)
    data = ["--source", "source.csv", "--target", "target.parquet", "--label", "state", "--id", "patient"]
    done = succeed("adapt", *data, "--target-labels", "truth.csv", "--out", "run", *BRIEF, cwd=folder)
    (folder / "said.txt").write_text(done.stderr)
    return folder


def test_what_was_made_of_the_columns_is_said_and_kept(place):
    said, notes = (place / "said.txt").read_text(), json.loads((place / "run" / "metrics.json").read_text())["data"]
    assert "left out as constant: 'site'" in notes["source"]["notes"]
    assert "left out as giving the label away: 'code'" in notes["source"]["notes"]
    assert any(note.startswith("categories that the source never showed: city (") for note in notes["target"]["notes"])
    assert "Kiel" in said
    assert "giving the label away" in said


def test_rows_have_the_names_that_were_asked_for(place):
    rows = read_csv(place / "run" / "predictions.csv")
    assert [row["patient"] for row in rows] == TARGET["patient"].tolist()
    right = np.mean([row["label"] == state for row, state in zip(rows, TARGET["state"], strict=True)])
    measured = json.loads((place / "run" / "metrics.json").read_text())["adapted"]["oracle"]["accuracy"]
    assert measured == pytest.approx(right)
    assert right > 0.8
    succeed("evaluate", "run", "--target-labels", "truth.csv", cwd=place)
    again = json.loads((place / "run" / "metrics.json").read_text())["adapted"]["oracle"]["accuracy"]
    assert again == pytest.approx(measured)


def test_what_the_panel_says_of_each_answer_is_kept_and_decides_who_is_answered(place):
    """The run's target is ordered by how likely each answer is right; new rows by what their confidence is worth."""
    right = [float(row["right"]) for row in read_csv(place / "run" / "predictions.csv")]
    with np.load(place / "run" / "predictions.npz") as arrays:
        np.testing.assert_allclose(arrays["right"], right, rtol=1e-5)
    estimate = json.loads((place / "run" / "metrics.json").read_text())["trust"]["accuracy"]["value"]
    assert np.mean(right) == pytest.approx(estimate, abs=1e-3)  # the panel's probabilities are made to agree with it
    done = succeed(*("predict", "run", "target.parquet", "--coverage", 0.5, "--out", "half.csv", "--json"), cwd=place)
    rows = read_csv(place / "half.csv")
    kept = np.array([row["abstained"] == "no" for row in rows])
    assert kept.sum() == 75
    assert np.array(right)[kept].min() >= np.array(right)[~kept].max() - 1e-6
    assert json.loads(done.stdout)["expected_risk"] == pytest.approx(1 - np.array(right)[kept].mean(), abs=1e-5)
    succeed("predict", "run", "target.parquet", "--coverage", 0.5, "--order-by", "entropy", "--out", "e.csv", cwd=place)
    entropy = np.array([float(row["entropy"]) for row in read_csv(place / "e.csv")])
    kept = np.array([row["abstained"] == "no" for row in read_csv(place / "e.csv")])
    assert entropy[kept].max() <= entropy[~kept].min() + 1e-6
    succeed("predict", "run", "more.tsv", "--coverage", 0.5, "--out", "unjudged.csv", cwd=place)
    rows = read_csv(place / "unjudged.csv")
    worth = calida.load(place / "run").trust.worth
    sure = torch.tensor([float(row["probability"]) for row in rows])
    found = right_by_confidence(worth, sure)
    np.testing.assert_allclose([float(row["right"]) for row in rows], found, atol=1e-4)
    kept = np.array([row["abstained"] == "no" for row in rows])
    assert found.numpy()[kept].min() >= found.numpy()[~kept].max() - 1e-6


def test_new_rows_are_predicted_as_they_come(place):
    succeed("predict", "run", "more.tsv", "--out", "more.csv", cwd=place)
    rows = read_csv(place / "more.csv")
    assert [row["patient"] for row in rows] == MORE["patient"].tolist()
    expected = calida.load(place / "run").predict(MORE).probabilities.numpy()
    np.testing.assert_allclose([[float(row["p_ill"]), float(row["p_well"])] for row in rows], expected, rtol=1e-5)
    MORE.drop(columns=["patient", "state"]).to_csv(place / "unnamed.csv", index=False)
    succeed("predict", "run", "unnamed.csv", "--out", "unnamed-predictions.csv", cwd=place)
    assert read_csv(place / "unnamed-predictions.csv")[3]["row"] == "3"


def test_all_that_is_wrong_with_a_file_is_one_sentence(place):
    wrong = TARGET.drop(columns=["city"]).assign(age="old", seen="now")
    wrong.to_csv(place / "wrong.csv", index=False)
    done = calida_command("predict", "run", "wrong.csv", "--out", "wrong-out.csv", cwd=place)
    assert done.returncode == 2
    for part in ("3 problems", "'city' of the source is missing", "'age' holds 'old'", "'seen' holds 'now'"):
        assert part in " ".join(done.stderr.split())
    assert not (place / "wrong-out.csv").exists()
    twice = pd.concat([TARGET, TARGET[:1]])
    twice.to_csv(place / "twice.csv", index=False)
    data = ["--source", "source.csv", "--label", "state", "--id", "patient"]
    done = calida_command("adapt", *data, "--target", "twice.csv", cwd=place)
    assert "names several rows 'P002000'" in " ".join(done.stderr.split())
    done = calida_command("adapt", *data, "--target", "source.csv", "--drop", "agee", "--drop", "sighted", cwd=place)
    assert "has no column 'agee', 'sighted'" in " ".join(done.stderr.split())


def test_accuracy_by_a_column(place):
    done = succeed("evaluate", "run", "--target-labels", "truth.csv", "--by", "city", "--json", cwd=place)
    groups = {one["group"]: one for one in json.loads(done.stdout)["groups"]["groups"]}
    rows = read_csv(place / "run" / "predictions.csv")
    right = np.array([row["label"] for row in rows]) == TARGET["state"].to_numpy()
    for city, members in TARGET.groupby(TARGET["city"].fillna("(missing)")).groups.items():
        assert groups[city]["rows"] == len(members)
        assert groups[city]["adapted"] == pytest.approx(right[members].mean())
    page = (place / "run" / "report.html").read_text()
    assert "Accuracy by city" in page
    assert "Which columns moved" in page
    MORE.to_csv(place / "labeled.csv", index=False)
    other = succeed("evaluate", "run", "labeled.csv", "--by", "smokes", "--json", cwd=place)
    assert sum(one["rows"] for one in json.loads(other.stdout)["groups"]["groups"]) == len(MORE)
    done = calida_command("evaluate", "run", "--target-labels", "truth.csv", "--by", "town", cwd=place)
    assert done.returncode == 2
    assert "no column 'town'" in done.stderr


def test_the_columns_that_moved_are_in_the_metrics(place):
    moved = json.loads((place / "run" / "metrics.json").read_text())["columns"]
    assert {one["column"] for one in moved["columns"]} == {"age", "city", "smokes", "seen", "note"}
    assert moved["columns"][0]["column"] == "seen"  # three years later
    assert moved["separation"] > 0.95


def test_columns_and_drops_are_part_of_a_run(place):
    options = ["--source", "source.csv", "--target", "target.parquet", "--label", "state", "--recipe", "source"]
    chosen = ["--columns", "age", "--columns", "note", "--out", "chosen", "--set", "epochs=1"]
    succeed("adapt", *options, *chosen, cwd=place)
    assert calida.load(place / "chosen").preparation.table.columns == ("age", "note")
    succeed("adapt", "--config", "chosen/config.toml", "--drop", "note", "--columns", "age", "--out", "less", cwd=place)
    assert calida.load(place / "less").preparation.table.columns == ("age",)
