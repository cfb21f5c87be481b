"""About how much memory a training step takes, by a pass of two samples."""

from __future__ import annotations

import torch
from torch import Tensor

from calida.model.classifier import Classifier, scratch_buffers

_ADAM = 2  # moments of every weight that learns


def step_memory(classifier: Classifier, two: Tensor, rows: int, teacher: bool, num_samples: int = 1) -> int:
    """Bytes of a step on `rows` samples: weights, their gradients and moments, and what the graph keeps.

    The latter is counted in a pass of `two` samples, [2, ...], in training mode, and grows with the rows. Not counted
    are the workspace of kernels, what an allocator keeps back, and the data.
    """
    weights = [*classifier.parameters(), *classifier.buffers()]
    own = {tensor.untyped_storage().data_ptr() for tensor in weights}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    modes = [(part, part.training) for part in classifier.modules()]
    classifier.train()
    with (
        torch.random.fork_rng(devices=[]),
        scratch_buffers(classifier),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        graph = classifier.from_standard(classifier.standardize(two.to(classifier.device)), num_samples)
    del graph
    for part, mode in modes:
        part.training = mode
    learning = sum(weight.nbytes for weight in classifier.parameters() if weight.requires_grad)
    every = sum(weight.nbytes for weight in weights)
    return (1 + teacher) * every + (1 + _ADAM) * learning + rows * sum(kept.values()) // len(two)
