"""Which views a network needs that will meet other colours: photographs, held out and repainted, with their own labels.

    CALIDA_DATA=FOLDER python -m benchmarks.repainted [--seeds 2]

Trains on two thirds of PACS' photographs at 32 pixels, without views, with the default recipe's but for those in other
colours, and with all of them; prints the accuracy on the other third, as it is and repainted in eleven ways. No image
or label of another domain has a part in it.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d, pad

import calida
from calida.recipes import get_recipe
from calida.runs import RunConfig, open_data
from calida.studies.job import PRETRAINING

_VALUES = get_recipe("calida").to_json()
_VIEWS = {name: _VALUES[name] for name in PRETRAINING}
TRAININGS: dict[str, dict[str, Any]] = {
    "no views": {},
    "affine views": {**_VIEWS, "colour": 0.0},
    "affine views, other colours": _VIEWS,
}


def repaint(images: Tensor) -> dict[str, Tensor]:
    """The images in 0..1, [N, 3, H, W], and eleven ways of painting them over; amounts are drawn by a fixed seed."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.rand(len(images), *shape, generator=generator)

    around = pad(images, (1, 1, 1, 1), mode="replicate")
    blurred, mean = avg_pool2d(around, 3, 1), images.mean((2, 3), keepdim=True)
    coarse = interpolate(interpolate(images, scale_factor=0.5), images.shape[2])
    painted = {
        "as it is": images,
        "grey": images.mean(1, keepdim=True).expand_as(images),
        "colour cast": images * (0.6 + 0.8 * draw(3, 1, 1)),
        "channels exchanged": images.roll(1, 1),
        "half the contrast": mean + 0.5 * (images - mean),
        "gamma 0.5 to 2": images ** (math.log(2) * (2 * draw(1, 1, 1) - 1)).exp(),
        "five levels": (images * 4).round() / 4,
        "coarse": coarse,
        "grain": images + 0.1 * torch.randn(images.shape, generator=generator),
        "blurred": blurred,
        "lightest neighbour": max_pool2d(around, 3, 1),
        "sharpened": images + 1.5 * (images - blurred),
    }
    return {name: image.clamp(0, 1) for name, image in painted.items()}


def accuracies(settings: dict[str, Any], x: Tensor, y: Tensor, seed: int) -> dict[str, float]:
    """Train on two thirds, drawn by seed, and see the last third in every painting."""
    torch.set_num_threads(1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    held, kept = order[: len(x) // 3], order[len(x) // 3 :]
    adapted = calida.adapt((x[kept], y[kept]), x[held], "source", seed=seed, **settings)
    seen = repaint(x[held].float() / 255)
    return {
        name: float((adapted.predict((255 * images).round().byte()).labels == y[held]).double().mean())
        for name, images in seen.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    photographs = str(Path(os.environ["CALIDA_DATA"]) / "pacs" / "photo")
    data = open_data(RunConfig(photographs, photographs, size=32))
    assert isinstance(data.source.samples, Tensor)
    for name, settings in TRAININGS.items():
        found = [accuracies(settings, data.source.samples, data.labels, seed) for seed in range(options.seeds)]
        shown = {painting: 100 * fmean(one[painting] for one in found) for painting in found[0]}
        print(name, *(f"{painting} {value:.1f}" for painting, value in shown.items()), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
