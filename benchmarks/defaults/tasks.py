"""Tasks as the options of one command: digits, photographs, and tables that a seed decides."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import Tensor

from calida.data import data_folder
from calida.files import write_atomically

Domain = tuple[Tensor, Tensor]  # samples and labels
CLASSES, FEATURES, SAMPLES = 4, 16, 1500


@dataclass(frozen=True)
class Task:
    """Two domains by name; `made` writes them as files where they come from a seed."""

    title: str
    source: str
    target: str
    options: tuple[str, ...] = ()
    made: Callable[[int], Mapping[str, Domain]] | None = None

    def arguments(self, seed: int, folder: Path) -> list[str]:
        """What follows `calida adapt`; files that it names are written."""
        if self.made is not None:
            for name, domain in self.made(seed).items():
                _save(folder / f"{name}.{seed}.npz", *domain)
        places = [self._place(name, seed, folder) for name in (self.source, self.target)]
        return ["--source", places[0], "--target", places[1], "--target-labels", "inside", *self.options]

    def _place(self, name: str, seed: int, folder: Path) -> str:
        if self.made is not None and name in self.made(seed):
            return str(folder / f"{name}.{seed}.npz")
        return str(data_folder() / name) if "/" in name else name


def arms(start: float, stop: float, seeds: tuple[int, int]) -> Domain:
    """Curved arms around a centre, one a class; samples lie along them from `start` to `stop`, 0 the centre, 1 the end.

    Which arm a point lies on is the class, wherever on it: the rule is one, the points are elsewhere. The first seed
    turns the plane of the arms in the space of features, the second draws the points.
    """
    space, points = (torch.Generator().manual_seed(seed) for seed in seeds)
    plane = torch.linalg.qr(torch.randn(FEATURES, 2, generator=space))[0]
    labels = torch.arange(SAMPLES) % CLASSES
    along = start + (stop - start) * torch.rand(SAMPLES, generator=points)
    angle = 2 * math.pi * labels / CLASSES + 1.2 * along
    flat = (1 + 4 * along)[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return flat @ plane.T + 0.25 * torch.randn(SAMPLES, FEATURES, generator=points), labels


def moved_arms(seed: int) -> dict[str, Domain]:
    """Source near the centre, target further out: p(x) differs and p(y | x) does not."""
    return {"inner": arms(0.0, 0.6, (seed, 100 + seed)), "outer": arms(0.4, 1.0, (seed, 200 + seed))}


def same_arms(seed: int) -> dict[str, Domain]:
    return {"drawn": arms(0.0, 1.0, (seed, 100 + seed)), "again": arms(0.0, 1.0, (seed, 200 + seed))}


def overlapping(share: float, seed: int) -> Domain:
    """Two round classes, two standard deviations apart: one in six lies beyond the middle. The second has the share."""
    points = torch.Generator().manual_seed(seed)
    labels = (torch.arange(SAMPLES) < share * SAMPLES).long()
    x = torch.randn(SAMPLES, FEATURES, generator=points)
    x[:, 0] += 2 * labels
    return x, labels


def rarer_class(seed: int) -> dict[str, Domain]:
    """Classes of one look in both domains, equally frequent in the source and nine to one in the target."""
    return {"equal": overlapping(0.5, 100 + seed), "rare": overlapping(0.1, 200 + seed)}


def tumours(seed: int) -> dict[str, Domain]:
    """A real table (Wisconsin, 1995): small tumours as source, large ones as target, and with size goes the class."""
    x, y = (torch.from_numpy(part) for part in load_breast_cancer(return_X_y=True))
    radius = (x[:, 0] - x[:, 0].mean()) / x[:, 0].std()
    large = torch.rand(len(x), generator=torch.Generator().manual_seed(seed)) < torch.sigmoid(2 * radius)
    return {"small": (x[~large].float(), y[~large]), "large": (x[large].float(), y[large])}


def worn_sensor(seed: int) -> dict[str, Domain]:
    """UCI's digits as a table of 64 features, and others of them as a weaker and noisier sensor would see them."""
    x, y = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    first = torch.arange(len(x)) < len(x) // 2
    worn = 0.6 * x.float() + 3 * noise
    return {"new": (x[first].float(), y[first]), "worn": (worn[~first], y[~first])}


def _save(path: Path, x: Tensor, y: Tensor) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez(content, x=x.numpy(), y=y.numpy())
    write_atomically(path, content.getvalue())


_UCI = ("--size", "20")  # its digits have 8 pixels: a frame of 20 loses none of them
DIGITS = {
    "mnist-usps": Task("MNIST → USPS, 2,000 / 1,800 images", "mnist:train:2000", "usps:train:1800"),
    "usps-mnist": Task("USPS → MNIST, 1,800 / 2,000", "usps:train:1800", "mnist:train:2000"),
    "mnist5k-uci": Task("MNIST-5k → UCI digits, 20 pixels", "mnist-5k", "uci-digits", _UCI),
    "uci-mnist5k": Task("UCI digits → MNIST-5k, 20 pixels", "uci-digits", "mnist-5k", _UCI),
    "svhn-mnist": Task("SVHN → MNIST, 20,000 / 10,000", "svhn:train:20000", "mnist:train:10000"),
}
TASKS = {
    **DIGITS,
    "photo-art": Task("PACS photo → art painting", "pacs/photo", "pacs/art_painting"),
    "art-photo": Task("PACS art painting → photo", "pacs/art_painting", "pacs/photo"),
    "arms-moved": Task("feature vectors, covariate shift", "inner", "outer", made=moved_arms),
    "arms-same": Task("feature vectors, no shift", "drawn", "again", made=same_arms),
    "rarer-class": Task("overlapping classes, 1 : 1 to 9 : 1", "equal", "rare", made=rarer_class),
    "worn-sensor": Task("table of 64 pixels, a worn sensor", "new", "worn", made=worn_sensor),
    "tumours": Task("table of tumours, small to large", "small", "large", made=tumours),
}
