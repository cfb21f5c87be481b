"""A run from beginning to end: files in, a folder with model, figures, predictions and report out."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from calida.adaptation import Adapted, adapt, choose_device
from calida.data import INSIDE, Collection, Labelled, split_validation, take
from calida.errors import InputError, MissingExtraError
from calida.report import Evidence, Finding, compute_metrics, gather, write_report
from calida.runs.config import RunConfig
from calida.runs.folder import RunFolder, write_predictions
from calida.runs.opening import RunData, Tell, open_data, read_truth
from calida.seeds import Seeds
from calida.training import Record
from calida.version import __version__

Metrics = dict[str, Any]


def execute(
    config: RunConfig,
    path: Path,
    resume: bool = False,
    observe: Callable[[Record], None] = lambda record: None,
    tell: Tell = lambda name, done, total: None,
    opened: Callable[[RunData], None] = lambda data: None,
    command: str = "",
) -> Metrics:
    """Read the data, adapt, and fill the run folder; nothing is written before everything was checked.

    `opened` sees the data once they are read, `tell` the reading and `observe` the training as they go on.
    """
    folder = RunFolder(path)
    config.resolved_recipe()  # a wrong setting or device is to be known before the data are read
    choose_device(config.device)
    if folder.holds_run() and not resume:
        raise InputError(f"{path} already holds a run: go on with --resume {path}, or choose another --out")
    if path.is_file():
        raise InputError(f"{path} is a file; --out names a folder")
    board = _tensorboard(folder) if config.tensorboard else (lambda record: None)
    data = open_data(config, tell)
    opened(data)
    resolved, started = config.resolved(), time.perf_counter()

    def note(record: Record) -> None:
        if record["kind"] == "start":
            folder.write_config(resolved)
            folder.begin_rounds(record["history"])
        elif record["kind"] == "round":
            folder.add_round(record)
            board(record)
        observe(record)

    adapted = adapt(
        (data.source.samples, data.labels),
        data.target.samples,
        config.recipe,
        num_classes=len(data.card.classes),
        backbone=config.backbone,
        head=config.head,
        validation=config.validation,
        seed=config.seed,
        device=config.device,
        folder=path,
        resume=resume,
        observe=note,
        oracle_labels=data.truth,
        **config.settings,
    )
    seconds = time.perf_counter() - started
    return _finish(config, folder, adapted, data, {"training_seconds": round(seconds, 1), "command": command})


def _finish(
    config: RunConfig, folder: RunFolder, adapted: Adapted, data: RunData, facts: Mapping[str, Any]
) -> Metrics:
    before = adapted.source_only and replace(adapted.source_only, card=data.card)
    replace(adapted, card=data.card, source_only=before).save(folder.path)
    _, held = split_validation(data.labels, config.validation, Seeds(config.seed))
    validation = Labelled(take(data.source.samples, held), data.labels[held])
    evidence, prediction = gather(adapted, validation, data.target.samples)
    folder.write_evidence(evidence)
    write_predictions(folder.predictions, data.target.collection, prediction, data.card.classes)
    metrics = {
        **compute_metrics(evidence, data.truth),
        "classes": list(data.card.classes),
        "data": {
            "source": {"origin": config.source, "notes": list(data.card.source_notes)},
            "target": {"origin": config.target, "notes": list(data.card.target_notes)},
        },
        "recipe": adapted.recipe.name,
        "settings": adapted.recipe.to_json(),
        "seed": config.seed,
        **facts,
        "machine": f"{platform.system()} {platform.machine()}, {torch.get_num_threads()} threads",
        "versions": {"calida": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    folder.write_metrics(metrics)
    publish(folder, evidence, metrics, data.truth)
    return metrics


def publish(folder: RunFolder, evidence: Evidence, metrics: Metrics, truth: Tensor | None) -> Path:
    """Write the report of a finished run."""
    kind, names = folder.read_names()
    write_report(folder.report, Finding(metrics, folder.read_rounds(), evidence, kind, names, truth))
    return folder.report


def republish(path: Path) -> Path:
    """Draw the report of a finished run again, from what its folder holds."""
    folder = RunFolder(path)
    config, metrics, evidence = folder.read_config(), folder.read_metrics(), folder.read_evidence()
    truth = _truth(folder, config, metrics) if "oracle" in metrics["adapted"] else None
    return publish(folder, evidence, metrics, truth)


def evaluate_run(path: Path, labels: str | None, label_column: str | None) -> Metrics:
    """Compare a finished run with labels of its target: oracle figures are added to its metrics and its report."""
    folder = RunFolder(path)
    config, metrics, evidence = folder.read_config(), folder.read_metrics(), folder.read_evidence()
    given = labels or config.target_labels or INSIDE
    config = replace(config, target_labels=given, label=label_column or config.label).resolved()
    truth = _truth(folder, config, metrics)
    metrics |= compute_metrics(evidence, truth)
    folder.write_config(config)
    folder.write_metrics(metrics)
    publish(folder, evidence, metrics, truth)
    return metrics


def _truth(folder: RunFolder, config: RunConfig, metrics: Metrics) -> Tensor | None:
    """Labels of the samples that the run predicted, by the names that predictions.csv gives them."""
    _, names = folder.read_names()
    return read_truth(config, Collection(config.target, [], names), tuple(metrics["classes"]))


def _tensorboard(folder: RunFolder) -> Callable[[Record], None]:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("TensorBoard logs need tensorboard: pip install 'calida[tensorboard]'") from None
    writers: list[SummaryWriter] = []

    def log(record: Record) -> None:
        if not writers:  # made with the first record, so that a run that never starts leaves nothing
            writers.append(SummaryWriter(str(folder.tensorboard)))
        step = record["round"]
        for name, value in _scalars(record):
            writers[0].add_scalar(f"{record['phase']}/{name}", value, step)
        writers[0].flush()

    return log


def _scalars(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, Mapping):
            found += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((f"{prefix}{key}", float(value)))
    return found
