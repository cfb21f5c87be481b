"""A run from beginning to end: files in, a folder with model, figures, predictions and report out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from calida.adaptation import Adapted, RunOptions, adapt_with, is_network, load, with_column_names
from calida.allocator import keep_freed_memory
from calida.data import (
    INSIDE,
    Collection,
    Labeled,
    SavedPreparation,
    read_collection,
    split_validation,
    take,
)
from calida.errors import InputError
from calida.objective import Weighted
from calida.processes import join, telling_reasons
from calida.recipes import DEFAULT_RECIPE, FEATURES_RECIPE, default_recipe
from calida.report import (
    RunPredictions,
    RunResults,
    compute_metrics,
    gather,
    judge_results,
    measure_groups,
    write_report,
)
from calida.runs.claiming import as_first_says, check_folder, claim_folder
from calida.runs.config import FORMAT, NO_ENCODER, RunConfig
from calida.runs.data import ReadingProgress, RunData, domain_seeds, open_data, read_truth
from calida.runs.folder import RunFolder, digest_names, prediction_columns
from calida.runs.pictures import target_pictures
from calida.runs.tensorboard import tensorboard_log
from calida.seeds import Seeds
from calida.shift import compare_columns
from calida.spreadsheets import write_csv
from calida.training import Observe, RunEvent, RunStarted
from calida.validation import RoundRecord, returned_record
from calida.version import __version__

Metrics = dict[str, Any]


@telling_reasons()
def execute(
    config: RunConfig,
    path: Path,
    resume: bool = False,
    observe: Observe = lambda event: None,
    tell: ReadingProgress = lambda name, done, total: None,
    opened: Callable[[RunData], None] = lambda data: None,
    command: str = "",
    draw: bool = True,
) -> tuple[Adapted, Metrics]:
    """The classifier of a run, and its figures; nothing is written before everything was checked.

    Without `draw` there is no report, nor the arrays that one could be drawn from later. `opened` sees the data once
    they are read, `tell` the reading and `observe` the training as they go on.

    Of several processes, the first one says what is done and fills the folder; the others give no figures.
    """
    folder, processes = RunFolder(path), join()
    config, resume = as_first_says(config, resume, processes)
    config.check()  # a wrong setting or device is to be known before the data are read
    if processes.first:
        check_folder(folder, config, resume)
    told = config.tensorboard and processes.first
    board = tensorboard_log(folder.tensorboard) if told else (lambda record: None)
    if is_network(config.model):  # whose steps ask for the same memory over and over
        keep_freed_memory()
    with processes.first_ahead():
        start = read_start(config)
        data = open_data(config, tell)
    config = decided(config, data)
    opened(data)
    with ExitStack() as held:
        claimed = False

        def note(event: RunEvent) -> None:
            nonlocal claimed
            if isinstance(event, RunStarted):
                if not claimed:  # where several recipes are tried, each of them starts
                    began = resume and bool(event.history) and folder.holds_run()
                    claim_folder(folder, held, resume)
                    # A run that goes on was begun by another command, and may end with other options.
                    folder.write_config(config.resolved(), folder.read_command() if began else command)
                claimed = True
                folder.begin_rounds(event.history)
            elif isinstance(event, RoundRecord):
                folder.add_round(event)
                board(event)
            observe(event)

        adapted = adapt_data(config, data, start, path, resume, note)
        if not processes.first:
            return adapted, {}
        return adapted, _finish(config, folder, adapted, data, {"command": folder.read_command()}, draw)


def adapt_data(
    config: RunConfig,
    data: RunData,
    start: Adapted | None,
    folder: Path | None,
    resume: bool,
    observe: Observe,
    terms: Mapping[str, Weighted] | None = None,
    sample_weight: Any = None,
) -> Adapted:
    """Adapt to data that were read from files or frames; the classifier remembers how new ones are to be read."""
    if start is not None and start.preparation is not None:
        _check_start(start.preparation, data.preparation)
    embedded = data.embedded
    adapted = adapt_with(
        config,
        (data.source.samples if embedded is None else embedded.source, data.labels),
        data.target.samples if embedded is None else embedded.target,
        num_classes=len(data.preparation.classes),
        class_names=data.preparation.classes,
        start=start,
        folder=folder,
        resume=resume,
        observe=observe,
        terms=terms or {},
        oracle_labels=data.truth,
        tuning=None if embedded is None else embedded.tuning,
        sample_weight=sample_weight,
    )
    return with_column_names(adapted.named((), data.preparation), data.source.collection.columns)


def decided(config: RunConfig, data: RunData) -> RunConfig:
    """With what was left to the data: the encoder that read them, and the recipe that fits features or raw samples."""
    saved, vectors = data.preparation.encoder, data.target.samples.ndim == 2
    encoder = data.embedded.tuning.encoder.name if data.embedded else saved and saved.name
    if encoder is None:
        left = config.recipe in ("", DEFAULT_RECIPE) and config.model == RunOptions.model
        return replace(config, encoder=NO_ENCODER, recipe=default_recipe(vectors) if left else config.recipe)
    if config.model != RunOptions.model:  # no network: its own default recipe, and no backbone
        return replace(config, encoder=encoder, recipe=config.recipe or DEFAULT_RECIPE)
    backbone = "linear" if config.backbone == "auto" else config.backbone
    recipe = config.recipe or FEATURES_RECIPE
    return replace(config, encoder=encoder, recipe=recipe, backbone=backbone)


def read_start(config: RunConfig) -> Adapted | None:
    """The classifier of a run before it met its target, with what was recorded of its training, if one is named."""
    if config.start is None:
        return None
    RunFolder(Path(config.start)).check_models()
    adapted = load(config.start, config.device)
    return adapted if adapted.source_only is None else replace(adapted.source_only, history=adapted.history)


def _check_start(start: SavedPreparation, here: SavedPreparation) -> None:
    """A network's inputs and outputs have no names: the order of columns and classes is what they mean."""
    for what in ("classes", "columns"):
        pairs = zip_longest(getattr(start, what), getattr(here, what))
        unlike = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if unlike is not None and all(getattr(side, what) for side in (start, here)):  # arrays have no names of columns
            raise InputError(
                f"the {what} of the start and of this source must be the same, in the same order; "
                f"where the one has {unlike[0]!r}, the other has {unlike[1]!r}"
            )


