"""Runs of a study side by side through joblib: local processes, or the workers of a Dask cluster."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import joblib

from calida.errors import CalidaError, InputError, MissingExtraError
from calida.studies.job import Job, run_job
from calida.studies.summary import RunRecord

_SECONDS_FOR_WORKERS = 30


class Outcome(NamedTuple):
    """A job and its record, or the sentence that tells why there is none."""

    job: Job
    record: RunRecord | None
    error: str = ""


@dataclass(frozen=True)
class Engine:
    """Where runs are made: `jobs` processes of this machine, or a Dask cluster by the address of its scheduler.

    The workers of a cluster must see the study's folder and the data under the same paths.
    """

    kind: Literal["local", "dask"] = "local"
    jobs: int = os.cpu_count() or 1
    scheduler: str | None = None
    device: str | None = None

    def check(self) -> None:
        if self.kind not in ("local", "dask"):
            raise InputError(f"the engine is local or dask, not {self.kind!r}")
        if (self.kind == "dask") != (self.scheduler is not None):
            raise InputError("the engine dask and the address of a scheduler belong together")
        if self.jobs < 1:
            raise InputError(f"the number of processes is at least 1, not {self.jobs}")

    def run(self, jobs: Sequence[Job], out: Path, finished: Callable[[Outcome], None]) -> list[Outcome]:
        """Run every job; `finished` hears of each as it ends."""
        self.check()
        outcomes: list[Outcome] = []
        with self._backend():
            tasks = (joblib.delayed(_attempt)(job, out.resolve(), self.device) for job in starts_first(jobs))
            # One run a dispatch: runs take minutes, and a lost worker is to lose as little as it can.
            parallel = joblib.Parallel(batch_size=1, pre_dispatch="all", return_as="generator_unordered")
            for outcome in parallel(tasks):
                finished(outcome)
                outcomes.append(outcome)
        return outcomes

    @contextmanager
    def _backend(self) -> Iterator[None]:
        if self.kind == "local":
            with (
                warnings.catch_warnings(),
                joblib.parallel_config("loky", n_jobs=self.jobs, inner_max_num_threads=1),
            ):
                # loky renews a worker that has grown between two runs, and need not tell.
                warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
                yield
            return
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtraError("the dask engine needs dask: pip install 'calida[dask]'") from None
        try:
            client: Any = Client(self.scheduler, timeout=_SECONDS_FOR_WORKERS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {self.scheduler}: {error}") from None
        with client:
            if not client.ncores():
                try:
                    client.wait_for_workers(1, timeout=_SECONDS_FOR_WORKERS)
                except TimeoutError:
                    raise InputError(f"no worker has joined the Dask scheduler at {self.scheduler}") from None
            with joblib.parallel_config("dask", client=client, wait_for_workers_timeout=_SECONDS_FOR_WORKERS):
                yield


def starts_first(jobs: Sequence[Job]) -> list[Job]:
    """Each job once, those that others start from before the rest, so that nobody has to wait for one."""
    starts = {start.key: start for job in jobs if (start := job.start) is not None}
    return list({**starts, **{job.key: job for job in jobs}}.values())


def _attempt(job: Job, out: Path, device: str | None) -> Outcome:
    """A failed run is a result too: the others go on, and what went wrong is told at the end."""
    try:
        # A run has one thread. What scikit-learn would share out within it must not become tasks of the same cluster.
        with joblib.parallel_config("sequential"):
            return Outcome(job, run_job(job, out, device))
    except CalidaError as error:
        return Outcome(job, None, str(error))
    except Exception:
        return Outcome(job, None, traceback.format_exc())
