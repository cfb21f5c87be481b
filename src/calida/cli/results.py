"""`calida predict`, `evaluate` and `report`: what can be done with a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.allocator import keep_freed_memory
from calida.cli.options import (
    SCORES,
    AsJson,
    Device,
    Engine,
    Label,
    MaxPixels,
    OnNewScale,
    Quiet,
    RowsPerPart,
    RunPath,
    Scheduler,
    SkipUnreadable,
    TargetLabels,
    Workers,
    checks_scale,
    loading_of,
    workers_of,
)
from calida.cli.parts import predict_parts
from calida.cli.screen import Screen
from calida.errors import CheckpointError, InputError
from calida.terminal import counted

if TYPE_CHECKING:
    from torch import Tensor

    from calida.adaptation import Adapted
    from calida.data import Loading, SavedPreparation
    from calida.model import Prediction
    from calida.runs import Metrics


def predict(
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New samples: anything that --target takes.")],
    out: Annotated[
        Path | None, typer.Option(help="The file of predictions, predictions.csv; with --engine a folder.")
    ] = None,
    label: Label = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte-Carlo samples; by default the recipe's.")] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Answer for this share of samples and abstain on the least certain.", rich_help_panel="Trust"
        ),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(
            help="Answer for as many as keep the expected share of errors at or under this.", rich_help_panel="Trust"
        ),
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(SCORES),
            help="What says how certain a sample is; by default how likely it is right.",
            rich_help_panel="Trust",
        ),
    ] = None,
    sets: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Give each sample the classes that should hold the right one this often, such as 0.9.",
            rich_help_panel="Trust",
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The network's own probabilities, not calibrated.", rich_help_panel="Trust")
    ] = False,
    domain: Annotated[
        str, typer.Option(metavar="target|source", help="Whose preparation the new samples get.")
    ] = "target",
    on_mismatch: OnNewScale = "stop",
    skip_unreadable: SkipUnreadable = False,
    max_pixels: MaxPixels = None,
    workers: Workers = None,
    engine: Engine = None,
    scheduler: Scheduler = None,
    rows_per_part: RowsPerPart = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new samples with the classifier of a finished run, with uncertainties."""
    from calida.adaptation import load, open_new
    from calida.data import check_looks
    from calida.model import check_abstention
    from calida.runs import RunFolder, prediction_columns
    from calida.spreadsheets import write_csv

    if domain not in ("source", "target"):
        raise InputError(f"--domain is source or target, not {domain!r}")
    check = checks_scale(on_mismatch)
    check_abstention(coverage, max_risk, order_by)  # before the long part
    if max_risk is not None and raw:
        raise InputError("--max-risk needs calibrated probabilities; leave out --raw")
    screen = Screen(quiet, as_json)
    if (cluster := workers_of(engine, scheduler, device)) is not None:
        if coverage is not None or max_risk is not None:
            raise InputError("--coverage and --max-risk compare all samples; with --engine, filter the parts yourself")
        options: dict[str, Any] = {"label": label, "samples": samples, "sets": sets, "raw": raw, "domain": domain}
        options |= {"check_scale": check, "loading": loading_of(skip_unreadable, max_pixels, 0)}
        predict_parts(screen, data, out or Path("predictions"), cluster, run, rows_per_part, options)
        return
    out = _predictions_file(out or Path("predictions.csv"), data)
    adapted = load(run, device)
    RunFolder(run).check_models()
    preparation = preparation_of(adapted, run)
    if not preparation.columns:  # images, texts or arrays, which a network reads
        keep_freed_memory()
    if sets is not None:
        adapted.check_sets(sets)
    loading = loading_of(skip_unreadable, max_pixels, workers)
    loaded = open_new(data, preparation, loading, False, label, domain, check, device)
    if check:
        check_looks(adapted.network.scale, loaded.samples, data)
    own = adapted.predict(loaded.samples, samples, raw=True, on_mismatch="ignore")  # checked when it was read
    prediction = own if raw else adapted.calibrated(own)
    judged = None if raw else RunFolder(run).read_right(loaded.collection.named_by, loaded.collection.names, prediction)
    right = prediction.right if judged is None else judged
    kept = None
    if coverage is not None or max_risk is not None:
        kept = prediction.accepted(coverage, max_risk, order_by, right)
    inside = None if sets is None else adapted.sets_of(own, sets)
    columns = prediction_columns(loaded.collection, prediction, preparation.classes, kept, inside, right)
    write_csv(out, columns)
    summary = {"predictions": str(out), **_summarized(prediction, right, kept, inside, sets)}
    screen.say(f"{loaded.collection.origin}: {'; '.join(loaded.notes)}")
    _say_summary(screen, summary, len(preparation.classes))
    if as_json:
        labels = [
            label if kept is None or bool(kept[row]) else None for row, label in enumerate(prediction.label_names)
        ]
        rows = zip(loaded.collection.names, labels, prediction.confidence.tolist(), strict=True)
        summary["labels"] = [{"name": name, "label": label, "probability": sure} for name, label, sure in rows]
    screen.result(summary)


