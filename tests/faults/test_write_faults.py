"""A disk that gives up at any write, flush or rename: one sentence, whole files, and a run that can be gone on with."""

import builtins
import errno
import os
import shutil
import tempfile

import pytest
from cases import RESUME
from commands import calida_command, succeed
from conftest import SETTINGS
from fault_files import snapshot

from calida.runs import RunFolder

TABLES = ["adapt", "--source", "s.csv", "--target", "t.csv", "--label", "y", "--id", "name", *SETTINGS]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
READ_ONLY = OSError(errno.EROFS, os.strerror(errno.EROFS))


class Disk:
    """Counts the calls of one kind, and fails at the n-th and at all that follow."""

    def __init__(self, monkeypatch, kind, at, error=FULL):
        self.calls, self.at, self.error = 0, at, error
        place, name = {
            "write": (os, "fdopen"),
            "fsync": (os, "fsync"),
            "rename": (os, "replace"),
            "create": (tempfile, "mkstemp"),
        }[kind]
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *words, **more: self.call(real, kind, words, more))

    def call(self, real, kind, words, more):
        self.calls += 1
        if self.calls < self.at:
            return real(*words, **more)
        if kind != "write":
            raise self.error
        file = real(*words, **more)  # what the disk takes is less than what is written
        file.write(b"half of it")
        file.flush()
        file.close()
        raise self.error


def refused(done, words):
    assert done.returncode == 2, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("calida: ")]
    assert "cannot be written" in sentence
    assert words in sentence


COMMANDS = {
    "predict": (["predict", "run", "t.csv", "--out", "p.csv"], 1),
    "report": (["report", "run"], 1),
    "evaluate": (["evaluate", "run", "--target-labels", "t.csv", "--label", "y"], 3),
    "label": (["label", "run", "--budget", "5", "--out", "more"], 3),
}
MOMENTS = [(name, at) for name, (_, writes) in COMMANDS.items() for at in range(1, writes + 1)]


@pytest.mark.parametrize("kind", ["create", "write", "fsync", "rename"])
@pytest.mark.parametrize(("name", "at"), MOMENTS)
def test_a_command_on_a_full_disk(world, monkeypatch, name, at, kind):
    words, writes = COMMANDS[name]
    before = snapshot(world)
    with monkeypatch.context() as patch:
        disk = Disk(patch, kind, at)
        refused(calida_command(*words, cwd=world), "No space left")
    assert disk.calls == at <= writes
    after = snapshot(world)
    assert not [path for path in after if path.name.startswith(".writing-")]
    changed = {path for path in after.keys() | before.keys() if after.get(path) != before.get(path)}
    assert len(changed) < at  # one file a write, each of them whole
    RunFolder(world / "run").read_finished()
    succeed(*words, cwd=world)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_may_not_be_written_is_named(world, monkeypatch, name):
    Disk(monkeypatch, "create", 1, READ_ONLY)
    refused(calida_command(*COMMANDS[name][0], cwd=world), "Read-only file system")


@pytest.mark.parametrize(("kind", "at"), [("write", 4), ("rename", 8)])
def test_a_run_on_a_full_disk_goes_on_when_there_is_space(world, monkeypatch, kind, at):
    """What it ends with is what the same run ended with before, bit for bit."""
    with monkeypatch.context() as patch:
        disk = Disk(patch, kind, at)
        refused(calida_command(*TABLES, "--out", "new", cwd=world), "No space left")
    assert disk.calls == at
    assert not list((world / "new").glob(".*"))
    begun = RunFolder(world / "new").holds_run()
    succeed(*(RESUME.split()[:-1] if begun else [*TABLES, "--out"]), "new", cwd=world)
    assert (world / "new" / "predictions.csv").read_bytes() == (world / "run" / "predictions.csv").read_bytes()


def test_a_round_that_cannot_be_recorded_is_named(world, monkeypatch):
    """metrics.jsonl is appended to, which has no other file to hide behind."""
    real = builtins.open

    def full(file, mode="r", *words, **more):
        if str(file).endswith("metrics.jsonl") and mode == "a":
            raise FULL
        return real(file, mode, *words, **more)

    monkeypatch.setattr("io.open", full)
    refused(calida_command(*TABLES, "--out", "new", cwd=world), "metrics.jsonl")
    shutil.rmtree(world / "new")
