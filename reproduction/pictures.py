"""Figures of the reproduction page, SVG files that need nothing else: courses by round, and rows beside the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from markupsafe import Markup

from calida.report.svg import Plot, nice_ticks, tag
from calida.studies import Measure, RunRecord, Spread
from calida.training import SOURCE_PHASE
from reproduction.summary import BaseLine, Line

_WIDTH, _MARGIN = 800, 14
_COLUMNS = 4
_DEVIATION = ", ± standard deviation"
_PLACES = {"paper": -0.28, "ours": 0.0, "best": 0.28}  # beside a row's middle
_HEADING, _NAME = 96, 22  # letters that have room
# The ground belongs to the picture: whatever page it is on, its colors stay readable. Blue and vermilion are apart for
# all common kinds of color-blindness, and shapes tell the marks apart without color.
_STYLE = Markup("""
svg { --ground: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d8dee4; --ours: #0072b2; --paper: #c44601;
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
@media (prefers-color-scheme: dark) {
  svg { --ground: #15191f; --ink: #e6edf3; --faint: #a0a9b3; --grid: #343b44; --ours: #56b4e9; --paper: #f0883e }
}
.ground { fill: var(--ground) }
text { fill: var(--ink) }
.tick, .label, .note { fill: var(--faint) }
.tick { font-size: 11px }
.note { paint-order: stroke; stroke: var(--ground); stroke-width: 4px }
.name, .heading { font-weight: 600 }
.heading { font-size: 13px }
.middle { text-anchor: middle }
.end { text-anchor: end }
.grid { stroke: var(--grid); stroke-width: 1 }
.line { fill: none; stroke: var(--ours); stroke-linejoin: round }
.line.seed { stroke-width: 1; opacity: 0.6 }
.line.mean { stroke-width: 2.6 }
.line.paper { stroke: var(--paper); stroke-width: 1.6; stroke-dasharray: 5 3 }
.reach { stroke-width: 1.6 }
.reach.paper { stroke: var(--paper) }
.reach.ours { stroke: var(--ours) }
.mark.paper { fill: var(--paper) }
.mark.ours { fill: var(--ours) }
.mark.best { fill: var(--ground); stroke: var(--ours); stroke-width: 1.6 }
""")


@dataclass(frozen=True)
class Course:
    """A panel: one recipe's accuracy in percent by round, a list a seed, and the paper's figure."""

    name: str
    seeds: Sequence[Sequence[tuple[int, float]]]
    paper: float | None = None


@dataclass(frozen=True)
class Mark:
    """A row: the paper's figure in percent, our shares by the label-free choice and by the best round."""

    name: str
    paper: float | None
    spread: float | None
    ours: Spread | None
    best: Spread | None = None

    def figures(self) -> dict[str, tuple[float, float]]:
        """Value and standard deviation in percent by kind; 0 stands for a deviation that is not known."""
        found = {"paper": (self.paper, self.spread or 0.0)} if self.paper is not None else {}
        for kind, spread in (("ours", self.ours), ("best", self.best)):
            if spread is not None:
                found[kind] = (100 * spread.mean, 0.0 if math.isnan(spread.std) else 100 * spread.std)
        return found


def printable(text: object) -> str:
    """Text that any file can hold on one line: what is no visible sign becomes a space."""
    return "".join(sign if sign.isprintable() else " " for sign in str(text))


def _cut(text: str, longest: int) -> str:
    shown = printable(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def course_of(name: str, records: Iterable[RunRecord], measure: Measure, paper: float | None = None) -> Course:
    """Oracle accuracy by round; 0 is the source-only classifier that adaptation began with."""
    seeds = [
        [
            (0 if one["phase"] == SOURCE_PHASE else one["round"] + 1, 100 * one["oracle"][measure])
            for one in record["rounds"]
        ]
        for record in records
    ]
    return Course(name, seeds, paper)


def mark_of(line: Line) -> Mark:
    row, ours = line.row, line.accuracy
    return Mark(row.name, row.paper, row.spread, ours.get("label-free"), ours.get("oracle best"))


def base_mark_of(line: BaseLine) -> Mark:
    return Mark(line.row.name, line.row.target, None, line.figures.get("oracle"))


def draw_courses(heading: str, courses: Sequence[Course]) -> str:
    """A panel for every recipe, all with the same axes: a thin line a seed, a thick one for their mean."""
    values = [value for course in courses for line in course.seeds for _, value in line]
    y = _range([*values, *(course.paper for course in courses if course.paper is not None)])
    last = max((number for course in courses for line in course.seeds for number, _ in line), default=1)
    columns, top, left = min(_COLUMNS, len(courses)), 62, 20
    width, height = (_WIDTH - left - _MARGIN) // _COLUMNS, 170
    total = top + -(-len(courses) // columns) * height + 24
    parts = [
        tag("text", _cut(heading, _HEADING), x=_MARGIN, y=22, class_="heading"),
        *_course_legend(any(course.paper is not None for course in courses)),
    ]
    for index, course in enumerate(courses):
        row, column = divmod(index, columns)
        place = f"translate({left + column * width} {top + row * height})"
        parts.append(tag("g", *_panel(course, y, last, (width, height - 18)), transform=place, class_="panel"))
    middle = left + columns * width / 2
    parts.append(tag("text", "adaptation round (0: source only)", x=middle, y=total - 10, class_="label middle"))
    turn = f"translate(16 {(top + total - 24) / 2:.0f}) rotate(-90)"
    parts.append(tag("text", "oracle accuracy, %", transform=turn, class_="label middle"))
    return _picture(heading, total, parts)


def _panel(course: Course, y: tuple[float, float], last: int, size: tuple[int, int]) -> list[Markup]:
    step = max(1, math.ceil(last / 5))
    ticks = [(float(number), str(number)) for number in range(0, last + 1, step)]
    plot = Plot((0.0, float(last)), y, size=size, x_ticks=ticks, y_ticks=nice_ticks(*y, about=6), left=34)
    for line in course.seeds:
        plot.line(line, "seed")
    numbers = sorted({number for line in course.seeds for number, _ in line})
    means = [fmean(dict(line)[number] for line in course.seeds if number in dict(line)) for number in numbers]
    if means:
        plot.line(list(zip(numbers, means, strict=True)), "mean")
    else:
        middle, halfway = fmean((plot.left, plot.width - plot.right)), fmean((plot.top, plot.height - plot.bottom))
        plot.parts.append(tag("text", "not run", x=middle, y=halfway, class_="note middle"))
    if course.paper is not None:
        plot.line([(0, course.paper), (last, course.paper)], "paper")
    inner = tag("g", *plot.parts, transform="translate(0 6)")
    return [tag("text", _cut(course.name, _NAME), x=plot.left, y=10, class_="name"), inner]


def _course_legend(with_paper: bool) -> list[Markup]:
    entries = [("seed", "one seed"), ("mean", "mean over seeds"), ("paper", "the paper's figure (its best round)")]
    parts, x = [], _MARGIN
    for kind, words in entries if with_paper else entries[:2]:
        parts.append(tag("polyline", points=f"{x},40 {x + 26},40", class_=f"line {kind}"))
        parts.append(tag("text", words, x=x + 32, y=44, class_="note"))
        x += 32 + 7 * len(words) + 18
    return parts


def draw_marks(heading: str, marks: Sequence[Mark]) -> str:
    """Rows from top to bottom: the paper's figure and ours, with a standard deviation to each side."""
    figures = [mark.figures() for mark in marks]
    ends = [end for some in figures for value, reach in some.values() for end in (value - reach, value + reach)]
    x, top, height = _range(ends), 54, 36 * len(marks) + 48
    ticks = nice_ticks(*x, about=9)
    rows, size = (len(marks) - 0.5, -0.5), (_WIDTH - _MARGIN, height)
    plot = Plot(x, rows, "oracle accuracy on target, %", size=size, x_ticks=ticks, y_ticks=[], left=150)
    for value, _ in ticks:
        plot.upright(value, "grid")
    for first, second in pairwise(range(len(marks))):
        edge = plot.to_y((first + second) / 2)
        plot.parts.append(tag("line", x1=_MARGIN, x2=plot.width - plot.right, y1=edge, y2=edge, class_="grid"))
    words = _words(marks)
    for row, (mark, some) in enumerate(zip(marks, figures, strict=True)):
        name = printable(mark.name)
        plot.row_label(row, name if "ours" in some else f"{name} (not run)")
        for kind, (value, reach) in some.items():
            y = plot.to_y(row + _PLACES[kind])
            # The best round's spread is in the table: a third line a row would hide the two that are compared.
            if reach and kind != "best":
                plot.parts.append(_reach(plot.to_x(value - reach), plot.to_x(value + reach), y, kind))
            around = f" ± {reach:.2f}" if reach else ""
            tip = f"{name}, {words[kind].removesuffix(_DEVIATION)}: {value:.2f}{around}"
            plot.parts.append(_mark(kind, plot.to_x(value), y, tip))
    parts = [
        tag("text", _cut(heading, _HEADING), x=_MARGIN, y=22, class_="heading"),
        *_mark_legend(words),
        tag("g", *plot.parts, transform=f"translate(0 {top})"),
    ]
    return _picture(heading, top + height + 8, parts)


def _words(marks: Sequence[Mark]) -> dict[str, str]:
    """What each kind of mark stands for."""
    words = {"paper": "the paper" + _DEVIATION * any(mark.spread for mark in marks), "ours": "ours" + _DEVIATION}
    if any(mark.best for mark in marks):
        words |= {"ours": f"ours, label-free choice{_DEVIATION}", "best": "ours, oracle best"}
    return words


def _reach(low: float, high: float, y: float, kind: str) -> Markup:
    return tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"reach {kind}")


def _mark(kind: str, x: float, y: float, tip: str = "") -> Markup:
    words = [tag("title", tip)] if tip else []
    if kind == "paper":
        return tag("rect", *words, x=x - 4, y=y - 4, width=8, height=8, class_="mark paper")
    return tag("circle", *words, cx=x, cy=y, r=4.5 if kind == "ours" else 4.0, class_=f"mark {kind}")


def _mark_legend(words: Mapping[str, str]) -> list[Markup]:
    parts, x = [], _MARGIN + 5
    for kind, said in words.items():
        parts.append(tag("g", _mark(kind, x, 40), class_="legend"))
        parts.append(tag("text", said, x=x + 10, y=44, class_="note"))
        x += 10 + round(6.4 * len(said)) + 22
    return parts


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The values and a little air, with at least two points between the ends."""
    low, high = min(values, default=0.0), max(values, default=100.0)
    air = max(0.04 * (high - low), 1.0)
    return low - air, high + air


def _picture(summary: str, height: int, parts: Sequence[Markup]) -> str:
    text = tag(
        "svg",
        tag("title", printable(summary)),
        tag("style", _STYLE),
        tag("rect", width=_WIDTH, height=height, rx=6, class_="ground"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
        role="img",
        aria_label=printable(summary),
    )
    return f"{text}\n"
