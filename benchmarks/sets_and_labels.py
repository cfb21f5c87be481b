"""On real shifts: how often prediction sets hold the right class, and what fifty labels tell.

    python -m benchmarks.sets_and_labels run [--seeds 0] [--out results/sets-and-labels.jsonl]
    python -m benchmarks.sets_and_labels show [--out results/sets-and-labels.jsonl]

`run` adapts to every natural task of `benchmarks.shifts` with the defaults and one thread, and adds a JSON line a task
and seed; what is there is not repeated. `show` prints the tables of the documents. Target labels serve to measure, and
to draw fifty of them many times. CALIDA_DATA names the folder of the data.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.shifts.tasks import Shift, natural
from calida import Adapted, InputError, adapt
from calida.adaptation import RunOptions
from calida.data import split_validation
from calida.estimation import SetCalibration, draw_design, estimate_from_labels, weighted_quantile
from calida.estimation.agreement import AgreementEstimate, estimate_by_agreement
from calida.panel import fit_panel
from calida.seeds import Seeds
from calida.shift.domain_classifier import domain_gap
from calida.validation import DomainPredictions

LEVELS = (0.8, 0.9, 0.95)
BUDGET, REDRAWS = 50, 100


def measure(adapted: Adapted, shift: Shift, seed: int) -> dict[str, Any]:
    """All figures of one adapted classifier on the target that it was trained for."""
    truth = torch.from_numpy(shift.truth)
    trust, predictions = adapted.trust, adapted.predictions
    assert trust is not None
    assert predictions is not None
    target = predictions.target
    right = target.labels == truth
    accuracy = float(right.double().mean())
    agreement = _agreement(predictions, shift, seed)
    estimates = {
        "calida": trust.accuracy.value,
        "estimated by agreement": agreement.value,
        "if the accuracy were known": accuracy,
    }
    calibrations = {name: SetCalibration.of(predictions, value) for name, value in estimates.items()}
    return {
        "accuracy": accuracy,
        "estimate": trust.accuracy.value,
        "agreement": agreement.value,
        "classes": target.log_probs.shape[1],
        "held_out": len(predictions.labels),
        "sets": {
            "split conformal": _by_level(lambda level: _split_conformal(predictions, level), truth),
            **{
                name: _by_level(lambda level, one=one: one.sets(target.log_probs, level), truth)  # type: ignore[misc]
                for name, one in calibrations.items()
            },
        },
        "labels": {
            "plain random": _redraw(right, None),
            "strata by confidence": _redraw(right, target.tempered(adapted.temperature).confidence),
            "strata by agreement": _redraw(right, agreement.by_sample),
        },
    }


def _agreement(predictions: DomainPredictions, shift: Shift, seed: int) -> AgreementEstimate:
    """Of check classifiers on the table itself, with the samples that the run learned from and held out."""
    x, y, target = (torch.from_numpy(part) for part in (shift.source, shift.labels, shift.target))
    kept, held = split_validation(y, RunOptions.validation, Seeds(seed))
    classes = predictions.target.log_probs.shape[1]
    panel = fit_panel(x[kept], y[kept], x[held], y[held], target, classes, Seeds(seed))
    apart = domain_gap(x[kept], target, Seeds(seed)).apart
    return estimate_by_agreement(panel, predictions.validation.labels, predictions.target.labels, apart)


def _by_level(make: Callable[[float], Tensor], truth: Tensor) -> dict[str, Any]:
    """Coverage and mean size at every level, None where sets are refused."""
    found: dict[str, Any] = {}
    for level in LEVELS:
        try:
            sets = make(level)
        except InputError:
            found[str(level)] = None
            continue
        held = sets.gather(1, truth[:, None]).double().mean()
        found[str(level)] = {"coverage": float(held), "size": float(sets.sum(1).double().mean())}
    return found


def _split_conformal(predictions: DomainPredictions, level: float) -> Tensor:
    """Sets without weights and without an estimate, the score one less the probability: [N, K] booleans."""
    scores = 1 - predictions.validation.probabilities.double().gather(1, predictions.labels[:, None]).squeeze(1)
    limit = weighted_quantile(scores, torch.ones(len(scores)), torch.ones(()), level)
    sets = 1 - predictions.target.probabilities.double() <= limit
    return sets.scatter(-1, predictions.target.labels[:, None], True)


def _redraw(right: Tensor, chance: Tensor | None) -> dict[str, float]:
    """Fifty labels drawn again and again: how often the interval holds the truth, and half its width."""
    truth, held, widths, errors = float(right.double().mean()), [], [], []
    for seed in range(REDRAWS):
        generator = torch.Generator().manual_seed(seed)
        if chance is None:
            rows = torch.randperm(len(right), generator=generator)[:BUDGET]
            strata, sizes = torch.zeros(len(rows), dtype=torch.long), torch.tensor([len(right)])
        else:
            design = draw_design(chance, BUDGET, generator)
            rows, strata, sizes = design.rows, design.strata, design.sizes
        found = estimate_from_labels(right[rows], strata, sizes)
        held.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
        widths.append((found.high - found.low) / 2)
        errors.append(abs(found.value - truth))
    return {"coverage": float(np.mean(held)), "half_width": float(np.mean(widths)), "error": float(np.mean(errors))}


def run(seeds: Sequence[int], out: Path) -> None:
    """Add what is missing."""
    torch.set_num_threads(1)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(record["task"], record["seed"]) for record in read(out)}
    for seed in seeds:
        for task in natural():
            if (task.name, seed) in done:
                continue
            shift = task.load(seed)
            adapted = adapt((shift.source, shift.labels), shift.target, seed=seed, device="cpu")
            record = {"task": task.name, "data_set": task.data_set, "seed": seed}
            record |= measure(adapted, shift, seed)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(f"{task.name}: {record['accuracy']:.1%}, estimated {record['estimate']:.1%}", flush=True)


def read(out: Path) -> list[dict[str, Any]]:
    """The records that are there."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def show(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Both tables in Markdown."""
    yield f"{len(records)} runs\n"
    yield "| sets | level | coverage, mean | worst task | under level - 10 points | classes in a set | refused |"
    yield "|---|---|---|---|---|---|---|"
    for name in records[0]["sets"]:
        for level in LEVELS:
            found = [record["sets"][name][str(level)] for record in records]
            there = np.array([(one["coverage"], one["size"]) for one in found if one])
            held, size = there.mean(0)
            low, few = there[:, 0].min(), (there[:, 0] < level - 0.1).mean()
            refused = sum(one is None for one in found)
            yield f"| {name} | {level:.0%} | {held:.1%} | {low:.1%} | {few:.0%} | {size:.2f} | {refused} |"
    yield f"\n| {BUDGET} labels | half-width of the 90 % interval | holds the truth | off by |\n|---|---|---|---|"
    for name in records[0]["labels"]:
        figures = [[record["labels"][name][key] for record in records] for key in ("half_width", "coverage", "error")]
        width, held, error = (float(np.mean(one)) for one in figures)
        yield f"| {name} | {100 * width:.1f} points | {held:.1%} | {100 * error:.1f} points |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("results/sets-and-labels.jsonl"))
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.seeds, arguments.out)
    else:
        print("\n".join(show(read(arguments.out))))


if __name__ == "__main__":
    main()
