"""A run from beginning to end: files in, a folder with model, figures, predictions and report out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from calida.adaptation import Adapted, adapt_with, load
from calida.allocator import keep_freed_memory
from calida.data import INSIDE, Collection, Labeled, SavedPreparation, split_validation, take
from calida.errors import InputError, MissingExtraError
from calida.files import locked
from calida.report import Evidence, Finding, compute_metrics, gather, write_report
from calida.runs.config import FORMAT, RunConfig
from calida.runs.data import RunData, Tell, open_data, read_truth
from calida.runs.folder import RunFolder, sample_names, write_predictions
from calida.seeds import Seeds
from calida.training import Record
from calida.validation import returned_record
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
    draw: bool = True,
) -> Metrics:
    """Read the data, adapt, and fill the run folder; nothing is written before everything was checked.

    Without `draw` there is no report, nor the evidence that one could be drawn from later. `opened` sees the data once
    they are read, `tell` the reading and `observe` the training as they go on.
    """
    folder = RunFolder(path)
    config.check()  # a wrong setting or device is to be known before the data are read
    if path.is_file():
        raise InputError(f"{path} is a file; --out names a folder")
    _refuse_to_overwrite(folder, resume)
    if resume and folder.holds_run() and (recipe := folder.read_config().recipe) != config.recipe:
        raise InputError(f"the run in {path} is by the recipe {recipe}; choose another --out for {config.recipe}")
    board = _tensorboard(folder) if config.tensorboard else (lambda record: None)
    start = None if config.start is None else _source_only(Path(config.start), config.device)
    keep_freed_memory()
    data = open_data(config, tell)
    if start is not None and start.card is not None:
        _check_start(start.card, data.card)
    opened(data)
    with ExitStack() as held:
        claimed = False

        def note(record: Record) -> None:
            nonlocal claimed
            if record["kind"] == "start":
                if not claimed:  # where several recipes are tried, each of them starts
                    _claim(folder, held, resume)
                    if not (resume and record["history"]):  # what had not begun may begin with other settings
                        folder.write_config(config.resolved(), command)
                claimed = True
                folder.begin_rounds(record["history"])
            elif record["kind"] == "round":
                folder.add_round(record)
                board(record)
            observe(record)

        adapted = adapt_with(
            config,
            (data.source.samples, data.labels),
            data.target.samples,
            num_classes=len(data.card.classes),
            class_names=data.card.classes,
            start=start,
            folder=path,
            resume=resume,
            observe=note,
            terms={},
            oracle_labels=data.truth,
        )
        return _finish(config, folder, adapted, data, {"command": folder.read_command()}, draw)


def _source_only(run: Path, device: str | None) -> Adapted:
    """The classifier of a run before it met its target, with what was recorded of its training."""
    adapted = load(run, device)
    return adapted if adapted.source_only is None else replace(adapted.source_only, history=adapted.history)


def _check_start(start: SavedPreparation, here: SavedPreparation) -> None:
    """A network's inputs and outputs have no names: the order of columns and classes is what they mean."""
    for what in ("classes", "columns"):
        pairs = zip_longest(getattr(start, what), getattr(here, what))
        unlike = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if unlike is not None and all(getattr(card, what) for card in (start, here)):  # arrays have no names of columns
            raise InputError(
                f"the {what} of the start and of this source must be the same, in the same order; "
                f"where the one has {unlike[0]!r}, the other has {unlike[1]!r}"
            )


def _refuse_to_overwrite(folder: RunFolder, resume: bool) -> None:
    if folder.holds_run() and not resume:
        raise InputError(
            f"{folder.path} already holds a run: go on with --resume --out {folder.path}, or choose another --out"
        )
    if not folder.holds_run() and (files := folder.files()):
        raise InputError(f"{folder.path} has a file {files[0].name} that a run would replace; choose another --out")


