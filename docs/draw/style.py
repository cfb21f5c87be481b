"""One look for all pictures: the report's colors, no frames, text as outlines so that every browser shows the same."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

SOURCE, TARGET, TRUTH, INK, SOFT, LINE = "#3b6fb5", "#d9603b", "#2b8a5a", "#1a2230", "#5b6675", "#d5dae1"
CLASSES = ("#3b6fb5", "#d9603b", "#2b8a5a", "#8a4fb0")
RUN = Path("runs/demo")

plt.rcParams.update(
    {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.edgecolor": LINE,
        "axes.labelcolor": SOFT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "grid.color": LINE,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.facecolor": "white",
        "svg.fonttype": "path",
        "svg.hashsalt": "calida",
    }
)


def panels(count: int, width: float = 9.6, height: float = 3.4, **options):
    """A row of axes."""
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained", **options)
    return figure, axes


def save(figure, folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
