"""Gradient variance regularization (Eq. 4, Algorithm 1): exact, in as much memory as it is given.

A batch is cut into n groups with losses L_i and gradients g_i. One inner step of size eta per group gives parameters
theta'_i = theta - eta g_i, whose variance is

    Var = trace Cov{theta'_i} = eta^2 / (n - 1) * sum_i |g_i - mean g|^2.

Because sum_i (g_i - mean g) = 0, the mean's own dependence on theta drops out of the derivative:

    grad Var = 2 eta^2 / (n - 1) * sum_i H_i (g_i - mean g),

n Hessian-vector products that need not know of each other. So a first pass finds the g_i's mean and spread, a second
differentiates through each g_i. Graphs of the first pass are kept as far as memory allows; the other groups are run
again, one at a time. Both passes of a group use the same seeds, hence the same dropout masks and noise, and the group's
own BatchNorm statistics.

Of several processes, each has whole groups. Between the passes they tell each other their gradients' means and spreads;
the Hessian-vector products meet where all gradients do, after the step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from calida.errors import InputError
from calida.model import full_precision, scratch_buffers
from calida.objective.step import Domain, Step
from calida.processes import Processes

Bound = Literal["none", "cap", "relative"]


class StepLoss(NamedTuple):
    """A loss that can be differentiated, and the values of the terms it is made of, for the log."""

    total: Tensor
    terms: dict[str, Tensor]


class VarianceStep(NamedTuple):
    """One regularized step: the terms' means over groups, the raw variance, and the value that was weighed."""

    terms: dict[str, Tensor]
    variance: Tensor
    bounded: Tensor


