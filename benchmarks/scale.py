"""A million rows of fifty columns in each domain, from Parquet to a report: time and memory.

    python -m benchmarks.scale --rows 1000000 --model hgb

The data are constructed: fifty numeric columns, of which ten carry two classes through a sum of products. In target,
half of those have moved and been stretched. `calida adapt` runs in a process of its own, whose memory is measured.
Rows a second are those of features in memory; the seconds of `calida predict` have reading, writing and the start of
the program in them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import calida

_COLUMNS, _TELLING = 50, 10
_PIECE = 100_000


def write_domain(path: Path, rows: int, seed: int, moved: float) -> None:
    """A Parquet file of numeric columns and a label, of at most 100,000 rows in memory at a time."""
    pieces = path.with_suffix("")
    pieces.mkdir()
    for number, begin in enumerate(range(0, rows, _PIECE)):
        generator = np.random.default_rng((seed, number))
        x = generator.normal(size=(min(_PIECE, rows - begin), _COLUMNS)).astype(np.float32)
        pairs = x[:, :_TELLING:2] * x[:, 1:_TELLING:2]
        score = pairs.sum(1) + x[:, :_TELLING].sum(1) + generator.normal(size=len(x))
        x[:, : _TELLING // 2] = x[:, : _TELLING // 2] * (1 + moved / 2) + moved
        columns = {f"x{index}": x[:, index] for index in range(_COLUMNS)}
        frame = pl.DataFrame({**columns, "kind": np.where(score > 0, "yes", "no")})
        frame.write_parquet(pieces / f"{number:05}.parquet")
    pl.scan_parquet(pieces / "*.parquet").sink_parquet(path)


def measure(rows: int, model: str, folder: Path) -> dict[str, float | int | str]:
    """Adapt from one file to the other in another process, and predict the target again."""
    for name, seed, moved in (("source", 0, 0.0), ("target", 1, 0.3)):
        write_domain(folder / f"{name}.parquet", rows, seed, moved)
    source, target, run = (str(folder / name) for name in ("source.parquet", "target.parquet", "run"))
    adapt = ["adapt", "--source", source, "--target", target, "--label", "kind", "--model", model, "--out", run]
    adapt += ["--target-labels", "inside", "--quiet"]
    predict = ["predict", run, target, "--label", "kind", "--out", str(folder / "predictions.csv"), "--quiet"]
    seconds = {}
    for name, words in (("adapt", adapt), ("predict", predict)):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "calida", *words], check=True)
        seconds[name] = round(time.perf_counter() - started, 1)
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    return {
        "rows": rows,
        "columns": _COLUMNS,
        "model": model,
        "adapt_seconds": seconds["adapt"],
        "predict_seconds": seconds["predict"],
        "predicted_rows_a_second": _rate(run, target),
        "most_gb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20, 2),
        "returned": metrics["trust"]["returned"],
        "source_only": round(metrics["source_only"]["oracle"]["accuracy"], 4),
        "adapted": round(metrics["adapted"]["oracle"]["accuracy"], 4),
    }


def _rate(run: str, target: str) -> int:
    """Rows of features that the classifier of a run predicts in a second of this machine: the median of three times."""
    adapted = calida.load(run)
    x = adapted.read(target).samples
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        adapted.predict(x)
        seconds.append(time.perf_counter() - started)
    return round(len(x) / sorted(seconds)[1])


def main() -> None:
    """Read the command line, measure, print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--model", default="hgb")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(arguments.rows, arguments.model, Path(folder))))


if __name__ == "__main__":
    main()
