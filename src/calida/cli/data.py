"""`calida data`: the named sets."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from calida.cli.options import AsJson, Quiet
from calida.cli.screen import Screen
from calida.errors import InputError
from calida.terminal import plain, table_of

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

data_app = typer.Typer(no_args_is_help=True, help="Named data sets: what is there, and downloads.")


@data_app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show the named sets and which of them are there."""
    from calida.data import NAMED, data_folder, is_present

    screen, folder = Screen(as_json=as_json), data_folder()
    there = {name: is_present(name, folder) for name in NAMED}
    title = plain(f"in {folder} (CALIDA_DATA names another folder)")
    table = table_of("set", "there", "what it is", title=title, title_justify="left")
    for name, named in NAMED.items():
        state = "yes" if there[name] else "pip install 'calida[demo]'" if named.package else f"calida data get {name}"
        table.add_row(name, plain(state), plain(named.description))
    screen.show_list(table)
    screen.result({"folder": str(folder), "present": there})


@data_app.command()
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="mnist, usps, svhn or visda17.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Download sets from their official addresses; a broken transfer goes on where it stopped."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from calida.data import NAMED, data_folder, fetch_named, is_present, named_path

    screen, folder = Screen(quiet, as_json), data_folder()
    places = {}
    for name in names:
        if name in NAMED and not NAMED[name].package and is_present(name, folder):
            places[name] = str(named_path(name, folder))
            screen.say(f"{name} is already there: {places[name]}")
            continue
        size = NAMED[name].bytes_on_disk if name in NAMED else None
        free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
        if size is not None and free < 2 * size:
            raise InputError(f"{name} needs about {2 * size / 1e9:.1f} GB in {folder}; {free / 1e9:.1f} GB are free")
        columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=screen.console, transient=True, disable=not screen.console.is_terminal) as bars:
            path = fetch_named(name, folder, partial(_show, bars, bars.add_task(name, total=None)))
        places[name] = str(path)
        screen.say(f"{name} is in {path}")
    screen.result(places)


def _show(bars: Progress, task: TaskID, done: int, total: int | None) -> None:
    bars.update(task, completed=done, total=total)
