"""The memory plan of table 3 against a real step: ResNet-101 with both heads, 4 groups of 8, on a CPU.

    python -m benchmarks.memory [--size 128] [--backbone timm:resnet101] [--batch 32] [--groups 4]

Each kind of step runs in a process of its own, with one thread; measured is how far the process grows in that step
beyond the network and the optimiser's state (VmHWM less VmRSS, so it takes Linux). With 128 pixels it needs 5 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import torch

from benchmarks.speed import growth
from calida.data import TargetBatch
from calida.model import Network, build_classifier
from calida.objective import GradientVariance, Step
from calida.recipes import Recipe, get_recipe, phases
from calida.seeds import Seeds
from calida.training import train
from reproduction.memory import EveryGraph, memory_plan

KINDS = {"plain": "plain_peak", "bounded": "bounded_gvr_peak", "kept": "kept_gvr_peak"}
CLASSES = 12


def allow_timm() -> None:
    """Name two operators that a CPU build of torchvision may lack, without which timm cannot be imported."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


_kept: list[torch.library.Library] = []


def measure(kind: str, network: Network, recipe: Recipe) -> float:
    """MB that a target step takes at most, beyond what is there before it."""
    torch.set_num_threads(1)
    groups = recipe.gvr_groups
    regularisers = {"plain": None, "bounded": GradientVariance(groups=groups, bound="none")}
    regulariser = regularisers.get(kind, EveryGraph(groups=groups, bound="none"))
    model = build_classifier(network, Seeds(0))
    model.lay_out(torch.channels_last if regulariser is None else torch.contiguous_format)
    phase = phases(replace(recipe, gvr_weight=0.0))[-1]
    optimizer = phase.make_optimizer(model.parameters())

    def one_step(rows: int) -> Iterator[Step]:
        labels = torch.softmax(torch.randn(rows, CLASSES), -1)
        batch = TargetBatch(torch.rand(rows, *network.input_shape), labels, torch.ones(rows))
        yield Step(model, {"target": batch}, Seeds(0), recipe.num_samples)

    train(model, optimizer, phase.objective, one_step(2), {})  # the optimiser's state comes with its first step
    optimizer.zero_grad(set_to_none=True)
    objective = replace(phase.objective, gradient_variance=regulariser)
    return growth(lambda: train(model, optimizer, objective, one_step(recipe.batch_size), {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--backbone", default="timm:resnet101")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    allow_timm()
    network = Network((3, options.size, options.size), CLASSES, options.backbone, gaussian=True)
    settings = {"batch_size": options.batch, "gvr_groups": options.groups, "optimizer": "sgd"}
    recipe = get_recipe("brer-inf-gvr").with_settings(**settings)
    if options.kind:
        print(json.dumps(measure(options.kind, network, recipe)))
        return
    plan = memory_plan(network, recipe)
    # A small threshold makes the allocator give memory back, so that the process is as large as its tensors.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    for kind, peak in KINDS.items():
        words = [sys.executable, __file__, *sys.argv[1:], "--kind", kind]
        done = subprocess.run(words, env={**environment, "OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.PIPE)
        measured = json.loads(done.stdout) * 2**20
        planned = getattr(plan, peak) - plan.weights - plan.optimizer
        print(f"{kind:8} planned {planned / 1e9:.2f} GB  measured {measured / 1e9:.2f} GB", flush=True)


if __name__ == "__main__":
    main()
