"""Studies by name: which runs each of the paper's tables needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calida.errors import InputError
from calida.studies import Job, StudyTask
from reproduction.tables import MNIST_USPS, NUM_SAMPLES, SVHN_MNIST, TABLE1, TABLES, USUAL_SAMPLES, BaseRow, Row

STUDIES = ("table1", "table2a", "table2b", "table3", "pacs", "claims")


@dataclass(frozen=True)
class Study:
    """A name and its runs, row by row, seed by seed."""

    name: str
    jobs: tuple[Job, ...]


def row_job(task: StudyTask, row: Row, seed: int) -> Job:
    """The run of a row; the source-only network that it begins with is shared by all rows of its kind."""
    assert row.recipe is not None
    return task.job(row.recipe, seed, row.settings, NUM_SAMPLES if row.recipe.startswith("b") else (1,))


def base_job(task: StudyTask, row: BaseRow, seed: int) -> Job:
    """A base network, trained with its own number of samples; the usual one predicts with every number as well."""
    if row.num_samples is None:
        return task.job("source", seed, {}, (1,))
    if row.num_samples == USUAL_SAMPLES:
        return task.job("bsource", seed, {}, NUM_SAMPLES)
    return task.job("bsource", seed, {"num_samples": row.num_samples}, (row.num_samples,))


def plan_study(name: str, tasks: Mapping[str, StudyTask], seeds: Iterable[int], rows: Sequence[str] = ()) -> Study:
    """The runs of a table, or of these rows of it; claims are tested on both digit tables, Table 1 and dual ascent."""
    numbers = tuple(seeds)
    jobs: dict[str, list[Job]] = {}

    def add(row: str, some: Iterable[Job]) -> None:
        jobs.setdefault(row, []).extend(some)

    if name in ("table1", "claims"):
        for task_name, base in TABLE1.items():
            for line in base:
                add(line.name, (base_job(tasks[task_name], line, seed) for seed in numbers))
    if name == "claims":
        for task_name in (MNIST_USPS, SVHN_MNIST):
            add("dual", (tasks[task_name].job("dual", seed) for seed in numbers))
    for table in TABLES.values():
        if name == table.study or (name == "claims" and table.task in TABLE1):
            for row in table.rows:
                if row.recipe is not None:
                    add(row.name, (row_job(tasks[table.task], row, seed) for seed in numbers))
    if unknown := [row for row in rows if row not in jobs]:
        raise InputError(f"{name} has no row {unknown[0]!r}; its rows are {'; '.join(jobs)}")
    wanted = [job for row, some in jobs.items() if not rows or row in rows for job in some]
    return Study(name, tuple({job.key: job for job in wanted}.values()))
