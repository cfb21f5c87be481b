"""`python -m benchmarks.defaults run | skada | page`: the command that a user would type, on every task, four seeds."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import Parallel, delayed

from benchmarks.defaults.tasks import TASKS
from calida.files import write_atomically
from calida.studies import Spread
from reproduction.markdown import grid

RESULTS, SKADA = Path("results/defaults.jsonl"), Path("results/defaults-skada.jsonl")
PAGE = Path("docs/results.md")
_PLACE = r"(?<=<!-- defaults -->\n).*?(?=\n<!-- end -->)"
Row = dict[str, Any]
app = typer.Typer(add_completion=False, help=__doc__)


def measure(name: str, seed: int, precision: str, work: Path) -> Row:
    """One command with one thread; a killed one goes on where it was."""
    out = work / f"{name}.{precision}.{seed}"
    arguments = TASKS[name].arguments(seed, work / "made")
    resume = ["--resume"] if (out / "config.toml").exists() else []
    command = ["adapt", *arguments, "--seed", str(seed), "--precision", precision, "--out", str(out), *resume]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "calida", *command, "--quiet"],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    seconds = time.perf_counter() - began
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    before, after = metrics["source_only"], metrics["adapted"]
    estimate = metrics["trust"]["accuracy"]
    return {
        "task": name,
        "seed": seed,
        "precision": precision,
        "source_only": before["oracle"]["accuracy"],
        "returned": after["oracle"]["accuracy"],
        "ece": after["oracle"]["ece"],
        "estimate": {key: estimate[key] for key in ("value", "low", "high")},
        "decision": metrics["trust"]["decision"]["returned"],
        "resumed": bool(resume),
        "curve": _curve(out / "metrics.jsonl"),
        "training_seconds": metrics["training_seconds"],
        "seconds": round(seconds, 1),
        "machine": f"{platform.system()} {platform.machine()}, one thread",
        "versions": metrics["versions"],
    }


def _curve(records: Path) -> list[list[float]]:
    """Seconds of training, and accuracy measured with labels, wherever the target was looked at."""
    seconds, found = 0.0, []
    for line in records.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        seconds += record.get("seconds") or 0.0
        if record.get("oracle"):
            found.append([round(seconds, 1), record["oracle"]["accuracy"]])
    return found


@app.command()
def run(
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 4,
    precision: Annotated[str, typer.Option(help="As of the command.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Commands at a time, of one thread each.")] = 2,
    work: Path = Path("runs/defaults"),
    results: Path = RESULTS,
) -> None:
    """Run what is not among the records yet; each run is kept as it ends."""
    known = {(row["task"], row["seed"], row["precision"]) for row in read(results)}
    wanted = [(name, seed, precision) for seed in range(seeds) for name in task or TASKS]
    left = [one for one in wanted if one not in known]
    for row in Parallel(jobs, return_as="generator_unordered", batch_size=1)(
        delayed(measure)(*one, work) for one in left
    ):
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        words = f"{row['source_only']:.4f} -> {row['returned']:.4f}, estimated {row['estimate']['value']:.4f}"
        print(f"{row['task']}, seed {row['seed']}, {precision}: {words}, {row['seconds']} s", flush=True)


@app.command()
def skada(
    task: Annotated[str, typer.Option(help="One of the digit tasks.")] = "mnist-usps",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 1,
    results: Path = SKADA,
) -> None:
    """The same images by skada's deep methods, one after another; needs `pip install skada skorch`."""
    from benchmarks.defaults.skada import METHODS, measure_skada

    known = {(row["task"], row["method"], row["seed"]) for row in read(results)}
    for seed in range(seeds):
        for method in METHODS:
            if (task, method, seed) not in known:
                row = {
                    "task": task,
                    "seed": seed,
                    **measure_skada(method, TASKS[task].source, TASKS[task].target, seed),
                }
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{task}, {method}, seed {seed}: {row['accuracy']:.4f}, {row['seconds']} s", flush=True)


@app.command()
def page(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the table into the page of results."""
    text = page.read_text(encoding="utf-8")
    place = re.search(_PLACE, text, re.S)
    if place is None:
        raise SystemExit(f"{page} has no place for the table")
    write_atomically(page, (text[: place.start()] + _table(read(results)) + text[place.end() :]).encode())


def _table(rows: Sequence[Row]) -> str:
    """A line a task and precision, in the tasks' order."""
    head = ["task", "precision", "seeds", "source only", "**returned**", "ECE", "estimate off by", "training, minutes"]
    lines = []
    for name, task in TASKS.items():
        for precision in dict.fromkeys(row["precision"] for row in rows):
            some = [row for row in rows if (row["task"], row["precision"]) == (name, precision)]
            if some:
                lines.append([task.title, precision, str(len(some)), *_figures(some)])
    made = ", ".join(sorted({row["machine"] for row in rows}))
    versions = ", ".join(sorted({f"{key} {value}" for row in rows for key, value in row["versions"].items()}))
    return f"{grid(head, lines)}\n\n{len(rows)} runs; {made}; {versions}."


def _figures(rows: Sequence[Row]) -> list[str]:
    before, after, ece = (Spread.of([row[key] for row in rows]).percent() for key in ("source_only", "returned", "ece"))
    off = sum(abs(row["estimate"]["value"] - row["returned"]) for row in rows) / len(rows)
    minutes = sum(row["training_seconds"] for row in rows) / len(rows) / 60
    return [before, f"**{after}**", ece, f"{100 * off:.1f}", f"{minutes:.1f}"]


def read(path: Path) -> list[Row]:
    """The records so far."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    app()
