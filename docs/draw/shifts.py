"""Real shifts: what runs expect of themselves, how often they are right at each confidence, what adapting changes."""

import json
from itertools import cycle
from pathlib import Path

import numpy as np
from style import CLASSES, LINE, SOFT, SOURCE, TARGET, panels, save

RECORDS = Path(__file__).parents[2] / "results" / "shifts.jsonl"
COLORS = (*CLASSES, "#b08a2e", "#3aa0a8")
CLOSED = ("natural", "label shift")


def draw(folder: Path) -> None:
    every = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in every if row["kind"] in CLOSED]
    figure, axes = panels(3, width=12.6, height=4.2)
    _estimates(axes[0], rows)
    _reliability(axes[1], rows)
    _gains(axes[2], rows)
    save(figure, folder, "shifts")


def _estimates(axis, rows) -> None:
    for color, name in zip(cycle(COLORS), sorted({row["data_set"] for row in rows}), strict=False):
        some = [row for row in rows if row["data_set"] == name]
        places = [[100 * row[key] for row in some] for key in ("returned", "estimate")]
        axis.scatter(*places, s=14, color=color, label=name, alpha=0.8, linewidths=0)
    axis.plot([0, 100], [0, 100], color=SOFT, linestyle=":", linewidth=1.2)
    axis.set(xlim=(30, 101), ylim=(30, 101), xlabel="accuracy in %, measured with labels", ylabel="estimate in %")
    axis.set_title("What a run expects of itself")
    axis.legend(fontsize=8.5, handletextpad=0.1)


def _reliability(axis, rows) -> None:
    total = np.sum([row["reliability"] for row in rows], 0)
    for place, (count, confidence, right) in enumerate(total):
        if count:
            share = right / count
            spread = 1.64 * np.sqrt(share * (1 - share) / count)
            axis.bar(
                place / 10 + 0.05, 100 * share, width=0.09, color=SOURCE, alpha=0.75, yerr=100 * spread, ecolor=SOFT
            )
            axis.plot(confidence / count, 100 * confidence / count, marker="_", color=TARGET, markersize=12)
    axis.plot([0, 1], [0, 100], color=SOFT, linestyle=":", linewidth=1.2)
    axis.set(xlim=(0.1, 1), ylim=(0, 101), xlabel="confidence", ylabel="right answers in %")
    axis.set_title("All answers of all tasks")


def _gains(axis, rows) -> None:
    tasks = sorted({row["task"] for row in rows})
    gains = np.sort([100 * np.mean([r["returned"] - r["source_only"] for r in rows if r["task"] == t]) for t in tasks])
    colors = [TARGET if gain < -1 else SOURCE if gain > 1 else LINE for gain in gains]
    axis.bar(range(len(gains)), gains, color=colors, width=0.9)
    axis.set(xlabel=f"{len(tasks)} tasks", ylabel="points gained over source-only", xticks=[])
    axis.set_title("Gain and harm, task by task")
