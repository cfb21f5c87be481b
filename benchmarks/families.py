"""What `--model auto` reaches on real tables, beside the best source-only family by cross-validation on source.

    CALIDA_DATA=FOLDER python -m benchmarks.families --seeds 0 1 2 --out records.jsonl

One record a task and seed; target labels are read after the run, to measure it. The summary counts a task as harmed if
accuracy falls by more than a point.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import calida
from benchmarks.shifts.tasks import ShiftTask, natural

_HARMED = -0.01


def measure(task: ShiftTask, seed: int) -> dict[str, Any]:
    """Run `auto`, and the source-only classifier that a careful person would have used instead."""
    data = task.load(seed)
    classes = int(data.labels.max()) + 1
    started = time.perf_counter()
    adapted = calida.adapt((data.source, data.labels), data.target, model="auto", seed=seed, num_classes=classes)
    seconds = time.perf_counter() - started
    assert adapted.trust is not None
    decision = adapted.trust.decision
    usual = next(iter(decision.estimates)).split(",")[0]
    plain = calida.adapt((data.source, data.labels), data.target, "source", model=usual, seed=seed, num_classes=classes)
    before, after = (
        float(np.mean(one.predict(data.target, raw=True).labels.numpy() == data.truth)) for one in (plain, adapted)
    )
    return {
        "task": task.name,
        "data_set": task.data_set,
        "seed": seed,
        "rows": [len(data.source), len(data.target)],
        "columns": data.source.shape[1],
        "classes": classes,
        "usual": usual,
        "chosen": decision.family,
        "source_only": round(before, 4),
        "adapted": round(after, 4),
        "estimates": {name: round(value, 4) for name, value in decision.estimates.items()},
        "seconds": round(seconds, 1),
    }


def summary(records: Sequence[dict[str, Any]]) -> str:
    """A table by data set, as Markdown."""
    lines = ["| data | tasks | source only | auto | harmed | seconds, most |", "|---|---|---|---|---|---|"]
    sets = [*dict.fromkeys(record["data_set"] for record in records)]
    for name in (*sets, "all"):
        some = [record for record in records if name in (record["data_set"], "all")]
        before, after = (np.array([record[side] for record in some]) for side in ("source_only", "adapted"))
        harmed, most = np.mean(after - before < _HARMED), max(record["seconds"] for record in some)
        figures = f"{before.mean():.1%} | {after.mean():.1%} | {harmed:.0%} | {most:.0f}"
        lines.append(f"| {name} | {len(some)} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    """Read the command line, run what has no record yet, print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--data-sets", nargs="+", default=["gas", "heart", "wisdm", "mushrooms", "electricity"])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    done = {(record["task"], record["seed"]) for record in records}
    for seed in arguments.seeds:
        for task in natural():
            if task.data_set in arguments.data_sets and (task.name, seed) not in done:
                records.append(measure(task, seed))
                with arguments.out.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    print(summary(records))


if __name__ == "__main__":
    main()
