"""Runs that are killed at random moments and resumed: does each end as one that nobody disturbed?

`python -m benchmarks.kills 100` kills 100 runs by SIGKILL, resumes each, and compares all that it leaves with the same
run left in peace: weights, predictions, figures and settings, bit for bit but for times. Tasks are small and of several
kinds. The parent imports everything once and forks, so that a kill may fall into any moment of the work itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from calida.cli.app import run as calida_command

_BRIEF = {"epochs": 3, "rounds": 3, "batch_size": 16}
_SHORT = {**_BRIEF, "min_batches_per_epoch": 1, "min_batches_per_round": 1}
TASKS: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {  # source, target, settings, other options
    "table, network": ("source.csv", "target.csv", _SHORT, ["--label", "y"]),
    "table, boosting": ("source.csv", "target.csv", {"rounds": 3}, ["--label", "y", "--model", "hgb"]),
    "images, default": ("source.npz", "target.npz", _SHORT, ["--backbone", "lenet"]),
    "images, Bayesian": (
        "source.npz",
        "target.npz",
        {**_BRIEF, "groups": 4},
        ["--backbone", "lenet", "--recipe", "brer-inf-gvr"],
    ),
    "table, logistic": ("source.csv", "target.csv", {"rounds": 4}, ["--label", "y", "--model", "logistic"]),
}
_TIMES = ("seconds", "training_seconds", "command", "digest")


def make_data(folder: Path) -> None:
    """Two small tables and two small sets of images, the target moved."""
    numbers = np.random.default_rng(0)
    for name, moved in (("source", 0.0), ("target", 0.7)):
        labels = numbers.integers(0, 2, 120)
        columns = numbers.normal(2.0 * labels[:, None] + moved, 1.0, (120, 3))
        rows = "".join(
            f"{a:.4f},{b:.4f},{c:.4f},{'one' if label else 'other'}\n"
            for (a, b, c), label in zip(columns, labels, strict=True)
        )
        (folder / f"{name}.csv").write_text(f"a,b,c,y\n{rows}")
        bright = np.linspace(60, 220, 16)[None, :, None] * np.ones((120, 16, 16))
        images = np.where(labels[:, None, None] > 0, bright, bright.transpose(0, 2, 1)) - 20 * moved
        noisy = (images + numbers.normal(0, 20, images.shape)).clip(0, 255).astype(np.uint8)
        np.savez(folder / f"{name}.npz", x=noisy, y=labels)


def start(words: list[str], log: Path) -> int:
    """The command in a forked process; give its number."""
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        sys.argv = ["calida", *words]
        calida_command()
        os._exit(0)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(99)


def finish(words: list[str], log: Path) -> float:
    """Run to the end; give the seconds."""
    began = time.perf_counter()
    _, status = os.waitpid(start(words, log), 0)
    if status:
        raise SystemExit(f"calida {' '.join(words)} ended with {status}; see {log}:\n{log.read_text()[-2000:]}")
    return time.perf_counter() - began


def ending(folder: Path) -> dict[str, Any]:
    """All that a run leaves, but for times and the page that is drawn from it."""
    found: dict[str, Any] = {"unfinished": [file.name for file in folder.glob(".*")]}
    for file in sorted(folder.iterdir()):
        if file.suffix == ".safetensors":
            found[file.name.rpartition("-")[0]] = file.read_bytes()
        elif file.name == "predictions.npz":
            with np.load(file) as arrays:
                found[file.name] = {name: arrays[name].tobytes() for name in arrays.files}
        elif file.suffix in (".json", ".jsonl"):
            texts = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
            found[file.name] = [_untimed(json.loads(text)) for text in texts]
        elif file.suffix in (".csv", ".toml"):
            found[file.name] = [line for line in file.read_text().splitlines() if not line.startswith("# ")]
    return found


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(inner) for key, inner in value.items() if key not in (*_TIMES, "tensors")}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("kills", type=int, nargs="?", default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--minutes", type=float, default=60.0, help="begin no more kills after so long")
    given = options.parse_args()
    torch.set_num_threads(1)
    moments, began = random.Random(given.seed), time.perf_counter()
    root = Path(tempfile.mkdtemp(prefix="calida-kills-"))
    make_data(root)
    os.chdir(root)
    log = root / "log.txt"
    done = unlike = 0
    peaceful: dict[str, tuple[float, dict[str, Any]]] = {}
    while done < given.kills and time.perf_counter() - began < 60 * given.minutes:
        name = list(TASKS)[done % len(TASKS)]
        source, target, settings, more = TASKS[name]
        words = ["adapt", "--source", source, "--target", target, "--quiet", *more]
        words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        if name not in peaceful:
            seconds = finish([*words, "--out", "run"], log)
            peaceful[name] = (seconds, ending(root / "run"))
            shutil.rmtree(root / "run")
        seconds, wanted = peaceful[name]
        child = start([*words, "--out", "run"], log)
        time.sleep(moments.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):  # else it was over before
            begun = (root / "run" / "config.toml").exists()
            finish([*words, "--out", "run", *["--resume"] * begun], log)
            found = ending(root / "run")
            apart = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
            done += 1
            unlike += bool(apart)
            print(f"{done} {name}: {'begun' if begun else 'not begun'}, {apart or 'the same end'}", flush=True)
        shutil.rmtree(root / "run", ignore_errors=True)
    print(f"{done} kills, {done - unlike} identical ends, {unlike} others")
    shutil.rmtree(root)
    sys.exit(bool(unlike))


if __name__ == "__main__":
    main()
