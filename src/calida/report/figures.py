"""The figures of a report: each a picture, what it says in a sentence, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from markupsafe import Markup

from calida.report.run_predictions import ClassifierPredictions
from calida.report.run_results import RunResults
from calida.report.svg import Plot, nice_ticks
from calida.uncertainty import binned_error, reliability_bins, renyi_entropy, wilson
from calida.validation import SOURCE_ONLY, RoundRecord

_BINS = 15  # that the calibration error is computed over
_BARS = 10  # that are drawn, wide enough to write a number on
_AFTER = "adapted"


@dataclass(frozen=True)
class Panel:
    """One picture of a figure, under a title and a shorter word on it."""

    title: str
    picture: Markup
    note: str = ""


@dataclass(frozen=True)
class Table:
    """The numbers behind a figure, for those who would rather read, or listen."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A titled group of pictures with a legend of (kind, words)."""

    key: str
    title: str
    caption: str
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, str]] = ()
    table: Table | None = None


def views(results: RunResults) -> list[tuple[str, ClassifierPredictions]]:
    """Before and after, or the only one there is, as it was returned."""
    before, after = results.predictions.before, results.predictions.after
    return [(SOURCE_ONLY, before), (_AFTER, after)] if results.changed else [(SOURCE_ONLY, after)]


def feature_map(results: RunResults) -> Figure:
    predictions, classes = results.predictions, results.classes
    panels = []
    for name, view in views(results):
        low, high = view.map.min(0), view.map.max(0)
        pad = 0.03 * (high - low + 1e-9)
        size = (460, 380)
        bounds = [(float(low[axis] - pad[axis]), float(high[axis] + pad[axis])) for axis in (0, 1)]
        plot = Plot(bounds[0], bounds[1], size=size, x_ticks=[], y_ticks=[], left=8)
        count = len(predictions.mapped_source)
        for row, (x, y) in zip(predictions.mapped_source, view.map[:count], strict=True):
            label = int(predictions.validation_labels[row])
            plot.dot(float(x), float(y), "point source", f"source, class {classes[label]}", 2.6, data_class=label)
        for row, (x, y) in zip(predictions.mapped_target, view.map[count:], strict=True):
            label = int(view.target[row].argmax())
            tip = (
                f"target {results.sample(int(row))}, predicted {classes[label]} at {np.exp(view.target[row].max()):.0%}"
            )
            if results.truth is not None:
                tip += f", in truth {classes[int(results.truth[row])]}"
            plot.dot(float(x), float(y), "point target", tip, 2.8, data_class=label)
        summary = f"Map of features, {name}: {count} source and {len(predictions.mapped_target)} target samples"
        panels.append(Panel(name, plot.draw(summary)))
    caption = (
        "Each dot is a sample, placed by t-SNE so that samples with alike features lie together. Rings are source "
        "validation in its true class's color, filled dots are target in the predicted class's color. A good "
        "adaptation lays dots of a color onto rings of the same color."
    )
    return Figure("map", "How both domains look to the classifier", caption, panels, table=_map_table(results))


def _map_table(results: RunResults) -> Table:
    """How many dots of each class the map has: what can be said of it without looking."""
    predictions, count = results.predictions, len(results.classes)
    columns = {"source rings": predictions.validation_labels[predictions.mapped_source]}
    for name, view in views(results):
        columns[f"target dots, {name}"] = view.target[predictions.mapped_target].argmax(1)
    counts = [np.bincount(labels, minlength=count) for labels in columns.values()]
    rows = [[name, *(str(number[label]) for number in counts)] for label, name in enumerate(results.classes)]
    return Table(["class", *columns], rows)


