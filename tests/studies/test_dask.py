"""The same study on a real Dask cluster of this machine, with a worker that is killed in the middle of it."""

import signal

import pytest
from working import QUICK

from calida.studies import Engine, StudyTask, run_job

pytest.importorskip("distributed")
from clusters import running_cluster, striking


def test_a_killed_worker_loses_nothing(task, tmp_path):
    slow = StudyTask(task.name, task.source, task.target, "mlp", settings={**QUICK, "rounds": 12})
    jobs = [slow.job(recipe, seed) for recipe in ("source", "rer-1") for seed in (0, 1)]
    out = tmp_path / "out"

    def adapting():
        """Both starts are made, so whoever works is at an adaptation; and one of these has begun and not ended."""
        begun = [path.parent for path in out.glob("*.rer-*/metrics.jsonl") if "adapt" in path.read_text()]
        made = len(list(out.glob("*.source.*/record.json")))
        return made == 2 and any(not (folder / "record.json").exists() for folder in begun)

    with running_cluster(tmp_path) as (address, workers), striking(address, workers, adapting) as struck:
        outcomes = Engine("dask", scheduler=address).run(jobs, out, lambda outcome: None)
        (dead,) = struck
        assert workers[dead].wait(10) == -signal.SIGKILL
        assert sum(process.poll() is None for process in workers.values()) == 1
    assert [outcome.error for outcome in outcomes] == [""] * 4
    assert {outcome.job.key for outcome in outcomes} == {job.key for job in jobs}
    alone = tmp_path / "alone"
    for job in jobs:
        here = run_job(job, alone)
        there = next(outcome.record for outcome in outcomes if outcome.job.key == job.key)
        assert there["returned"] == here["returned"]  # on a cluster or not, killed or not
