"""`calida reproduce`: the paper's tables beside ours, from runs or from records of them."""

import json

import pytest
from commands import calida_command, succeed
from test_claims import RECIPES, record  # records with known numbers

from calida.studies import MNIST_USPS, PROTOCOLS, SVHN_MNIST, Results, generate_visda17


@pytest.fixture
def results(tmp_path):
    """A folder of finished runs: all rows of both digit tables, two seeds, at the smoke tasks' keys."""
    store = Results(tmp_path / "results")
    for name in (MNIST_USPS, SVHN_MNIST):
        task = PROTOCOLS["paper"][name].smoke()
        for index, recipe in enumerate(RECIPES):
            for seed in range(2):
                last = 0.9 + 0.001 * index + 0.01 * seed
                store.add(record(task, recipe, seed, [0.8, last] if "source" not in recipe else [0.8]))
    return store.folder


def test_base_networks_from_tiny_runs_and_never_twice(tmp_path):
    words = ("reproduce", "table1", "--smoke", "--seeds", "1", "--jobs", "2")
    done = succeed(*words, cwd=tmp_path)
    assert "Table 1: mnist-usps" in done.stderr
    assert "BDTN-M100" in done.stderr
    folder = tmp_path / "runs" / "reproduction-smoke"
    lines = [json.loads(line) for path in folder.glob("results/*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == 4
    shown = json.loads(succeed(*words, "--json", cwd=tmp_path).stdout)
    bayesian = next(line for line in lines if (line["task"], line["recipe"]) == (MNIST_USPS, "bsource"))
    row = next(row for row in shown[MNIST_USPS] if row["row"]["name"] == "BDTN-M5")
    assert row["figures"]["oracle"][0] == pytest.approx(bayesian["by_samples"]["5"]["oracle"]["accuracy"])
    assert "4 of them finished before" in succeed(*words, cwd=tmp_path).stderr


def test_a_table_stands_beside_the_papers(results, tmp_path):
    words = ("reproduce", "table2a", "--smoke", "--results", results)
    done = succeed(*words, cwd=tmp_path)
    line = next(line for line in done.stderr.splitlines() if "BRER-inf-GVR" in line)
    assert "94.53 ± 0.23" in line
    assert "91.40 ± 0.71" in line  # 0.909 and 0.919
    assert "All accuracies are oracle figures" in done.stderr
    rows = json.loads(succeed(*words, "--json", cwd=tmp_path).stdout)["rows"]
    assert [row["row"]["name"] for row in rows][:3] == ["Source-DTN", "Source-BDTN", "RER-1"]
    assert rows[2]["gain"] == pytest.approx(0.107)
    assert not (tmp_path / "runs").exists()  # nothing was left to run


def test_claims_have_an_interval_and_a_verdict(results, tmp_path):
    shown = json.loads(succeed("reproduce", "claims", "--smoke", "--results", results, "--json", cwd=tmp_path).stdout)
    assert {one["task"] for one in shown["claims"]} == {MNIST_USPS, SVHN_MNIST}
    gvr = next(one for one in shown["claims"] if one["claim"] == "GVR helps at order inf")
    assert gvr["interval"]["mean"] == pytest.approx(0.1)
    assert gvr["verdict"] == "holds"  # the same difference with both seeds


def test_the_page_is_made_from_records_alone(results, tmp_path):
    done = succeed("reproduce", "page", "--results", results, "--docs", tmp_path / "docs", cwd=tmp_path)
    assert "reproduction.md" in done.stderr
    assert "oracle" in (tmp_path / "docs" / "reproduction.md").read_text()


def test_table_3_runs_on_images_in_visdas_layout(tmp_path):
    """Folders of classes and the official kind of list give the same run; the mean class accuracy is what counts."""
    words = ["reproduce", "table3", "--smoke", "--seeds", "1", "--jobs", "1", "--recipe", "brer-inf-gvr", "--json"]
    shown = json.loads(succeed(*words, cwd=tmp_path).stdout)
    by_folder = next(row for row in shown["rows"] if row["row"]["recipe"] == "brer-inf-gvr")
    root = generate_visda17(tmp_path / "lists")
    lists = [str(root / part / "image_list.txt") for part in ("train", "validation")]
    shown = json.loads(succeed(*words, "--source", lists[0], "--target", lists[1], cwd=tmp_path).stdout)
    by_list = next(row for row in shown["rows"] if row["row"]["recipe"] == "brer-inf-gvr")
    assert by_list["accuracy"] == by_folder["accuracy"]


def test_the_memory_plan_runs_nothing(tmp_path):
    words = ("reproduce", "table3", "--plan", "--backbone", "compact", "--size", "32")
    assert "one group's graph at a time" in succeed(*words, cwd=tmp_path).stderr
    plan = json.loads(succeed(*words, "--json", cwd=tmp_path).stdout)
    assert plan["weights"] < plan["plain_peak"] < plan["bounded_gvr_peak"] < plan["kept_gvr_peak"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("table2a", "--plan"), "--plan belongs to table3"),
        (("table2b", "--size", "8"), "--size belongs to table3"),
        (("table2a", "--protocol", "mine"), "the protocol is one of paper, full"),
        (("table2a", "--recipe", "rer-7"), "table2a has no row 'rer-7'"),
        (("table2a", "--engine", "dask"), "belong together"),
        (("table2a", "--engine", "ray"), "local or dask"),
    ],
)
def test_what_cannot_be_run_gets_one_sentence(words, sentence, tmp_path):
    done = calida_command("reproduce", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_failed_run_is_told_and_the_command_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    words = ("--source", tmp_path / "empty", "--target", tmp_path / "empty", "--jobs", "1", "--seeds", "1")
    done = calida_command("reproduce", "table3", "--smoke", "--recipe", "source", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert "empty" in done.stderr
