"""What it saves to keep the memory that training steps free: the same short run with and without, in turns.

    python -m benchmarks.allocation [--turns 3] [--threads 1 2]

Images of 28 pixels and the default recipe, each run in a process of its own. Prints the median ratio of the times that
an epoch of pre-training takes, with its range, and stops if the weights of both do not agree in every bit.
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

SAMPLES, PIXELS, EPOCHS, STEPS = 300, 28, 6, 12


def train(keep: bool, threads: int) -> dict[str, float | str]:
    """A short run on noise: seconds an epoch, and what became of the weights."""
    if keep and not keep_freed_memory():
        raise SystemExit("this C library cannot be told to keep memory")
    torch.set_num_threads(threads)
    drawn = torch.Generator().manual_seed(0)
    x = torch.randint(256, (2 * SAMPLES, 1, PIXELS, PIXELS), dtype=torch.uint8, generator=drawn)
    y = torch.randint(10, (SAMPLES,), generator=drawn)
    lengths: dict[str, Any] = {"longest_epoch": STEPS, "longest_round": STEPS}
    adapted = calida.adapt(
        (x[:SAMPLES], y), x[SAMPLES:], num_classes=10, guard=False, pretrain_epochs=EPOCHS, rounds=1, **lengths
    )
    epochs = [one["seconds"] for one in adapted.history[1 : EPOCHS - 1]]  # the first warms up, the last looks about
    return {
        "seconds": statistics.median(epochs),
        "weights": digest(*adapted.classifier.state_dict().values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
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
            turns.append(kept["seconds"] / freed["seconds"])
        spread = f"[{min(turns):.2f}, {max(turns):.2f}]"
        print(f"{threads} threads: {statistics.median(turns):.2f} x {spread}", flush=True)


if __name__ == "__main__":
    main()
