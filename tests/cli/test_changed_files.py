"""Files of a run that were saved again, edited or copied from another run."""

import json
import re
import shutil

from commands import calida_command, succeed

from calida.json_values import sealed
from calida.training import Bundle, read_bundle, write_bundle


def test_predictions_that_a_spreadsheet_saved_again_are_read_and_edited_labels_are_not(place, tmp_path):
    """Excel writes a mark before the text, other line ends, and few digits of very small numbers."""
    shutil.copytree(place / "run", tmp_path / "run")
    path = tmp_path / "run" / "predictions.csv"
    text = path.read_text()
    again = re.sub(r"(\d\.\d\d)\d*e-(\d+)", r"\1E-\2", text)
    for ends in ("\r\n", "\r"):
        path.write_bytes(b"\xef\xbb\xbf" + again.replace("\n", ends).encode())
        succeed("report", tmp_path / "run")
    header, first, *rest = text.splitlines()
    name, label, *numbers = first.split(",")
    for changed in ([name, "up" if label != "up" else "down", *numbers], [name, label, "0.123", *numbers[1:]]):
        path.write_text("\n".join([header, ",".join(changed), *rest]) + "\n")
        done = calida_command("report", tmp_path / "run")
        assert done.returncode == 2
        assert "rows, labels or probabilities were changed" in done.stderr


def test_a_model_of_another_run_is_refused_and_one_without_figures_is_not(place, tmp_path):
    run = shutil.copytree(place / "run", tmp_path / "run")
    metrics = json.loads((run / "metrics.json").read_text())
    bundle = read_bundle(run, "model")
    write_bundle(run, "model", Bundle(bundle.tensors, {**bundle.values, "seed": bundle.values["seed"] + 1}))
    for words in (
        ("predict", run, "camera", "--out", tmp_path / "p.csv"),
        ("report", run),
        ("evaluate", run, "photos"),
    ):
        done = calida_command(*words, cwd=place)
        assert done.returncode == 2
        assert "model.json is of another run than metrics.json" in " ".join(done.stderr.split())
    older = sealed({key: value for key, value in metrics.items() if key != "models"})
    (run / "metrics.json").write_text(json.dumps(older))
    succeed("predict", run, "camera", "--out", tmp_path / "p.csv", cwd=place)
    (run / "metrics.json").unlink()
    succeed("predict", run, "camera", "--out", tmp_path / "p.csv", cwd=place)