def _predictions_file(out: Path, data: str) -> Path:
    """The file to write, if writing it replaces nothing that is needed."""
    from calida.data import Place
    from calida.runs import RunFolder

    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file for the predictions with --out")
    if not out.parent.is_dir():
        raise InputError(f"{out} cannot be written: there is no folder {out.parent}")
    if out.exists() and RunFolder(out.parent).holds_run():
        raise InputError(f"{out} is a file of a run, which predictions must not replace: name another with --out")
    given = Path(Place.parse(data).name).expanduser()
    if out.exists() and given.exists() and out.samefile(given):
        raise InputError(f"{out} is the file of the samples themselves: name another with --out")
    return out


def _summarized(
    prediction: Prediction, right: Tensor | None, kept: Tensor | None, inside: Tensor | None, sets: float | None
) -> dict[str, Any]:
    """What predictions have in common, as JSON has it."""
    from calida.json_values import to_json
    from calida.validation import describe_target

    summary: dict[str, Any] = {"samples": len(prediction), **to_json(describe_target(prediction))}
    if kept is not None:
        sure = prediction.confidence if right is None else right
        risk = float(1 - sure[kept].double().mean()) if bool(kept.any()) else 0.0
        summary |= {"coverage": float(kept.double().mean()), "expected_risk": risk}
    if inside is not None:
        sizes = inside.sum(-1).double()
        summary |= {"sets": sets, "set_size": float(sizes.mean()), "single_sets": float((sizes == 1).double().mean())}
    return summary


def _say_summary(screen: Screen, summary: Mapping[str, Any], classes: int) -> None:
    count = summary["samples"]
    screen.say(
        f"{counted(count, 'prediction')} in {summary['predictions']}: mean confidence {summary['confidence']:.1%}, "
        f"mean entropy {summary['entropy']:.3f} nats"
    )
    if "sets" in summary:
        screen.say(
            f"Sets at {summary['sets']:.0%} have {summary['set_size']:.1f} of {classes} classes on average, and "
            f"{summary['single_sets']:.1%} of them a single one; the level rests on the estimated accuracy"
        )
    if "coverage" in summary:
        silent = count - round(summary["coverage"] * count)
        empty = f"the other {silent:,} have" if silent != 1 else "the other one has"
        screen.say(
            f"An answer for {summary['coverage']:.1%} of them, of which {summary['expected_risk']:.1%} are expected to "
            f"be wrong; {empty} an empty label"
        )


def evaluate(
    run: RunPath,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Other labeled data; by default the run's own target.")
    ] = None,
    target_labels: TargetLabels = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Labels of a few samples, in the file of calida label.", rich_help_panel="Data"
        ),
    ] = None,
    label: Label = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Measure accuracy for each value of this column of a table as well."),
    ] = None,
    on_mismatch: OnNewScale = "stop",
    skip_unreadable: SkipUnreadable = False,
    max_pixels: MaxPixels = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with true labels: oracle figures, before and after adaptation.

    Without DATA the figures are added to the run's metrics.json and report.
    """
    from calida.runs import evaluate_run, evaluate_with_labels

    screen, check = Screen(quiet, as_json), checks_scale(on_mismatch)
    if labels is not None:
        if any(one is not None for one in (data, target_labels, by)):
            raise InputError("--labels are of a few of the run's samples: leave out DATA, --target-labels and --by")
        metrics = evaluate_with_labels(run, labels)
        screen.show_labeled(metrics["labeled"])
        screen.result(metrics)
        return
    if data is None:
        metrics = evaluate_run(run, target_labels, label, by)
    else:
        if target_labels is not None:
            raise InputError("DATA carries its own labels; --target-labels is for the run's target")
        metrics = _evaluate_other(run, data, label, device, loading_of(skip_unreadable, max_pixels), check, by)
    screen.show_result(metrics)
    if metrics.get("groups") is not None:
        screen.show_groups(metrics["groups"])
    screen.result(metrics)


def _evaluate_other(
    run: Path, data: str, label: str | None, device: str | None, loading: Loading, check_scale: bool, by: str | None
) -> Metrics:
    from calida.adaptation import load, open_new
    from calida.data import class_indices
    from calida.report import measure_groups
    from calida.runs import RunFolder
    from calida.uncertainty import measure_answers

    adapted = load(run, device)
    RunFolder(run).check_models()
    preparation = preparation_of(adapted, run)
    loaded = open_new(data, preparation, loading, True, label, "target", check_scale, device)
    truth = class_indices(loaded.collection.labels or (), preparation.classes, data)
    sides = {"source_only": adapted.source_only or adapted, "adapted": adapted}
    said = {name: side.predict(loaded.samples, on_mismatch="ignore") for name, side in sides.items()}
    found: Metrics = {
        name: {"oracle": measure_answers(prediction.log_probs, truth)} for name, prediction in said.items()
    }
    if by is not None:
        labels = (prediction.labels.numpy() for prediction in said.values())
        found["groups"] = measure_groups(loaded.collection, by, truth.numpy(), *labels)
    return found


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw the report of finished runs again, from what their folders hold."""
    from calida.runs import republish

    screen = Screen(quiet, as_json)
    drawn = {str(run): str(republish(run)) for run in runs}
    for path in drawn.values():
        screen.say(path)
    screen.result(drawn)


def preparation_of(adapted: Adapted, run: Path) -> SavedPreparation:
    if adapted.preparation is None:
        raise CheckpointError(f"the model in {run} was not trained from files; use it from Python: calida.load")
    return adapted.preparation
