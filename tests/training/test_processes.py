"""One model trained by two processes: real ones, started by torchrun on this machine."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import shift
import torch
from commands import succeed
from documents import ROOT
from safetensors.torch import load_file
from together import BATCHES, RESUMED, augmented, begin, normalized

from benchmarks.processes import cases, largest_difference, read_cases, torchrun, train_case
from calida.processes import ALONE, Processes, Share

ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT), str(ROOT / "tests"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    ),
}


def test_two_processes_train_the_model_that_one_trains(tmp_path):
    """Every term, layer and schedule in float64: the same weights. Runs are resumed on another number of processes."""
    begin(tmp_path / "from-one")
    script = str(ROOT / "tests" / "training" / "together.py")
    two = subprocess.Popen([*torchrun(2), script, str(tmp_path)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    alone = {name: train_case(case, batches=BATCHES) for name, case in cases().items()}
    _, errors = two.communicate(timeout=300)
    assert two.returncode == 0, errors
    together = read_cases(tmp_path / "cases.safetensors")
    assert {name: far for name in alone if (far := largest_difference(alone[name], together[name])) > 1e-9} == {}

    found = load_file(tmp_path / "found.safetensors")
    begun_on_one = {key.partition("/")[2]: value for key, value in found.items() if key.startswith("resumed/")}
    begun_on_two = train_case(cases()[RESUMED], folder=tmp_path / "from-two", batches=BATCHES)
    assert largest_difference(alone[RESUMED], begun_on_one) < 1e-9
    assert largest_difference(alone[RESUMED], begun_on_two) < 1e-9

    for index, view in enumerate(augmented()):
        torch.testing.assert_close(found[f"view {index}"], view, rtol=1e-5, atol=1e-6)
    for index, value in enumerate(normalized()):
        torch.testing.assert_close(found[f"norm {index}"], value, rtol=1e-4, atol=1e-4)
    assert found["everyone"].tolist() == [3, 4]
    refused = (tmp_path / "refused.txt").read_text()
    assert refused.startswith("the processes were not given the same: they differ in target")
    assert (tmp_path / "reason.txt").read_text() == "process 1: the disk of this machine is on fire"


def test_cases_tell_a_wrong_batch_from_a_right_one():
    """What the comparison above could miss: a case that comes out the same on another target is none."""
    case = cases()["feature vectors"]
    one, other = (train_case(case, shifted=shifted, batches=BATCHES) for shifted in (0.4, 0.4001))
    assert largest_difference(one, other) > 1e-6


def records(run):
    file = run / "metrics.jsonl"
    return file.read_text().splitlines() if file.exists() else []


def child_of(parent, rank):
    """The process of this rank that torchrun has started."""
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/environ") as environ:
                mine = int(stat.read().rpartition(")")[2].split()[1]) == parent
                if mine and f"RANK={rank}" in environ.read().split("\0"):
                    return pid
        except OSError:
            continue
    raise AssertionError(f"no process of rank {rank}")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the process to kill in /proc")
def test_a_dead_process_ends_the_run_with_one_sentence_and_the_run_goes_on_alone(tmp_path):
    (x, y), target, _ = shift.make(rows=120)
    np.savez(tmp_path / "source.npz", x=x.numpy(), y=y.numpy())
    np.save(tmp_path / "target.npy", target.numpy())
    data = ["--source", str(tmp_path / "source.npz"), "--target", str(tmp_path / "target.npy")]
    small = [f"--set={pair}" for pair in ("epochs=1", "rounds=12", "batch_size=40")]
    run = tmp_path / "run"
    command = [
        *torchrun(2),
        "-m",
        "calida",
        "adapt",
        *data,
        *small,
        "--recipe",
        "rer-1",
        "--no-guard",
        "--out",
        str(run),
    ]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as agent:
        started = time.monotonic()
        while len(records(run)) < 3:
            assert time.monotonic() - started < 100
            time.sleep(0.01)
        os.kill(child_of(agent.pid, 1), signal.SIGKILL)
        struck = time.monotonic()
        _, said = agent.communicate(timeout=60)
    assert time.monotonic() - struck < 60
    assert agent.returncode != 0
    assert len(records(run)) < 13
    assert not (run / "metrics.json").exists()
    sentences = [line for line in said.splitlines() if line.startswith("calida:")]
    assert len(sentences) == 1
    assert sentences[0].endswith(f"go on with: calida adapt --resume --out {run}")
    succeed("adapt", "--resume", "--out", str(run), "--quiet")
    assert len(records(run)) == 13
    assert json.loads((run / "metrics.json").read_text())["recipe"] == "rer-1"


def test_a_process_that_is_stuck_is_ended_when_another_dies():
    """As on a GPU, which waits for a dead process's numbers for good: here both only sleep."""
    sleeping = (
        "import sys, time\nfrom calida import watch\nrank = int(sys.argv[1])\n"
        "def say(content):\n"
        "    if content: print(content.decode(), flush=True); return content\n"
        "    return sys.stdin.readline().encode()\n"
        "lines = watch.keep_lines(rank, 2, '127.0.0.1', say)\nlines._grace = 0.1\nlines.on = True\n"
        "print('on', flush=True)\ntime.sleep(60)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", sleeping]
    with (
        subprocess.Popen([*command, "0"], env=ENVIRONMENT, **pipes) as first,
        subprocess.Popen([*command, "1"], env=ENVIRONMENT, **pipes) as other,
    ):
        other.stdin.write(first.stdout.readline())
        other.stdin.flush()
        assert first.stdout.readline() == other.stdout.readline() == "on\n"
        assert first.poll() is None
        other.kill()
        _, said = first.communicate(timeout=20)
    assert first.returncode == 1
    assert said == "calida: another process of this run has ended or cannot be reached; what was finished is saved\n"


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_every_row_is_one_processs_own(rows, count):
    """Without overlap and nearly evenly; where there are blocks, each is whole."""
    shares = [Processes(rank, count).share(rows) for rank in range(count)]
    assert [row for share in shares for row in range(share.start, share.stop)] == list(range(rows))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1
    for blocks in {1, max(rows // 2, 1), min(rows, 3)}:
        shares = [Processes(rank, count).share(rows, blocks) for rank in range(count)]
        assert [block for share in shares for block in share.own(blocks)] == list(range(blocks))
        assert shares[0].own(blocks)
        for share in shares:
            for block in share.own(blocks):
                assert share.start <= block * rows // blocks
                assert (block + 1) * rows // blocks <= share.stop


def test_one_process_alone_changes_nothing():
    rows = torch.randn(5, 3)
    share = ALONE.share(5)
    assert share == Share.whole(5)
    assert share.take(rows) is rows
    assert share.gather(rows) is rows
    assert ALONE.sum_all([rows])[0] is rows
    assert ALONE.say(b"word") == b"word"
    assert ALONE.everyones("word") == ["word"]
