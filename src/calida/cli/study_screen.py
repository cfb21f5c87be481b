"""What a person sees of a study while it runs: a live table, or a line a run where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import typer
from rich.live import Live
from rich.table import Table

from calida.cli.screen import Screen
from calida.cli.stopping import terminable
from calida.studies import Engine, Job, Measure, Outcome, Results, StudyProgress, finished_record
from calida.terminal import counted, table_of


def run_jobs(
    screen: Screen, name: str, jobs: Sequence[Job], engine: Engine, out: Path, store: Results, measure: Measure
) -> dict[str, str]:
    """Run what is not finished, with a table that follows it; give the failures by run."""
    for job in jobs:
        if job.key not in store.records and (known := finished_record(job, out)) is not None:
            store.add(known)
    progress = StudyProgress(jobs, out, engine.jobs, measure, store.records)
    left = [job for job in jobs if job.key not in store.records]
    screen.say(f"{name}: {counted(len(jobs), 'run')}, {len(jobs) - len(left)} finished before")
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
    return {job.folder: progress.failures[job.key] for job in jobs if job.key in progress.failures}


def _following(screen: Screen, progress: StudyProgress) -> AbstractContextManager[object]:
    """A table that is drawn anew every second, where there is a terminal to draw it on."""
    if not screen.console.is_terminal:
        return nullcontext()
    return Live(get_renderable=lambda: _live(progress), console=screen.console, refresh_per_second=1, transient=True)


def _live(progress: StudyProgress) -> Table:
    rows = progress.rows()
    done, total = sum(row.done for row in rows), sum(row.total for row in rows)
    grid = table_of(
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
