"""Figures on how far to trust a run: what abstaining buys, and what validators without target labels say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from markupsafe import Markup
from torch import Tensor

from calida.report.bars import Bar, BarRow, bar_list
from calida.report.figures import Figure, Panel, Table, around, shorten, views
from calida.report.run_results import RunResults
from calida.report.svg import Plot, nice_ticks
from calida.uncertainty import RiskCoverage, aurc, coverage_at_risk
from calida.uncertainty import risk_coverage as risk_curve
from calida.validation import DECIDING, ENSV, SOURCE_ONLY, VALIDATORS, VOTERS, rank, votes

_POINTS = 100  # of a curve: as many as a screen can show
_COVERAGES = (0.5, 0.8, 0.9, 1.0)
_TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
_COVERAGE, _MAX_RISK = 0.9, 0.02  # the caption's examples
_ORACLE, _COUNTED = "target accuracy (oracle)", "right answers, counted with target labels"


@dataclass(frozen=True)
class _Curve:
    """The share of errors among the most certain samples, and how it is drawn and told."""

    kind: str
    words: str
    curve: RiskCoverage
    area: float

    @staticmethod
    def of(kind: str, words: str, uncertainty: Tensor, loss: Tensor) -> _Curve:
        return _Curve(kind, words, risk_curve(uncertainty, loss), float(aurc(uncertainty, loss)))

    def answers(self, coverage: float) -> int:
        """How many samples are kept, as `predict` rounds it."""
        return max(round(coverage * len(self.curve.risk)), 1)

    def at(self, coverage: float) -> float:
        return float(self.curve.risk[self.answers(coverage) - 1])

    def points(self) -> list[tuple[float, float]]:
        """At every hundredth of the samples, or at every sample where they are fewer."""
        rows = sorted({self.answers(point / _POINTS) - 1 for point in range(1, _POINTS + 1)})
        return [(float(self.curve.coverage[row]), float(self.curve.risk[row])) for row in rows]


def risk_coverage(results: RunResults) -> Figure:
    """Expected errors always; counted ones where target labels are known."""
    unsure, name = 1 - results.probability_right, views(results)[-1][0]
    expected = _Curve.of("expected", f"{name}, expected without labels", unsure, unsure)
    counted = _counted(results, name)
    groups = {"": [expected]}
    table = _expected_table(expected, unsure)
    if counted:
        groups = {
            "expected, and counted (oracle)": [expected, counted[0], *_source_only(results)],
            "ordered by other scores (oracle)": counted,
        }
        table = _counted_table([expected, *counted, *_source_only(results)])
    drawn = {curve.words: curve for group in groups.values() for curve in group}
    top = max(0.01, *(1.05 * risk for curve in drawn.values() for _, risk in curve.points()))
    panels = [Panel(title, _draw(title, group, top)) for title, group in groups.items()]
    caption = _advice(expected, counted[0] if counted else None, coverage_at_risk(unsure, unsure, _MAX_RISK))
    legend = [(curve.kind, words) for words, curve in drawn.items()]
    return Figure("risk", "Answering only where it is sure", caption, panels, legend, table)


def abstention(results: RunResults) -> Figure:
    """The same in four bars: how many answers are wrong if only the surest samples are answered."""
    unsure, name = 1 - results.probability_right, views(results)[-1][0]
    curves = [_Curve.of("expected", "expected without labels", unsure, unsure)]
    if results.truth is not None:
        wrong = _wrong(results.predictions.after.target, results.truth)
        curves = [_Curve.of("truth", "counted with labels", unsure, wrong)]
    rows = []
    for coverage in reversed(_COVERAGES):
        words = "all samples" if coverage == 1 else f"the surest {coverage:.0%}"
        told = [(curve, curve.at(coverage), curve.answers(coverage)) for curve in curves]
        bars = [
            Bar(curve.kind, risk, f"{risk:.1%} wrong", f"{risk:.1%} of {count:,} answers wrong, {curve.words}")
            for curve, risk, count in told
        ]
        rows.append(BarRow(words, bars))
    widest = max(bar.share for row in rows for bar in row.bars)
    caption = f"Wrong answers of the {name} classifier if it answers for these, {curves[0].words}."
    picture = bar_list(rows, caption, max(widest, 0.01))
    return Figure("abstain", "If it answers only where it is sure", caption, [Panel("", picture)])


def _counted(results: RunResults, name: str) -> list[_Curve]:
    """Errors of the returned classifier, by confidence and by every score that orders samples in another way."""
    if results.truth is None:
        return []
    view = results.predictions.after
    curves: list[_Curve] = []
    orders: list[Tensor] = []
    known = {"panel": 1 - results.probability_right} if len(results.predictions.right) else {}
    for score, values in {**known, **view.scores()}.items():
        # A point network has no mutual information, and its sum is the entropy.
        if curves and (float(values.max() - values.min()) < 1e-9 or any(torch.equal(values, one) for one in orders)):
            continue
        orders.append(values)
        words = f"{name}, by {score.replace('-', ' ')} (oracle)"
        curves.append(_Curve.of(f"by-{score}", words, values, _wrong(view.target, results.truth)))
    return curves


def _source_only(results: RunResults) -> list[_Curve]:
    if results.truth is None or not results.changed:
        return []
    view = results.predictions.before
    words = f"{SOURCE_ONLY}, by confidence (oracle)"
    return [_Curve.of("was", words, view.scores()["confidence"], _wrong(view.target, results.truth))]


def _wrong(log_probs: np.ndarray, truth: np.ndarray) -> Tensor:
    return torch.from_numpy(log_probs.argmax(1) != truth).double()


def _draw(title: str, curves: Sequence[_Curve], top: float) -> Markup:
    x_ticks, y_ticks = ([(mark, f"{100 * mark:.3g}%") for mark, _ in nice_ticks(0, end)] for end in (1.0, top))
    plot = Plot(
        (0, 1.02), (0, top), "coverage: share of samples answered", "share wrong", x_ticks=x_ticks, y_ticks=y_ticks
    )
    for curve in curves:
        plot.line(curve.points(), curve.kind)
        for tenth in _TENTHS:
            tip = f"{curve.words}: {curve.at(tenth):.1%} wrong of the most certain {tenth:.0%}"
            plot.dot(curve.answers(tenth) / len(curve.curve.risk), curve.at(tenth), f"dot {curve.kind}", tip, 2.6)
    ends = ", ".join(f"{curve.words} {curve.at(0.5):.1%} at half and {curve.at(1):.1%} at all" for curve in curves)
    return plot.draw(f"Share wrong by coverage{title and ', '}{title}: {ends}")


def _counted_table(curves: Sequence[_Curve]) -> Table:
    header = ["classifier and score", "AURC", *(f"wrong at {coverage:.0%} coverage" for coverage in _COVERAGES)]
    rows = [
        [curve.words, f"{curve.area:.2%}", *(f"{curve.at(coverage):.2%}" for coverage in _COVERAGES)]
        for curve in curves
    ]
    return Table(header, rows)


def _expected_table(curve: _Curve, unsure: Tensor) -> Table:
    confidence = (1 - unsure).sort(descending=True).values
    rows = [
        [f"{tenth:.0%}", f"{count:,}", f"{curve.at(tenth):.2%}", f"{float(confidence[count - 1]):.1%}"]
        for tenth in _TENTHS
        if (count := curve.answers(tenth))
    ]
    return Table(["coverage", "answers", "expected to be wrong", "least confidence among them"], rows)


def _advice(expected: _Curve, counted: _Curve | None, coverage: float) -> Markup:
    """How to abstain, with what it would do to this run's target."""
    told = f"{expected.at(_COVERAGE):.1%} of these answers are expected to be wrong"
    within = f"{coverage:.1%} of the samples" if coverage else "none"
    if counted is not None:
        told += f", {counted.at(_COVERAGE):.1%} were (oracle)"
        within += f", {counted.at(coverage):.1%} wrong (oracle)" if coverage else ""
    return Markup(
        "A classifier may keep silent where it is unsure. <code>calida predict RUN DATA</code> "
        "<code>--coverage {}</code> answers for the most certain {:.0%} and leaves the other labels empty; here {}. "
        "<code>--max-risk {}</code> answers for as many as keep the expected share of errors at or under {:.0%}; here "
        "that is {}. Expected is one less the mean probability of being right: it needs no label, and is as good as "
        "the estimate of accuracy."
    ).format(_COVERAGE, _COVERAGE, told, _MAX_RISK, _MAX_RISK, within)


