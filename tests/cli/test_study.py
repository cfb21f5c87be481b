"""`calida study`: recipes x variants x seeds from a file, and a winner at the end."""

import json

import numpy as np
import pytest
import shift
from commands import calida_command, succeed

from calida.errors import InputError
from calida.runs import RunConfig, RunFolder
from calida.studies import StudyPlan

SMALL = """
source = "source.npz"
target = "target.npz"
recipes = ["source", "rer-1"]
seeds = 2

[settings]
epochs = 2
rounds = 2
batch_size = 20

[variants.slow]
"adaptation.learning_rate" = 1e-5
"""


@pytest.fixture
def place(tmp_path):
    (x, y), target, truth = shift.make(rows=120)
    np.savez(tmp_path / "source.npz", x=x.numpy(), y=y.numpy())
    np.savez(tmp_path / "target.npz", x=target.numpy())
    np.savez(tmp_path / "truth.npz", x=target.numpy(), y=truth.numpy())
    (tmp_path / "mine.toml").write_text(SMALL)
    return tmp_path


def test_every_recipe_variant_and_seed_is_run_once_and_a_winner_named(place):
    """Without a target label; where the same command is given again, nothing is left to run."""
    shown = json.loads(succeed("study", "mine.toml", "--jobs", "1", "--json", cwd=place).stdout)
    assert len(shown["runs"]) == 8
    assert {"source, seed 0", "rer-1, slow, seed 1"} <= set(shown["runs"])
    assert all(run["measured"] is None for run in shown["runs"].values())
    winner = RunFolder(place / shown["winner"]["run"])
    assert winner.report.exists()
    assert winner.read_config().recipe == shown["winner"]["name"].split(",")[0]
    again = succeed("study", "mine.toml", "--jobs", "1", cwd=place)
    assert "8 runs, 8 finished before" in again.stderr
    assert "Winner: " in again.stderr


def test_labels_that_are_known_are_shown_beside_the_estimate(place):
    (place / "mine.toml").write_text(f'target_labels = "truth.npz"\n{SMALL}'.replace("seeds = 2", "seeds = [5]"))
    shown = json.loads(succeed("study", "mine.toml", "--out", "here", "--jobs", "1", "--json", cwd=place).stdout)
    assert set(shown["runs"]) == {f"{name}, seed 5" for name in ("source", "source, slow", "rer-1", "rer-1, slow")}
    assert all(0 < run["measured"] <= 1 for run in shown["runs"].values())
    assert (place / shown["winner"]["run"]).is_relative_to(place / "here")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('recipes = ["source", "rer-1"]', 'recipes = "source"'), "recipes is a list of names"),
        (('["source", "rer-1"]', '["sauce"]'), "unknown recipe 'sauce'"),
        (("seeds = 2", "seeds = 0"), "seeds is a number of seeds, at least 1"),
        (("seeds = 2", "sede = 2"), "unknown key 'sede'"),
        (("epochs = 2", "epoch = 2"), "unknown setting 'epoch'; did you mean pretraining.epochs"),
        (("[variants.slow]", "[variants]"), "variants is a table of names"),
        (("seeds = 2", "seeds = "), "is not a TOML file"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(place, change, sentence):
    (place / "mine.toml").write_text(SMALL.replace(*change))
    done = calida_command("study", "mine.toml", cwd=place)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (place / "runs").exists()
    with pytest.raises(InputError, match="there is no file"):
        StudyPlan.read(place / "other.toml")


def test_a_plan_may_be_what_a_run_has_left(tmp_path):
    config = RunConfig(source="uci-digits:60", target="uci-digits:60", recipe="rer-1")
    (tmp_path / "mine.toml").write_text(config.to_toml())
    plan = StudyPlan.read(tmp_path / "mine.toml")
    assert (plan.recipes, plan.seeds) == (("rer-1",), (0,))
