"""`calida predict`, `evaluate` and `report`: what can be done with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calida.adaptation import Adapted, load
from calida.cli.options import (
    AsJson,
    Device,
    Label,
    OnNewScale,
    Quiet,
    RunPath,
    SkipUnreadable,
    TargetLabels,
    Workers,
    checks_scale,
)
from calida.cli.screen import Screen
from calida.data import Loading, Place, SavedPreparation, class_indices
from calida.errors import CheckpointError, InputError
from calida.model import check_abstention
from calida.report import score
from calida.runs import Metrics, RunFolder, evaluate_run, open_new, republish, write_predictions
from calida.training import describe_target
from calida.uncertainty import SCORES


def predict(
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New samples: anything that --target takes.")],
    out: Annotated[Path, typer.Option(help="The file of predictions.")] = Path("predictions.csv"),
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
        str,
        typer.Option(metavar="|".join(SCORES), help="What says how certain a sample is.", rich_help_panel="Trust"),
    ] = SCORES[0],
    raw: Annotated[
        bool, typer.Option("--raw", help="The network's own probabilities, not calibrated.", rich_help_panel="Trust")
    ] = False,
    domain: Annotated[
        str, typer.Option(metavar="target|source", help="Whose preparation the new samples get.")
    ] = "target",
    on_mismatch: OnNewScale = "stop",
    skip_unreadable: SkipUnreadable = False,
    workers: Workers = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new samples with the classifier of a finished run, with uncertainties."""
    if domain not in ("source", "target"):
        raise InputError(f"--domain is source or target, not {domain!r}")
    check = checks_scale(on_mismatch)
    check_abstention(coverage, max_risk, order_by)  # before the long part
    if max_risk is not None and raw:
        raise InputError("--max-risk needs calibrated probabilities; leave out --raw")
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"{out} cannot be a file of predictions: {'it is' if out.is_dir() else 'there is no'} folder")
    if out.exists() and RunFolder(out.parent).holds_run():
        raise InputError(f"{out} is a file of a run, which predictions must not replace: name another with --out")
    given = Path(Place.parse(data).name).expanduser()
    if out.exists() and given.exists() and out.samefile(given):
        raise InputError(f"{out} is the file of the samples themselves: name another with --out")
    screen = Screen(quiet, as_json)
    adapted = load(run, device)
    card = _card(adapted, run)
    loading = Loading(workers=Loading.workers if workers is None else workers, skip_unreadable=skip_unreadable)
    loaded = open_new(data, card, loading, False, label, domain, check)
    prediction = adapted.predict(loaded.samples, num_samples=samples, raw=raw)
    kept = None
    if coverage is not None or max_risk is not None:
        kept = prediction.accepted(coverage, max_risk, order_by)
    write_predictions(out, loaded.collection, prediction, card.classes, kept)
    summary = {"predictions": str(out), "samples": len(prediction), **describe_target(prediction)}
    if kept is not None:
        risk = float(1 - prediction.confidence[kept].double().mean()) if bool(kept.any()) else 0.0
        summary |= {"coverage": float(kept.double().mean()), "expected_risk": risk}
    screen.say(f"{loaded.collection.origin}: {'; '.join(loaded.notes)}")
    screen.say(
        f"{len(prediction):,} predictions in {out}: mean confidence {summary['confidence']:.1%}, "
        f"mean entropy {summary['entropy']:.3f} nats"
    )
    if kept is not None:
        screen.say(
            f"An answer for {summary['coverage']:.1%} of them, of which {summary['expected_risk']:.1%} are expected to "
            f"be wrong; the other {len(kept) - int(kept.sum()):,} have an empty label"
        )
    screen.result(summary)


def evaluate(
    run: RunPath,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Other labelled data; by default the run's own target.")
    ] = None,
    target_labels: TargetLabels = None,
    label: Label = None,
    on_mismatch: OnNewScale = "stop",
    skip_unreadable: SkipUnreadable = False,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with true labels: oracle figures, before and after adaptation.

    Without DATA the figures are added to the run's metrics.json and report.
    """
    screen, check = Screen(quiet, as_json), checks_scale(on_mismatch)
    if data is None:
        metrics = evaluate_run(run, target_labels, label)
    else:
        if target_labels is not None:
            raise InputError("DATA carries its own labels; --target-labels is for the run's target")
        metrics = _evaluate_other(run, data, label, device, Loading(skip_unreadable=skip_unreadable), check)
    screen.show_result(metrics)
    screen.result(metrics)


def _evaluate_other(
    run: Path, data: str, label: str | None, device: str | None, loading: Loading, check_scale: bool
) -> Metrics:
    adapted = load(run, device)
    card = _card(adapted, run)
    loaded = open_new(data, card, loading, True, label, "target", check_scale)
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


def _card(adapted: Adapted, run: Path) -> SavedPreparation:
    if adapted.card is None:
        raise CheckpointError(f"the model in {run} was not trained from files; use it from Python: calida.load")
    return adapted.card
