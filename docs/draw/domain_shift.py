"""Four classes whose features turned by 35 degrees: the rule learned on source, on source, on target, and adapted."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from style import CLASSES, panels, save

import calida

TURN, EDGE = 35.0, 4.5


def blobs(degrees: float, seed: int, rows: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(rows) % 4
    angle = labels * torch.pi / 2 + np.deg2rad(degrees)
    noise = 0.5 * torch.randn(rows, 2, generator=torch.Generator().manual_seed(seed))
    return 2.5 * torch.stack([angle.cos(), angle.sin()], 1) + noise, labels


def draw(folder: Path) -> None:
    source, target = blobs(0, 0), blobs(TURN, 1)
    adapted = calida.adapt(source, target[0])
    before = adapted.source_only
    figure, axes = panels(3, sharex=True, sharey=True)
    shown = (
        ("source", before, source),
        ("target, same rule", before, target),
        ("target, adapted", adapted, target),
    )
    for axis, (title, model, (x, labels)) in zip(axes, shown, strict=True):
        side = torch.linspace(-EDGE, EDGE, 200)
        grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(-1, 2)
        region = model.predict(grid).labels.reshape(200, 200)
        axis.imshow(
            region,
            origin="lower",
            extent=(-EDGE, EDGE) * 2,
            cmap=ListedColormap(CLASSES),
            alpha=0.14,
            interpolation="none",
        )
        for label, color in enumerate(CLASSES):
            axis.plot(*x[labels == label].T, ".", color=color, markersize=4, markeredgewidth=0)
        right = (model.predict(x).labels == labels).double().mean()
        axis.set_title(f"{title}: {right:.0%} right")
        axis.set_xticks([])
        axis.set_yticks([])
    save(figure, folder, "domain-shift")
