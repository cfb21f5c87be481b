"""What two validators say of every round of Table 2a, beside how often each classifier is right."""

import json
from pathlib import Path

from scipy.stats import spearmanr
from style import SOURCE, TARGET, panels, save

RUNS = Path("results/reproduction/mnist-usps.jsonl")
SHOWN = {"corr-c": SOURCE, "snd": TARGET}


def points() -> dict[str, tuple[list[float], list[float]]]:
    """By validator: its values and the accuracies, measured with labels, of every round of the paper's recipes."""
    runs = [json.loads(line) for line in RUNS.read_text().splitlines()]
    rounds = [one for run in runs for one in run["rounds"] if one.get("validators")]
    right = [100 * one["oracle"]["accuracy"] for one in rounds]
    return {name: ([one["validators"][name] for one in rounds], right) for name in SHOWN}


def quoted() -> list[str]:
    """Figures that the page repeats."""
    known = points()
    return [f"{len(known['snd'][0])} classifiers", *(f"{spearmanr(*pair).statistic:.2f}" for pair in known.values())]


def draw(folder: Path) -> None:
    figure, axes = panels(2, width=9, height=3.7, sharey=True)
    for axis, (name, (values, right)) in zip(axes, points().items(), strict=True):
        axis.scatter(values, right, s=16, color=SHOWN[name], alpha=0.5, linewidths=0)
        axis.set_title(f"{name}: rank correlation {spearmanr(values, right).statistic:.2f}")
        axis.set_xlabel(f"{name}, needs no label")
        axis.grid(axis="y")
    axes[0].set_ylabel("right answers in %, measured with labels")
    save(figure, folder, "choosing")