def _finish(
    config: RunConfig, folder: RunFolder, adapted: Adapted, data: RunData, facts: Mapping[str, Any], draw: bool
) -> Metrics:
    seconds = sum(record.seconds for record in folder.read_rounds())
    folder.begin_rounds(adapted.history)  # those of the chosen recipe, if several were tried
    adapted.save(folder.path)
    _, held = split_validation(data.labels, config.validation, Seeds(config.seed))
    validation = Labeled(take(data.source.samples, held), data.labels[held])
    trust = adapted.trust
    assert trust is not None
    mapped = {} if draw else {"on_map": 0}
    truth = folder.read_truth() if data.truth is None else data.truth
    shown = partial(target_pictures, data.target.collection) if draw else None
    predictions, prediction = gather(adapted, validation, data.target.samples, truth, shown, **mapped)
    classes, right = data.preparation.classes, adapted.right
    columns = prediction_columns(data.target.collection, prediction, classes, right=right)
    write_csv(folder.predictions, columns)
    metrics = {
        "format": FORMAT,
        "place": str(folder.path),
        "classes": list(data.preparation.classes),
        "data": {
            "source": {"origin": config.source, "notes": list(data.preparation.source_notes)},
            "target": {
                "origin": config.target,
                "notes": list(data.preparation.target_notes),
                "total": data.target.collection.total,
            },
            "findings": [one.to_json() for one in data.findings],
        },
        "columns": _columns(data, config.seed) if draw else None,
        "recipe": adapted.recipe.name,
        "settings": adapted.recipe.to_json(),
        "seed": config.seed,
        "trust": trust.to_json(),
        "validators": dict(returned_record(adapted.history).validators),
        "rounds": len(adapted.history),
        "models": folder.digest_models(),
        "training_seconds": round(seconds, 1),
        **facts,
        "precision": adapted.network.precision,
        "machine": _machine(),
        "versions": {"calida": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    return publish(folder, predictions, metrics, (data.target.collection.named_by, data.target.collection.names), draw)


def _machine() -> str:
    together = "" if join().alone else f" in each of {join().count} processes"
    return f"{platform.system()} {platform.machine()}, {torch.get_num_threads()} threads{together}"


def _columns(data: RunData, seed: int) -> Mapping[str, Any] | None:
    """Which columns moved, of a table."""
    moved = compare_columns(data.source.collection, data.target.collection, Seeds(seed))
    return None if moved is None else moved.to_json()


def publish(
    folder: RunFolder,
    predictions: RunPredictions,
    metrics: Metrics,
    names: tuple[str, Sequence[str]],
    draw: bool = True,
) -> Metrics:
    """Write predictions, figures and report, so that all three tell the same."""
    metrics = {
        **compute_metrics(predictions),
        **{k: v for k, v in metrics.items() if k not in ("source_only", "adapted")},
        "names": digest_names(*names),
    }
    results = RunResults(metrics, folder.read_rounds(), predictions, *names)
    metrics["verdict"] = judge_results(results).to_json()
    if draw:
        folder.write_arrays(predictions)
    folder.write_metrics(metrics)
    if draw:
        write_report(folder.report, results)
    return metrics


def republish(path: Path) -> Path:
    """Draw the report of a finished run again, from what its folder holds."""
    folder, run = RunFolder(path), RunFolder(path).read_finished()
    write_report(folder.report, RunResults(run.metrics, run.rounds, run.predictions, *run.named))
    return folder.report


def evaluate_run(path: Path, labels: str | None, label_column: str | None, by: str | None = None) -> Metrics:
    """Compare a finished run with labels of its target: oracle figures are added to its metrics and its report.

    With `by`, a column of the target's table, accuracy is measured for each of its values as well.
    """
    folder = RunFolder(path)
    config, metrics, predictions, _, named = folder.read_finished()
    given = labels or config.target_labels or INSIDE
    config = replace(config, target_labels=given, label=label_column or config.label)
    preparation = load(path).preparation
    table = None if preparation is None else preparation.table
    total = metrics["data"]["target"]["total"]
    target = Collection(config.target, [], named[1], total=total, table=table, id=config.id, text=config.text)
    truth = read_truth(config, target, tuple(metrics["classes"]))
    assert truth is not None
    predictions = replace(predictions, truth=truth.numpy())
    metrics.pop("groups", None)  # of labels that were given earlier
    if by is not None:
        rows = read_collection(config.target, domain_seeds(config, "target"), False, config.column_choice, table)
        if list(rows.names) != list(named[1]):
            raise InputError(f"{config.target} has other rows than when the run was made, so {by!r} cannot be read")
        sides = (side.target.argmax(1) for side in (predictions.before, predictions.after))
        metrics = {**metrics, "groups": measure_groups(rows, by, predictions.truth, *sides)}
    return publish(folder, predictions, metrics, named)
