"""What the records say: tables of figures, and how wide intervals must be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calida.estimation import Counts, Estimate, Widths, empirical_interval

Row = dict[str, Any]
_BASES = (0.02, 0.05, 0.1, 0.2)
_LEVEL = 0.9
_FIGURES = ("logistic", "boosting", "source_only", "returned", "estimate")
CLOSED, OTHER, UNSEEN = ("natural", "label shift"), "other tables", "unseen tables"


_PICTURE = "![Estimates against the truth, reliability, and gain or harm of every task](pictures/shifts.svg)\n"


_OTHER_TABLES = """## Tables of other packages

Incomes, prices, flights, patients, birds and films (`benchmarks/shifts/carried.py`). Most columns say little of the
label. In some tables the groups differ in what no column shows: women earn less than men with the same columns. No
check classifier can see that. Where columns say little, believe labels: fifty of them tell.

Rules were found on seed 0 of these tables and of those above. Runs go back to the best epoch and keep the class
shares of the source. Estimates correct for how reliable agreement was there, and hear both scales. Adapting must also
gain by the panel's own probabilities. Widths of intervals are fitted on the tasks above alone.
"""
_UNSEEN_TABLES = """## Tables that nothing was chosen on

Shops, bicycles, loans, work, schools, illness and weather (`benchmarks/shifts/unseen.py`). They were written down
before anything was run on them, and no rule for tables was changed since. **Expect figures like these on
your own tables.**
"""


def show(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """Markdown tables of everything that was asked for."""
    closed = [row for row in rows if row["kind"] in CLOSED]
    other, unseen = ([row for row in rows if row["kind"] == kind] for kind in (OTHER, UNSEEN))
    parts = ["# Real shifts\n", _count(rows), _overall(closed, closed, "over all closed-set tasks"), _PICTURE]
    parts += [_by_set(closed), _flags(rows)]
    for some, words, title in (
        (unseen, _UNSEEN_TABLES, "over all tables that nothing was chosen on"),
        (other, _OTHER_TABLES, "over all tables of other packages"),
    ):
        if some:
            parts += [words, _overall(some, closed, title), _by_set(some)]
    return "\n".join([*parts, *([_by_others(closed, others)] if others else [])])


def _count(rows: Sequence[Row]) -> str:
    tasks, seeds = {row["task"] for row in rows}, sorted({row["seed"] for row in rows})
    drawn = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    machine = ", ".join(sorted({row["machine"] for row in rows}))
    return (
        f"{len(rows)} runs of {len(tasks)} tasks, {drawn}; {machine}. "
        "Accuracies are measured with labels that no run saw. "
        "Intervals are those of a table that is fitted on seed 0, without the task's own data set. "
        "Rules were found on seed 0 as well: what another seed draws from the same data was new to them. "
        "An alarm is a finding of the highest severity.\n\n"
        "```sh\npython -m benchmarks.shifts run\npython -m benchmarks.shifts others\n"
        "python -m benchmarks.shifts show --page docs/shifts.md\n```\n"
    )


def _mean(rows: Sequence[Row], of: Callable[[Row], float]) -> float:
    return float(np.mean([of(row) for row in rows])) if rows else math.nan


def _overall(rows: Sequence[Row], fitted: Sequence[Row], title: str) -> str:
    """Figures of some runs, and of each seed's where there are several."""
    seeds = sorted({row["seed"] for row in rows})
    parts = {"": rows} if len(seeds) == 1 else {"all": rows}
    if len(seeds) > 1:
        parts |= {f"seed {seed}": [row for row in rows if row["seed"] == seed] for seed in seeds}
    columns = [_summary(some, fitted) for some in parts.values()]
    lines = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return _table([title, *parts], lines)


def _summary(rows: Sequence[Row], fitted: Sequence[Row]) -> dict[str, str]:
    """What runs come to; the width of their intervals is fitted on these, but for the task's own data set."""
    off = [row["estimate"] - row["returned"] for row in rows]
    gain = [row["returned"] - row["source_only"] for row in rows]
    over = [row["returned"] - max(row["source_only"], row["logistic"]) for row in rows]
    held = left_out_intervals(rows, fitted)
    sets = [row["set_coverage"] for row in rows if row["set_coverage"] is not None]
    sizes = [row["set_size"] for row in rows if row["set_size"] is not None]
    wrong = [row["wrong"] for row in rows if row["wrong"] is not None]
    lines = [
        ("estimate off by, on average", f"{100 * np.mean(np.abs(off)):.1f} points"),
        ("bias of the estimate", f"{100 * np.mean(off):+.1f} points"),
        ("too high by more than 15 points", f"{100 * np.mean(np.array(off) > 0.15):.0f} %"),
        ("truth in the 90 % interval", f"{100 * np.mean([inside for inside, _ in held]):.0f} %"),
        ("mean width of that interval", f"{100 * np.mean([width for _, width in held]):.0f} points"),
        ("ECE", f"{100 * _mean(rows, lambda row: row['ece']):.1f} %"),
        ("gain over source-only", f"{100 * np.mean(gain):+.1f} points"),
        ("gain over the better of source-only and logistic regression", f"{100 * np.mean(over):+.1f} points"),
        ("harmed by more than a point", f"{100 * np.mean(np.array(gain) < -0.01):.0f} %, worst {100 * min(gain):.1f}"),
        (
            "90 % sets cover",
            f"{100 * np.mean(sets):.1f} % with {np.mean(sizes):.2f} classes",
        ),
        (
            "wrong among answers at a risk of 5 %",
            f"{100 * np.mean(wrong):.1f} %, {100 * _mean(rows, lambda r: r['answered']):.0f} % answered",
        ),
        ("seconds a run, median", f"{np.median([row['seconds'] for row in rows]):.1f}"),
    ]
    return dict(lines)


