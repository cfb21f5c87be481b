"""How far a study is, read from its folder: the same whether its runs are made here or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from calida.errors import CheckpointError
from calida.json_values import parse_json
from calida.studies.job import Job
from calida.studies.summary import Measure, RunRecord, Spread, label_free


@dataclass(frozen=True)
class RowProgress:
    """One recipe on one task: runs done, those at work with their share done, and the mean so far."""

    task: str
    recipe: str
    total: int
    done: int
    failed: int
    running: Mapping[int, float]  # share done by seed
    accuracy: Spread | None


@dataclass
class StudyProgress:
    """What is done and what is left; shares of running runs are counted in rounds."""

    jobs: Sequence[Job]
    out: Path
    processes: int
    measure: Measure = "accuracy"
    records: dict[str, RunRecord] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def rows(self) -> list[RowProgress]:
        grouped: dict[tuple[str, str], list[Job]] = {}
        for job in self.jobs:
            grouped.setdefault((job.task, job.config.recipe), []).append(job)
        return [self._row(task, recipe, jobs) for (task, recipe), jobs in grouped.items()]

    def _row(self, task: str, recipe: str, jobs: Sequence[Job]) -> RowProgress:
        mine = [self.records[job.key] for job in jobs if job.key in self.records]
        scores = [label_free(record, self.measure).accuracy for record in mine if "oracle" in record["returned"]]
        return RowProgress(
            task,
            recipe,
            len(jobs),
            len(mine),
            sum(job.key in self.failures for job in jobs),
            {job.config.seed: share for job in jobs if (share := self._share(job))},
            Spread.of(scores) if scores else None,
        )

    def seconds_left(self) -> float | None:
        """By what finished runs took: those of the same recipe where there are any, all of them otherwise."""
        known: dict[tuple[str, str], list[float]] = {}
        for job in self.jobs:
            if job.key in self.records:
                known.setdefault((job.task, job.config.recipe), []).append(self.records[job.key]["seconds"])
        if not known:
            return None
        anyone = fmean(seconds for some in known.values() for seconds in some)
        left = 0.0
        for job in self.jobs:
            if job.key not in self.records and job.key not in self.failures:
                expected = fmean(known.get((job.task, job.config.recipe), [anyone]))
                left += expected * (1 - self._share(job))
        return left / self.processes

    def _share(self, job: Job) -> float:
        """The share of a run's rounds that are done; 0 if it has not begun or is finished."""
        if job.key in self.records or job.key in self.failures:
            return 0.0
        try:
            lines = (self.out / job.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            rounds = [parse_json(line, job.folder) for line in lines]
        except (OSError, ValueError, CheckpointError):  # not there yet, or a line that is being written
            return 0.0
        recipe = job.recipe
        phase = "adapt" if recipe.adaptation.rounds else "pretrain"
        total = recipe.adaptation.rounds or recipe.pretraining.epochs
        done = sum(isinstance(one, dict) and one.get("phase") == phase for one in rounds)
        return max(done / total, 1e-3) if rounds else 0.0
