"""How far calida can be trusted without target labels: choice, calibration, estimate, guard, abstention.

    python -m benchmarks.trust train [--seeds 0 1 2] [--tasks NAME...] [--part 0/2] [--work FOLDER]
    python -m benchmarks.trust judge [--work FOLDER] [--out results/trust.jsonl]
    python -m benchmarks.trust_tables --work FOLDER --page reproduction/notes/trust.md

`train` runs every task, setting and seed with one thread and keeps the weights of every round under FOLDER (finished
runs are not repeated; start it once with --part 0/2 and once with --part 1/2 to use two cores). `judge` looks at each
round as a run does and writes one JSON line a run: what validators, calibrations and estimates say, and beside it, as
oracle figures, what the target labels say. CALIDA_DATA names the folder with mnist.npz, usps.npz and svhn.npz.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.skew import skewed_rows
from calida import CalidaError, adapt, get_recipe
from calida.data import Labeled, Scale, split_validation
from calida.estimation import CALIBRATIONS, ESTIMATES, CalibrationData, fit_temperature
from calida.model import Classifier, Network, build_classifier
from calida.runs import RunConfig, open_data
from calida.seeds import Seeds
from calida.training import RunEvent, read_bundle, without_prefix
from calida.uncertainty import aurc, calibration_error, temper
from calida.validation import (
    PSEUDOCAL_SHARE,
    DomainPredictions,
    Predictor,
    RoundRecord,
    describe_labeled,
    describe_target,
    validate,
)

CLASSES = 10
BACKBONE = "compact"


@dataclass(frozen=True)
class Task:
    source: str
    target: str
    epochs: int = 8

    def open(self, seed: int, change: str) -> tuple[Labeled, Labeled]:
        """Both domains at 20 x 20 pixels; the target's labels serve the oracle, and to make classes rare."""
        data = open_data(RunConfig(source=self.source, target=self.target, target_labels="inside", size=20, seed=seed))
        assert isinstance(data.source.samples, Tensor)
        assert isinstance(data.target.samples, Tensor)
        assert data.truth is not None
        target = CHANGES[change](Labeled(data.target.samples, data.truth), seed)
        return Labeled(data.source.samples, data.labels), target


@dataclass(frozen=True)
class Setting:
    recipe: str
    values: dict[str, Any] = field(default_factory=dict)
    change: str = "none"  # of the target


def dim(target: Labeled, seed: int) -> Labeled:
    """A quarter of the brightness: inputs that were scaled wrongly."""
    assert isinstance(target.x, Tensor)
    return Labeled((target.x.float() * 0.25).to(target.x.dtype), target.y)


def unbalance(target: Labeled, seed: int) -> Labeled:
    """Three classes as they are, a tenth of every other."""
    kept = skewed_rows(target.y, 3, seed).sort().values
    assert isinstance(target.x, Tensor)
    return Labeled(target.x[kept], target.y[kept])


CHANGES = {"none": lambda target, seed: target, "dim": dim, "unbalanced": unbalance}

TASKS = {
    "mnist-usps": Task("mnist:train:2000", "usps:train:1800"),
    "mnist5k-uci": Task("mnist-5k:3000", "uci-digits"),
    "usps-mnist": Task("usps:train:1800", "mnist:train:2000"),
    "svhn-mnist": Task("svhn:train:4000", "mnist:train:1500", epochs=12),
}
TUNED_ON = ("mnist-usps", "mnist5k-uci")  # defaults were chosen on these, and reported on all
# What the paper's recipes and ours had when the published figures were made.
_AS_RUN = {"statistics": "both"}
_OURS_AS_RUN = {
    "diversity": 4.0,
    "memory": 0.0,
    "uniform_prior_slack": "inf",
    "min_batches_per_epoch": 1,
    "max_batches_per_epoch": None,
    "min_batches_per_round": 1,
    "max_batches_per_round": None,
    "max_steps": "inf",
}
SETTINGS = {
    "calida": Setting("calida", _OURS_AS_RUN),
    "rer-1": Setting("rer-1", _AS_RUN),
    "rer-inf": Setting("rer-inf", _AS_RUN),
    "brer-inf": Setting("brer-inf", _AS_RUN),
    "dual": Setting("dual", _AS_RUN),
    "calida-im": Setting("calida", {**_OURS_AS_RUN, "consistency": 0.0, "multiplier": 1.0, "diversity": 1.0}),
    "bad-multiplier": Setting("rer-1", {"multiplier": 10.0, **_AS_RUN}),
    "bad-portion": Setting("rer-inf", {"portion": 1.0, **_AS_RUN}),
    "bad-scale": Setting("calida", _OURS_AS_RUN, change="dim"),
    "bad-balance": Setting("calida", _OURS_AS_RUN, change="unbalanced"),
    "bad-balance-rer-1": Setting("rer-1", _AS_RUN, change="unbalanced"),
}
SHORT = {"rounds": 5, "passes": 1}


