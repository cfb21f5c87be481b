"""The same study on a real Dask cluster of this machine, with a worker that is killed in the middle of it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from working import QUICK

from calida.studies import Engine, StudyTask, run_job

pytest.importorskip("distributed")
HOST = "127.0.0.1"


def start(*words, log):
    file = log.open("wb")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", *words], stdout=file, stderr=subprocess.STDOUT, env=environment)


def wait_for(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


@pytest.fixture
def cluster(tmp_path):
    """A scheduler, and two workers of one thread each; gives its address and the workers' processes."""
    logs = [tmp_path / f"{name}.log" for name in ("scheduler", "first", "second")]
    options = ["--host", HOST, "--port", "0", "--no-dashboard"]
    scheduler = start("distributed.cli.dask_scheduler", *options, log=logs[0])
    processes = [scheduler]
    try:
        address = wait_for(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", logs[0].read_text()))[1]
        worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        worker += ["--host", HOST, "--local-directory", str(tmp_path / "dask")]
        processes += [start(*worker, log=log) for log in logs[1:]]
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_killed_worker_loses_nothing(task, tmp_path, cluster):
    address, workers = cluster
    slow = StudyTask(task.name, task.source, task.target, "mlp", settings={**QUICK, "rounds": 12})
    jobs = [slow.job(recipe, seed) for recipe in ("source", "rer-1") for seed in (0, 1)]
    out = tmp_path / "out"

    def strike():
        """Kill a worker when both are in the midst of a run."""
        wait_for(lambda: sum("adapt" in path.read_text() for path in out.glob("*.rer-*/metrics.jsonl")) == 2)
        workers[0].kill()

    killer = threading.Thread(target=strike)
    killer.start()
    outcomes = Engine("dask", scheduler=address).run(jobs, out, lambda outcome: None)
    killer.join()
    assert workers[0].wait(10) == -signal.SIGKILL
    assert workers[1].poll() is None
    assert [outcome.error for outcome in outcomes] == [""] * 4
    assert {outcome.job.key for outcome in outcomes} == {job.key for job in jobs}
    alone = tmp_path / "alone"
    for job in jobs:
        here = run_job(job, alone)
        there = next(outcome.record for outcome in outcomes if outcome.job.key == job.key)
        assert there["returned"] == here["returned"]  # on a cluster or not, killed or not
