"""A real Dask cluster of this machine: a scheduler, two workers of one thread each, and one of them killed."""

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

from distributed import Client

HOST = "127.0.0.1"
NAMES = ("first", "second")
_SECONDS = 120


def _start(*words, log):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as file:
        return subprocess.Popen([sys.executable, "-m", *words], stdout=file, stderr=subprocess.STDOUT, env=environment)


def wait_for(condition):
    end = time.monotonic() + _SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


@contextmanager
def running_cluster(folder, *options):
    """Give the scheduler's address and the processes of the workers by name, once both have joined."""
    log = folder / "scheduler.log"
    words = ["--host", HOST, "--port", "0", "--no-dashboard"]
    processes = [_start("distributed.cli.dask_scheduler", *words, log=log)]
    try:
        address = wait_for(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text()))[1]
        words = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        words += ["--host", HOST, "--local-directory", str(folder / "dask"), *options]
        for name in NAMES:
            processes.append(_start(*words, "--name", name, log=folder / f"{name}.log"))
        with Client(address, timeout=_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(len(NAMES), timeout=_SECONDS)
        yield address, dict(zip(NAMES, processes[1:], strict=True))
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def striking(address, workers, when):
    """Kill a worker that is busy, as soon as the condition holds; gives the list that its name is added to.

    The work may end before the condition ever holds: leaving the block ends the wait.
    """
    struck, over = [], threading.Event()

    def strike():
        with Client(address, timeout=_SECONDS, set_as_default=False) as client:
            while not over.wait(0.05):
                if not when():
                    continue
                names = {place: worker["name"] for place, worker in client.scheduler_info()["workers"].items()}
                busy = [names[place] for place, keys in client.processing().items() if keys and place in names]
                if busy:
                    workers[busy[0]].kill()
                    struck.append(busy[0])
                    return

    killer = threading.Thread(target=strike)
    killer.start()
    try:
        yield struck
    finally:
        over.set()
        killer.join()
