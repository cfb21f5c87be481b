"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from calida.estimation import CALIBRATIONS
from calida.files import write_atomically
from calida.report import figures, trust_figures
from calida.report.run_results import Finding
from calida.report.svg import tag
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


def write_report(path: Path, finding: Finding) -> None:
    """Write the page, whole or not at all."""
    write_atomically(path, render(finding).encode())


def render(finding: Finding) -> str:
    """The page as text; whatever came from the user's disk is escaped by the template."""
    environment = Environment(
        loader=PackageLoader("calida.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["last_part"] = lambda origin: origin.rstrip("/").rsplit("/", 1)[-1] or origin
    drawn = [
        figures.feature_map(finding),
        figures.reliability(finding),
        trust_figures.risk_coverage(finding),
        figures.entropy_histograms(finding),
        figures.class_shares(finding),
        figures.confusion(finding),
        figures.courses(finding),
        trust_figures.validators(finding),
        trust_figures.recipes(finding),
    ]
    verdict = judge(finding)
    return environment.get_template("page.html").render(
        finding=finding,
        metrics=finding.metrics,
        verdict=verdict,
        strip=_strip(finding, verdict),
        tiles=_tiles(finding),
        figures=[figure for figure in drawn if figure is not None],
        groups=_groups(finding),
        colours=[_colour(index, len(finding.classes)) for index in range(len(finding.classes))],
        style=Markup(_asset(environment, "style.css")),
        script=Markup(_asset(environment, "script.js")),
    )


def _asset(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _colour(index: int, count: int) -> str:
    return _COLOURS[index] if count <= len(_COLOURS) else f"hsl({360 * index / count:.0f} 62% 48%)"


def _tiles(finding: Finding) -> list[dict[str, Any]]:
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
        if part in finding.after:
            before, after = (
                f"{side[part][key]:.1%}" if share else f"{side[part][key]:.3f}"
                for side in (finding.before, finding.after)
            )
            tiles.append({"name": name, "before": before, "after": after, "oracle": part == "oracle"})
    return tiles


def _strip(finding: Finding, verdict: Verdict) -> list[dict[str, Any]]:
    """What is known without target labels: a name, a value, a note, and a picture of an interval."""
    trust, tried = finding.trust, len(finding.trust["candidates"])
    estimate, calibration = trust["accuracy"], CALIBRATIONS.get(trust["calibration"])
    known = finding.after.get("oracle", {}).get("accuracy")
    recipe = f"recipe {finding.metrics['recipe']}" + (f", the best ranked of {tried}" if tried else "")
    return [
        {"name": "returned", "value": trust["returned"], "note": recipe},
        {
            "name": "target accuracy, estimated",
            "value": f"{estimate['value']:.1%}",
            "note": f"{estimate['low']:.1%} to {estimate['high']:.1%}, without labels",
            "picture": _interval(estimate["value"], estimate["low"], estimate["high"], known),
        },
        {
            "name": "calibration",
            "value": f"temperature {trust['temperature']:.2f}",
            "note": f"{trust['calibration']}: {calibration.summary}" if calibration else trust["calibration"],
        },
        {
            "name": "warnings",
            "value": str(len(verdict.warnings) or "none"),
            "note": "listed below" if verdict.warnings else "of the guard or the figures",
        },
    ]


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


def _groups(finding: Finding) -> list[Group]:
    evidence = finding.evidence
    predicted = evidence.after.target.argmax(1)
    counts = np.bincount(predicted, minlength=len(finding.classes))
    groups = []
    for label, name in enumerate(finding.classes):
        places = [place for place, row in enumerate(evidence.shown) if predicted[row] == label]
        half = (len(places) + 1) // 2
        shown = [_shown(finding, place) for place in places]
        groups.append(Group(label, name, int(counts[label]), shown[:half], shown[half:][::-1]))
    return groups


def _shown(finding: Finding, place: int) -> Shown:
    evidence = finding.evidence
    row = int(evidence.shown[place])
    label = int(evidence.after.target[row].argmax())
    truth = None if finding.truth is None else int(finding.truth[row])
    return Shown(
        finding.names[row],
        label,
        float(np.exp(evidence.after.target[row].max())),
        float(evidence.after.uncertainty[row, 0]),
        _picture(evidence.images[place]) if len(evidence.images) else "",
        None if truth is None else finding.classes[truth],
        None if truth is None else truth == label,
    )


def _picture(pixels: np.ndarray) -> str:
    """An image as a data address."""
    array = pixels[0] if pixels.shape[0] == 1 else pixels[:3].transpose(1, 2, 0)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