def _claim(folder: RunFolder, held: ExitStack, resume: bool) -> None:
    """Hold the folder until the run ends: another process may have begun in it since it was looked at."""
    try:
        held.enter_context(locked(folder.path / ".running"))
    except BlockingIOError:
        raise InputError(f"another process is at work in {folder.path}; choose another --out") from None
    _refuse_to_overwrite(folder, resume)


def _finish(
    config: RunConfig, folder: RunFolder, adapted: Adapted, data: RunData, facts: Mapping[str, Any], draw: bool
) -> Metrics:
    seconds = sum(record["seconds"] for record in folder.read_rounds())
    folder.begin_rounds(adapted.history)  # those of the chosen recipe, if several were tried
    before = adapted.source_only and replace(adapted.source_only, card=data.card)
    replace(adapted, card=data.card, source_only=before).save(folder.path)
    _, held = split_validation(data.labels, config.validation, Seeds(config.seed))
    validation = Labeled(take(data.source.samples, held), data.labels[held])
    trust = adapted.trust
    assert trust is not None
    mapped = {} if draw else {"on_map": 0}
    truth = folder.read_truth() if data.truth is None else data.truth
    evidence, prediction = gather(adapted, validation, data.target.samples, truth, **mapped)
    write_predictions(folder.predictions, data.target.collection, prediction, data.card.classes)
    metrics = {
        "format": FORMAT,
        "classes": list(data.card.classes),
        "data": {
            "source": {"origin": config.source, "notes": list(data.card.source_notes)},
            "target": {
                "origin": config.target,
                "notes": list(data.card.target_notes),
                "total": data.target.collection.total,
            },
        },
        "recipe": adapted.recipe.name,
        "settings": adapted.recipe.to_json(),
        "seed": config.seed,
        "trust": trust.to_json(),
        "validators": dict(returned_record(adapted.history)["validators"]),
        "training_seconds": round(seconds, 1),
        **facts,
        "machine": f"{platform.system()} {platform.machine()}, {torch.get_num_threads()} threads",
        "versions": {"calida": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    return _publish(folder, evidence, metrics, sample_names(data.target.collection), draw)


def _publish(
    folder: RunFolder, evidence: Evidence, metrics: Metrics, names: tuple[str, Sequence[str]], draw: bool = True
) -> Metrics:
    """Write evidence, figures and report, so that all three tell the same."""
    metrics = {**compute_metrics(evidence), **{k: v for k, v in metrics.items() if k not in ("source_only", "adapted")}}
    if draw:
        folder.write_evidence(evidence)
    folder.write_metrics(metrics)
    if draw:
        write_report(folder.report, Finding(metrics, folder.read_rounds(), evidence, *names))
    return metrics


def republish(path: Path) -> Path:
    """Draw the report of a finished run again, from what its folder holds."""
    folder = RunFolder(path)
    evidence = folder.read_evidence()
    names = folder.read_names(evidence)
    write_report(folder.report, Finding(folder.read_metrics(), folder.read_rounds(), evidence, *names))
    return folder.report


def evaluate_run(path: Path, labels: str | None, label_column: str | None) -> Metrics:
    """Compare a finished run with labels of its target: oracle figures are added to its metrics and its report."""
    folder = RunFolder(path)
    config, metrics, evidence = folder.read_config(), folder.read_metrics(), folder.read_evidence()
    given = labels or config.target_labels or INSIDE
    config = replace(config, target_labels=given, label=label_column or config.label)
    named = folder.read_names(evidence)
    card = load(path).card
    columns = () if card is None else card.columns
    target = Collection(config.target, [], named[1], columns=columns, total=metrics["data"]["target"]["total"])
    truth = read_truth(config, target, tuple(metrics["classes"]))
    assert truth is not None
    return _publish(folder, replace(evidence, truth=truth.numpy()), metrics, named)


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
            recipe = f"{record['recipe']}/" if "recipe" in record else ""  # where several are tried
            writers[0].add_scalar(f"{recipe}{record['phase']}/{name}", value, step)
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
