"""A run on files that do not fit into memory is the same run."""

import json

import numpy as np
import pytest
import torch
from histories import is_start
from pictures import class_folders

import calida
from calida.errors import InputError
from calida.runs import RunConfig, execute

SETTINGS = {"epochs": 2, "rounds": 2, "batch_size": 16}


@pytest.fixture
def config(tmp_path):
    class_folders(tmp_path / "source", 40, 0, size=20)
    class_folders(tmp_path / "target", 30, 1, size=24)
    return RunConfig(
        source=str(tmp_path / "source"), target=str(tmp_path / "target"), backbone="compact", settings=SETTINGS
    )


def test_streamed_and_in_memory_runs_end_with_the_same_weights(config, tmp_path):
    execute(config, tmp_path / "memory")
    seen = []
    execute(config.changed({"memory": 1e-9, "workers": 2}), tmp_path / "streamed", opened=seen.append)
    assert not torch.is_tensor(seen[0].source.samples)
    assert not torch.is_tensor(seen[0].target.samples)
    models = [calida.load(tmp_path / name).classifier.state_dict() for name in ("memory", "streamed")]
    assert all(torch.equal(models[0][key], models[1][key]) for key in models[0])
    texts = [(tmp_path / name / "predictions.csv").read_text() for name in ("memory", "streamed")]
    assert texts[0] == texts[1]


def test_a_file_that_goes_missing_during_training_is_named(config, tmp_path):
    gone = sorted((tmp_path / "target" / "lying").iterdir())[3]

    def remove(record):
        if is_start(record):
            gone.unlink()

    with pytest.raises(InputError, match=f"{gone.name} cannot be read") as caught:
        execute(config.changed({"memory": 1e-9, "workers": 2}), tmp_path / "run", observe=remove)
    assert "\n" not in str(caught.value)


def test_a_run_without_adaptation_reports_one_classifier(config, tmp_path):
    _, metrics = execute(config.changed({"recipe": "source", "settings": {"rounds": 0}}), tmp_path / "run")
    shares, accuracies = (
        [metrics[side][part][key] for side in ("source_only", "adapted")]
        for part, key in (("target", "class_shares"), ("source", "accuracy"))
    )
    assert shares[0] == shares[1]
    assert accuracies[0] == accuracies[1]
    assert metrics["trust"]["returned"] == "source only"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Nothing was adapted" in page


def test_metrics_are_plain_json(config, tmp_path):
    _, metrics = execute(config, tmp_path / "run")
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert written.pop("digest")
    assert written == metrics
    shares = metrics["adapted"]["target"]["class_shares"]
    assert np.isclose(sum(shares), 1)
    assert metrics["settings"]["optimization"]["batch_size"] == 16
    assert metrics["data"]["target"]["notes"][0].startswith("30 images")
