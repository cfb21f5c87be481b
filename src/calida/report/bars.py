"""Horizontal bars as HTML: names in full at any width of the page, where a drawing would have to cut or shrink them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from calida.report.svg import tag


@dataclass(frozen=True)
class Bar:
    """A share of the whole width, what is written beside it, and the ends of its interval if it has one."""

    kind: str
    share: float
    text: str
    tip: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class BarRow:
    """A name and its bars, one below the other."""

    name: str
    bars: Sequence[Bar]
    label: int | None = None  # the class that it is of


def bar_list(rows: Sequence[BarRow], summary: str, widest: float = 1.0) -> Markup:
    """Rows of bars; a bar of the share `widest` takes the whole width."""
    return tag("div", *(_row(row, max(widest, 1e-9)) for row in rows), class_="bars", role="group", aria_label=summary)


def _row(row: BarRow, widest: float) -> Markup:
    tracks = [_track(bar, widest) for bar in row.bars]
    name = tag("span", row.name, class_="name")
    return tag("div", name, tag("div", *tracks, class_="tracks"), class_="bar-row", data_class=row.label)


def _track(bar: Bar, widest: float) -> Markup:
    parts = [tag("span", class_=f"fill {bar.kind}", style=f"width:{_percent(bar.share, widest)}")]
    if bar.low is not None and bar.high is not None:
        ends = f"left:{_percent(bar.low, widest)};width:{_percent(bar.high - bar.low, widest)}"
        parts.append(tag("span", class_="whisker", style=ends))
    track = tag("span", *parts, class_="groove", data_tip=bar.tip)
    return tag("div", track, tag("span", bar.text, class_="value"), class_="bar-line")


def _percent(share: float, widest: float) -> str:
    return f"{100 * min(max(share / widest, 0.0), 1.0):.2f}%"


def interval(value: float, low: float, high: float, measured: float | None, summary: str) -> Markup:
    """From 0 to 100%: the interval, the estimate in it, and what labels say where they do."""
    parts = [
        tag("span", class_="band", style=f"left:{_percent(low, 1)};width:{_percent(high - low, 1)}"),
        tag("span", class_="estimate", style=f"left:{_percent(value, 1)}"),
    ]
    if measured is not None:
        parts.append(tag("span", class_="measured", style=f"left:{_percent(measured, 1)}"))
    marks = [tag("span", f"{mark}%", class_="mark", style=f"left:{mark}%") for mark in (0, 25, 50, 75, 100)]
    return tag("div", tag("div", *parts, class_="scale"), tag("div", *marks, class_="marks", aria_hidden="true"),
               class_="interval", role="img", aria_label=summary)  # fmt: skip
