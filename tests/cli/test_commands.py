"""The commands as a user types them, on files; where signals matter, in a process of their own."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest
import torch
from commands import QUICK, calida_command, quick, read_csv, succeed
from histories import is_round
from pictures import arrays, class_folders

import calida
from calida.json_values import sealed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def test_a_run_folder_holds_everything(place):
    run = place / "run"
    for name in ("config.toml", "metrics.jsonl", "metrics.json", "model.json", "predictions.csv", "report.html"):
        assert (run / name).stat().st_size > 100, name
    rounds = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [(record["phase"], record["round"]) for record in rounds] == [
        *(("pretrain", index) for index in range(4)),
        ("adapt", 0),
        ("adapt", 1),
    ]
    assert (
        json.loads((place / "stdout.json").read_text())["adapted"]
        == json.loads((run / "metrics.json").read_text())["adapted"]
    )


def test_predictions_and_metrics_agree_with_each_other_and_with_the_model(place):
    run = place / "run"
    rows = read_csv(run / "predictions.csv")
    assert len(rows) == 48
    for row in rows:
        each = [float(row["p_lying"]), float(row["p_standing"])]
        assert sum(each) == pytest.approx(1, abs=1e-4)
        assert float(row["probability"]) == pytest.approx(max(each), rel=1e-4)
        assert row["label"] == ("lying", "standing")[int(np.argmax(each))]
        entropy = -sum(p * math.log(p) for p in each if p > 0)
        assert float(row["entropy"]) == pytest.approx(entropy, abs=1e-3)
        assert float(row["entropy"]) == pytest.approx(float(row["aleatoric"]) + float(row["epistemic"]), abs=1e-4)
    right = [row["path"].split("/")[0] == row["label"] for row in rows]
    metrics = json.loads((run / "metrics.json").read_text())
    oracle = metrics["adapted"]["oracle"]
    assert oracle["accuracy"] == pytest.approx(np.mean(right))
    truth = [float(row[f"p_{row['path'].split('/')[0]}"]) for row in rows]
    assert oracle["nll"] == pytest.approx(-np.mean(np.log(truth)), rel=1e-3)
    assert oracle["brier"] == pytest.approx(np.mean([2 * (1 - p) ** 2 for p in truth]), rel=1e-3, abs=1e-6)
    assert set(oracle) == {"accuracy", "mean_class_accuracy", "nll", "brier", "ece", "aurc"}
    assert metrics["source_only"]["oracle"].keys() == oracle.keys()
    assert metrics["adapted"]["target"]["entropy"] == pytest.approx(
        np.mean([float(row["entropy"]) for row in rows]), abs=1e-4
    )


def test_target_labels_change_no_weight(place, tmp_path):
    class_folders(tmp_path / "camera", 48, 1, names=("standing", "lying"), low=40, high=200)  # every label wrong
    for name, labels in (("none", []), ("wrong", ["--target-labels", "inside"])):
        options = ["--source", place / "photos", "--target", tmp_path / "camera", "--out", tmp_path / name, "--quiet"]
        done = succeed("adapt", *options, *labels, *QUICK)
        assert done.stdout == done.stderr == ""
    models = [calida.load(tmp_path / name).classifier.state_dict() for name in ("none", "wrong")]
    assert all(torch.equal(models[0][key], models[1][key]) for key in models[0])
    assert "oracle" not in json.loads((tmp_path / "none" / "metrics.json").read_text())["adapted"]


def test_the_written_configuration_runs_the_same_run_again(place, tmp_path):
    succeed("adapt", "--config", place / "run" / "config.toml", "--out", tmp_path / "again", cwd=tmp_path)
    texts = [(folder / "predictions.csv").read_text() for folder in (tmp_path / "again", place / "run")]
    assert texts[0] == texts[1]
    configs = [tomllib.loads((folder / "config.toml").read_text()) for folder in (tmp_path / "again", place / "run")]
    assert configs[0] == configs[1]
    config = tomllib.loads((place / "run" / "config.toml").read_text())
    assert config["settings"]["adaptation"]["rounds"] == 2
    assert config["settings"]["terms"] == calida.get_recipe(config["recipe"]).terms.to_json()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_says_how_to_resume_and_resumes_bit_for_bit(place, tmp_path, number):
    options = ["--source", place / "photos", "--target", place / "camera", *quick(rounds=9)]
    command = [sys.executable, "-m", "calida", "adapt", *map(str, options), "--out", "run"]
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not ((tmp_path / "run" / "metrics.jsonl").exists() and "adapt" in _rounds(tmp_path / "run")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: calida adapt --resume --out run" in told
    assert not (tmp_path / "run" / "metrics.json").exists()
    succeed("adapt", "--resume", "--out", "run", cwd=tmp_path)
    succeed("adapt", *options, "--out", "whole", cwd=tmp_path)
    assert (tmp_path / "run" / "predictions.csv").read_text() == (tmp_path / "whole" / "predictions.csv").read_text()
    lines = [len((tmp_path / name / "metrics.jsonl").read_text().splitlines()) for name in ("run", "whole")]
    assert lines == [13, 13]


def _rounds(run):
    return (run / "metrics.jsonl").read_text()


def test_predict_new_files(place, tmp_path):
    new = class_folders(tmp_path / "new", 20, 7, size=24, low=40, high=200)
    succeed("predict", place / "run", new, "--out", tmp_path / "p.csv")
    rows = read_csv(tmp_path / "p.csv")
    assert len(rows) == 20
    # The same files through Python: read, prepare, predict.
    x = torch.stack([calida.data.arrays.samples.decode_image(new / row["path"], 1) for row in rows])
    adapted = calida.load(place / "run")
    expected = adapted.predict(adapted.preparation.target(x)).probabilities[:, 0]
    assert np.allclose([float(row["p_lying"]) for row in rows], expected, atol=1e-5)
    before = (place / "run" / "predictions.csv").read_bytes()
    done = calida_command("predict", ".", new, cwd=place / "run")  # where the default name is that of a run's file
    assert done.returncode == 2
    assert "predictions.csv is a file of a run, which predictions must not replace" in done.stderr
    assert (place / "run" / "predictions.csv").read_bytes() == before
    flat = tmp_path / "flat.npy"
    np.save(flat, np.zeros((3, 5)))
    done = calida_command("predict", place / "run", flat)
    assert done.returncode == 2
    assert "feature vectors, which this classifier does not read" in done.stderr


def test_evaluate_adds_oracle_figures_to_a_run_without_labels(place, tmp_path):
    options = ["--source", place / "photos", "--target", place / "camera", "--out", tmp_path / "run"]
    succeed("adapt", *options, *QUICK)
    assert "oracle" not in json.loads((tmp_path / "run" / "metrics.json").read_text())["adapted"]
    assert "Confusion matrix" not in (tmp_path / "run" / "report.html").read_text()
    done = succeed("evaluate", tmp_path / "run", "--json")
    known = json.loads((place / "run" / "metrics.json").read_text())  # the same run, with labels from the start
    assert json.loads(done.stdout)["adapted"]["oracle"] == known["adapted"]["oracle"]
    assert "Confusion matrix" in (tmp_path / "run" / "report.html").read_text()
    other = class_folders(tmp_path / "other", 12, 9)
    figures = json.loads(succeed("evaluate", tmp_path / "run", other, "--json").stdout)
    assert 0 <= figures["adapted"]["oracle"]["accuracy"] <= 1


def test_the_report_can_be_drawn_again(place):
    path = place / "run" / "report.html"
    first = path.read_text()
    path.unlink()
    succeed("report", place / "run")
    assert path.read_text() == first


def test_tables_with_a_label_column(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    for name, shift in (("old", 0.0), ("new", 1.0)):
        x = rng.normal(size=(200, 3)) + 4 * y[:, None] + shift
        lines = [f"{a:.4f},{b:.4f},{label},{c:.4f}" for (a, b, c), label in zip(x, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("a,b,kind,c\n" + "\n".join(lines))
    table = (tmp_path / "new.csv").read_text()
    (tmp_path / "new.csv").write_text(table.replace("\n", ",Rome\n").replace("Rome", "city", 1) + ",Rome\n")
    options = ["--source", "old.csv", "--target", "new.csv", "--label", "kind", "--target-labels", "inside"]
    quick = ["--set", "epochs=5", "--set", "rounds=2", "--out", "run"]
    done = succeed("adapt", *options, *quick, "--json", cwd=tmp_path)
    figures = json.loads(done.stdout)["adapted"]["oracle"]
    assert figures["accuracy"] > 0.9
    done = succeed("evaluate", "run", "--json", cwd=tmp_path)  # the source has no column city: it is left out here too
    assert json.loads(done.stdout)["adapted"]["oracle"] == figures
    rows = read_csv(tmp_path / "run" / "predictions.csv")
    assert [row["row"] for row in rows] == [str(row) for row in range(200)]
    (tmp_path / "more.csv").write_text("c,b,a,kind\n5,5,5,?\n0,0,0,?\n")  # the label column is known from the run
    succeed("predict", "run", "more.csv", "--out", "p.csv", cwd=tmp_path)
    assert [row["label"] for row in read_csv(tmp_path / "p.csv")] == ["1", "0"]
    (tmp_path / "more.csv").write_text("c,b,a\n5,5,5000\n0,0,9000\n")
    done = calida_command("predict", "run", "more.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "the column 'a' of more.csv is of another scale" in done.stderr
    succeed("predict", "run", "more.csv", "--on-mismatch", "ignore", "--out", "p.csv", cwd=tmp_path)
    (tmp_path / "more.csv").write_text("c,b,a\n5,0.001,5\n")  # one row may have any value that others had
    succeed("predict", "run", "more.csv", "--out", "p.csv", cwd=tmp_path)


def test_no_file_of_the_user_is_replaced(place, tmp_path):
    """Neither the samples by their predictions, nor what lies in a folder that a run is to fill."""
    samples = tmp_path / "more.npy"
    np.save(samples, arrays(8, 2)[0])
    before = samples.read_bytes()
    done = calida_command("predict", place / "run", samples, "--out", samples)
    assert done.returncode == 2
    assert "is the file of the samples themselves" in done.stderr
    assert samples.read_bytes() == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "predictions.csv").write_text("my own\n")
    options = ["--source", place / "photos", "--target", place / "camera", "--out", mine, *QUICK]
    done = calida_command("adapt", *options)
    assert done.returncode == 2
    assert "has a file predictions.csv that a run would replace" in done.stderr
    assert (mine / "predictions.csv").read_text() == "my own\n"
    assert [file.name for file in mine.iterdir()] == ["predictions.csv"]


def test_a_finished_run_that_is_resumed_keeps_what_labels_told_of_it(place, tmp_path):
    shutil.copytree(place / "run", tmp_path / "run")
    figures = json.loads((tmp_path / "run" / "metrics.json").read_text())["adapted"]["oracle"]
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace('target_labels = "inside"\n', ""))
    assert tomllib.loads(config.read_text()).get("target_labels") is None
    succeed("adapt", "--resume", "--out", tmp_path / "run", cwd=place)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["adapted"]["oracle"] == figures


def test_a_run_that_had_not_begun_is_resumed_with_the_settings_of_today(place, tmp_path):
    """Killed before its first checkpoint: what it says of itself is what it then did."""
    options = ["--source", place / "photos", "--target", place / "camera", "--out", tmp_path / "run"]
    with mock.patch("calida.runs.folder.RunFolder.begin_rounds", side_effect=KeyboardInterrupt):
        assert calida_command("adapt", *options, *QUICK).returncode != 0
    succeed("adapt", "--resume", "--out", tmp_path / "run", "--set", "rounds=1")
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())["settings"]["adaptation"]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert settings["rounds"] == metrics["settings"]["adaptation"]["rounds"] == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("predictions.csv", "", "is not as the run wrote it"),
        ("predictions.csv", "path,label\na,lying\n", "is not as the run wrote it"),
        ("predictions.csv", "pfad;label\nä;lying\n", "is not as the run wrote it"),
        ("metrics.json", "{}", "it has no digest"),
        ("metrics.json", "5", "it has no digest"),
        ("metrics.json", json.dumps(sealed({"format": 4, "data": {}})), "missing required field"),
        ("metrics.jsonl", "", "no round was kept"),
        ("metrics.jsonl", '{"a": 1}', "is not what calida wrote"),
    ],
)
def test_damaged_runs_are_told_of_in_a_sentence(place, tmp_path, name, content, words):
    shutil.copytree(place / "run", tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(content.encode("latin-1"))
    done = calida_command("report", tmp_path / "run")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_predictions_that_were_sorted_give_no_sample_the_name_of_another(place, tmp_path):
    """Sorted by probability in a spreadsheet: what names the samples is no longer in their order."""
    shutil.copytree(place / "run", tmp_path / "run")
    path = tmp_path / "run" / "predictions.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *sorted(rows, key=lambda row: row.split(",")[2])]) + "\n")
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    for command in ("evaluate", "report"):
        done = calida_command(command, tmp_path / "run")
        assert done.returncode == 2
        assert "were changed, sorted or left out; resuming the run writes it again" in done.stderr
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before
    succeed("adapt", "--resume", "--out", tmp_path / "run", cwd=place)
    assert path.read_text().splitlines() == [header, *rows]
    succeed("evaluate", tmp_path / "run", cwd=place)


def test_a_start_must_have_the_classes_and_columns_of_the_source(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.normal(size=(60, 2)) + 4 * y[:, None]
    rows = [(f"{a:.3f}", f"{b:.3f}", "uv"[label]) for (a, b), label in zip(x, y, strict=True)]
    tables = {"old": ("a,b,kind", "{0},{1},{2}"), "turned": ("b,a,kind", "{1},{0},{2}"), "renamed": ("a,b,kind", "")}
    for name, (header, line) in tables.items():
        lines = [line.format(*row) or f"{row[0]},{row[1]},{'zy'[row[2] == 'v']}" for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]))
    quick = ["--target", "old.csv", "--label", "kind", "--set", "epochs=2", "--set", "rounds=1"]
    succeed("adapt", "--source", "old.csv", *quick, "--out", "first", cwd=tmp_path)
    for name, words in {
        "turned": "the columns of the start and of this source must be the same, in the same order",
        "renamed": "where the one has 'u', the other has 'y'",
    }.items():
        done = calida_command("adapt", "--source", f"{name}.csv", *quick, "--start", "first", cwd=tmp_path)
        assert done.returncode == 2
        assert words in done.stderr


def test_odd_characters_in_a_path_leave_a_run_that_can_be_read(place, tmp_path):
    folder = tmp_path / "a\x01b"
    shutil.copytree(place / "photos", folder)
    options = ["--source", folder, "--target", place / "camera", "--out", tmp_path / "run", *QUICK]
    succeed("adapt", *options)
    succeed("adapt", "--resume", "--out", tmp_path / "run")
    odd = tmp_path / os.fsdecode(b"no\xfftext")
    shutil.copytree(place / "photos", odd)
    done = calida_command("adapt", "--source", odd, "--target", place / "camera", "--out", tmp_path / "other", *QUICK)
    assert done.returncode == 2
    assert "has bytes that are no UTF-8" in done.stderr
    assert not (tmp_path / "other").exists()


def test_evaluation_can_pass_over_what_cannot_be_read(place, tmp_path):
    folder = class_folders(tmp_path / "other", 6, 3)
    (folder / "lying" / "bad.png").write_text("no image")
    assert "--skip-unreadable" in calida_command("evaluate", place / "run", folder).stderr
    figures = json.loads(succeed("evaluate", place / "run", folder, "--skip-unreadable", "--json").stdout)
    assert 0 <= figures["adapted"]["oracle"]["accuracy"] <= 1


def _wrong_inputs(folder):
    """Faults by name: options and the words that the sentence must have."""
    x, y = arrays(40, 0)
    np.savez(folder / "bytes.npz", x=x, y=y)
    np.savez(folder / "floats.npz", x=x.astype(np.float32), y=y)
    np.savez(folder / "unit.npz", x=(x / 255).astype(np.float32))
    np.savez(folder / "inverted.npz", x=255 - x)
    np.savez(folder / "unseen.npz", x=x, y=y + 1)
    (folder / "table.csv").write_text("a,city,y\n1,Paris,0\n2,Rome,1\n")
    class_folders(folder / "photos", 8, 0)
    class_folders(folder / "broken", 8, 0)
    (folder / "broken" / "lying" / "bad.png").write_text("no image")
    (folder / "empty").mkdir()
    return {
        "scale": ("--source floats.npz --target unit.npz", "source values lie in 0..255 and target values in 0..1"),
        "polarity": ("--source bytes.npz --target inverted.npz", "light on dark"),
        "unreadable": ("--source photos --target broken", "bad.png cannot be read"),
        "unseen class": (
            "--source bytes.npz --target unseen.npz --target-labels inside",
            "the class '2', which the source never showed",
        ),
        "no feature": ("--source table.csv --target table.csv --label y --drop a --drop city", "no feature columns"),
        "no images": ("--source photos --target empty", "holds no images"),
        "no labels": ("--source unit.npz --target bytes.npz", "has no labels"),
        "no such file": ("--source photos --target nowhere", "no file or folder nowhere"),
        "no source": ("--target photos", "name the source data: a folder, a file or a named set (--source)"),
        "setting": ("--source photos --target photos --set rouns=3", "did you mean adaptation.rounds"),
        "recipe": ("--source photos --target photos --recipe rer", "unknown recipe"),
        "backbone": ("--source photos --target photos --backbone dtm", "did you mean dtn"),
        "device": ("--source photos --target photos --device quantum", "unknown device"),
        "config": ("--config missing.toml", "there is no file"),
    }


def test_every_fault_is_one_sentence_exit_code_2_and_nothing_written(tmp_path):
    for name, (options, words) in _wrong_inputs(tmp_path).items():
        done = calida_command("adapt", *options.split(), "--out", "run", cwd=tmp_path)
        assert done.returncode == 2, (name, done.stderr)
        assert words in done.stderr, (name, done.stderr)
        assert "Traceback" not in done.stderr
        said = [line for line in done.stderr.splitlines() if not line.startswith(("source ", "target ", "classes "))]
        assert len(said) == 1, (name, done.stderr)
        assert said[0].startswith("calida: "), name
        assert not (tmp_path / "run").exists(), name


def test_skipping_unreadable_images_counts_them(tmp_path):
    _wrong_inputs(tmp_path)
    options = ["--source", "photos", "--target", "broken", "--skip-unreadable", "--out", "run", *QUICK]
    done = succeed("adapt", *options, cwd=tmp_path)
    assert "1 unreadable images skipped: lying/bad.png" in done.stderr
    assert len(read_csv(tmp_path / "run" / "predictions.csv")) == 8


def test_an_existing_run_is_not_overwritten(place):
    before = (place / "run" / "config.toml").read_text()
    done = calida_command("adapt", "--source", "photos", "--target", "camera", "--out", "run", cwd=place)
    assert done.returncode == 2
    assert "already holds a run" in done.stderr
    assert (place / "run" / "config.toml").read_text() == before


def test_tensorboard_logs_hold_the_rounds(place, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ["--source", place / "photos", "--target", place / "camera", "--out", tmp_path / "run", "--tensorboard"]
    succeed("adapt", *options, *QUICK)
    logs = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    rounds = [json.loads(line) for line in _rounds(tmp_path / "run").splitlines()]
    logged = [event.value for event in logs.Scalars("adapt/target/entropy")]
    assert logged == pytest.approx([r["target"]["entropy"] for r in rounds if r["phase"] == "adapt"], rel=1e-5)


def test_lists_and_help():
    assert set(json.loads(succeed("recipes", "--json").stdout)) == {*calida.RECIPES, "auto"}
    assert json.loads(succeed("recipes", "rer-2", "--json").stdout)["entropy"]["order"] == 2.0
    listed = json.loads(succeed("data", "list", "--json").stdout)
    assert listed["present"]["uci-digits"] is True
    for command in ("adapt", "predict", "evaluate", "report", "data", "recipes", "demo"):
        assert "Usage" in succeed(command, "--help").stdout
    assert succeed("--version").stdout.strip() == calida.__version__


def test_data_get_says_what_failed(tmp_path):
    with mock.patch.dict(os.environ, {"CALIDA_DATA": str(tmp_path)}):
        done = calida_command("data", "get", "nosuch")
    assert done.returncode == 2
    assert "nosuch" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_new_data_stored_otherwise_are_predicted_alike_and_another_scale_is_refused(tmp_path):
    x, y = arrays(60, 0)
    np.savez(tmp_path / "s.npz", x=x, y=y)
    np.savez(tmp_path / "unit.npz", x=x / 255, y=y)
    np.savez(tmp_path / "odd.npz", x=x / 16, y=y)
    succeed("adapt", "--source", "s.npz", "--target", "s.npz", "--out", "run", *QUICK, cwd=tmp_path)
    figures = [
        json.loads(succeed("evaluate", "run", f"{name}.npz", "--json", cwd=tmp_path).stdout) for name in ("s", "unit")
    ]
    assert figures[0]["adapted"]["oracle"]["accuracy"] == figures[1]["adapted"]["oracle"]["accuracy"]
    assert figures[0]["adapted"]["oracle"]["nll"] == pytest.approx(figures[1]["adapted"]["oracle"]["nll"], rel=1e-3)
    done = calida_command("predict", "run", "odd.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert "this classifier was trained on 0..255" in done.stderr


def test_evaluate_leaves_the_run_repeatable_and_the_report_needs_no_labels(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    lines = [f"{a:.3f},{label},{'ab'[label]}" for a, label in zip(rng.normal(size=80) + 5 * y, y, strict=True)]
    (tmp_path / "s.csv").write_text("x,kind\n" + "\n".join(line.rsplit(",", 1)[0] for line in lines))
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(line.split(",")[0] for line in lines))
    (tmp_path / "truth.csv").write_text("x,truth\n" + "\n".join(line.rsplit(",", 1)[0] for line in lines))
    succeed(
        "adapt", "--source", "s.csv", "--target", "t.csv", "--label", "kind", "--out", "run", *QUICK[:6], cwd=tmp_path
    )
    config = (tmp_path / "run" / "config.toml").read_text()
    succeed("evaluate", "run", "--target-labels", "truth.csv", "--label", "truth", cwd=tmp_path)
    assert (tmp_path / "run" / "config.toml").read_text() == config
    page = (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "truth.csv").unlink()
    succeed("report", "run", cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").read_text() == page
    assert "Confusion matrix" in page


def test_names_that_are_no_text_and_names_that_command_the_terminal(tmp_path):
    class_folders(tmp_path / "photos", 30, 0)
    class_folders(tmp_path / "camera", 20, 1)
    os.rename(tmp_path / "camera" / "lying" / "000.png", os.fsencode(tmp_path) + b"/camera/lying/caf\xe9.png")
    os.rename(tmp_path / "camera" / "lying" / "002.png", tmp_path / "camera" / "lying" / "\x1b[31mred[bold].png")
    (tmp_path / "camera" / "\x1b[2J.png").write_text("no image")
    options = ["--source", "photos", "--target", "camera", "--skip-unreadable", "--out", "run"]
    done = succeed("adapt", *options, *QUICK, cwd=tmp_path)
    assert "\x1b" not in done.stderr
    assert "\\x1b[2J.png" in done.stderr
    names = [row["path"] for row in read_csv(tmp_path / "run" / "predictions.csv")]
    assert "lying/caf\\udce9.png" in names
    assert "lying/\\x1b[31mred[bold].png" in names


def test_two_processes_do_not_share_a_folder(place, tmp_path):
    from calida.files import locked
    from calida.runs import RunConfig, execute

    config = RunConfig(source=str(place / "photos"), target=str(place / "camera"), settings={"epochs": 1, "rounds": 1})
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run" / ".running"), pytest.raises(calida.InputError, match="another process is at work"):
        execute(config, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == []


def test_resuming_with_other_settings_names_them(place):
    done = calida_command("adapt", "--resume", "--out", place / "run", "--set", "rounds=3")
    assert done.returncode == 2
    assert "it differs in recipe adaptation rounds" in done.stderr


def test_the_demo_replaces_only_a_demo(place):
    done = calida_command("demo", "--out", place / "run")
    assert done.returncode == 2
    assert "holds another run" in done.stderr
    assert (place / "run" / "report.html").exists()


def test_a_configuration_of_wrong_kinds_is_one_sentence(place, tmp_path):
    for line in ('size = "big"', "seed = 1.5", "memory = true", "label = 3", 'settings = "none"', "nosuch = 1"):
        (tmp_path / "c.toml").write_text(line)
        done = calida_command("adapt", "--config", tmp_path / "c.toml", "--source", place / "photos")
        assert done.returncode == 2, line
        assert line.split(" ")[0] in done.stderr
    for out, told in ((tmp_path, "is a folder"), (tmp_path / "gone" / "p.csv", "there is no folder")):
        done = calida_command("predict", place / "run", place / "camera", "--out", out)
        assert done.returncode == 2
        assert told in done.stderr


def test_a_resumed_run_keeps_its_first_command_and_all_its_time(place, tmp_path):
    from calida.runs import RunFolder, execute

    config = RunFolder(place / "run").read_config()

    class Stop(Exception):
        pass

    def stop(record):
        if is_round(record) and record.round == 1:
            raise Stop

    with pytest.raises(Stop):
        execute(config, tmp_path / "run", observe=stop, command="calida first")
    _, metrics = execute(config, tmp_path / "run", resume=True, command="calida second")
    assert metrics["command"] == "calida first"
    rounds = [json.loads(line) for line in _rounds(tmp_path / "run").splitlines()]
    assert metrics["training_seconds"] == pytest.approx(sum(record["seconds"] for record in rounds), abs=0.1)


@pytest.mark.parametrize("command", [("report",), ("evaluate",), ("predict",), ("adapt", "--resume", "--out")])
def test_a_run_of_an_earlier_version_is_refused_in_one_sentence(place, tmp_path, command):
    """As it was before there were digests: nothing of it is half-read."""
    shutil.copytree(place / "run", tmp_path / "run")
    config = (tmp_path / "run" / "config.toml").read_text()
    (tmp_path / "run" / "config.toml").write_text(config.replace("format = 4\n", "format = 3\n"))
    metrics = tmp_path / "run" / "metrics.json"
    metrics.write_text(metrics.read_text().replace('"format": 4', '"format": 3'))
    for bundle in ("model.json", "source-only.json", "checkpoint.json"):
        path = tmp_path / "run" / bundle
        if path.exists():
            path.write_text(path.read_text().replace('"version": 4', '"version": 3'))
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    more = [place / "camera"] if command == ("predict",) else []
    done = calida_command(*command, tmp_path / "run", *more, cwd=tmp_path)
    assert done.returncode == 2
    assert "another version of calida" in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
