"""`calida label`: a few samples whose labels tell most."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from calida.cli.options import AsJson, Quiet, RunPath
from calida.cli.screen import Screen
from calida.terminal import counted


def label(
    run: RunPath,
    budget: Annotated[int, typer.Option(help="How many samples you are ready to label.")] = 50,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the files go; by default RUN/label.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other samples.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw a few target samples to label: a sheet to look at and a file to fill in.

    What the labels say of the whole target: calida evaluate RUN --labels FILE
    """
    from calida.runs import write_label_files

    screen = Screen(quiet, as_json)
    files, count = write_label_files(run, budget, out, seed)
    screen.say(f"{counted(count, 'sample')} to label in {files.sheet}: open it in a browser, or fill in {files.labels}")
    screen.say("Label from the top, as many as you like. Then:")
    screen.say(f"  calida evaluate {shlex.quote(str(run))} --labels {shlex.quote(str(files.labels))}")
    screen.result({"samples": count, **{name: str(path) for name, path in files._asdict().items()}})
