"""Two classes of which one becomes rare: where the best border moves, in closed form."""

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
from style import SOURCE, TARGET, TRUTH, panels, save

COMMON, RARE = NormalDist(-1, 1), NormalDist(1, 1)


def border(share: float) -> float:
    """Where both classes are equally likely if the common one has this share of all samples."""
    return math.log(share / (1 - share)) / 2


def accuracy(at: float, share: float) -> float:
    """Right answers with a border, when the common class, on its left, has this share."""
    return share * COMMON.cdf(at) + (1 - share) * (1 - RARE.cdf(at))


def quoted() -> list[str]:
    """Figures that the page repeats."""
    return [f"{accuracy(at, share):.1%}".replace("%", " %") for at, share in ((0, 0.5), (0, 0.9), (border(0.9), 0.9))]


def draw(folder: Path) -> None:
    x = np.linspace(-4.5, 4.5, 300)
    figure, axes = panels(2, height=3.2, sharey=True)
    for axis, share, title in ((axes[0], 0.5, "source: one to one"), (axes[1], 0.9, "target: nine to one")):
        for one, part, color in ((COMMON, share, SOURCE), (RARE, 1 - share, TARGET)):
            height = [part * one.pdf(value) for value in x]
            axis.fill_between(x, height, color=color, alpha=0.3, linewidth=0)
            axis.plot(x, height, color=color)
        axis.axvline(
            0, 0, 0.75, color="black", linestyle=":", label=f"border learned on source: {accuracy(0, share):.1%} right"
        )
        if share != 0.5:
            at = border(share)
            axis.axvline(at, 0, 0.75, color=TRUTH, label=f"moved by class shares: {accuracy(at, share):.1%} right")
        axis.set_title(title)
        axis.set_yticks([])
        axis.set_xticks([])
        axis.set_ylim(0, 0.5)
        axis.legend(loc="upper center", fontsize=10)
    save(figure, folder, "label-shift")
