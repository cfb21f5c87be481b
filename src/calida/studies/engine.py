"""Runs of a study side by side."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import joblib

from calida.errors import CalidaError
from calida.studies.job import Job, run_job
from calida.studies.summary import RunRecord
from calida.workers import Workers


class Outcome(NamedTuple):
    """A job and its record, or the sentence that tells why there is none."""

    job: Job
    record: RunRecord | None
    error: str = ""


@dataclass(frozen=True)
class Engine(Workers):
    """Where runs are made."""

    def run(self, jobs: Sequence[Job], out: Path, finished: Callable[[Outcome], None]) -> list[Outcome]:
        """Run every job; `finished` hears of each as it ends."""
        outcomes: list[Outcome] = []
        for outcome in self.each(partial(_attempt, out=out.resolve(), device=self.device), starts_first(jobs)):
            finished(outcome)
            outcomes.append(outcome)
        return outcomes


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
