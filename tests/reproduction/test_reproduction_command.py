"""`python -m reproduction`: the paper's tables beside ours, from runs or from records of them."""

import json

import pytest
from commands import command
from records import records, rows_of

from calida.encoders import PACKAGED, install_command
from calida.studies import Results
from reproduction.__main__ import main
from reproduction.tables import MNIST_USPS, PACS, SVHN_MNIST
from reproduction.tasks import PROTOCOLS, smoke
from reproduction.visda17 import generate_visda17


def reproduce(*words, cwd):
    """`python -m reproduction` in this process."""
    return command(main, "reproduction", *words, cwd=cwd)


def succeed(*words, cwd):
    done = reproduce(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def finished(tmp_path):
    """A folder in which all rows of both digit tables are finished, two seeds each, for the tiny tasks."""
    store = Results(tmp_path / "runs" / "reproduction-smoke" / "results")
    for name in (MNIST_USPS, SVHN_MNIST):
        task = smoke(PROTOCOLS["main"][name])
        values = {row: [0.9 + 0.001 * index, 0.91 + 0.001 * index] for index, row in enumerate(rows_of(task))}
        for one in records(task, values).values():
            store.add(one)
    return tmp_path


def test_base_networks_from_tiny_runs_and_never_twice(tmp_path):
    words = ("table1", "--smoke", "--seeds", "1", "--jobs", "2", "--row", "DTN", "--row", "BDTN-M5")
    done = succeed(*words, cwd=tmp_path)
    assert "Table 1: mnist-usps" in done.stderr
    folder = tmp_path / "runs" / "reproduction-smoke"
    lines = [json.loads(line) for path in folder.glob("results/*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == 4
    shown = json.loads(succeed(*words, "--json", cwd=tmp_path).stdout)
    bayesian = next(line for line in lines if (line["task"], line["recipe"]) == (MNIST_USPS, "bsource"))
    row = next(row for row in shown[MNIST_USPS] if row["model"] == "BDTN-M5")
    assert row["oracle"]["mean"] == pytest.approx(bayesian["by_samples"]["5"]["oracle"]["accuracy"])
    assert bayesian["settings"]["posterior"]["num_samples"] == 5
    assert "4 finished before" in succeed(*words, cwd=tmp_path).stderr


def test_a_table_stands_beside_the_papers(finished):
    done = succeed("table2a", "--smoke", cwd=finished)
    assert "94.53" in next(line for line in done.stderr.splitlines() if "BRER-inf-GVR" in line)
    assert "measured with labels" in done.stderr
    rows = json.loads(succeed("table2a", "--smoke", "--json", cwd=finished).stdout)["rows"]
    assert [row["model"] for row in rows][:3] == ["Source-DTN", "Source-BDTN", "RER-1"]
    assert rows[2]["label-free"]["mean"] == pytest.approx(0.907)


def test_claims_have_an_interval_and_a_verdict(finished):
    shown = json.loads(succeed("claims", "--smoke", "--json", cwd=finished).stdout)
    assert {one["task"] for one in shown["claims"]} == {MNIST_USPS, SVHN_MNIST}
    gvr = next(one for one in shown["claims"] if one["claim"] == "GVR helps at order inf (point)")
    assert gvr["interval"]["mean"] == pytest.approx(-0.1)
    assert gvr["verdict"] == "does not hold"  # the same difference with both seeds


def test_the_page_is_made_from_records_alone(finished):
    done = succeed("page", "--results", finished / "none", "--docs", finished / "docs", cwd=finished)
    assert "reproduction.md" in done.stderr
    assert "measured with target labels" in (finished / "docs" / "reproduction.md").read_text()


def test_table_3_runs_on_images_in_visdas_layout(tmp_path):
    """Folders of classes and the official kind of list give the same run; the mean class accuracy is what counts."""
    words = ["table3", "--smoke", "--seeds", "1", "--jobs", "1", "--row", "BRER-inf-GVR", "--json"]
    shown = json.loads(succeed(*words, cwd=tmp_path).stdout)
    by_folder = next(row for row in shown["rows"] if row["model"] == "BRER-inf-GVR")
    root = generate_visda17(tmp_path / "lists")
    lists = [str(root / part / "image_list.txt") for part in ("train", "validation")]
    shown = json.loads(succeed(*words, "--source", lists[0], "--target", lists[1], cwd=tmp_path).stdout)
    by_list = next(row for row in shown["rows"] if row["model"] == "BRER-inf-GVR")
    assert by_list["label-free"] == by_folder["label-free"]


def test_the_memory_plan_runs_nothing(tmp_path):
    words = ("table3", "--plan", "--backbone", "compact", "--size", "32")
    assert "one group's graph at a time" in succeed(*words, cwd=tmp_path).stderr
    plan = json.loads(succeed(*words, "--json", cwd=tmp_path).stdout)
    assert plan["weights"] < plan["plain_peak"] < plan["bounded_gvr_peak"] < plan["kept_gvr_peak"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("table2a", "--plan"), "--plan belongs to table3"),
        (("table2b", "--size", "8"), "--size belongs to table3"),
        (("table2a", "--protocol", "mine"), "the protocol is one of main, full, small"),
        (("table2a", "--row", "RER-7"), "table2a has no row 'RER-7'"),
        (("table2a", "--engine", "dask"), "belong together"),
        (("table2a", "--engine", "ray"), "local or dask"),
    ],
)
def test_what_cannot_be_run_gets_one_sentence(words, sentence, tmp_path):
    done = reproduce(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_failed_run_is_told_and_the_command_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    words = ("--source", tmp_path / "empty", "--target", tmp_path / "empty", "--jobs", "1", "--seeds", "1")
    done = reproduce("table3", "--smoke", "--row", "Source-Res101", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert "empty" in done.stderr


@pytest.mark.skipif(not PACKAGED["efficientnet-lite0"].is_installed(), reason=install_command("images"))
def test_pacs_runs_by_an_encoder_in_both_directions(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    words = ["pacs", "--smoke", "--seeds", "1", "--jobs", "1", "--row", "BRER-inf-GVR", "--json"]
    shown = json.loads(succeed(*words, cwd=tmp_path).stdout)
    for name in PACS:
        row = next(row for row in shown[name] if row["model"] == "BRER-inf-GVR")
        assert (row["paper"], row["label-free"]["seeds"]) == (None, 1)
    (line,) = (tmp_path / "runs/reproduction-smoke/results" / f"{PACS[0]}.jsonl").read_text().splitlines()[:1]
    assert (json.loads(line)["encoder"], json.loads(line)["source"]) == ("efficientnet-lite0", "pacs/photo")


def test_pacs_that_is_not_there_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_DATA", str(tmp_path / "data"))
    done = reproduce("pacs", cwd=tmp_path)
    assert done.returncode == 2
    assert "pacs/photo; put PACS there" in done.stderr
