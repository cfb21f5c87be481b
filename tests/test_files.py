"""Writing whole files: over links, devices and pipes."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from calida.errors import WriteError
from calida.files import write_atomically


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("before")
    link.symlink_to(real)
    write_atomically(link, b"after")
    assert link.is_symlink()
    assert real.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "real.csv"]


def test_a_pipe_is_written_into(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"words")
    reader.join(timeout=10)
    assert heard == [b"words"]
    assert pipe.is_fifo()


def test_standard_output_that_is_a_pipe_is_written_into():
    """/dev/stdout is a link to a pipe that has no name of its own."""
    write = "import pathlib, calida.files as f; f.write_atomically(pathlib.Path('/dev/stdout'), b'words')"
    done = subprocess.run([sys.executable, "-c", write], capture_output=True, check=True)
    assert done.stdout == b"words"


def test_a_device_stays_one_and_says_when_it_is_full():
    write_atomically(Path(os.devnull), b"words")
    assert not os.path.isfile(os.devnull)
    with pytest.raises(WriteError, match="/dev/full cannot be written"):
        write_atomically(Path("/dev/full"), b"words")
