"""Small pictures as SVG text: scales, axes and marks. Everything that is put in is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape


def tag(name: str, *content: str | Markup, **attributes: object) -> Markup:
    """One element; `data_class=3` is written data-class="3", and `None` leaves an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{''.join(escape(part) for part in content)}</{name}>")


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


class Plot:
    """A drawing area with linear scales; marks are added in data coordinates."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str = "",
        y_label: str = "",
        size: tuple[int, int] = (360, 230),
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_ticks: Sequence[tuple[float, str]] | None = None,
        left: int = 46,
    ) -> None:
        self.width, self.height = size
        self.left, self.right, self.top, self.bottom = left, 18, 10, 38 if x_label else 22
        self.to_x = _linear(x, (self.left, self.width - self.right))
        self.to_y = _linear(y, (self.height - self.bottom, self.top))
        self.base = y[0]
        self.parts: list[Markup] = []
        for value, text in nice_ticks(*y) if y_ticks is None else y_ticks:
            self._grid_line(self.to_y(value), text)
        for value, text in nice_ticks(*x) if x_ticks is None else x_ticks:
            place = self.to_x(value)
            self.parts.append(tag("text", text, x=place, y=self.height - self.bottom + 14, class_="tick middle"))
        middle = (self.left + self.width - self.right) / 2
        if x_label:
            self.parts.append(tag("text", x_label, x=middle, y=self.height - 4, class_="label middle"))
        if y_label:
            up = (self.top + self.height - self.bottom) / 2
            turn = f"translate(13 {up:.1f}) rotate(-90)"
            self.parts.append(tag("text", y_label, transform=turn, class_="label middle"))

    def _grid_line(self, place: float, text: str) -> None:
        right = self.width - self.right
        self.parts.append(tag("line", x1=self.left, x2=right, y1=place, y2=place, class_="grid"))
        self.parts.append(tag("text", text, x=self.left - 5, y=place + 3.5, class_="tick end"))

    def line(self, points: Sequence[tuple[float, float]], kind: str, tips: Sequence[str] = ()) -> None:
        """A polyline, with a dot that tells its value at every point where tips are given."""
        path = " ".join(f"{self.to_x(x):.1f},{self.to_y(y):.1f}" for x, y in points)
        self.parts.append(tag("polyline", points=path, class_=f"line {kind}"))
        for (x, y), tip in zip(points, tips, strict=False):
            self.dot(x, y, f"dot {kind}", tip, radius=2.6)

    def upright(self, x: float, kind: str) -> None:
        """A line from the bottom to the top."""
        place, low = self.to_x(x), self.height - self.bottom
        self.parts.append(tag("line", x1=place, x2=place, y1=self.top, y2=low, class_=kind))

    def row_label(self, y: float, text: str) -> None:
        """Words at the left, for rows that are no numbers."""
        self.parts.append(tag("text", text, x=self.left - 6, y=self.to_y(y) + 3.5, class_="tick end"))

    def bar(self, start: float, stop: float, value: float, kind: str, tip: str, **attributes: object) -> None:
        top, base = self.to_y(value), self.to_y(self.base)
        x, width = self.to_x(start), max(self.to_x(stop) - self.to_x(start), 0.5)
        height = max(base - top, 0.0)
        self.parts.append(
            tag("rect", x=x, y=top, width=width, height=height, class_=f"bar {kind}", data_tip=tip, **attributes)
        )

    def error_bar(self, x: float, low: float, high: float, count: str) -> None:
        """An interval around the end of a bar, with the number of samples above it."""
        place, top, base = self.to_x(x), self.to_y(high), self.to_y(low)
        self.parts.append(tag("line", x1=place, x2=place, y1=top, y2=base, class_="error"))
        self.parts += [tag("line", x1=place - 4, x2=place + 4, y1=end, y2=end, class_="error") for end in (top, base)]
        self.parts.append(tag("text", count, x=place, y=top - 3, class_="tick middle count"))

    def cell(self, column: int, row: int, strength: float, text: str, tip: str) -> None:
        """One square of a table whose columns and rows are numbered from the top left."""
        x, y = self.to_x(column), self.to_y(row)
        width, height = self.to_x(column + 1) - x, self.to_y(row + 1) - y
        style = f"--strength:{strength:.3f}"
        box = tag("rect", x=x, y=y, width=width, height=height, class_="cell", style=style, data_tip=tip)
        strong = " strong" if strength > 0.55 else ""
        label = tag("text", text, x=x + width / 2, y=y + height / 2 + 3.5, class_=f"tick middle{strong}")
        self.parts += [box, label] if text else [box]

    def dot(self, x: float, y: float, kind: str, tip: str, radius: float = 3.0, **attributes: object) -> None:
        self.parts.append(
            tag("circle", cx=self.to_x(x), cy=self.to_y(y), r=radius, class_=kind, data_tip=tip, **attributes)
        )

    def draw(self, summary: str) -> Markup:
        return tag(
            "svg",
            tag("title", summary),
            *self.parts,
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            aria_label=summary,
        )


def _linear(domain: tuple[float, float], range_: tuple[float, float]) -> Callable[[float], float]:
    span = (domain[1] - domain[0]) or 1.0
    return lambda value: range_[0] + (value - domain[0]) / span * (range_[1] - range_[0])


def nice_ticks(low: float, high: float, about: int = 5) -> list[tuple[float, str]]:
    """Round numbers within a range, with their texts."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [(low, f"{low:.3g}")]
    raw = span / about
    size = 10 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [(index * step, f"{index * step:.6g}") for index in range(first, math.floor(high / step + 1e-9) + 1)]