def _by_set(rows: Sequence[Row]) -> str:
    lines = []
    for name in sorted({row["data_set"] for row in rows}):
        some = [row for row in rows if row["data_set"] == name]
        figures = [float(np.mean([row[key] for row in some])) for key in _FIGURES]
        off = _mean(some, lambda row: abs(row["estimate"] - row["returned"]))
        lines.append((f"{name} ({len(some)})", *(f"{100 * value:.1f}" for value in (*figures, off))))
    head = [
        "data set (runs)",
        "logistic regression",
        "boosting",
        "source only",
        "returned",
        "estimate",
        "estimate off by",
    ]
    return _table(head, lines)


def _group(row: Row) -> str:
    """The kind of a task; closed sets by how far accuracy really fell from source to target."""
    if row["kind"] not in CLOSED:
        return str(row["kind"])
    fall = row["source_accuracy"] - row["returned"]
    return "closed set, accuracy falls by " + (
        "under 5 points" if fall < 0.05 else "5 to 10" if fall < 0.1 else "over 10"
    )


def _flags(rows: Sequence[Row]) -> str:
    lines = []
    for kind in sorted({_group(row) for row in rows}):
        some = [row for row in rows if _group(row) == kind]
        alarm = _mean(some, lambda row: "alarm" in row["severities"])
        lines.append(
            (
                f"{kind} ({len(some)})",
                f"{100 * alarm:.0f} %",
                f"{100 * _mean(some, lambda r: abs(r['estimate'] - r['returned'])):.1f}",
            )
        )
    return _table(["kind of task (runs)", "with an alarm", "estimate off by"], lines)


def _by_others(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """Other estimates of the same source-only networks, and other methods on the same tasks."""
    lines = []
    for name in others[0]["estimates"]:
        pairs = [(row["estimates"][name], row["source_only"]) for row in others if row["estimates"][name] is not None]
        if pairs:
            off = 100 * np.array([estimate - truth for estimate, truth in pairs])
            lines.append((name, f"{np.abs(off).mean():.1f}", f"{off.mean():+.1f}", f"{(off > 15).mean():.0%}"))
    head = ["estimate of a source-only network", "off by, in points", "bias", "too high by more than 15"]
    ours = {(row["task"], row["seed"]): row for row in rows}
    both = [(ours[key], row["methods"]) for row in others if (key := (row["task"], row["seed"])) in ours]
    names = [name for name in others[0]["methods"] if not name.endswith((" seconds", " failed"))]
    table = []
    for name in names:
        done = [(mine, theirs[name]) for mine, theirs in both if theirs[name] is not None]
        if done:
            theirs, mine = (
                100 * float(np.mean(values)) for values in zip(*((b, a["returned"]) for a, b in done), strict=True)
            )
            table.append((f"skada {name} ({len(done)} runs)", f"{theirs:.1f}", f"{mine:.1f}"))
    return (
        "\n## Beside others\n\nThe same tasks. skada's methods stand before logistic regression, on columns that each "
        "domain scales by itself.\n\n"
        + _table(head, lines)
        + "\n"
        + _table(["accuracy on target in %", "theirs", "calida on the same runs"], table)
    )


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def left_out_intervals(rows: Sequence[Row], others: Sequence[Row]) -> list[tuple[bool, float]]:
    """Whether each interval holds the truth, and its width, fitted on others than those of the task's data set.

    Of these the first seed's, which the shipped table was fitted on too: what later seeds draw is new to it.
    """
    names, known = {row["data_set"] for row in rows}, [row for row in others if row["seed"] == 0]
    fitted = {name: fit([row for row in known if row["data_set"] != name]) for name in names}
    found = [(row, _interval(row, fitted[row["data_set"]])) for row in rows]
    return [(one.low <= row["returned"] <= one.high, one.high - one.low) for row, one in found]


def _interval(row: Row, widths: Widths) -> Estimate:
    counts = Counts(row["source_count"], row["validation_count"], row["target_count"])
    return empirical_interval(row["estimate"], _apart(row), counts, widths)


def _apart(row: Row) -> float:
    return 1.0 if row["apart"] is None else float(row["apart"])


def fit(rows: Sequence[Row]) -> Widths:
    """The narrowest intervals, on average, that hold the truth in 90 % of these runs."""
    best = (math.inf, Widths(0.0, 0.0))
    for base in _BASES:
        needed = []
        for row in rows:
            chance = _interval(row, Widths(base, 0.0))
            end = chance.high if row["returned"] > row["estimate"] else chance.low
            beyond = (row["returned"] - row["estimate"]) ** 2 - (end - row["estimate"]) ** 2
            # What comes on top of chance, over what one unit of the factor gives; domains that mix give next to none.
            unit = max(_apart(row), 0.05) * (base + 1 / math.sqrt(row["source_count"]))
            needed.append(math.sqrt(max(beyond, 0.0)) / unit)
        widths = Widths(base, float(np.quantile(needed, min(_LEVEL * (1 + 1 / len(rows)), 1.0))))
        mean = float(np.mean([one.high - one.low for one in (_interval(row, widths) for row in rows)]))
        best = min(best, (mean, widths))
    return best[1]


def write_widths(rows: Sequence[Row], out: Path) -> str:
    """Fit on all closed-set tasks and write the table."""
    widths = fit([row for row in rows if row["kind"] in CLOSED])
    out.write_text(json.dumps({"base": widths.base, "factor": round(widths.factor, 3)}) + "\n", encoding="utf-8")
    return f"base {widths.base}, factor {widths.factor:.3f}"
