"""One run of a study: its key, its start, its record, and what becomes of it when it is killed."""

import json
import multiprocessing
import signal
from dataclasses import replace

import pytest
from working import run_and_die, run_and_tell

from calida import workers
from calida.errors import CalidaError, InputError
from calida.runs import RunFolder, execute
from calida.studies import Engine, Results, job
from calida.studies.job import finished_record, rounded, run_job
from reproduction.older_records import FLAT_NAMES


def processes():
    """Children of a server that has imported everything once."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["calida.estimator", "sklearn.cluster", "sklearn.linear_model", "scipy.optimize"])
    return server


def test_a_key_follows_all_that_decides_a_run_and_nothing_else(task):
    one = task.job("rer-inf", 0)
    assert one.key == task.job("rer-inf", 0).key
    others = [
        task.job("rer-inf", 1),
        task.job("rer-1", 0),
        replace(task, settings={**task.settings, "adaptation.learning_rate": 0.002}).job("rer-inf", 0),
        replace(task, backbone="auto").job("rer-inf", 0),
        replace(task, target="elsewhere/other.npz").job("rer-inf", 0),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6
    options = {"class_weight": "balanced", "drop": ["ward"], "label": "kind", "on_mismatch": "ignore", "finetune": True}
    more = [replace(one, config=replace(one.config, **{name: value})) for name, value in options.items()]
    assert len({one.key, *(other.key for other in more)}) == 1 + len(options)
    fits = [replace(one, config=replace(one.config, model=model, backbone="auto")).key for model in ("forest", "hgb")]
    assert fits[0] != fits[1]
    moved = replace(one, config=replace(one.config, device="cpu", workers=3, memory=9.0))
    assert moved.key == one.key


def test_no_key_or_record_tells_where_the_data_lie(task):
    assert str(task.source) not in json.dumps(task.job("rer-1", 0).identity())


def test_a_run_from_its_start_is_the_whole_run(task, tmp_path):
    """Pre-training done once for all rows changes nothing: predictions are those of an undivided run, bit for bit."""
    one = task.job("brer-inf-gvr", 3)
    run_job(one.start, tmp_path)
    run_job(one, tmp_path)
    execute(one.config, tmp_path / "whole")
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / one.folder)
    assert parts.predictions.read_bytes() == whole.predictions.read_bytes()
    keys = ("source", "target", "oracle", "validators", "kept")
    for mine, theirs in zip(parts.read_rounds(), whole.read_rounds(), strict=True):
        assert [getattr(mine, key) for key in keys] == [getattr(theirs, key) for key in keys]


def test_a_record_holds_every_round_and_is_never_made_twice(task, tmp_path, monkeypatch):
    one = task.job("rer-1", 0)
    before = run_job(one.start, tmp_path)
    record = run_job(one, tmp_path)
    assert [part["phase"] for part in before["rounds"]] == ["pretrain"] * 2
    assert [part["phase"] for part in record["rounds"]] == ["pretrain", "adapt", "adapt", "adapt"]
    assert record["start"] == before["key"]
    assert set(record["versions"]) == {"calida", "torch", "python"}
    assert record["seconds"] >= record["training_seconds"] > 0
    assert record["settings"]["adaptation"]["rounds"] == 3
    kept = [part for part in record["rounds"] if part["kept"]][-1]
    assert record["returned"]["oracle"]["accuracy"] == pytest.approx(kept["oracle"]["accuracy"], abs=1e-5)
    monkeypatch.setattr(job, "execute", lambda *_, **__: pytest.fail("a finished run was made again"))
    assert run_job(one, tmp_path) == record == finished_record(one, tmp_path)
    elsewhere = replace(one, config=replace(one.config, target=f"elsewhere/{one.config.target}"))
    assert elsewhere.key == one.key
    with pytest.raises(CalidaError, match=r"this study has .*: use another folder"):
        finished_record(elsewhere, tmp_path)
    assert not list((tmp_path / one.folder).glob("checkpoint*"))


def test_base_networks_are_tried_with_numbers_of_samples_that_are_asked_for(task, tmp_path):
    """Those of a start too, whichever run comes first."""
    run_job(task.job("brer-1", 0, measured_with=(1, 10)), tmp_path)
    bayesian = run_job(task.job("bsource", 0), tmp_path)
    point = run_job(task.job("source", 0, measured_with=(1,)), tmp_path)
    assert set(point["by_samples"]) == {"1"}
    assert set(bayesian["by_samples"]) == {"1", "10"}
    assert point["by_samples"]["1"]["oracle"]["accuracy"] == pytest.approx(
        point["returned"]["oracle"]["accuracy"], abs=1e-9
    )
    last = bayesian["rounds"][-1]
    assert bayesian["by_samples"]["10"]["source_held_out"]["nll"] == pytest.approx(last["source"]["nll"], abs=1e-5)
    assert run_job(task.job("rer-1", 0), tmp_path)["by_samples"] == {}


def test_a_killed_run_goes_on_where_it_was(task, tmp_path):
    one, here, there = task.job("rer-inf", 0), tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        run_job(one.start, place)
    (tmp_path / "job.toml").write_text(one.config.to_toml())
    child = processes().Process(target=run_and_die, args=(tmp_path / "job.toml", here))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert finished_record(one, here) is None
    assert len(RunFolder(here / one.folder).read_rounds()) == 4  # two of pre-training, two of adaptation
    record, whole = run_job(one, here), run_job(one, there)
    assert record["returned"] == whole["returned"]
    assert (
        RunFolder(here / one.folder).predictions.read_bytes() == RunFolder(there / one.folder).predictions.read_bytes()
    )


def test_a_failed_run_is_told_and_the_others_go_on(task, tmp_path):
    lost = replace(task, target=str(tmp_path / "gone.npz"))
    jobs = [task.job("source", 0), lost.job("source", 1)]
    heard = []
    outcomes = Engine(jobs=1).run(jobs, tmp_path / "out", heard.append)
    assert heard == outcomes
    good, bad = sorted(outcomes, key=lambda outcome: outcome.record is None)
    assert good.record["seed"] == 0
    assert bad.record is None
    assert "gone.npz" in bad.error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "dask"}, "belong together"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "belong together"),
        ({"kind": "ray"}, "local or dask"),
        ({"jobs": 0}, "at least 1"),
    ],
)
def test_an_engine_that_cannot_run_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        Engine(**options).check()


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS_FOR_WORKERS", 0.5)
    with (
        pytest.raises(InputError, match="no Dask scheduler answers"),
        Engine("dask", scheduler="127.0.0.1:9")._backend(),
    ):
        pass


# What a record has beside its identity.
FINISHED = {"returned": {}, "rounds": [], "training_seconds": 1.0, "seconds": 1.0}


def test_results_are_kept_by_task_and_read_back(task, tmp_path):
    store = Results(tmp_path)
    jobs = [replace(task, name=name).job("rer-1", seed) for name, seed in (("one", 1), ("one", 0), ("two", 0))]
    for one in jobs:
        store.add({"key": one.key, **one.identity(), **FINISHED})
    assert [json.loads(line)["seed"] for line in (tmp_path / "one.jsonl").read_text().splitlines()] == [0, 1]
    assert Results(tmp_path).records == store.records
    assert set(store.records) == {one.key for one in jobs}
    (tmp_path / "one.jsonl").write_text('{"key": "a"')
    with pytest.raises(CalidaError, match=r"line 1 of .*one.jsonl "):
        Results(tmp_path)


def test_an_option_that_is_not_the_default_is_part_of_a_record(task, tmp_path):
    one = task.job("rer-1", 0)
    one = replace(one, config=replace(one.config, class_weight="balanced"))
    Results(tmp_path).add({"key": one.key, **one.identity(), **FINISHED})
    assert set(Results(tmp_path).records) == {one.key}


def test_a_record_older_than_a_setting_is_still_the_same_run(task, tmp_path):
    one = task.job("rer-1", 0)
    identity = one.identity()
    del identity["settings"]["gradient_variance"]["share"]  # at its default in this recipe
    Results(tmp_path).add({"key": "what it was then", **identity, **FINISHED})
    assert set(Results(tmp_path, FLAT_NAMES).records) == {one.key}


def test_a_record_without_groups_of_settings_is_still_the_same_run(task, tmp_path):
    """As records were before settings had groups: all that they had then, by the names of then."""
    one = task.job("rer-inf-gvr", 0)
    names = {full: old for old, full in FLAT_NAMES.items()}
    flat = {
        names[f"{group}.{name}"]: value
        for group, some in one.recipe.settings().items()
        for name, value in some.items()
        if f"{group}.{name}" in names  # the others came later
    }
    identity = {name: value for name, value in one.identity().items() if name != "precision"}
    Results(tmp_path).add({"key": "what it was then", **identity, **FINISHED, "settings": flat})
    assert set(Results(tmp_path, FLAT_NAMES).records) == {one.key}


def test_rounding_keeps_six_digits():
    assert rounded({"a": [0.123456789, 1], "b": {"c": 1e-9 / 3}, "d": True, "e": "x"}) == {
        "a": [0.123457, 1],
        "b": {"c": 3.33333e-10},
        "d": True,
        "e": "x",
    }


def test_two_processes_make_a_start_once(task, tmp_path):
    """Both need the same source-only classifier: one trains it, the other waits for it."""
    children = []
    for recipe in ("rer-1", "rer-inf"):
        (tmp_path / f"{recipe}.toml").write_text(task.job(recipe, 0).config.to_toml())
        words = (tmp_path / f"{recipe}.toml", tmp_path / "out", tmp_path / "log")
        children.append(processes().Process(target=run_and_tell, args=words))
        children[-1].start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert sorted((tmp_path / "log").read_text().split()) == ["rer-1", "rer-inf", "source"]
    assert len(list((tmp_path / "out").glob("blobs.*"))) == 3
