"""What it saves to keep the memory that training steps free: the same short run with and without, in turns.

    python benchmarks/allocation.py [--turns 5] [--threads 1 2]

Images of 28 pixels and the default recipe, each run in a process of its own. Prints the median ratio of the times of
pre-training and of adaptation, with their range, and stops if the weights of both do not agree in every bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Any

import torch

import calida
from calida.allocator import keep_freed_memory
from calida.data import digest

SAMPLES, PIXELS, EPOCHS, STEPS = 500, 28, 5, 15


def train(keep: bool, threads: int) -> dict[str, float | str]:
    """A short run on noise: seconds a step of each phase, and what became of the weights."""
    if keep and not keep_freed_memory():
        raise SystemExit("this C library cannot be told to keep memory")
    torch.set_num_threads(threads)
    drawn = torch.Generator().manual_seed(0)
    x = torch.randint(256, (2 * SAMPLES, 1, PIXELS, PIXELS), dtype=torch.uint8, generator=drawn)
    y = torch.randint(10, (SAMPLES,), generator=drawn)
    lengths: dict[str, Any] = {"longest_epoch": STEPS, "longest_round": STEPS}
    adapted = calida.adapt(
        (x[:SAMPLES], y), x[SAMPLES:], num_classes=10, guard=False, pretrain_epochs=EPOCHS, rounds=EPOCHS, **lengths
    )
    first, second = ([one for one in adapted.history if one["phase"] == phase] for phase in ("pretrain", "adapt"))
    return {
        "pre-training": statistics.median(one["seconds"] for one in first[:-1]),  # the last looks at the target too
        "adaptation": statistics.median(one["seconds"] for one in second),
        "weights": digest(*adapted.classifier.state_dict().values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--once", choices=("kept", "freed"), help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.once:
        print(json.dumps(train(options.once == "kept", options.threads[0])))
        return
    for threads in options.threads:
        words = [sys.executable, __file__, "--threads", str(threads), "--once"]
        turns = []
        for _ in range(options.turns):
            done = [subprocess.run([*words, kind], check=True, stdout=subprocess.PIPE) for kind in ("kept", "freed")]
            kept, freed = (json.loads(one.stdout) for one in done)
            if kept["weights"] != freed["weights"]:
                raise SystemExit("the weights differ")
            turns.append({phase: kept[phase] / freed[phase] for phase in ("pre-training", "adaptation")})
        for phase in turns[0]:
            ratios = [turn[phase] for turn in turns]
            spread = f"[{min(ratios):.2f}, {max(ratios):.2f}]"
            print(f"{phase}, {threads} threads: {statistics.median(ratios):.2f} x {spread}", flush=True)


if __name__ == "__main__":
    main()