def entropy_histograms(results: RunResults) -> Figure:
    highest = float(np.log(len(results.classes)))
    edges = np.linspace(0, highest, 25)
    panels, rows = [], []
    for name, view in views(results):
        source = renyi_entropy(torch.from_numpy(view.validation).double(), 1.0).numpy()
        shares = {
            "source": np.histogram(source.clip(0, highest), edges)[0] / len(source),
            "target": np.histogram(view.uncertainty[:, 0].clip(0, highest), edges)[0] / len(view.uncertainty),
        }
        # Roots of shares: most samples lie in the first bar, and the others are the ones to look at.
        top = float(max(values.max() for values in shares.values())) ** 0.5
        ticks = [(mark**0.5, f"{mark:.0%}") for mark in (0, 0.01, 0.05, 0.2, 0.5, 1) if mark**0.5 <= top]
        plot = Plot((0, highest), (0, top), "predictive entropy (nats)", "share of samples", y_ticks=ticks)
        half = (edges[1] - edges[0]) / 2
        for offset, (domain, values) in enumerate(shares.items()):
            for edge, share in zip(edges[:-1], values, strict=True):
                tip = f"{domain}: {share:.1%} with entropy {edge:.2f} to {edge + 2 * half:.2f}"
                plot.bar(edge + offset * half, edge + (offset + 0.92) * half, float(share) ** 0.5, domain, tip)
        means = (float(source.mean()), float(view.uncertainty[:, 0].mean()))
        panels.append(
            Panel(name, plot.draw(f"Entropy histogram, {name}: mean {means[0]:.3f} source, {means[1]:.3f} target"))
        )
        rows += [
            [name, f"{means[0]:.3f}", f"{means[1]:.3f}", f"{shares['source'][0]:.1%}", f"{shares['target'][0]:.1%}"]
        ]
    caption = (
        "How uncertain the classifier is, source against target. Left is certain, far right is all "
        "classes alike; heights are square roots of shares, so that the few uncertain samples can be seen."
    )
    header = ["classifier", "mean source", "mean target", "source in first bar", "target in first bar"]
    legend = [("source", "source validation"), ("target", "target")]
    return Figure("entropy", "Uncertainty on source and target", caption, panels, legend, Table(header, rows))


def reliability(results: RunResults) -> Figure:
    """Target where its labels are known, also as the network itself has it; source validation always."""
    panels, rows, sets = [], [], []
    for name, view in views(results) if results.truth is not None else ():
        if float(view.temperature) != 1:
            sets.append((name, "target, not calibrated (oracle)", view.uncalibrated, results.truth, "before"))
        sets.append((name, "target (oracle)", torch.from_numpy(view.target).double(), results.truth, "target"))
    for name, view in views(results):
        validation = torch.from_numpy(view.validation).double()
        sets.append((name, "source validation", validation, results.predictions.validation_labels, "source"))
    for name, domain, log_probs, labels, kind in sets:
        confidence, predicted = log_probs.exp().max(-1)
        right = predicted == torch.from_numpy(labels)
        error = float(binned_error(reliability_bins(confidence, right, _BINS)))
        bins = reliability_bins(confidence, right, _BARS)
        plot = Plot((0, 1), (0, 1.1), "confidence", "share right", y_ticks=nice_ticks(0, 1))
        plot.line([(0, 0), (1, 1)], "ideal")
        total = float(bins.counts.sum())
        for index in range(_BARS):
            count = int(bins.counts[index])
            if count == 0:
                continue
            share, said = float(bins.accuracy[index]), float(bins.confidence[index])
            low, high = wilson(share, count)
            tip = (
                f"{count:,} samples ({count / total:.1%}): {said:.1%} confident, {share:.1%} right "
                f"({low:.1%} to {high:.1%})"
            )
            plot.bar(index / _BARS + 0.004, (index + 1) / _BARS - 0.004, share, kind, tip)
            plot.dot(said, share, f"dot {kind}", tip, 3)
            plot.error_bar((index + 0.5) / _BARS, low, high, f"{count:,}")
        title = f"{name}, {domain}"
        panels.append(Panel(title, plot.draw(f"Reliability of {title}, ECE {error:.1%}"), f"ECE {error:.1%}"))
        rows.append([name, domain, f"{error:.2%}", f"{total:.0f}"])
    caption = (
        "Bars on the diagonal mean that 80% confidence is right 80% of the time; under it, over-confident. Above "
        "each bar is its number of samples; the line through it is the 95% interval that so few leave. "
        f"Probabilities are shown as predictions give them, at temperature {results.trust.temperature:.2f}."
    )
    table = Table(["classifier", "samples of", "ECE", "number"], rows)
    return Figure("reliability", "Can the probabilities be believed?", caption, panels, table=table)


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


