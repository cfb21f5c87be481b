"""`python -m reproduction`: the paper's tables and claims beside ours, by one command each."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from calida.cli.options import AsJson, Device, Quiet, parse_settings
from calida.cli.screen import Screen
from calida.cli.study_screen import run_jobs
from calida.data import data_folder
from calida.errors import CalidaError, InputError
from calida.studies import Engine, Results, StudyTask, finished_record, forecast_seconds
from calida.terminal import about
from reproduction.older_records import FLAT_NAMES
from reproduction.page import RESULTS, write_page
from reproduction.screen import show_claims, show_memory, show_table, show_table1
from reproduction.study import STUDIES, plan_study
from reproduction.tables import PACS, TABLE1, TABLES, VISDA17
from reproduction.tasks import PROTOCOLS, in_folder, with_weights_at_hand
from reproduction.tasks import smoke as made_tiny
from reproduction.visda17 import generate_visda17


class What(str, Enum):
    """Values of the command's argument."""

    table1 = "table1"
    table2a = "table2a"
    table2b = "table2b"
    table3 = "table3"
    pacs = "pacs"
    claims = "claims"
    page = "page"


_LONG = 600  # seconds, above which one is asked
_SEEDS = {"table1": 4, "claims": 8, **{table.study: table.seeds for table in TABLES.values()}}


def reproduce(
    what: Annotated[What, typer.Argument(help="A table of the paper, its claims, or the page of all results.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, if not the table's own number.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="Only the runs of this row; repeatable.")] = None,
    protocol: Annotated[
        str, typer.Option(metavar="|".join(PROTOCOLS), help="Sizes of the data sets; docs/reproduction.md has them.")
    ] = "main",
    out: Annotated[
        Path, typer.Option(help="The study's folder, with a folder for every run; a killed study goes on in it.")
    ] = Path("runs/reproduction"),
    results: Annotated[
        Path, typer.Option(help="Folder of finished runs as JSON lines; those in it are not repeated.")
    ] = Path(RESULTS),
    smoke: Annotated[
        bool, typer.Option("--smoke", help="The same code on tiny data: shows that it runs, and nothing else.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes of one thread each; as many as there are cores.")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="local|dask", help="Processes of this machine, or a Dask cluster.")
    ] = "local",
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's address.")] = None,
    device: Device = None,
    source: Annotated[str | None, typer.Option(help="Other source images for table 3.")] = None,
    target: Annotated[str | None, typer.Option(help="Other target images for table 3.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Another network for table 3.")] = None,
    backbone_weights: Annotated[
        Path | None, typer.Option(help="A safetensors file with the first weights of table 3's network.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Image size for table 3.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting for all rows of table 3.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print how much memory table 3 takes, and run nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run it, however long it takes.")] = False,
    docs: Annotated[Path, typer.Option(help="Where `page` writes reproduction.md and its figures.")] = Path("docs"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments and print its figures and ours side by side.

    Finished runs are never repeated: a study that was killed goes on where it was, and tables share their runs.
    """
    screen = Screen(quiet, as_json)
    if protocol not in PROTOCOLS:
        raise InputError(f"the protocol is one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    tasks = dict(PROTOCOLS[protocol])
    if smoke:
        tasks = {name: made_tiny(task) for name, task in tasks.items()}
        out = out.with_name(f"{out.name}-smoke")  # real runs and these are not to meet
        results = out / "results"
    changes = {
        "source": source,
        "target": target,
        "backbone": backbone,
        "backbone_weights": None if backbone_weights is None else str(backbone_weights),
        "size": size,
        "settings": parse_settings(set_) if set_ else None,
    }
    changes = {key: value for key, value in changes.items() if value is not None}
    if what is What.table3:
        tasks[VISDA17] = _changed(tasks[VISDA17] if smoke else with_weights_at_hand(tasks[VISDA17]), changes)
    elif plan or changes:
        named = ", ".join(f"--{key.replace('_', '-')}" for key in (*changes, *["plan"] * plan))
        raise InputError(f"{named.replace('settings', 'set')} belongs to table3; the other tables are the paper's")
    if plan:
        screen.result(show_memory(screen, tasks[VISDA17]))
        return
    numbers = {name: range(seeds or (2 if smoke else _SEEDS[name])) for name in STUDIES}
    store = Results(results, FLAT_NAMES)
    if what is What.page:
        written = write_page(docs, PROTOCOLS[protocol], numbers, store.records)
        screen.say(f"written: {written}")
        screen.result({"page": str(written)})
        return
    runner = Engine(engine, jobs or os.cpu_count() or 1, scheduler, device)  # type: ignore[arg-type]
    runner.check()
    if what is What.table3 and smoke and "source" not in changes:
        root = generate_visda17(out / VISDA17)
        tasks[VISDA17] = replace(tasks[VISDA17], source=str(root / "train"), target=str(root / "validation"))
    if what is What.pacs:
        tasks |= {name: in_folder(tasks[name], _pacs_like(out) if smoke else data_folder()) for name in PACS}
    study = plan_study(what.value, tasks, numbers[what.value], row or ())
    tables = [table for table in TABLES.values() if table.study == what.value]
    measure = tasks[tables[0].task].measure if tables else "accuracy"
    left = [job for job in study.jobs if job.key not in store.records and finished_record(job, out) is None]
    if left and not smoke:
        screen.say("Measuring how long this takes.")
        ask_if_long(screen, forecast_seconds(left, runner.jobs, device), len(left), yes)
    failures = run_jobs(screen, study.name, study.jobs, runner, out, store, measure)
    records, shown = store.records, {}
    if what is What.table1:
        shown = {name: show_table1(screen, tasks[name], numbers["table1"], records) for name in TABLE1}
    elif what is What.claims:
        shown = {"claims": show_claims(screen, tasks, numbers["claims"], records)}
    else:
        seen = numbers[what.value]
        shown = {table.name: show_table(screen, table, tasks[table.task], seen, records) for table in tables}
        shown = shown if len(shown) > 1 else {"rows": shown[what.value]}
    screen.result({"study": what.value, "results": str(store.folder), **shown, "failures": failures})
    if failures:
        raise typer.Exit(1)


def _pacs_like(out: Path) -> Path:
    """A folder with generated images under the names of PACS's domains."""
    root = generate_visda17(out / VISDA17)
    (out / "pacs").mkdir(parents=True, exist_ok=True)
    for domain, part in (("photo", "validation"), ("art_painting", "train")):
        if not (out / "pacs" / domain).exists():
            shutil.copytree(root / part, out / "pacs" / domain, ignore=shutil.ignore_patterns("*.txt"))
    return out


def ask_if_long(screen: Screen, seconds: float, runs: int, yes: bool) -> None:
    """Say how long it will take; above ten minutes, ask, and where nobody can answer, want --yes."""
    told = f"{runs} run{'s' * (runs > 1)}: {about(seconds)} on this machine"
    screen.say(f"{told}.")
    if yes or seconds <= _LONG:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{told}, which is more than ten minutes: say --yes to run it")
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(0)


def _changed(task: StudyTask, changes: Mapping[str, Any]) -> StudyTask:
    """The task of table 3 on other images, with another network or other settings."""
    return replace(task, **{**changes, "settings": {**task.settings, **changes.get("settings", {})}})


def main() -> None:
    """Run a command; what the user can mend is one sentence and exit code 2."""
    try:
        typer.run(reproduce)
    except CalidaError as error:
        Screen().error(str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
