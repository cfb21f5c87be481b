"""`calida study`: several recipes, settings and seeds on one's own data, and which result to trust."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.cli.options import AsJson, Device, Quiet
from calida.cli.screen import Screen
from calida.cli.select import show_selection
from calida.terminal import about, counted, plain, table_of

if TYPE_CHECKING:
    from calida.studies import RunRecord

_WORTH_TELLING = 20  # seconds


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
    from calida.runs import comparable, select_run
    from calida.studies import Engine, Results, StudyPlan, finished_record, forecast_seconds

    screen = Screen(quiet, as_json)
    plan = StudyPlan.read(file)
    place = out or Path("runs") / plan.name
    runner = Engine(engine, jobs or os.cpu_count() or 1, scheduler, device)  # type: ignore[arg-type]
    runner.check()
    planned, store = plan.jobs(), Results(place / "results")
    left = [one for one in planned.values() if one.key not in store.records and finished_record(one, place) is None]
    if left:
        screen.say("Measuring how long this takes.")
    if left and (seconds := forecast_seconds(left, runner.jobs, device)) > _WORTH_TELLING:
        screen.say(f"{counted(len(left), 'run')}: {about(seconds)} on this machine.")
    failures = run_jobs(screen, plan.name, list(planned.values()), runner, place, store, "accuracy")
    done = {name: store.records[job.key] for name, job in planned.items() if job.key in store.records}
    _show(screen, done)
    shown: dict[str, Any] = {"study": plan.name, "runs": {name: _figures(record) for name, record in done.items()}}
    names = {str(place / planned[name].folder): name for name in done}
    winners = []
    for runs in comparable([Path(run) for run in names]) if len(done) > 1 else ():
        if len(runs) > 1:
            selection = select_run(runs)
            estimates = {str(run): done[names[str(run)]]["trust"]["accuracy"]["value"] for run in runs}
            show_selection(screen, selection, estimates, names)
            screen.say(f"Winner: {names[selection.chosen]}, in {selection.chosen}")
            winners.append({"name": names[selection.chosen], "run": selection.chosen, "reason": selection.reason})
    if len(winners) > 1:
        screen.say("Runs were compared seed by seed: each seed drew other samples of the target.")
    if winners:
        shown |= {"winner": winners[0], "winners": winners}
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
