"""What a person sees of a study: a live table while it runs, and the paper's tables beside ours at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.live import Live
from rich.table import Column
from rich.table import Table as Grid

from calida.cli.screen import Screen, plain
from calida.cli.stopping import terminable
from calida.model import Network
from calida.studies import (
    CHOICES,
    Engine,
    Outcome,
    Results,
    RunRecord,
    Study,
    StudyProgress,
    StudyTask,
    Table,
    base_lines,
    examine_claims,
    finished_record,
    memory_plan,
    table_lines,
)
from calida.studies.cells import line_figures, paper_figure


def run_with_table(
    screen: Screen, study: Study, engine: Engine, out: Path, store: Results, tasks: Mapping[str, StudyTask]
) -> dict[str, str]:
    """Run what is not finished, with a table that follows it; give the failures by run."""
    for job in study.jobs:
        if job.key not in store.records and (known := finished_record(job, out)) is not None:
            store.add(known)
    measures = {task.name: task.measure for task in tasks.values()}
    progress = StudyProgress(study.jobs, out, engine.jobs, measures, store.records)
    left = [job for job in study.jobs if job.key not in store.records]
    screen.say(f"{study.name}: {len(study.jobs)} runs, {len(study.jobs) - len(left)} of them finished before")
    if not left:
        return {}

    def finished(outcome: Outcome) -> None:
        if outcome.job.key in store.records:  # the start of another, made before
            return
        if outcome.record is not None:
            store.add(outcome.record)
        else:
            progress.failures[outcome.job.key] = outcome.error
            screen.error(f"{outcome.job.folder}: {outcome.error}")
        if not screen.console.is_terminal:  # a log has no live table
            screen.say(_one_line(outcome, progress))

    try:
        with terminable(), _following(screen, progress):
            engine.run(left, out, finished)
    except KeyboardInterrupt:
        screen.error(f"stopped; the same command goes on where it was, in {out}")
        raise typer.Exit(130) from None
    return {job.folder: progress.failures[job.key] for job in study.jobs if job.key in progress.failures}


def _following(screen: Screen, progress: StudyProgress) -> AbstractContextManager[object]:
    """A table that is drawn anew every second, where there is a terminal to draw it on."""
    if not screen.console.is_terminal:
        return nullcontext()
    return Live(get_renderable=lambda: _live(progress), console=screen.console, refresh_per_second=1, transient=True)


def _live(progress: StudyProgress) -> Grid:
    rows = progress.rows()
    done, total = sum(row.done for row in rows), sum(row.total for row in rows)
    grid = Grid(
        "task",
        "recipe",
        "runs",
        "running",
        "label-free accuracy so far (oracle)",
        title=f"{done} of {total} runs, {_time(progress.seconds_left())} left",
        title_justify="left",
    )
    for row in rows:
        running = ", ".join(f"seed {seed}: {share:.0%}" for seed, share in row.running.items())
        runs = f"{row.done}/{row.total}" + (f", {row.failed} failed" if row.failed else "")
        grid.add_row(row.task, row.recipe, runs, running, row.accuracy.percent() if row.accuracy else "")
    return grid


def _one_line(outcome: Outcome, progress: StudyProgress) -> str:
    rows = progress.rows()
    done, total = sum(row.done + row.failed for row in rows), sum(row.total for row in rows)
    took = "failed" if outcome.record is None else f"{outcome.record['seconds']:.0f} s"
    return f"{done}/{total} {outcome.job.folder} {took}, {_time(progress.seconds_left())} left"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60:02d} min" if hours else f"{rest // 60} min {rest % 60:02d} s"


def show_table(
    screen: Screen, table: Table, task: StudyTask, seeds: Sequence[int], records: Mapping[str, RunRecord]
) -> list[dict[str, Any]]:
    """The paper's rows and ours; target accuracy in percent, all of it seen with target labels."""
    lines = table_lines(table, task, seeds, records)
    title = f"{table.title if task.name == table.task else task.name}, target {task.measure.replace('_', ' ')} in %"
    grid = Grid(Column("model", no_wrap=True), "paper", *CHOICES, "ECE", "ECE, raw", title=title, title_justify="left")
    for line in lines:
        grid.add_row(plain(line.row.name), paper_figure(line.row), *line_figures(line))
    screen.console.print(grid)
    screen.say(
        "label-free: the round that validators chose without target labels; oracle best: the paper's own choice, by "
        "target accuracy; ECE of the label-free choice, calibrated and raw. All accuracies are oracle figures."
    )
    return [asdict(line) for line in lines]


def show_table1(
    screen: Screen, task: StudyTask, seeds: Sequence[int], records: Mapping[str, RunRecord]
) -> list[dict[str, Any]]:
    """Base networks: source and target accuracy by number of Monte-Carlo samples."""
    lines = base_lines(task, seeds, records)
    columns = (
        "paper: source",
        "target",
        "source, trained on",
        "source, held out",
        "target (oracle)",
        "target ECE (oracle)",
    )
    grid = Grid(
        Column("model", no_wrap=True), *columns, title=f"Table 1: {task.name}, accuracy in %", title_justify="left"
    )
    for line in lines:
        ours = [spread.percent() for spread in line.figures.values()] or [""] * 4
        grid.add_row(line.row.name, f"{line.row.source:.2f}", f"{line.row.target:.2f}", *ours)
    screen.console.print(grid)
    return [asdict(line) for line in lines]


def show_claims(
    screen: Screen, tasks: Mapping[str, StudyTask], seeds: Sequence[int], records: Mapping[str, RunRecord]
) -> list[dict[str, Any]]:
    """What the paper asserts and what our runs say to it."""
    findings = examine_claims(tasks, seeds, records)
    columns = ("claim", "task", "measured", "mean", "95 % interval", "verdict")
    grid = Grid(*columns, title="Claims, paired by seed", title_justify="left")
    for one in findings:
        mean, low, high = one.interval
        grid.add_row(one.claim, one.task, one.measured, f"{mean:.2f}", f"{low:.2f} to {high:.2f}", one.verdict)
    screen.console.print(grid)
    return [{**asdict(one), "interval": one.interval._asdict()} for one in findings]


def show_memory(screen: Screen, task: StudyTask, classes: int = 12) -> dict[str, Any]:
    """What a training step of table 3 takes, before anything is allocated."""
    job = task.job("brer-inf-gvr", 0)
    shape = (3, task.size or 224, task.size or 224)
    plan = memory_plan(Network(shape, classes, task.backbone, gaussian=True), job.recipe)
    recipe = job.recipe
    title = f"{task.backbone}, {shape[1]} pixels, batches of {recipe.batch_size}, {recipe.gvr_groups} groups"
    grid = Grid("memory of a training step", "GB", title=title, title_justify="left")
    for name, words in _MEMORY.items():
        grid.add_row(words, f"{getattr(plan, name) / 1e9:.2f}")
    screen.console.print(grid)
    screen.say(
        f"{plan.parameters:,} trainable parameters. Not counted: kernel workspaces, an allocator's slack, the data."
    )
    return asdict(plan)


_MEMORY = {
    "weights": "weights and statistics",
    "gradients": "gradients",
    "optimizer": "the optimiser's state",
    "activations": "activations kept for backward",
    "plain_peak": "peak of a plain step",
    "bounded_gvr_peak": "peak with GVR, one group's graph at a time (as calida does it)",
    "kept_gvr_peak": "peak with GVR if every group's graph were kept",
}
