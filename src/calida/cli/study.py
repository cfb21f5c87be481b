"""`calida study`: several recipes, settings and seeds on one's own data, and which result to trust."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.cli.options import AsJson, Device, Quiet
from calida.cli.screen import Screen
from calida.cli.select import show_selection
from calida.terminal import plain, table_of

if TYPE_CHECKING:
    from calida.studies import RunRecord


def study(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml", help="Options of a run, and: recipes = [...], seeds = 3, [variants.NAME] settings."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The study's folder; by default one under runs, named like the file.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes of one thread each; one a core by default.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="local|dask", help="This machine, or a Dask cluster.")] = "local",
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's address.")] = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run recipes x variants x seeds, side by side and resumable, and choose a winner without target labels."""
    from calida.cli.study_screen import run_jobs
    from calida.runs import select_run
    from calida.studies import Engine, Results, StudyPlan

    screen = Screen(quiet, as_json)
    plan = StudyPlan.read(file)
    place = out or Path("runs") / plan.name
    runner = Engine(engine, jobs or os.cpu_count() or 1, scheduler, device)  # type: ignore[arg-type]
    runner.check()
    planned, store = plan.jobs(), Results(place / "results")
    failures = run_jobs(screen, plan.name, list(planned.values()), runner, place, store, "accuracy")
    done = {name: store.records[job.key] for name, job in planned.items() if job.key in store.records}
    _show(screen, done)
    shown: dict[str, Any] = {"study": plan.name, "runs": {name: _figures(record) for name, record in done.items()}}
    if len(done) > 1:
        names = {str(place / planned[name].folder): name for name in done}
        selection = select_run([place / planned[name].folder for name in done])
        estimates = {run: done[name]["trust"]["accuracy"]["value"] for run, name in names.items()}
        show_selection(screen, selection, estimates, names)
        screen.say(f"Winner: {names[selection.chosen]}, in {selection.chosen}")
        shown["winner"] = {"name": names[selection.chosen], "run": selection.chosen, "reason": selection.reason}
    screen.result({**shown, "failures": failures})
    if failures:
        raise typer.Exit(1)


def _show(screen: Screen, done: dict[str, RunRecord]) -> None:
    measured = any("oracle" in record["returned"] for record in done.values())
    columns = ["run", "estimated accuracy", *["measured with labels"] * measured, "returned"]
    table = table_of(*columns, title="finished runs", title_justify="left")
    for name, record in done.items():
        figures = _figures(record)
        low, high = figures["interval"]
        cells = [plain(name), f"{figures['estimate']:.1%} ({low:.1%} to {high:.1%})"]
        if measured:
            cells.append("" if figures["measured"] is None else f"{figures['measured']:.1%}")
        table.add_row(*cells, plain(figures["returned"]))
    screen.console.print(table)


def _figures(record: RunRecord) -> dict[str, Any]:
    accuracy, oracle = record["trust"]["accuracy"], record["returned"].get("oracle")
    return {
        "estimate": accuracy["value"],
        "interval": [accuracy["low"], accuracy["high"]],
        "measured": None if oracle is None else oracle["accuracy"],
        "returned": record["trust"]["returned"],
    }
