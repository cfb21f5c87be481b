"""Studies by name: which runs each of the paper's tables needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calida.errors import InputError
from calida.studies.job import Job
from calida.studies.paper import MNIST_USPS, SVHN_MNIST, TABLE1, TABLES
from calida.studies.tasks import StudyTask

STUDIES = ("table1", "table2a", "table2b", "table3", "claims")


@dataclass(frozen=True)
class Study:
    """A name and its runs, rows by rows, seed by seed."""

    name: str
    jobs: tuple[Job, ...]


def plan_study(name: str, tasks: Mapping[str, StudyTask], seeds: Iterable[int], recipes: Sequence[str] = ()) -> Study:
    """The runs of a table, or of these recipes in it; claims are tested on both digit tables and on dual ascent."""
    numbers = tuple(seeds)
    rows: list[tuple[str, str]] = []
    if name == "table1":
        rows = [(task, recipe) for task in TABLE1 for recipe in ("source", "bsource")]
    elif name == "claims":
        digits = (TABLES["table2a"], TABLES["table2b"])
        rows = [(table.task, row.recipe) for table in digits for row in table.rows]
        rows += [(task, "dual") for task in (MNIST_USPS, SVHN_MNIST)]
    else:
        rows = [(TABLES[name].task, row.recipe) for row in TABLES[name].rows]
    known = {recipe for _, recipe in rows}
    if unknown := [recipe for recipe in recipes if recipe not in known]:
        raise InputError(f"{name} has no row {unknown[0]!r}; its recipes are {', '.join(sorted(known))}")
    rows = [(task, recipe) for task, recipe in rows if not recipes or recipe in recipes]
    return Study(name, tuple(tasks[task].job(recipe, seed) for task, recipe in rows for seed in numbers))
