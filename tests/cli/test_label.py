"""`calida label` and `calida evaluate --labels`, as a user types them."""

import csv
import json
import shutil

import numpy as np
import pytest
from commands import QUICK, calida_command, read_csv, succeed

from calida.json_values import sealed
from calida.runs import evaluate_run


@pytest.fixture
def run(place, tmp_path):
    """A copy of the finished run, whose metrics a test may change."""
    return shutil.copytree(place / "run", tmp_path / "run")


def answers(place):
    """The true class of every target sample, which is the folder that it lies in."""
    return {str(path.relative_to(place / "camera")): path.parent.name for path in (place / "camera").rglob("*.png")}


def fill_in(path, label, delimiter=","):
    rows = read_csv(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows({**row, "label": label(row)} for row in rows)
    return rows


def test_labels_of_some_samples_estimate_what_labels_of_all_measure(place, run):
    done = json.loads(succeed("label", run, "--budget", 20, "--json", cwd=place).stdout)
    assert done["samples"] == 20
    truth, labels = answers(place), run / "label" / "labels.csv"
    design = json.loads((run / "label" / "design.json").read_text())
    assert sum(design["sizes"]) == len(truth)
    assert sum(1 / p for p in design["probabilities"]) == pytest.approx(len(truth))
    fill_in(labels, lambda row: truth[row["path"]], delimiter=";")  # as a spreadsheet in Europe saves it
    found = json.loads(succeed("evaluate", run, "--labels", labels, "--json", cwd=place).stdout)["labeled"]
    whole = evaluate_run(run, "inside", None)
    for side in ("source_only", "adapted"):
        assert found[side]["low"] <= whole[side]["oracle"]["accuracy"] <= found[side]["high"]
    assert (found["labels"], found["drawn"], found["of_no_class"]) == (20, 20, 0)
    kept = json.loads((run / "metrics.json").read_text())
    assert kept["labeled"] == found
    assert f"By 20 labels, {found['adapted']['value']:.1%} are right" in (run / "report.html").read_text()
    assert "without labels" in succeed("evaluate", run, "--labels", labels, cwd=place).stderr


def test_labels_of_all_samples_leave_no_doubt(place, run):
    truth = answers(place)
    succeed("label", run, "--budget", 500, cwd=place)
    fill_in(run / "label" / "labels.csv", lambda row: truth[row["path"]])
    found = json.loads(succeed("evaluate", run, "--labels", run / "label" / "labels.csv", "--json", cwd=place).stdout)
    measured = evaluate_run(run, "inside", None)["adapted"]["oracle"]["accuracy"]
    assert found["labeled"]["adapted"] == {end: pytest.approx(measured) for end in ("value", "low", "high")}


def test_a_beginning_of_the_file_will_do_and_samples_of_no_class_are_wrong(place, run):
    truth, labels = answers(place), run / "label" / "labels.csv"
    succeed("label", run, "--budget", 20, cwd=place)
    fill_in(labels, lambda row: truth[row["path"]] if int(row["number"]) <= 8 else "")
    found = json.loads(succeed("evaluate", run, "--labels", labels, "--json", cwd=place).stdout)["labeled"]
    assert (found["labels"], found["left_empty"]) == (8, 0)
    fill_in(labels, lambda row: truth[row["path"]] if 2 <= int(row["number"]) <= 9 else "")
    told = succeed("evaluate", run, "--labels", labels, cwd=place).stderr
    assert "1 row above the last label is empty." in told
    assert "by 8 labels, returned" in told
    fill_in(labels, lambda row: "(none)")
    found = json.loads(succeed("evaluate", run, "--labels", labels, "--json", cwd=place).stdout)["labeled"]
    assert found["adapted"]["value"] == 0
    assert found["of_no_class"] == 20


def test_the_sheet_shows_every_sample_and_no_prediction(place, run, tmp_path):
    succeed("label", run, "--budget", 12, "--out", tmp_path / "sheet", cwd=place)
    page = (tmp_path / "sheet" / "sheet.html").read_text()
    rows = read_csv(tmp_path / "sheet" / "labels.csv")
    assert page.count('<img src="data:image/') == len(rows) == 12
    assert [row["number"] for row in rows] == [str(number) for number in range(1, 13)]
    assert all(row["label"] == "" and f'data-name="{row["path"]}"' in page for row in rows)
    assert "predict" not in page.split("<main>")[1].split("<script>")[0]
    assert "http" not in page.replace("http-equiv", "")
    again = tmp_path / "again"
    succeed("label", run, "--budget", 12, "--out", again, cwd=place)
    assert (again / "sheet.html").read_text() == page
    succeed("label", run, "--budget", 12, "--seed", 1, "--out", tmp_path / "other", cwd=place)
    assert read_csv(tmp_path / "other" / "labels.csv") != rows


def test_names_are_hostile_until_escaped(place, tmp_path):
    """A name that a browser would run as a script, and one that a spreadsheet would run as a formula."""
    target = tmp_path / "=cmd()"
    target.mkdir()
    for number, file in enumerate(sorted((place / "camera").rglob("*.png"))[:24]):
        shutil.copy(file, target / f"=HYPERLINK(<script>alert({number})<&script>).png")
    words = ["--source", place / "photos", "--target", target, "--out", tmp_path / "run", "--set", "rounds=1"]
    succeed("adapt", *words, *QUICK)
    succeed("label", tmp_path / "run", "--budget", 10)
    assert "<script>alert" not in (tmp_path / "run" / "label" / "sheet.html").read_text()
    names = [row["path"] for row in read_csv(tmp_path / "run" / "label" / "labels.csv")]
    assert all(name.startswith("'=HYPERLINK") for name in names)


def test_a_table_is_shown_by_its_rows(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(80, 3)), np.arange(80) % 2
    x[:, 0] += 4 * y
    for name, shift in (("source", 0.0), ("target", 0.3)):
        rows = [f"{a + shift:.4f},{b:.4f},{c:.4f},0{label + 1}" for (a, b, c), label in zip(x, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("heat,<b>,load,kind\n" + "\n".join(rows))
    words = ["--source", "source.csv", "--target", "target.csv", "--label", "kind", "--out", "run"]
    succeed("adapt", *words, "--set", "epochs=3", "--set", "rounds=1", cwd=tmp_path)
    succeed("label", "run", "--budget", 10, cwd=tmp_path)
    page = (tmp_path / "run" / "label" / "sheet.html").read_text()
    labels = tmp_path / "run" / "label" / "labels.csv"
    assert page.count("<dt>heat</dt>") == page.count("<dt>&lt;b&gt;</dt>") == 10
    # A spreadsheet drops the zero of 01, and may write whole numbers as fractions.
    rows = fill_in(labels, lambda row: f"{y[int(row['row'])] + 1}.0")
    assert f"<dd>{x[int(rows[0]['row']), 0] + 0.3:.6g}"[:9] in page
    found = json.loads(succeed("evaluate", "run", "--labels", labels, "--json", cwd=tmp_path).stdout)["labeled"]
    assert found["labels"] == 10
    assert found["adapted"]["value"] > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text, "no label in it yet"),
        (lambda text: text.replace("number", "place", 1), "no column 'number'"),
        (lambda text: "number,path,label\n99,x,red\n", "1 to 12"),
        (lambda text: "number,path,label\n1,x,red\n1,x,blue\n", "two labels for number 1"),
        (lambda text: "number,path,label\n1,x,purple\n", "write (none)"),
        (lambda text: "\x00\xff", "no column"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_in_a_sentence(place, run, change, words):
    succeed("label", run, "--budget", 12, cwd=place)
    labels = run / "label" / "labels.csv"
    labels.write_text(change(labels.read_text()))
    before = (run / "metrics.json").read_text()
    done = calida_command("evaluate", run, "--labels", labels, cwd=place)
    assert done.returncode == 2
    assert words in done.stderr
    assert (run / "metrics.json").read_text() == before


def test_what_does_not_belong_together_is_refused(place, run, tmp_path):
    succeed("label", run, "--budget", 12, cwd=place)
    label = run / "label"
    fill_in(label / "labels.csv", lambda row: "(none)")
    assert "not replaced" in calida_command("label", run, "--budget", 12, cwd=place).stderr
    assert "leave out" in calida_command("evaluate", run, "camera", "--labels", label / "labels.csv", cwd=place).stderr
    assert "no file" in calida_command("evaluate", run, "--labels", "absent.csv", cwd=place).stderr
    assert "at least 1" in calida_command("label", run, "--budget", 0, "--out", tmp_path / "no", cwd=place).stderr
    assert not (tmp_path / "no").exists()
    design = json.loads((label / "design.json").read_text())
    garbled = "is not what calida label wrote"
    changes = [({"names": "other"}, "another target")]
    changes += [(one, garbled) for one in ({"rows": [99] * 12}, {"rows": 1}, {"rows": [1e30] * 12}, {"format": 9})]
    for change, words in changes:
        (label / "design.json").write_text(json.dumps(sealed({**design, **change})))
        done = calida_command("evaluate", run, "--labels", label / "labels.csv", cwd=place)
        assert done.returncode == 2
        assert words in done.stderr
    (label / "design.json").unlink()
    done = calida_command("evaluate", run, "--labels", label / "labels.csv", cwd=place)
    assert "how its samples were drawn" in done.stderr


def test_labels_of_another_draw_are_refused_and_not_lost(place, run, tmp_path):
    label, mine = run / "label", tmp_path / "mine.csv"
    succeed("label", run, "--budget", 12, cwd=place)
    fill_in(label / "labels.csv", lambda row: "(none)")
    shutil.move(label / "labels.csv", mine)
    shutil.copy(mine, label / "mine.csv")
    done = calida_command("label", run, "--budget", 12, cwd=place)
    assert (done.returncode, "mine.csv may have labels of the last draw" in done.stderr) == (2, True)
    (label / "mine.csv").unlink()
    (label / "design.json").unlink()
    other = {row["number"]: row["path"] for row in read_csv(mine)}
    for seed in range(1, 9):
        succeed("label", run, "--budget", 12, "--seed", seed, "--out", tmp_path / f"{seed}", cwd=place)
        drawn = read_csv(tmp_path / f"{seed}" / "labels.csv")
        if any(other[row["number"]] != row["path"] for row in drawn):
            break
    shutil.copy(mine, tmp_path / f"{seed}" / "mine.csv")
    done = calida_command("evaluate", run, "--labels", tmp_path / f"{seed}" / "mine.csv", cwd=place)
    assert done.returncode == 2
    assert "is of another draw: number" in done.stderr


def test_hints_fit_the_command_and_name_what_was_stopped(place, run):
    for file in ("metrics.json", "model.json"):
        (run / file).rename(run / f"{file}.gone")
    (run / "checkpoint.json").write_text("{}")
    for words in (("predict", run, "camera"), ("report", run), ("label", run, "--budget", 5)):
        done = calida_command(*words, cwd=place)
        assert done.returncode == 2
        assert f"calida adapt --resume --out {run}" in done.stderr
    assert "there is no folder nowhere" in calida_command("predict", "nowhere", "camera", cwd=place).stderr
    assert calida_command("recipes", cwd=place).stdout.count("brer-inf") > 0
