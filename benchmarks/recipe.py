"""The default recipe on every task, beside its parts, the paper's recipes and what skada has.

    python -m benchmarks.recipe run [--part aims|parts|special|field|skada ...] [--task NAME ...] [--seeds 4] [--jobs 2]
    python -m benchmarks.recipe page

`run` makes the runs that are missing, one thread each, in folders under --work (a killed one goes on where it was), and
keeps a JSON line of each under --results. `page` renders their tables into docs/results.md and the notes. The data are
found in CALIDA_DATA: mnist.npz, usps.npz, svhn.npz and the folder pacs. --part skada needs `pip install skada skorch`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib

from benchmarks.recipe_tasks import BRIEF, DIGITS, RECORDED, TASKS
from calida.files import write_atomically
from calida.recipes import get_recipe, resolve
from calida.studies import Engine, Job, Outcome, Results
from calida.studies.job import PRETRAINING, finished_record
from reproduction.older_records import FLAT_NAMES

TUNED_ON = ("mnist-usps", "mnist5k-uci")
MADE = "made"  # the folder of files that a seed decides
PAGES = (Path("docs/results.md"), Path("reproduction/notes/default-recipe.md"))  # that have places for tables


@dataclass(frozen=True)
class Variant:
    """A recipe, or the default one with something changed."""

    recipe: str = "calida"
    settings: dict[str, Any] = field(default_factory=dict)


CALIDA = Variant()
FADING = Variant(settings={"contrast": 1.0, "polarity": 0.5})
REMOVED = {
    "affine views": Variant(settings={"affine": 0.0}),
    "the averaged teacher": Variant(settings={"memory": 0.0}),
    "consistency": Variant(settings={"consistency": 0.0}),
    "diversity": Variant(settings={"diversity": 0.0}),
    "entropy": Variant(settings={"multiplier": 0.0}),
    "classes drawn equally often": Variant(settings={"uniform_prior_slack": "inf"}),
    "the target's BatchNorm statistics": Variant(settings={"statistics": "both"}),
}
ADDED = {
    "a dual entropy budget": Variant(settings={"budget": "source"}),
    "labels from 0.97 sure": Variant(settings={"consistency_threshold": 0.97}),
    "erasing": Variant(settings={"erasing": 1.0}),
    "contrast and polarity": FADING,
    "pseudo-labels, portion by agreement": Variant(
        settings={"order": "inf", "selection": "reweighted", "portion": "agreement", "multiplier": 1.0}
    ),
    "annealing from order 1 to inf": Variant(
        settings={
            "order": "inf",
            "selection": "reweighted",
            "portion": 1.0,
            "temperature": [1.0, "even", 0.0],
            "normalize": False,
        }
    ),
    "gradient variance": Variant(settings={"weight": 0.1, "share": 0.25}),
}
# These say something on some tasks alone: feature vectors, classes out of balance, color, a large gap.
SPECIAL = {
    "arms-moved": {"without noise": Variant(settings={"noise": 0.0})},
    "usps-skewed": {"without classes drawn equally often": REMOVED["classes drawn equally often"]},
    "arms-skewed": {"without classes drawn equally often": REMOVED["classes drawn equally often"]},
    "photo-art": {"with contrast and polarity": FADING},
}
FIELD = {name: Variant(name) for name in ("source", "rer-1", "brer-1", "rer-inf", "brer-inf")}
# What is run on which tasks.
PARTS: dict[str, dict[str, list[Variant]]] = {
    "aims": {task: [CALIDA] for task in TASKS},
    "parts": {task: [CALIDA, *REMOVED.values(), *ADDED.values()] for task in TUNED_ON},
    "special": {task: [CALIDA, *variants.values()] for task, variants in SPECIAL.items()},
    "field": {task: [CALIDA, *FIELD.values()] for task in DIGITS},
}
OWN_SIZE = ("aims",)  # the others compare many runs, with small images and a shorter schedule


def make_job(task: str, variant: Variant, seed: int, work: Path, small: bool) -> Job:
    config = TASKS[task].config(seed, work / MADE, small)
    mine = variant.recipe == CALIDA.recipe
    own: Mapping[str, Any] = {**RECORDED, **(BRIEF if small else {})} if mine else TASKS[task].paper
    named = get_recipe(variant.recipe)
    adapts, every = named.adaptation.rounds > 0, named.each()
    own = {name: value for name, value in own.items() if adapts or resolve(name, every).split(".")[0] in PRETRAINING}
    return Job(task, replace(config, recipe=variant.recipe, settings={**own, **variant.settings}))


def jobs_of(part: str, tasks: Iterable[str], seeds: Iterable[int], work: Path) -> Iterator[Job]:
    for task, variants in PARTS[part].items():
        if task in tasks:
            small = part not in OWN_SIZE
            yield from (make_job(task, variant, seed, work, small) for variant in variants for seed in seeds)


def run(jobs: list[Job], work: Path, store: Results, processes: int) -> None:
    """Make the missing runs; starts are kept too, since they are the source-only figures."""
    wanted = {job.key: job for job in jobs} | {job.start.key: job.start for job in jobs if job.start is not None}
    for job in wanted.values():
        if job.key not in store.records and (known := finished_record(job, work)) is not None:
            store.add(known)
    left = [job for job in wanted.values() if job.key not in store.records]
    print(f"{len(wanted)} runs, {len(left)} to make", flush=True)
    for task, seed in sorted({(job.task, job.config.seed) for job in left}):
        TASKS[task].make_files(seed, work / MADE)

    def finished(outcome: Outcome) -> None:
        if outcome.record is None:
            print(f"{outcome.job.folder}: {outcome.error}", flush=True)
            return
        store.add(outcome.record)
        print(f"{outcome.job.folder}: {outcome.record['seconds']:.0f} s", flush=True)

    if left:
        Engine(jobs=processes).run(left, work, finished)


def run_skada(tasks: Iterable[str], seeds: Iterable[int], work: Path, path: Path, processes: int) -> None:
    """The same tasks by skada's methods, each result kept as it comes."""
    from benchmarks.recipe_skada import METHODS
    from benchmarks.recipe_skada import run_skada as train

    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(one["task"], one["method"], one["seed"]) for one in kept}
    names = [task for task in DIGITS if task in tasks]
    left = [(task, method, seed) for task in names for seed in seeds for method in METHODS]
    left = [one for one in left if one not in known]
    print(f"{len(left)} runs of skada's methods to make", flush=True)

    def one(task: str, method: str, seed: int) -> dict[str, Any]:
        config = TASKS[task].config(seed, work / MADE, small=True)
        return {"task": task, "method": method, "seed": seed, **train(method, config)}

    calls = (joblib.delayed(one)(*which) for which in left)
    for result in joblib.Parallel(processes, batch_size=1, return_as="generator_unordered")(calls):
        kept = sorted([*kept, result], key=lambda one: (one["task"], one["method"], one["seed"]))
        write_atomically(path, "".join(json.dumps(one) + "\n" for one in kept).encode())
        print(f"{result['task']}.{result['method']}.{result['seed']}: {result['seconds']:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("--part", nargs="+", choices=(*PARTS, "skada"), default=(*PARTS, "skada"))
    parser.add_argument("--task", nargs="+", choices=TASKS, default=tuple(TASKS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=Path("runs/recipe"))
    parser.add_argument("--results", type=Path, default=Path("results/recipe"))
    parser.add_argument("--page", type=Path, nargs="+", default=PAGES)
    options = parser.parse_args()
    seeds, skada = range(options.seeds), options.results.with_name("recipe-skada.jsonl")
    if options.what == "page":
        from benchmarks.recipe_page import render

        render(options.page, Results(options.results, FLAT_NAMES), skada, seeds, options.work)
        return
    ours = [part for part in options.part if part in PARTS]
    jobs = [job for part in ours for job in jobs_of(part, options.task, seeds, options.work)]
    if jobs:
        run(jobs, options.work, Results(options.results, FLAT_NAMES), options.jobs)
    if "skada" in options.part:
        run_skada(options.task, seeds, options.work, skada, options.jobs)


if __name__ == "__main__":
    main()
