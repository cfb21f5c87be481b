"""How much small networks learn, and how long it takes them: held-out source accuracy on SVHN, by source labels alone.

    CALIDA_DATA=FOLDER python -m benchmarks.networks [NAME ...] [--epochs 15]

Each is trained on 18,000 of SVHN's 20,000 images with the default recipe's views, in epochs of 90 batches, one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import calida
from calida.model.backbones import BACKBONES, Backbone, Shape, Stage, pooled_first
from calida.recipes import get_recipe
from calida.runs import RunConfig, open_data
from calida.studies.job import PRETRAINING

NETWORKS: dict[str, Callable[[Shape], Backbone]] = {
    "compact": BACKBONES["compact"],
    "conv3": BACKBONES["conv3"],
    "wider": partial(pooled_first, "wider", (Stage((32,), 0.1), Stage((96,), 0.2), Stage((192,), 0.3))),
    "conv4": BACKBONES["conv4"],
    "conv5": partial(pooled_first, "conv5", (Stage((32,), 0.1), Stage((64, 64), 0.2), Stage((128, 128), 0.3))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    if unknown := set(options.names) - NETWORKS.keys():
        parser.error(f"unknown network {min(unknown)!r}; there are {', '.join(NETWORKS)}")
    torch.set_num_threads(1)
    BACKBONES.update(NETWORKS)
    data = open_data(RunConfig("svhn:train:20000", "mnist:train:10000", on_mismatch="match"))
    source, target = data.source.samples, data.target.samples
    assert isinstance(source, Tensor)
    values = get_recipe("calida").to_json()
    settings = {name: values[name] for name in PRETRAINING}
    settings |= {"pretrain_epochs": options.epochs, "longest_epoch": 90}
    for name in options.names or NETWORKS:
        began = time.perf_counter()
        trained = calida.adapt((source, data.labels), target, "source", seed=0, backbone=name, **settings)
        seen = trained.history[-1]["source"]
        print(f"{name}: {seen['accuracy']:.1%}, nll {seen['nll']:.3f}, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
