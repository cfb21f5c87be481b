"""Which precision a backbone computes in: a short trial of the network at hand decides."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import torch
from torch import Tensor

from calida.devices import has_bf16
from calida.encoders import Remembered
from calida.model.backbones import Shape
from calida.model.classifier import Classifier, Precision, scratch_buffers
from calida.seeds import Seeds

AUTO_PRECISION = "auto"
_FOUND = Remembered[Precision]("precision.json", lambda value: value in ("fp32", "bf16"))
_TRIAL_SECONDS = 0.5
_FEWEST_TURNS, _MOST_TURNS = 3, 12
_CLOSE = (0.8, 1.2)  # ratios of times that more turns could still move over the border
_TRIAL_ROWS = 32  # enough to keep a core busy, few enough for a large network
_GAIN = 0.95  # of the time of fp32 that bf16 may take: for less than that, nobody should round


def faster_precision(classifier: Classifier, shape: Shape, batch_size: int, seeds: Seeds) -> Precision:
    """bf16 where the device has it and a training pass of this network is faster with it; fp32 otherwise.

    Both are timed in turns until it is clear, for half a second at most, and the fastest pass of each counts. Networks
    on feature vectors are small and stay in fp32. The trial leaves no trace in weights, statistics or random draws.
    What was found is kept in the cache folder: the same run on the same machine is to have the same weights again.
    """
    if len(shape) != 3 or not has_bf16(classifier.device):
        return "fp32"
    tried = partial(_trial, classifier, shape, batch_size, seeds)
    return _FOUND.get(_circumstances(classifier, shape, batch_size), tried)


def _circumstances(classifier: Classifier, shape: Shape, batch_size: int) -> tuple[Any, ...]:
    """Network, batch, device, threads and torch: what decides which precision is faster."""
    on_gpu = classifier.device.type == "cuda"
    device = torch.cuda.get_device_name(classifier.device) if on_gpu else torch.backends.cpu.get_cpu_capability()
    return repr(classifier), *shape, batch_size, device, torch.get_num_threads(), torch.__version__


def _trial(classifier: Classifier, shape: Shape, batch_size: int, seeds: Seeds) -> Precision:
    rows = torch.randn((min(batch_size, _TRIAL_ROWS), *shape), generator=seeds.generator("precision"))
    inputs = classifier.standardize(rows.to(classifier.device)).detach()
    training, asked = classifier.training, classifier.precision
    best: dict[Precision, float] = {"fp32": math.inf, "bf16": math.inf}
    began, turns = time.perf_counter(), 0
    classifier.train()
    try:
        with scratch_buffers(classifier), seeds.globally("precision trial", classifier.device):
            while turns < _FEWEST_TURNS or (turns < _MOST_TURNS and time.perf_counter() - began < _TRIAL_SECONDS):
                for precision, least in best.items():
                    classifier.precision = precision
                    best[precision] = min(least, _seconds_of_pass(classifier, inputs))
                turns += 1
                if turns >= _FEWEST_TURNS and not _CLOSE[0] < best["bf16"] / best["fp32"] < _CLOSE[1]:
                    break
    finally:
        classifier.train(training)
        classifier.precision = asked
    return "bf16" if best["bf16"] < _GAIN * best["fp32"] else "fp32"


def _seconds_of_pass(classifier: Classifier, inputs: Tensor) -> float:
    """A pass forward and back. On a CPU what other processes take of it does not count."""
    on_gpu = inputs.device.type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    began = clock()
    loss = classifier.from_standard(inputs).logits.mean.square().mean()
    torch.autograd.grad(loss, [p for p in classifier.parameters() if p.requires_grad], allow_unused=True)
    if on_gpu:
        torch.cuda.synchronize(inputs.device)
    return clock() - began
