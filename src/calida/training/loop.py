"""The one training loop."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from calida.errors import NonFiniteError
from calida.model import Classifier
from calida.objective import DualAscent, MultiplierState, Objective, Step

Reduce = Callable[[Classifier], None]


def one_process(model: Classifier) -> None:
    """Gradient reduction where there is a single process: nothing to do."""


def train(
    model: Classifier,
    optimizer: torch.optim.Optimizer,
    objective: Objective,
    steps: Iterable[Step],
    multipliers: Mapping[str, MultiplierState],
    progress: Callable[[int, Mapping[str, float]], None] = lambda index, values: None,
    reduce_gradients: Reduce = one_process,
) -> dict[str, float]:
    """Take the steps; give the mean of every term over the steps that had it.

    `reduce_gradients` is the only place where gradients meet those of other processes.
    """
    model.train()
    totals: dict[str, list[float]] = defaultdict(list)
    for index, step in enumerate(steps):
        optimizer.zero_grad(set_to_none=True)
        values = _to_floats(objective.backward(step, multipliers))
        for name, value in values.items():
            if not math.isfinite(value):
                raise NonFiniteError(f"the term {name!r} is {value} at step {index + 1}")
            totals[name].append(value)
        reduce_gradients(model)
        optimizer.step()
        for name, state in multipliers.items():
            rule = objective.terms[name].weight
            if name in values and isinstance(rule, DualAscent):
                state.update(rule, values[name])
        progress(index, values)
    return {name: math.fsum(values) / len(values) for name, values in totals.items()}


def _to_floats(values: Mapping[str, Tensor]) -> dict[str, float]:
    """All values in one transfer from the device."""
    if not values:
        return {}
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True))
