"""A run's folder before the run begins: may it be used, and who of several processes says so."""

from __future__ import annotations

import json
from contextlib import ExitStack

from calida.errors import InputError
from calida.files import locked, parse_toml
from calida.processes import Processes
from calida.runs.config import RunConfig
from calida.runs.folder import RunFolder


def as_first_says(config: RunConfig, resume: bool, processes: Processes) -> tuple[RunConfig, bool]:
    """What the first process was asked for: it sees the folder of the run, which others may not."""
    if processes.alone or not (isinstance(config.backbone, str) and isinstance(config.model, str)):
        return config, resume  # a module of somebody's own has no words
    said = json.loads(processes.say(json.dumps([config.to_toml(), resume]).encode()))
    return RunConfig.parsed(parse_toml(said[0]), "the first process"), bool(said[1])


def check_folder(folder: RunFolder, config: RunConfig, resume: bool) -> None:
    """Refuse a folder that a run would spoil, or that holds another run than the one to go on with."""
    path = folder.path
    if path.is_file():
        raise InputError(f"{path} is a file; a run needs a folder", "out")
    _refuse_to_overwrite(folder, resume)
    if resume and folder.holds_run() and (recipe := folder.read_config().recipe) != (config.recipe or recipe):
        raise InputError(
            f"the run in {path} is by the recipe {recipe}; choose another folder for {config.recipe}", "out"
        )


def claim_folder(folder: RunFolder, held: ExitStack, resume: bool) -> None:
    """Hold the folder until the run ends: another process may have begun in it since it was looked at."""
    try:
        held.enter_context(locked(folder.path / ".running"))
    except BlockingIOError:
        raise InputError(f"another process is at work in {folder.path}; choose another folder", "out") from None
    _refuse_to_overwrite(folder, resume)
    folder.remove_unfinished()


def _refuse_to_overwrite(folder: RunFolder, resume: bool) -> None:
    if folder.holds_run() and not resume:
        raise InputError(f"{folder.path} already holds a run: resume it, or choose another folder", "out")
    if not folder.holds_run() and (files := folder.files()):
        raise InputError(
            f"{folder.path} has a file {files[0].name} that a run would replace; choose another folder", "out"
        )
