"""The tutorial's table: two of its columns in both domains."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from style import SOURCE, TARGET, panels, save

SHOWN = {"radius": 0, "concave points": 7}


def draw(folder: Path) -> None:
    x = load_breast_cancer().data
    half = np.random.default_rng(0).permutation(len(x)) < len(x) // 2
    figure, axes = panels(2, width=9, height=3.1)
    for axis, (name, column) in zip(axes, SHOWN.items(), strict=True):
        largest, average = x[half, 20 + column], x[~half, column]
        bins = np.linspace(0, max(largest.max(), average.max()), 40)
        axis.hist(largest, bins, color=SOURCE, alpha=0.55, label="source: largest cells")
        axis.hist(average, bins, color=TARGET, alpha=0.55, label="target: average cells")
        axis.set_title(name)
        axis.set_yticks([])
    axes[0].legend(fontsize=9.5)
    save(figure, folder, "table")