@dataclass(frozen=True)
class _Course:
    """A quantity that moves from round to round: lines of (kind, words, reader of a record)."""

    title: str
    lines: Sequence[tuple[str, str, Callable[[RoundRecord], float | None]]]


def _balance(record: RoundRecord) -> float | None:
    """Entropy of the class shares over its largest value: 1 is all classes alike, 0 is one class for all."""
    shares = np.array([] if record.target is None else record.target.class_shares)
    if len(shares) < 2:
        return None
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum() / np.log(len(shares)))


def _multiplier(record: RoundRecord) -> float | None:
    return next((state.value for state in record.multipliers.values()), None)


_COURSES = (
    _Course(
        "mean entropy (nats)",
        (
            ("source", "source", lambda record: record.source.entropy),
            ("target", "target", lambda record: record.target.entropy if record.target else None),
        ),
    ),
    _Course(
        "accuracy",
        (
            ("source", "source validation", lambda record: record.source.accuracy),
            ("truth", "target (oracle)", lambda record: record.oracle.accuracy if record.oracle else None),
        ),
    ),
    _Course(
        "share of target selected",
        (("target", "selected", lambda record: record.selected.share if record.selected else None),),
    ),
    _Course("class balance on target", (("target", "balance, 1 is even", _balance),)),
    _Course("multiplier of the entropy", (("target", "multiplier", _multiplier),)),
    _Course(
        "gradient variance",
        (
            ("source", "source", lambda record: record.gradient_variance.get("source")),
            ("target", "target", lambda record: record.gradient_variance.get("target")),
        ),
    ),
)


def around(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis that holds all values, from 0 if it is not far."""
    low, high = min(values), max(values)
    pad = 0.08 * (high - low) or 0.05 * abs(high) or 0.05
    return 0.0 if low >= 0 and low < 0.5 * high else low - pad, high + pad


def courses(results: RunResults) -> Figure:
    rounds = results.rounds
    starts = [index + 1 for index in range(1, len(rounds)) if rounds[index].phase != rounds[index - 1].phase]
    returned = next(index for index, record in enumerate(rounds) if record is results.returned)
    whole = [(value, text) for value, text in nice_ticks(0.5, len(rounds) + 0.5) if float(value).is_integer()]
    panels, columns = [], {"round": [f"{record.phase} {record.round + 1}" for record in rounds]}
    for course in _COURSES:
        lines = []
        for kind, words, read in course.lines:
            values = [(index + 1, value) for index, record in enumerate(rounds) if (value := read(record)) is not None]
            if values:
                lines.append((kind, words, values))
                by_round = dict(values)
                name = course.title if len(course.lines) == 1 else f"{course.title}, {words}"
                columns[name] = [f"{by_round[i + 1]:.4g}" if i + 1 in by_round else "" for i in range(len(rounds))]
        if not lines:
            continue
        span = around([value for _, _, values in lines for _, value in values])
        plot = Plot((0.5, len(rounds) + 0.5), span, "round", "", (360, 190), whole)
        for start in starts:
            plot.upright(start - 0.5, "ideal")
        plot.upright(returned + 1, "returned")
        for kind, words, values in lines:
            tips = [f"{words}, {columns['round'][int(x) - 1]}: {value:.4g}" for x, value in values]
            plot.line(values, kind, tips)
        ends = ", ".join(f"{words} {values[0][1]:.3g} to {values[-1][1]:.3g}" for _, words, values in lines)
        panels.append(Panel(course.title, plot.draw(f"{course.title} by round: {ends}")))
    columns["note"] = [str(record.stopped or "") for record in rounds]
    columns["note"][returned] = "; ".join(["returned", *filter(None, [columns["note"][returned]])])
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    legend = [("source", "source"), ("target", "target")]
    legend += [("truth", "target accuracy (oracle)")] if any(record.oracle for record in rounds) else []
    legend += [("returned", f"returned: {results.trust.returned}")]
    caption = "One dot a round, before calibration."
    if starts:
        caption += " The dashed line is where training on source ends and adaptation begins."
    caption += "".join(f" Round {record.round + 1} was {record.stopped}." for record in rounds if record.stopped)
    return Figure("rounds", "Round by round", caption, panels, legend, Table(list(columns), rows))
