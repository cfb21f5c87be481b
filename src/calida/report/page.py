"""The report: one HTML file that needs nothing else. First what decides, then, folded, all that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from calida.adaptation import Level, Verdict
from calida.files import write_atomically
from calida.report import class_figures, figures, table_figures, trust_figures
from calida.report.bars import interval
from calida.report.facts import sentences, tiles
from calida.report.run_results import RunResults
from calida.report.templating import asset, picture, render_template
from calida.report.verdict import judge_results
from calida.run_warnings import RunWarning, Severity

# Ten colors that people with color-blindness tell apart best in this order; more classes go round the circle.
_COLORS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#7a5195", "#8c6d31",
)  # fmt: skip
_FIRST_CLASSES, _FIRST_SAMPLES = 6, 4  # of those to look at, on the first screen
_CHIPS = 24  # classes that a row of buttons can show
_LONGEST = 300  # letters of a finding on the first screen
_KINDS = {
    Severity.NOTE: ("neutral", "Good to know"),
    Severity.CARE: ("care", "Look at this"),
    Severity.ALARM: ("bad", "Alarm"),
}
_BADGES = {Level.GOOD: "✓", Level.NEUTRAL: "i", Level.CARE: "!", Level.BAD: "✕"}


@dataclass(frozen=True)
class Shown:
    """A target sample: its name, how likely its answer is right, its picture if it has one, and whether it is right."""

    name: str
    label: int
    right_at: float  # probability
    picture: str
    truth: str | None
    right: bool | None


@dataclass(frozen=True)
class Group:
    """Samples that were given one class: those that are most likely wrong first, and the surest."""

    label: int
    name: str
    count: int
    wrong: list[Shown]
    sure: list[Shown]


@dataclass(frozen=True)
class Finding:
    """A finding as the page has it: a color, a word for it, and its sentence."""

    kind: str
    word: str
    text: str


def write_report(path: Path, results: RunResults) -> None:
    """Write the page, whole or not at all."""
    write_atomically(path, render(results).encode())


def render(results: RunResults) -> str:
    """The page as text; whatever came from the user's disk is escaped by the template."""
    first = [trust_figures.abstention(results), class_figures.trusted_classes(results)]
    folded = [
        figures.reliability(results),
        trust_figures.risk_coverage(results),
        trust_figures.check_classifiers(results),
        class_figures.class_shares(results),
        class_figures.confusion(results),
        table_figures.groups(results),
        table_figures.moved_columns(results),
        figures.feature_map(results),
        figures.entropy_histograms(results),
        figures.courses(results),
        trust_figures.validators(results),
        trust_figures.recipes(results),
    ]
    verdict = judge_results(results)
    groups = _groups(results)
    whole = results.metrics["classes"]
    return render_template(
        "page.html",
        results=results,
        metrics=results.metrics,
        verdict=verdict,
        badge=_BADGES[verdict.level],
        estimate=_interval(results, verdict),
        findings=[_finding(one, len(str(one))) for one in verdict.findings],
        finding=None if verdict.finding is None or verdict.missed else _finding(verdict.finding, _LONGEST),
        first=first,
        figures=[figure for figure in folded if figure is not None],
        suspects=_suspects(results, groups),
        groups=groups,
        by_domain=_by_domain(results),
        sentences=sentences(results),
        tiles=tiles(results),
        cut=[(short, name) for short, name in zip(results.classes, whole, strict=True) if short != name],
        chips=len(whole) <= _CHIPS,
        colors=[_color(index, len(whole)) for index in range(len(whole))],
        style=asset("style.css"),
        script=asset("script.js"),
    )


def _color(index: int, count: int) -> str:
    return _COLORS[index] if count <= len(_COLORS) else f"hsl({360 * index / count:.0f} 62% 48%)"


def _finding(warning: RunWarning, longest: int) -> Finding:
    return Finding(*_KINDS[warning.severity], figures.shorten(str(warning), longest))


def _interval(results: RunResults, verdict: Verdict) -> Markup:
    estimate = results.trust.accuracy
    measured = results.after.get("oracle", results.metrics.get("labeled", {}).get("adapted", {}))
    known = measured.get("accuracy", measured.get("value"))
    return interval(estimate.value, estimate.low, estimate.high, known, verdict.estimate)


def _suspects(results: RunResults, groups: Sequence[Group]) -> list[Group]:
    """The classes that should have most wrong answers, with a few samples each."""
    expected = np.bincount(results.answers, 1 - results.probability_right.numpy(), minlength=len(results.classes))
    first = sorted((group for group in groups if group.wrong), key=lambda group: -expected[group.label])
    return [
        Group(group.label, group.name, group.count, group.wrong[:_FIRST_SAMPLES], [])
        for group in first[:_FIRST_CLASSES]
    ]


def _groups(results: RunResults) -> list[Group]:
    """Every class that has samples to show; their rows come surest first."""
    shown, answers = results.predictions.shown, results.answers
    counts = np.bincount(answers, minlength=len(results.classes))
    places: dict[int, list[int]] = {}
    for place, row in enumerate(shown):
        places.setdefault(int(answers[row]), []).append(place)
    groups, images = [], results.predictions.images
    for label in sorted(places):
        samples = [_shown(results, int(shown[place]), _image(images, place)) for place in places[label]]
        half = len(samples) // 2
        groups.append(Group(label, results.classes[label], int(counts[label]), samples[half:][::-1], samples[:half]))
    return groups


def _by_domain(results: RunResults) -> dict[str, list[Shown]]:
    """Target images that look most like the source, and those that look least like it, the most telling first."""
    predictions = results.predictions
    samples = [
        _shown(results, int(row), _image(predictions.by_domain_images, place))
        for place, row in enumerate(predictions.by_domain[: len(predictions.by_domain_images)])
    ]
    half = len(samples) // 2
    return {"Least like the source": samples[half:][::-1], "Most like the source": samples[:half]} if samples else {}


def _image(images: np.ndarray, place: int) -> str:
    return picture(images[place]) if len(images) else ""


def _shown(results: RunResults, row: int, image: str) -> Shown:
    label = int(results.answers[row])
    truth = None if results.truth is None else int(results.truth[row])
    return Shown(
        results.sample(row),
        label,
        float(results.probability_right[row]),
        image,
        None if truth is None else results.classes[truth],
        None if truth is None else truth == label,
    )