@dataclass(frozen=True)
class GradientVariance:
    """The term -weight * bounded(Var), which any objective can carry for its terms on one domain.

    Maximized variance has no upper end, so it is bounded before it is weighed:
      "cap":      min(Var, cap), whose gradient vanishes once the cap is reached;
      "relative": Var / (eta^2 mean_i |g_i|^2), the share of gradient energy that is variance, at most n / (n - 1);
      "none":     Var as the paper writes it.
    The log shows the raw variance and the bounded value side by side.

    `part` names the parameters whose variance counts: a regular expression searched in their names, all by default.
    The gradient of that variance reaches every parameter either way.

    With a `share` under 1, only that share of steps, drawn by their seeds, carries the term, at weight / share: on
    average the same gradient, at a fraction of the cost.

    Weight 0 is the control that tells the term from its grouping: groups with BatchNorm statistics, masks and noise of
    their own, and nothing maximized. `memory` is how many bytes of graphs may be kept between the passes.
    """

    weight: float = 1.0
    groups: int = 10
    inner_step: float = 0.02
    bound: Bound = "cap"
    cap: float = 0.1
    part: str = ""
    share: float = 1.0
    domain: Domain = "target"
    memory: int = 1 << 29

    def concerns(self, step: Step) -> bool:
        """Whether this step carries the term."""
        if self.domain not in step.batches:
            return False
        return (
            self.share == 1 or float(torch.rand((), generator=step.seeds.generator("gradient variance"))) < self.share
        )

    def backward(self, step: Step, loss: Callable[[Step], StepLoss], names: Sequence[str] = ()) -> VarianceStep:
        """Add the gradient of mean_i L_i - weight * bounded(Var) to the parameters' .grad.

        The mean of the L_i is the cross-entropy of the whole batch, beside which the released scripts have weight 1;
        Algorithm 1 writes their sum. The first pass gives that mean's gradient too, so the whole costs one plain step
        and n Hessian-vector products. BatchNorm's running statistics move once, by the average over groups, as they do
        in a plain step. `names` are those of the loss's terms, for a process that has no group.
        """
        with full_precision(step.model):
            return self._backward(step, loss, names)

    def _backward(self, step: Step, loss: Callable[[Step], StepLoss], names: Sequence[str]) -> VarianceStep:
        count = self.group_count(len(step.batches[self.domain]))
        parameters = [p for p in step.model.parameters() if p.requires_grad]
        counted = parameter_positions(step.model, self.part)
        processes = step.batches[self.domain].share.processes
        first = _FirstPass(parameters)
        kept = self._kept_graphs(step, loss, first, count)
        first.put_together(processes, step.model, names)
        first.move_statistics(step.model)
        variance, energy = first.variance(counted, self.inner_step), first.energy(counted, self.inner_step)
        bounded, slope, energy_slope = self._bounded(variance, energy)
        scale = -self.weight / self.share * 2 * self.inner_step**2
        by_variance, by_energy = scale * slope / max(count - 1, 1), scale * energy_slope / count
        pull = by_variance + by_energy
        if count > 1 and bool(pull != 0):
            # sum_i H_i (by_variance (g_i - mean) + by_energy g_i) = pull * sum_i H_i (g_i - center).
            center = [first.mean[i] * (by_variance / pull) if by_energy else first.mean[i] for i in counted]

            def second_pass() -> Iterator[list[Tensor]]:
                done = set(kept)
                for index in list(kept):
                    gradients = kept.pop(index)  # the only holder of its graph from here on
                    yield [gradients[i] for i in counted]
                    del gradients
                for index, group in enumerate(step.groups(self.domain, count)):
                    if index not in done:
                        yield _group_gradients(group, loss, [parameters[i] for i in counted])

            # Gradients are averaged over processes, of which each has the products of its own groups alone.
            pull = pull * processes.count
            for mean, product in zip(first.mean, _hessian_products(second_pass(), center, parameters), strict=True):
                mean.add_(pull * product)
        for parameter, gradient, reached in zip(parameters, first.mean, first.reached, strict=True):
            if reached:  # others keep no gradient, so that the optimizer leaves them alone as in a plain step
                parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return VarianceStep(first.terms, variance, bounded)

    def _kept_graphs(
        self, step: Step, loss: Callable[[Step], StepLoss], first: _FirstPass, count: int
    ) -> dict[int, list[Tensor]]:
        """Run the first pass; give gradients with their graph, by group, of as many groups as memory allows.

        The last group's is always kept: one graph is alive in the second pass anyway.
        """
        kept: dict[int, list[Tensor]] = {}
        second_order, size = self.weight != 0 and count > 1, 0
        own = len(step.batches[self.domain].share.own(count))
        for index, group in enumerate(step.groups(self.domain, count)):
            last = index == own - 1
            graph = second_order and (last or (len(kept) + 1) * size <= self.memory)
            with _SavedBytes() if graph and not size else nullcontext() as saved:
                gradients = first.add(group, loss, graph)
            if saved is not None:
                size = saved.total
            if graph and (last or size <= self.memory):
                kept[index] = gradients
            del gradients, group
        return kept

    def measure(self, step: Step, loss: Callable[[Step], StepLoss]) -> float:
        """Var alone, as a diagnostic: no gradient is kept and the model is as before."""
        first = _FirstPass([p for p in step.model.parameters() if p.requires_grad])
        with full_precision(step.model):
            for group in step.groups(self.domain, self.group_count(len(step.batches[self.domain]))):
                first.add(group, loss)
        first.put_together(step.batches[self.domain].share.processes, step.model)
        return float(first.variance(parameter_positions(step.model, self.part), self.inner_step))

    def group_count(self, rows: int) -> int:
        """How many groups a batch is cut into; BatchNorm in training mode needs two samples in each."""
        return max(min(self.groups, rows // 2), 1)

    def _bounded(self, variance: Tensor, energy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The bounded value and its derivatives by variance and by energy."""
        variance, energy = variance.detach().requires_grad_(), energy.detach().requires_grad_()
        with torch.enable_grad():
            value = {
                "none": lambda: variance,
                "cap": lambda: variance.clamp(max=self.cap),
                "relative": lambda: variance / energy.clamp(min=torch.finfo(energy.dtype).tiny),
            }[self.bound]()
            slope, energy_slope = torch.autograd.grad(
                value, [variance, energy], materialize_grads=True, allow_unused=True
            )
        return value.detach(), slope, energy_slope


class _SavedBytes(torch.autograd.graph.saved_tensors_hooks):
    """Counts what the graphs that are made inside the block hold on to; what parameters and inputs share counts too."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        super().__init__(self._note, lambda tensor: tensor)

    def _note(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self._seen[storage._cdata] = storage.nbytes()
        return tensor.detach()

    def __enter__(self) -> _SavedBytes:  # type: ignore[override]
        super().__enter__()
        return self

    @property
    def total(self) -> int:
        return max(sum(self._seen.values()), 1)


class _FirstPass:
    """Mean of the groups' gradients and their squared deviations from it, one number a parameter tensor.

    Both are updated as groups come (Welford, 1962): nothing is kept per group and nothing cancels.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        self.count = 0
        self.reached = [False for _ in parameters]
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.deviation = [torch.zeros((), dtype=p.dtype, device=p.device) for p in parameters]
        self.terms: dict[str, Tensor] = {}
        self.statistics: dict[str, Tensor] = {}

    def add(self, group: Step, loss: Callable[[Step], StepLoss], graph: bool = False) -> list[Tensor]:
        """Take a group's gradients in and give them back, with their graph if asked for."""
        with scratch_buffers(group.model) as moved:
            part = loss(group)
            found = torch.autograd.grad(part.total, self.parameters, create_graph=graph, allow_unused=True)
        self.reached = [reached or g is not None for reached, g in zip(self.reached, found, strict=True)]
        gradients = _zero_filled(found, self.parameters)
        self.count += 1
        self.terms = {name: self._running(self.terms.get(name), value) for name, value in part.terms.items()}
        self.statistics = {name: self._running(self.statistics.get(name), value) for name, value in moved.items()}
        for mean, deviation, gradient in zip(self.mean, self.deviation, gradients, strict=True):
            delta = gradient.detach() - mean
            mean.add_(delta, alpha=1 / self.count)
            deviation.add_(torch.vdot(delta.flatten(), delta.flatten()), alpha=1 - 1 / self.count)
        return gradients

    def _running(self, mean: Tensor | None, value: Tensor) -> Tensor:
        """The mean with one more value in it; counters, which are whole numbers, are taken as they come."""
        if mean is None or not value.is_floating_point():
            return value
        # A buffer that did not move stays as it is, infinite entries (attention masks) included.
        return torch.where(value == mean, mean, mean + (value - mean) / self.count)

    @torch.no_grad()
    def put_together(self, processes: Processes, model: nn.Module, names: Sequence[str] = ()) -> None:
        """Take in the groups of all other processes (Chan et al., 1983); one without any has to be told the terms."""
        if processes.alone:
            return
        own, own_mean = self.count, self.mean
        buffers = dict(model.named_buffers())
        # What a buffer has moved by: one that no group moves stays as it is to the last bit, infinite entries included.
        moved = {name: self._moved(name, buffer) for name, buffer in buffers.items()}
        like = self.parameters[0]
        told = [
            like.new_tensor([own, *self.reached]),
            *(own * mean for mean in own_mean),
            *(own * self.terms[name] if own else like.new_zeros(()) for name in names),
            *(own * move for move in moved.values()),
        ]
        facts, *sums = processes.sum_all(told)
        self.count, self.reached = int(facts[0]), [bool(some) for some in facts[1:]]
        means = [total / self.count for total in sums]
        self.mean, means = means[: len(own_mean)], means[len(own_mean) :]
        self.terms = dict(zip(names, means, strict=False))  # statistics follow
        apart = [(one - all_).square().sum() for one, all_ in zip(own_mean, self.mean, strict=True)]
        spreads = [own_one + own * gap for own_one, gap in zip(self.deviation, apart, strict=True)]
        self.deviation = processes.sum_all(spreads)
        self.statistics = {
            name: torch.where(move == 0, buffers[name], buffers[name] + move.to(buffers[name]))
            for name, move in zip(moved, means[len(names) :], strict=True)
        }

    def _moved(self, name: str, before: Tensor) -> Tensor:
        """By how much a buffer has moved, on average over own groups."""
        after = self.statistics.get(name, before)
        like = self.parameters[0]
        return torch.where(after == before, 0, after - before).to(like)

    def move_statistics(self, model: nn.Module) -> None:
        for name, buffer in model.named_buffers():
            buffer.copy_(self.statistics[name])

    def variance(self, positions: Iterable[int], inner_step: float) -> Tensor:
        return inner_step**2 * sum_of(self.deviation[i] for i in positions) / max(self.count - 1, 1)

    def energy(self, positions: Sequence[int], inner_step: float) -> Tensor:
        """eta^2 times the mean squared length of a group's gradient."""
        lengths = sum_of(self.mean[i].square().sum() for i in positions)
        return inner_step**2 * (sum_of(self.deviation[i] for i in positions) / self.count + lengths)


def _group_gradients(group: Step, loss: Callable[[Step], StepLoss], parameters: Sequence[Tensor]) -> list[Tensor]:
    """A group's gradients with their graph; the model's buffers stay as they are."""
    with scratch_buffers(group.model):
        found = torch.autograd.grad(loss(group).total, parameters, create_graph=True, allow_unused=True)
    return _zero_filled(found, parameters)


def _hessian_products(
    group_gradients: Iterator[list[Tensor]], center: list[Tensor], parameters: Sequence[Tensor]
) -> list[Tensor]:
    """sum_i H_i (g_i - center), by a second backward through each g_i; one graph is alive at a time."""
    totals = [torch.zeros_like(p) for p in parameters]
    for gradients in group_gradients:
        reached = [(g, g.detach() - c) for g, c in zip(gradients, center, strict=True) if g.requires_grad]
        outputs, directions = [g for g, _ in reached], [v for _, v in reached]
        products = torch.autograd.grad(outputs, parameters, directions, allow_unused=True)
        for total, product in zip(totals, products, strict=True):
            if product is not None:
                total.add_(product)
        del gradients, reached, outputs  # before the next group builds its own graph
    return totals


def _zero_filled(gradients: Sequence[Tensor | None], parameters: Sequence[Tensor]) -> list[Tensor]:
    """Zeros where the loss does not reach."""
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients, strict=True)]


def parameter_positions(model: nn.Module, part: str) -> list[int]:
    """Places, among the trainable parameters, of those whose name the pattern finds."""
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    found = [i for i, name in enumerate(names) if re.search(part, name)]
    if not found:
        raise InputError(f"no parameter matches the part {part!r}; there are {', '.join(names[:4])}, ...")
    return found


def sum_of(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum()