def train(task: str, name: str, seed: int, work: Path) -> None:
    """One run, its weights kept after every round that was looked at."""
    folder, setting = work / f"{task}.{name}.{seed}", SETTINGS[name]
    if (folder / "done.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    source, target = TASKS[task].open(seed, setting.change)
    started = time.perf_counter()

    def keep(event: RunEvent) -> None:
        if isinstance(event, RoundRecord) and event.target is not None:
            tensors = without_prefix("model", read_bundle(folder, "checkpoint").tensors)
            path = folder / f"{event.phase}-{event.round}.safetensors"
            save_file({key: value.contiguous() for key, value in tensors.items()}, path)

    values = {"epochs": TASKS[task].epochs, **SHORT, **setting.values}
    options: dict[str, Any] = {"backbone": BACKBONE, "seed": seed, "device": "cpu", "folder": folder, "observe": keep}
    options |= {"guard": False, "choice": "last", "num_classes": CLASSES}
    adapt(tuple(source), target.x, setting.recipe, **options, **values)
    for file in (*folder.glob("checkpoint*"), *folder.glob("source-only*")):
        file.unlink()
    (folder / "done.json").write_text(json.dumps({"seconds": time.perf_counter() - started}))


def judge(folder: Path) -> dict[str, Any]:
    """Look at every candidate of a run, the source-only classifier first."""
    task, name, number = folder.name.split(".")
    seed, setting = int(number), SETTINGS[name]
    source, target = TASKS[task].open(seed, setting.change)
    seeds, recipe = Seeds(seed), get_recipe(setting.recipe).with_settings(**setting.values)
    _, held = split_validation(source.y, 0.1, seeds)
    assert isinstance(source.x, Tensor)
    shape = tuple(source.x.shape[1:])
    classifier = build_classifier(
        Network(shape, CLASSES, BACKBONE, recipe.posterior.gaussian, "auto", Scale.of(source.x)), seeds
    )
    validation = Labeled(source.x[held], source.y[held])
    predictor = Predictor(validation, target.x, recipe.posterior.num_samples, seeds, 4 * recipe.optimization.batch_size)
    candidates, log_probs = [], []
    for index, weights in enumerate(candidate_files(folder)):
        classifier.load_state_dict(load_file(weights))
        predictions = predictor.predict_domains(classifier.eval())
        place = {"phase": weights.stem.rsplit("-", 1)[0], "round": index - 1, "rounds": SHORT["rounds"]}
        candidates.append({**place, **describe(predictions, predictor, classifier, target.y, seeds)})
        log_probs.append(predictions.target.log_probs.numpy())
    np.savez(folder / "target.npz", *log_probs)
    seconds = json.loads((folder / "done.json").read_text())["seconds"]
    return {
        "task": task,
        "setting": name,
        "seed": seed,
        "target_samples": len(target.y),
        "train_seconds": round(seconds, 1),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, one thread a run",
        "torch": torch.__version__,
        "candidates": candidates,
    }


def candidate_files(folder: Path) -> Iterator[Path]:
    yield from folder.glob("pretrain-*.safetensors")
    yield from sorted(folder.glob("adapt-*.safetensors"))


def describe(
    predictions: DomainPredictions, predictor: Predictor, model: Classifier, truth: Tensor, seeds: Seeds
) -> dict[str, Any]:
    data = CalibrationData(predictions, predictor.mix(model, predictions.target.labels, PSEUDOCAL_SHARE))
    target = predictions.target.log_probs.double()
    temperatures = {name: method.temperature(data) for name, method in CALIBRATIONS.items()}
    temperatures["oracle"] = fit_temperature(target, truth)
    wrong = (target.argmax(-1) != truth).double()
    return {
        "validators": validate(predictions, seeds),
        "source": vars(describe_labeled(predictions.validation, predictions.labels)),
        "target": vars(describe_target(predictions.target)),
        "temperature": temperatures,
        "estimate": {name: estimate(data) for name, estimate in ESTIMATES.items()},
        "oracle_accuracy": 1 - float(wrong.mean()),
        "oracle_ece": {key: float(calibration_error(temper(target, t), truth)) for key, t in temperatures.items()},
        "oracle_aurc": {key: float(aurc(score.double(), wrong)) for key, score in predictions.target.scores().items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("train", "judge"))
    parser.add_argument("--work", type=Path, default=Path("runs/trust"))
    parser.add_argument("--out", type=Path, default=Path("results/trust.jsonl"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--part", default="0/1", help="which share of the runs, as 0/2 and 1/2")
    options = parser.parse_args()
    torch.set_num_threads(1)
    part, parts = map(int, options.part.split("/"))
    jobs = [(task, name, seed) for seed in options.seeds for task in options.tasks for name in SETTINGS][part::parts]
    known = options.out.read_text().splitlines() if options.stage == "judge" and options.out.exists() else []
    judged = {tuple(json.loads(line)[key] for key in ("task", "setting", "seed")) for line in known}
    for task, name, seed in jobs:
        folder = options.work / f"{task}.{name}.{seed}"
        if options.stage == "train":
            try:
                train(task, name, seed, options.work)
            except CalidaError as error:
                raise SystemExit(f"{folder.name}: {error}") from None
        elif (task, name, seed) not in judged and (folder / "done.json").exists():
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("a") as file:
                file.write(json.dumps(judge(folder)) + "\n")
        print(folder.name, flush=True)


if __name__ == "__main__":
    main()
