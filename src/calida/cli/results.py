"""`calida predict`, `evaluate` and `report`: what can be done with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calida.adaptation import Adapted, load
from calida.cli.options import AsJson, Device, Label, Quiet, RunPath, SkipUnreadable, TargetLabels, Workers
from calida.cli.screen import Screen
from calida.data import DataCard, Loading, class_indices
from calida.errors import CheckpointError, InputError
from calida.report import score
from calida.runs import Metrics, evaluate_run, open_new, republish, write_predictions
from calida.training import describe_target


def predict(
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New samples: anything that --target takes.")],
    out: Annotated[Path, typer.Option(help="The file of predictions.")] = Path("predictions.csv"),
    label: Label = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte-Carlo samples; by default the recipe's.")] = None,
    domain: Annotated[
        str, typer.Option(metavar="target|source", help="Whose preparation the new samples get.")
    ] = "target",
    skip_unreadable: SkipUnreadable = False,
    workers: Workers = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new samples with the classifier of a finished run, with uncertainties."""
    if domain not in ("source", "target"):
        raise InputError(f"--domain is source or target, not {domain!r}")
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"{out} cannot be a file of predictions: {'it is' if out.is_dir() else 'there is no'} folder")
    screen = Screen(quiet, as_json)
    adapted = load(run, device)
    card = _card(adapted, run)
    loading = Loading(workers=Loading.workers if workers is None else workers, skip_unreadable=skip_unreadable)
    loaded = open_new(data, card, loading, False, label, domain)
    prediction = adapted.predict(loaded.samples, num_samples=samples)
    write_predictions(out, loaded.collection, prediction, card.classes)
    summary = {"predictions": str(out), "samples": len(prediction), **describe_target(prediction)}
    screen.say(f"{loaded.collection.origin}: {'; '.join(loaded.notes)}")
    screen.say(
        f"{len(prediction):,} predictions in {out}: mean confidence {summary['confidence']:.1%}, "
        f"mean entropy {summary['entropy']:.3f} nats"
    )
    screen.result(summary)


def evaluate(
    run: RunPath,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Other labelled data; by default the run's own target.")
    ] = None,
    target_labels: TargetLabels = None,
    label: Label = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with true labels: oracle figures, before and after adaptation.

    Without DATA the figures are added to the run's metrics.json and report.
    """
    screen = Screen(quiet, as_json)
    if data is None:
        metrics = evaluate_run(run, target_labels, label)
    else:
        if target_labels is not None:
            raise InputError("DATA carries its own labels; --target-labels is for the run's target")
        metrics = _evaluate_other(run, data, label, device)
    screen.show_result(metrics)
    screen.result(metrics)


def _evaluate_other(run: Path, data: str, label: str | None, device: str | None) -> Metrics:
    adapted = load(run, device)
    card = _card(adapted, run)
    loaded = open_new(data, card, Loading(), True, label, "target")
    truth = class_indices(loaded.collection.labels or (), card.classes, data)
    sides = {"source_only": adapted.source_only or adapted, "adapted": adapted}
    return {name: {"oracle": score(side.predict(loaded.samples).log_probs, truth)} for name, side in sides.items()}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw the report of finished runs again, from what their folders hold."""
    screen = Screen(quiet, as_json)
    drawn = {str(run): str(republish(run)) for run in runs}
    for path in drawn.values():
        screen.say(path)
    screen.result(drawn)


def _card(adapted: Adapted, run: Path) -> DataCard:
    if adapted.card is None:
        raise CheckpointError(f"the model in {run} was not trained from files; use it from Python: calida.load")
    return adapted.card