def check_classifiers(results: RunResults) -> Figure | None:
    """How far each check classifier agrees with what is returned, on source and on target."""
    agreements = sorted(results.trust.agreements, key=lambda one: -one.weight)
    if not agreements:
        return None
    rows = [
        BarRow(
            one.name,
            [
                Bar("source", one.source, f"{one.source:.0%}", f"same label on {one.source:.1%} of held-out source"),
                Bar("target", one.target, f"{one.target:.0%}", f"same label on {one.target:.1%} of the target"),
            ],
        )
        for one in agreements
    ]
    caption = (
        "Classifiers of other kinds learned from the same source, on the source's scale and on each domain's own. "
        "Where they give the target the same labels, those are likely to be right. The estimate of accuracy rests on "
        "these shares. Classifiers that know the source well and agree with the others weigh more."
    )
    table = Table(
        ["check classifier", "right on source", "agrees on source", "agrees on target", "estimate by it", "weight"],
        [
            [one.name, *(f"{share:.1%}" for share in (one.accuracy, one.source, one.target, one.estimate, one.weight))]
            for one in agreements
        ],
    )
    legend = [("source", "same label on held-out source"), ("target", "same label on target")]
    picture = bar_list(rows, "Agreement of check classifiers with the returned one", 1.0)
    return Figure("checks", "What other kinds of classifiers say", caption, [Panel("", picture)], legend, table)


