"""Figures on tables: which columns moved between the domains, and accuracy by group of a column."""

from __future__ import annotations

from markupsafe import Markup

from calida.data import Kind
from calida.report.bars import Bar, BarRow, bar_list
from calida.report.figures import Figure, Panel, Table, shorten
from calida.report.groups import from_json
from calida.report.run_results import RunResults
from calida.report.svg import Plot, tag
from calida.shift import ColumnShift, TableShift

_DRAWN = 8  # columns; the table has them all
_LONGEST = 40  # letters of a name


def moved_columns(results: RunResults) -> Figure | None:
    """Each column in both domains, the one that tells them apart best first; None of a run that had no table."""
    if results.metrics.get("columns") is None:
        return None
    shift = TableShift.from_json(results.metrics["columns"])
    panels = [Panel(_cut(one.column), _distribution(one), _note(one)) for one in shift.columns[:_DRAWN]]
    caption = (
        f"A classifier that was taught to tell the domains apart by these columns has an area under the curve of "
        f"{shift.separation:.2f} on rows it had not seen: 0.5 is chance, 1 is always. The column that it needs most "
        "comes first. Of columns that say the same, each looks unimportant."
    )
    header = ["column", "kind", "difference", "distance", "importance", "missing, source", "missing, target", "unseen"]
    rows = [
        [
            _cut(one.column),
            one.kind,
            "" if one.difference is None else f"{one.difference:+.2f}",
            f"{one.distance:.2f}",
            f"{one.importance:.3f}",
            *(f"{share:.1%}" for share in (*one.missing, one.unseen)),
        ]
        for one in shift.columns
    ]
    legend = [("source", "source"), ("target", "target")]
    return Figure("columns", "Which columns moved", caption, panels, legend, Table(header, rows))


def _cut(name: str) -> str:
    """A long name ends with an ellipsis, and is shown in full where the pointer rests on it."""
    return name if len(name) <= _LONGEST else tag("span", shorten(name, _LONGEST), title=name)


def _note(one: ColumnShift) -> str:
    what = "length in letters: " if one.kind == Kind.TEXT else ""
    moved = "" if one.difference is None else f"median moved by {one.difference:+.2f} spreads, "
    return f"{what}{moved}distance {one.distance:.2f}, importance {one.importance:.3f}"


def _distribution(one: ColumnShift) -> Markup:
    """The share of each domain's rows in every bin, side by side."""
    count = len(one.bins)
    highest = max(0.01, *one.source, *one.target)
    step = 1 if count <= 5 else -(-count // 4)
    ticks = [(place + 0.5, shorten(one.bins[place].split(" to ")[0], 12)) for place in range(0, count, step)]
    plot = Plot((0, count), (0, 1.05 * highest), "", "share", (360, 190), x_ticks=ticks)
    for place, name in enumerate(one.bins):
        for start, kind, share in ((0.1, "source", one.source[place]), (0.5, "target", one.target[place])):
            plot.bar(place + start, place + start + 0.4, share, kind, f"{name}: {share:.1%} of {kind}")
    return plot.draw(
        f"{shorten(one.column, _LONGEST)} in source and target, {count} bins: total variation {one.distance:.2f}"
    )


def groups(results: RunResults) -> Figure | None:
    """Accuracy of both classifiers for each value of a column, where labels are known and a column was named."""
    if results.metrics.get("groups") is None or results.truth is None:
        return None
    column, found = from_json(results.metrics["groups"])
    sides = (("before", "source only"), ("target", "adapted"))
    rows_ = [
        BarRow(
            _cut(one.group),
            [
                Bar(kind, share, f"{share:.0%}", f"{one.group}: {share:.1%} of {one.rows:,} rows right, {words}", *ends)
                for (kind, words), share, ends in zip(
                    sides, (one.source_only, one.adapted), ((None, None), (one.low, one.high)), strict=True
                )
            ],
        )
        for one in found
    ]
    worst = min(found, key=lambda one: one.adapted)
    caption = (
        f"Measured with labels. The group that fares worst is {shorten(worst.group, _LONGEST)}: "
        f"{worst.adapted:.1%} right ({worst.low:.1%} to {worst.high:.1%}) of {worst.rows:,} rows."
    )
    rows = [
        [
            _cut(one.group),
            f"{one.rows:,}",
            f"{one.source_only:.1%}",
            f"{one.adapted:.1%}",
            f"{one.low:.1%} to {one.high:.1%}",
        ]
        for one in found
    ]
    table = Table([_cut(column), "rows", "source only (oracle)", "adapted (oracle)", "95% interval"], rows)
    legend = [("before", "source only (oracle)"), ("target", "adapted (oracle)")]
    title = f"Accuracy by {shorten(column, _LONGEST)}"
    summary = f"{title}, {len(found)} groups; lowest {worst.adapted:.1%} for {shorten(worst.group, _LONGEST)}"
    picture = bar_list(rows_, summary)
    return Figure("groups", title, caption, [Panel("", picture)], legend, table)
