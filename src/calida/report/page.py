"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from calida.estimation import CALIBRATIONS
from calida.files import write_atomically
from calida.report import figures, table_figures, trust_figures
from calida.report.run_results import RunResults
from calida.report.svg import tag
from calida.report.templating import asset, picture, render_template
from calida.report.verdict import Verdict, judge

# Ten colours that people with colour-blindness tell apart best in this order; more classes go round the circle.
_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#7a5195", "#8c6d31",
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A target sample: its name, what was predicted, how sure, its picture if it has one, and whether it is right."""

    name: str
    label: int
    probability: float
    entropy: float
    picture: str
    truth: str | None
    right: bool | None


@dataclass(frozen=True)
class Group:
    """The most certain and the most uncertain samples that were given one class."""

    label: int
    name: str
    count: int
    certain: list[Shown]
    uncertain: list[Shown]


def write_report(path: Path, results: RunResults) -> None:
    """Write the page, whole or not at all."""
    write_atomically(path, render(results).encode())


def render(results: RunResults) -> str:
    """The page as text; whatever came from the user's disk is escaped by the template."""
    drawn = [
        figures.feature_map(results),
        figures.reliability(results),
        trust_figures.risk_coverage(results),
        figures.entropy_histograms(results),
        figures.class_shares(results),
        figures.confusion(results),
        table_figures.groups(results),
        table_figures.moved_columns(results),
        figures.courses(results),
        trust_figures.validators(results),
        trust_figures.recipes(results),
    ]
    verdict = judge(results)
    return render_template(
        "page.html",
        results=results,
        metrics=results.metrics,
        verdict=verdict,
        strip=_strip(results, verdict),
        tiles=_tiles(results),
        figures=[figure for figure in drawn if figure is not None],
        groups=_groups(results),
        colours=[_colour(index, len(results.classes)) for index in range(len(results.classes))],
        style=asset("style.css"),
        script=asset("script.js"),
    )


def _colour(index: int, count: int) -> str:
    return _COLOURS[index] if count <= len(_COLOURS) else f"hsl({360 * index / count:.0f} 62% 48%)"


def _tiles(results: RunResults) -> list[dict[str, Any]]:
    """The figures at the top: a name, before, after, and whether an oracle was asked."""
    wanted = [
        ("target accuracy", "oracle", "accuracy", True),
        ("target ECE", "oracle", "ece", True),
        ("target confidence", "target", "confidence", True),
        ("target entropy", "target", "entropy", False),
        ("source accuracy", "source", "accuracy", True),
    ]
    tiles = []
    for name, part, key, share in wanted:
        if part in results.after:
            before, after = (
                f"{side[part][key]:.1%}" if share else f"{side[part][key]:.3f}"
                for side in (results.before, results.after)
            )
            tiles.append({"name": name, "before": before, "after": after, "oracle": part == "oracle"})
    return tiles


def _strip(results: RunResults, verdict: Verdict) -> list[dict[str, Any]]:
    """What is known without target labels: a name, a value, a note, and a picture of an interval."""
    trust, tried = results.trust, len(results.trust.candidates)
    estimate, calibration = trust.accuracy, CALIBRATIONS.get(trust.calibration)
    known = results.after.get("oracle", {}).get("accuracy")
    recipe = f"recipe {results.metrics['recipe']}" + (f", the best ranked of {tried}" if tried else "")
    strip = [
        {"name": "returned", "value": trust.returned, "note": recipe},
        {
            "name": "target accuracy, estimated",
            "value": f"{estimate.value:.1%}",
            "note": f"{estimate.low:.1%} to {estimate.high:.1%}, without labels",
            "picture": _interval(estimate.value, estimate.low, estimate.high, known),
        },
        {
            "name": "calibration",
            "value": f"temperature {trust.temperature:.2f}",
            "note": f"{trust.calibration}: {calibration.summary}" if calibration else trust.calibration,
        },
        {
            "name": "warnings",
            "value": str(len(verdict.warnings) or "none"),
            "note": "listed below" if verdict.warnings else "of the guard or the figures",
        },
    ]
    if labeled := results.metrics.get("labeled"):
        found, count = labeled["adapted"], labeled["labels"]
        measured = {
            "name": f"target accuracy, from {count:,} label{'s' * (count > 1)}",
            "value": f"{found['value']:.1%}",
            "note": f"{found['low']:.1%} to {found['high']:.1%} at {labeled['level']:.0%}, measured with labels",
            "picture": _interval(found["value"], found["low"], found["high"], known),
        }
        strip.insert(2, measured)
    return strip


def _interval(value: float, low: float, high: float, known: float | None) -> Markup:
    """From 0 to 100 %: the interval, the estimate in it, and the truth where an oracle gave it."""
    parts = [
        tag("rect", x=0, y=5, width=200, height=4, rx=2, class_="track"),
        tag("rect", x=200 * low, y=3, width=max(200 * (high - low), 1.0), height=8, rx=2, class_="band"),
        tag("circle", cx=200 * value, cy=7, r=4, class_="dot target"),
    ]
    summary = f"Estimated {value:.1%}, between {low:.1%} and {high:.1%}"
    if known is not None:
        summary += f"; in truth {known:.1%} (oracle)"
        parts.append(tag("rect", x=200 * known - 1, y=0, width=2, height=14, class_="bar truth"))
    return tag("svg", tag("title", summary), *parts, viewBox="-4 0 208 14", role="img", aria_label=summary)


def _groups(results: RunResults) -> list[Group]:
    predictions = results.predictions
    predicted = predictions.after.target.argmax(1)
    counts = np.bincount(predicted, minlength=len(results.classes))
    groups = []
    for label, name in enumerate(results.classes):
        places = [place for place, row in enumerate(predictions.shown) if predicted[row] == label]
        half = (len(places) + 1) // 2
        shown = [_shown(results, place) for place in places]
        groups.append(Group(label, name, int(counts[label]), shown[:half], shown[half:][::-1]))
    return groups


def _shown(results: RunResults, place: int) -> Shown:
    predictions = results.predictions
    row = int(predictions.shown[place])
    label = int(predictions.after.target[row].argmax())
    truth = None if results.truth is None else int(results.truth[row])
    return Shown(
        results.names[row],
        label,
        float(np.exp(predictions.after.target[row].max())),
        float(predictions.after.uncertainty[row, 0]),
        picture(predictions.images[place]) if len(predictions.images) else "",
        None if truth is None else results.classes[truth],
        None if truth is None else truth == label,
    )