def validators(results: RunResults) -> Figure | None:
    """Every validator's value for the source-only classifier and each round; nothing to compare without adaptation."""
    judged = results.judged
    if len(judged) < 2:
        return None
    names = [SOURCE_ONLY, *(f"round {record.round + 1}" for record in judged[1:])]
    returned = next(index for index, record in enumerate(judged) if record is results.returned)
    panels, rows = [], []
    for name in (*VOTERS, *(name for name in judged[0].validators if name not in VOTERS)):
        values = [record.validators[name] for record in judged]
        better = _better(name)
        kind = "target" if name in VOTERS else "other"
        panels.append(_course(name, f"{better} is better", _meaning(name), kind, names, values, returned))
        rows.append([name, _meaning(name), better, *(f"{value:.4g}" for value in values)])
    wins = [f"{len(votes(record, judged[0]))} of {len(VOTERS)}" for record in judged[1:]]
    rows.append(["votes", "voters that find it better than source only", "higher", "", *wins])
    legend = [("target", "votes on whether a round helped"), ("other", "for comparison")]
    values = [record.oracle.accuracy for record in judged if record.oracle]
    if len(values) == len(judged):
        panels.append(_course(_ORACLE, "which no choice saw", _COUNTED, "truth", names, values, returned))
        rows.append([_ORACLE, _COUNTED, "higher", *(f"{value:.2%}" for value in values)])
        legend.append(("truth", "oracle"))
    legend.append(("returned", f"returned: {results.trust.returned}"))
    caption = (
        "What can be seen of each round without a target label, before calibration. The dashed line is the source-only "
        "classifier's value: a round that most voters see on the better side of it is taken for a gain."
    )
    marked = [f"{name} (returned)" if index == returned else name for index, name in enumerate(names)]
    table = Table(["validator", "what it looks at", "better", *marked], rows)
    return Figure("validators", "Which round, judged without labels", caption, panels, legend, table)


def _course(
    title: str, note: str, meaning: str, kind: str, names: Sequence[str], values: Sequence[float], returned: int
) -> Panel:
    """A small panel: one dot a candidate, and a ring around the one that was returned."""
    last = len(names) - 1
    step = max(1, -(-last // 6))
    ticks = [(0.0, "source"), *((float(place), str(place)) for place in range(step, last + 1, step))]
    low, high = around(values)
    plot = Plot((-0.3, last + 0.3), (low, high), "", "", (220, 130), ticks, nice_ticks(low, high, 3), 40)
    plot.upright(returned, "returned")
    plot.line([(-0.3, values[0]), (last + 0.3, values[0])], "ideal")
    tips = [f"{name}{', returned' * (place == returned)}: {values[place]:.4g}" for place, name in enumerate(names)]
    plot.line(list(enumerate(values)), kind, tips)
    plot.dot(returned, values[returned], f"ring {kind}", tips[returned], 5)
    ends = f"{values[0]:.3g} for source only, {values[returned]:.3g} for the returned, {values[-1]:.3g} at the end"
    return Panel(title, plot.draw(f"{title}, {note}; {meaning}: {ends}"), note)


def _better(name: str) -> str:
    return "higher" if name == ENSV or VALIDATORS[name].higher_is_better else "lower"


def _meaning(name: str) -> str:
    return "agreement with all recipes' mean prediction" if name == ENSV else VALIDATORS[name].summary


def recipes(results: RunResults) -> Figure | None:
    """What every validator makes of the recipes, where several were tried."""
    candidates = results.trust.candidates
    if not candidates:
        return None
    names, columns = list(candidates), list(next(iter(candidates.values())))
    chosen = results.metrics["recipe"]
    told = [f"{name} (returned)" if name == chosen else name for name in names]
    ticks = [(index + 0.5, shorten(name, max(6, 48 // len(names)))) for index, name in enumerate(names)]
    plot = Plot((0, len(names)), (len(columns), 0), "", "", (380, 24 * len(columns) + 34), ticks, [], 110)
    for line, column in enumerate(columns):
        plot.row_label(line + 0.5, column)
    rows: list[list[Any]] = [[words] for words in told]
    for line, validator in enumerate(columns):
        better = _better(validator)
        values = [float(candidates[name][validator]) for name in names]
        ranks = rank([value if better == "higher" else -value for value in values]).tolist()
        for row, (value, place) in enumerate(zip(values, ranks, strict=True)):
            strength = 1.0 if place == min(ranks) else 0.2 * (len(names) - place) / (len(names) - 1)
            tip = f"{told[row]}, {validator} {value:.4g}: rank {place:g} of {len(names)}, {better} is better"
            plot.cell(row, line, strength, f"{value:.3g}", tip)
            rows[row].append(f"{value:.4g}")
    summary = f"{len(names)} recipes by {len(columns)} validators; returned is {chosen}"
    caption = (
        "Each row is a validator that needs no target label; its strongest color is the recipe that it likes best. "
        f"The recipe with the best {DECIDING} was returned."
    )
    header = ["recipe", *(f"{column} ({_better(column)} is better)" for column in columns)]
    return Figure(
        "recipes",
        "Which recipe, judged without labels",
        caption,
        [Panel("", plot.draw(summary))],
        (),
        Table(header, rows),
    )
