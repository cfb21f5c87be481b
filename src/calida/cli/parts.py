"""`calida predict` and `calida embed` with an engine: what is too large for one process, in parts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from calida.cli.screen import Screen
from calida.cli.stopping import terminable
from calida.errors import InputError
from calida.terminal import counted
from calida.workers import Workers

if TYPE_CHECKING:
    import polars as pl

    from calida.runs import PartWork


def predict_parts(
    screen: Screen, data: str, out: Path, workers: Workers, run: Path, rows: int | None, options: dict[str, Any]
) -> None:
    """Predictions in parts, and their means."""
    from calida.adaptation import load
    from calida.cli.results import preparation_of
    from calida.runs import PredictParts, RunFolder

    adapted = load(run, "cpu")  # what cannot be is to be known here, not by every worker
    RunFolder(run).check_models()
    preparation_of(adapted, run)
    if options["sets"] is not None:
        adapted.check_sets(options["sets"])
    work = PredictParts(str(run.resolve()), PredictParts.weights_of(run), device=workers.device, **options)
    count, seconds, means = _make(screen, data, work, out, workers, rows, ("probability", "entropy"))
    screen.say(
        f"{counted(count, 'prediction')} in {out}: mean confidence {means['probability']:.1%}, "
        f"mean entropy {means['entropy']:.3f} nats"
    )
    summary = {"predictions": str(out), "samples": count, "confidence": means["probability"]}
    screen.result({**summary, "entropy": means["entropy"], "seconds": seconds})


def embed_parts(
    screen: Screen, source: str, out: Path, workers: Workers, encoder: str, rows: int | None, options: dict[str, Any]
) -> None:
    """Features in parts."""
    from calida.runs import EmbedParts

    work = EmbedParts(encoder, device=workers.device, **options)
    count, seconds, _ = _make(screen, source, work, out, workers, rows, ())
    screen.say(f"{counted(count, 'sample')} of {source} by {encoder} in {out}, {seconds:.1f} s")
    screen.result({"encoder": encoder, "samples": count, "seconds": seconds, "folder": str(out)})


def _make(
    screen: Screen,
    data: str,
    work: PartWork,
    out: Path,
    workers: Workers,
    rows: int | None,
    columns: tuple[str, ...],
) -> tuple[int, float, dict[str, float]]:
    """Make the parts; give the number of samples, seconds, and the means of some columns."""
    import polars as pl

    from calida.runs import make_parts

    begun = time.perf_counter()
    with terminable(), screen.progress() as progress:
        try:
            count = make_parts(data, work, out, workers, rows, lambda done, total: progress.read("parts", done, total))
        except KeyboardInterrupt:
            screen.error("stopped; the parts that are done are kept, and the same command goes on from there")
            raise typer.Exit(130) from None
    if not count:
        raise InputError(f"{data} has no samples")
    parts: pl.LazyFrame = pl.scan_parquet(sorted(out.glob("part-*.parquet")))
    means = parts.select(pl.col(columns).mean()).collect().row(0, named=True) if columns else {}
    return count, round(time.perf_counter() - begun, 3), means
