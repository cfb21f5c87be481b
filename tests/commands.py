"""The command line in a test: run, and read what it wrote."""

import contextlib
import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from calida.cli.app import run


def quick(rounds):
    """Options of a run that takes seconds."""
    brief = {"epochs": 4, "min_batches_per_epoch": 1, "rounds": rounds, "min_batches_per_round": 1, "batch_size": 16}
    return [*(word for name, value in brief.items() for word in ("--set", f"{name}={value}")), "--backbone", "lenet"]


QUICK = quick(rounds=2)


def calida_command(*words, cwd=None):
    """`calida` in this process."""
    return command(run, "calida", *words, cwd=cwd)


def command(run, name, *words, cwd=None, columns=200):
    """A command in this process: what it prints, and the code that it exits with."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = Path.cwd()
    os.chdir(cwd or before)
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", [name, *map(str, words)]),
        mock.patch.dict(os.environ, {"COLUMNS": str(columns)}),
    ):
        try:
            run()
        except SystemExit as end:
            code = end.code or 0
        finally:
            os.chdir(before)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def succeed(*words, cwd=None):
    done = calida_command(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def read_csv(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))
