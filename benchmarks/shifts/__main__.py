"""`python -m benchmarks.shifts run | others | widths | show`: how honest the software is on real shifts."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from joblib import Parallel, delayed

import calida
from benchmarks.shifts.carried import carried
from benchmarks.shifts.others import measure_others
from benchmarks.shifts.page import CLOSED, write_widths
from benchmarks.shifts.page import show as show_tables
from benchmarks.shifts.tasks import ShiftTask, constructed, embedded, images, natural
from benchmarks.shifts.unseen import unseen

RESULTS, OTHERS = Path("results/shifts.jsonl"), Path("results/shifts-others.jsonl")
app = typer.Typer(add_completion=False, help=__doc__)


def measure(task: ShiftTask, seed: int) -> dict[str, Any]:
    """One run by default settings, measured with the labels that it never saw."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    torch.set_num_threads(1)
    shift = task.load(seed)
    classes = int(shift.labels.max()) + 1
    started = time.perf_counter()
    adapted = calida.adapt((shift.source, shift.labels), shift.target, num_classes=classes, seed=seed, **task.options)
    seconds = time.perf_counter() - started
    prediction = adapted.predict(shift.target)
    assert adapted.trust is not None
    assert adapted.source_only is not None
    assert adapted.right is not None
    assert adapted.predictions is not None
    truth = torch.from_numpy(shift.truth)
    judged = next(record for record in adapted.history if record.validators)  # source-only
    right = (prediction.labels == truth).double()
    before = float((adapted.source_only.predict(shift.target).labels == truth).double().mean())
    baselines = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "boosting": HistGradientBoostingClassifier(random_state=seed),
    }
    flat = [part.reshape(len(part), -1) for part in (shift.source, shift.target)]
    answers = {name: model.fit(flat[0], shift.labels).predict(flat[1]) for name, model in baselines.items()}
    trust = adapted.trust
    return {
        "task": task.name,
        "data_set": task.data_set,
        "kind": task.kind,
        "seed": seed,
        "source_count": len(shift.labels),
        "validation_count": len(adapted.predictions.labels),
        "target_count": len(shift.truth),
        "unknown": float((shift.truth < 0).mean()),
        "source_accuracy": judged.source.accuracy,
        "source_only": before,
        "returned": float(right.mean()),
        **{name: float((said == shift.truth).mean()) for name, said in answers.items()},
        "estimate": trust.accuracy.value,
        "low": trust.accuracy.low,
        "high": trust.accuracy.high,
        "decision": trust.decision.returned.value,
        "apart": None if judged.shift is None else judged.shift.apart,
        "codes": sorted(warning.code.value for warning in trust.warnings),
        "severities": sorted(warning.severity.value for warning in trust.warnings),
        "ece": _ece(prediction.confidence.double().numpy(), right.numpy()),
        "reliability": _reliability(prediction.confidence.double().numpy(), right.numpy()),
        **_risk(adapted.right.numpy(), right.numpy()),
        **_sets(adapted, shift.target, truth),
        "seconds": round(seconds, 1),
        "machine": f"{platform.system()} {platform.machine()}, one thread",
        "versions": {"calida": calida.__version__, "torch": torch.__version__},
    }


def _ece(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    sums = [np.bincount(place, values, bins) for values in (confidence, right)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(right))


def _reliability(confidence: np.ndarray, right: np.ndarray, bins: int = 10) -> list[list[float]]:
    """For each tenth of confidence: how many answers, the sum of their confidences, and how many are right."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    sums = [np.bincount(place, values, bins) for values in (np.ones_like(right), confidence, right)]
    return [[round(float(value), 2) for value in row] for row in zip(*sums, strict=True)]


def _risk(probability: np.ndarray, right: np.ndarray, most: float = 0.05) -> dict[str, float | None]:
    """Answers that are given where one in twenty may be wrong, and the share of them that is."""
    order = np.argsort(-probability, kind="stable")
    expected = np.cumsum(1 - probability[order]) / np.arange(1, len(order) + 1)
    given = int(np.flatnonzero(expected <= most)[-1]) + 1 if (expected <= most).any() else 0
    return {"answered": given / len(right), "wrong": float(1 - right[order[:given]].mean()) if given else None}


def _sets(adapted: calida.Adapted, target: np.ndarray, truth: torch.Tensor) -> dict[str, float | None]:
    """Coverage and size of 90 % sets on samples of known classes; None where they are refused."""
    try:
        sets = adapted.predict_sets(target, 0.9)
    except calida.InputError:
        return {"set_coverage": None, "set_size": None}
    known = truth >= 0
    held = sets[known].gather(1, truth[known][:, None]).double().mean()
    return {"set_coverage": float(held), "set_size": float(sets.double().sum(1).mean())}


@app.command()
def run(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    jobs: Annotated[int, typer.Option(min=1, help="Processes of one thread each.")] = 2,
    only: Annotated[str, typer.Option(help="Only tasks of this kind or data set.")] = "",
    results: Path = RESULTS,
) -> None:
    """Run what is not among the records yet; each run is kept as it ends."""
    every = (*natural(), *carried(), *unseen(), *constructed(), *embedded(), *images())
    tasks = [task for task in every if not only or only in (task.kind, task.data_set)]
    for row in _left(measure, tasks, seeds, jobs, results):
        words = f"{row['source_only']:.3f} -> {row['returned']:.3f}, estimated {row['estimate']:.3f}"
        print(f"{row['task']}, seed {row['seed']}: {words}, {row['seconds']} s", flush=True)


@app.command()
def others(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes of one thread each.")] = 2,
    results: Path = OTHERS,
) -> None:
    """The same tasks by other estimates and other methods."""
    tasks = [task for task in (*natural(), *constructed()) if task.kind in CLOSED]
    for row in _left(measure_others, tasks, seeds, jobs, results):
        print(f"{row['task']}, seed {row['seed']}: {row['source_only']:.3f}", flush=True)


def _left(
    work: Callable[[ShiftTask, int], dict[str, Any]], tasks: list[ShiftTask], seeds: int, jobs: int, results: Path
) -> Iterator[dict[str, Any]]:
    """Do what is not among the records yet, seed by seed, and record it."""
    known = {(row["task"], row["seed"]) for row in read(results)}
    left = [(task, seed) for seed in range(seeds) for task in tasks if (task.name, seed) not in known]
    results.parent.mkdir(parents=True, exist_ok=True)
    done = Parallel(jobs, return_as="generator_unordered")(delayed(work)(task, seed) for task, seed in left)
    for number, row in enumerate(done, 1):
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{number}/{len(left)}", end=" ")
        yield row


@app.command()
def show(results: Path = RESULTS, others: Path = OTHERS, page: Path | None = None) -> None:
    """Print the tables, or write them into a page."""
    text = show_tables(read(results), read(others))
    if page is None:
        sys.stdout.write(text)
    else:
        page.write_text(text, encoding="utf-8")


@app.command()
def widths(results: Path = RESULTS, out: Path = Path("src/calida/estimation/widths.json")) -> None:
    """Fit how wide intervals must be, on the first seed, and write the table that the package ships."""
    print(write_widths([row for row in read(results) if row["seed"] == 0], out))


def read(path: Path) -> list[dict[str, Any]]:
    """The records so far."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    app()
