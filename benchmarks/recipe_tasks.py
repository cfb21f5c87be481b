"""The tasks that the default recipe is judged on: digits, photographs, feature vectors, classes out of balance."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from calida.data import INSIDE
from calida.files import write_atomically
from calida.runs import RunConfig, open_data


@dataclass(frozen=True)
class Task:
    """Two domains and a network; `made` tasks are files that a seed decides."""

    title: str
    source: str
    target: str
    backbone: str = "auto"
    size: int | None = None
    aim: str = ""
    made: Callable[[int], dict[str, tuple[Tensor, Tensor]]] | None = None

    def config(self, seed: int, folder: Path) -> RunConfig:
        """What a user would write; made files are put into the folder first."""
        source, target = self.source, self.target
        if self.made is not None:
            for name, (x, y) in self.made(seed).items():
                _save(folder / f"{name}.{seed}.npz", x, y)
            source, target = (
                str(folder / f"{text}.{seed}.npz") if text.startswith("made-") else text for text in (source, target)
            )
        elif not source.partition(":")[0].replace("-", "").isalnum():  # a folder among the data
            source, target = (str(Path(os.environ["CALIDA_DATA"]) / text) for text in (source, target))
        return RunConfig(
            source, target, target_labels=INSIDE, seed=seed, backbone=self.backbone, size=self.size, on_mismatch="match"
        )


class Arms(NamedTuple):
    """Curved arms around a centre, one a class, and how far along them samples lie: from 0, the centre, to 1."""

    start: float
    stop: float


CLASSES, FEATURES, SAMPLES = 4, 16, 1500


def arms(part: Arms, seeds: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Which arm a point lies on is the class, wherever on it: the rule is one, the points are elsewhere.

    The first seed turns the plane of the arms in the space of features, the second draws the points.
    """
    space, points = (torch.Generator().manual_seed(seed) for seed in seeds)
    plane = torch.linalg.qr(torch.randn(FEATURES, 2, generator=space))[0]
    labels = torch.arange(SAMPLES) % CLASSES
    along = part.start + (part.stop - part.start) * torch.rand(SAMPLES, generator=points)
    angle = 2 * math.pi * labels / CLASSES + 1.2 * along
    flat = (1 + 4 * along)[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    noise = 0.25 * torch.randn(SAMPLES, FEATURES, generator=points)
    return flat @ plane.T + noise, labels


def moved_arms(seed: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Source near the centre, target further out: p(x) differs and p(y | x) does not."""
    return {
        "made-inner": arms(Arms(0.0, 0.6), (seed, 100 + seed)),
        "made-outer": arms(Arms(0.4, 1.0), (seed, 200 + seed)),
    }


def same_arms(seed: int) -> dict[str, tuple[Tensor, Tensor]]:
    return {
        "made-source": arms(Arms(0.0, 1.0), (seed, 100 + seed)),
        "made-target": arms(Arms(0.0, 1.0), (seed, 200 + seed)),
    }


def unbalanced(name: str) -> Callable[[int], dict[str, tuple[Tensor, Tensor]]]:
    """Three classes of a target as they are and a tenth of every other: only making it needs the labels."""

    def make(seed: int) -> dict[str, tuple[Tensor, Tensor]]:
        data = open_data(RunConfig(name, name, target_labels=INSIDE, seed=seed))
        assert isinstance(data.target.samples, Tensor)
        assert data.truth is not None
        x, y = data.target.samples, data.truth
        generator = torch.Generator().manual_seed(seed)
        common = torch.randperm(10, generator=generator)[:3]
        kept = []
        for label in range(10):
            rows = (y == label).nonzero().flatten()
            rows = rows[torch.randperm(len(rows), generator=generator)]
            kept.append(rows if label in common else rows[: max(1, len(rows) // 10)])
        chosen = torch.cat(kept)
        return {f"made-{name.partition(':')[0]}": (x[chosen], y[chosen])}

    return make


def _save(path: Path, x: Tensor, y: Tensor) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez(content, x=x.numpy(), y=y.numpy())
    write_atomically(path, content.getvalue())


DIGITS = {
    "mnist-usps": Task("MNIST → USPS, 2,000 / 1,800", "mnist:train:2000", "usps:train:1800", aim="≥ 98.5"),
    "mnist5k-uci": Task("MNIST-5k → UCI digits", "mnist-5k", "uci-digits", aim="≥ 97"),
    "usps-mnist": Task("USPS → MNIST, 1,800 / 2,000", "usps:train:1800", "mnist:train:2000", aim="≥ 98"),
    "uci-mnist5k": Task("UCI digits → MNIST-5k", "uci-digits", "mnist-5k", aim="≥ 93"),
    "svhn-mnist": Task("SVHN → MNIST, 20,000 / 10,000", "svhn:train:20000", "mnist:train:10000", aim="≥ 98"),
}
TASKS = {
    **DIGITS,
    "photo-art": Task("PACS photo → art painting", "pacs/photo", "pacs/art_painting", "compact", 48, "source + 5"),
    "arms-moved": Task(
        "feature vectors, covariate shift", "made-inner", "made-outer", made=moved_arms, aim="source + 5"
    ),
    "arms-same": Task("feature vectors, no shift", "made-source", "made-target", made=same_arms, aim="≥ source"),
    "usps-skewed": Task(
        "MNIST → USPS, classes 10 : 1",
        "mnist:train:2000",
        "made-usps",
        made=unbalanced("usps:train:1800"),
        aim="≥ source",
    ),
    "uci-skewed": Task(
        "MNIST-5k → UCI, classes 10 : 1", "mnist-5k", "made-uci-digits", made=unbalanced("uci-digits"), aim="≥ source"
    ),
}
