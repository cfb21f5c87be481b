"""What sampling all dropout layers gives over the top ones: `python -m reproduction.sampled_layers`.

A BDTN on MNIST -> USPS, trained and asked with M = 10 masks in every dropout layer, as the paper has it, or in the last
block and the heads alone, which costs a sixth.
"""

from __future__ import annotations

import argparse
import time

from calida.adaptation import adapt_with
from calida.runs import open_data
from calida.uncertainty import calibration_error
from reproduction.tables import MNIST_USPS
from reproduction.tasks import PROTOCOLS


def measure(sampled: str, seed: int) -> dict[str, float]:
    """Train on source alone; accuracy and calibration on target, and how much of the entropy weight samples explain."""
    config = PROTOCOLS["main"][MNIST_USPS].job("bsource", seed).config.changed({"settings": {"sampled": sampled}})
    data = open_data(config)
    assert data.truth is not None
    started = time.process_time()
    adapted = adapt_with(
        config,
        (data.source.samples, data.labels),
        data.target.samples,
        num_classes=10,
        class_names=None,
        start=None,
        folder=None,
        resume=False,
        observe=lambda event: None,
        terms={},
        oracle_labels=None,
    )
    seconds = time.process_time() - started
    said = adapted.predict(data.target.samples, raw=True)
    return {
        "accuracy on target, %": 100 * float((said.labels == data.truth).double().mean()),
        "ECE, %": 100 * float(calibration_error(said.log_probs, data.truth)),
        "epistemic share of the entropy, %": 100 * float(said.epistemic.sum() / said.entropy.sum()),
        "CPU seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    for seed in range(options.seeds):
        for sampled in ("top", "all"):
            found = measure(sampled, seed)
            print(f"{sampled}, seed {seed}: " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main()
