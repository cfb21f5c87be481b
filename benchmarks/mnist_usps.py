"""A first check on real data: MNIST -> USPS by the paper's 2,000 / 1,800 protocol.

    python benchmarks/mnist_usps.py --data FOLDER [--seeds 0] [--threads 1] [--out FILE] RECIPE...

FOLDER holds mnist.npz and usps.npz with x_train and y_train as bytes. 2,000 MNIST and 1,800 USPS images are drawn by
seed; USPS, which fills its 16 x 16 frame, is brought to MNIST's convention: 20 x 20 in the middle of 28 x 28. Labels of
USPS are only used for the two figures that say oracle. One JSON line a run goes to FILE.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import calida


def draw(folder: Path, name: str, count: int, seed: int) -> tuple[Tensor, Tensor]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        x, y = arrays["x_train"], arrays["y_train"]
    rows = np.random.default_rng(seed).permutation(len(y))[:count]
    return torch.from_numpy(x[rows]), torch.from_numpy(y[rows].astype(np.int64))


def to_mnist_geometry(x: Tensor) -> Tensor:
    """[N, 16, 16] bytes filling the frame -> [N, 28, 28] with a margin of four."""
    resized = torch.nn.functional.interpolate(x[:, None].float(), (20, 20), mode="bilinear")
    return torch.nn.functional.pad(resized, (4, 4, 4, 4)).round().clamp(0, 255).byte()[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    machine = f"{platform.machine()}, {options.threads} thread, torch {torch.__version__}"
    for recipe in options.recipes:
        for seed in options.seeds:
            source = draw(options.data, "mnist", 2000, seed)
            x, y = draw(options.data, "usps", 1800, seed)
            start = time.perf_counter()
            adapted = calida.adapt(source, to_mnist_geometry(x), recipe, seed=seed, oracle_labels=y, device="cpu")
            last = adapted.history[-1]
            row = {"recipe": recipe, "seed": seed, "seconds": round(time.perf_counter() - start), "machine": machine}
            row |= {key: last["oracle"][key] for key in ("accuracy", "ece")} | {"history": adapted.history}
            print(
                f"{recipe} seed {seed}: oracle accuracy {row['accuracy']:.2%}, oracle ECE {row['ece']:.2%}", flush=True
            )
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
