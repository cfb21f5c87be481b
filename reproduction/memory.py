"""How much memory a training step will take, found by running it on shapes alone."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from calida.data import SourceBatch, TargetBatch
from calida.model import Classifier, Network, build_classifier, scratch_buffers
from calida.objective import Domain, GradientVariance, Step
from calida.objective.gradient_variance import StepLoss, VarianceStep, parameter_positions, sum_of
from calida.recipes import Recipe, phases
from calida.seeds import Seeds
from calida.training import Phase


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes, but for the number of parameters; the peaks include weights, gradients and the optimizer's state.

    Counted is every tensor of a step from when an operation makes it to when its last holder lets go: the batch,
    activations, what the backward passes and the optimizer make on their way. Not counted is what is never a tensor
    of ours: the workspace of convolutions and other kernels, what an allocator rounds up, keeps back or cannot use,
    the CUDA context, Python and its libraries. Nor are the data set, augmented views, and prediction between rounds.
    Numbers are float32, and operations make and keep what they do on a CPU.
    """

    parameters: int  # trainable numbers
    weights: int  # parameters and buffers
    gradients: int
    optimizer: int  # adam: two moments and a step count a parameter tensor; sgd: its momentum
    activations: int  # what the graph of a plain step holds between forward and backward
    plain_peak: int  # of the largest step without gradient variance
    bounded_gvr_peak: int  # of a target step with it, one group's graph at a time; up to 0.5 GB more are kept
    kept_gvr_peak: int  # of a target step with it, if every group's graph were kept


def memory_plan(network: Network, recipe: Recipe, backbone: nn.Module | None = None) -> MemoryPlan:
    """Plan the last phase of a recipe: adaptation, or pre-training if there is nothing else.

    Its steps run on tensors that have a shape and no memory, forward, backward and all. They are taken as the
    schedule has them (one domain at a time, or both) and with the recipe's own terms, except that gradient variance
    is left out, put in, and put in with every graph kept, whatever its weight and share. A phase that does not touch
    the target has nothing to regularize, and all its peaks are equal.
    """
    with torch.device("meta"):
        model = build_classifier(network, Seeds(0), None if backbone is None else copy.deepcopy(backbone).to("meta"))
    plain = recipe.with_settings({"gradient_variance.weight": 0.0, "groups_only": False})
    *_, phase = phases(plain)
    rehearsal = _Rehearsal(model.train(), network, phase)
    variance = recipe.gradient_variance
    settings: dict[str, Any] = {"groups": variance.groups, "bound": variance.bound, "part": variance.part}
    trainable = [p for p in model.parameters() if p.requires_grad]
    return MemoryPlan(
        parameters=sum(p.numel() for p in trainable),
        weights=sum(tensor.nbytes for tensor in [*model.parameters(), *model.buffers()]),
        gradients=sum(p.nbytes for p in trainable),
        optimizer=rehearsal.optimizer_state(),
        activations=rehearsal.activations(),
        plain_peak=rehearsal.peak(None),
        bounded_gvr_peak=rehearsal.peak(OneGraph(**settings, memory=0)),
        kept_gvr_peak=rehearsal.peak(EveryGraph(**settings)),
    )


class _Rehearsal:
    """The steps of one phase, taken by a model that has no memory."""

    def __init__(self, model: Classifier, network: Network, phase: Phase) -> None:
        self.model = model
        self.network = network
        self.phase = phase
        self.memory = _LiveBytes([*model.parameters(), *model.buffers()])
        domains: tuple[Domain, ...] = ("source", "target") if phase.uses_target else ("source",)
        self.turns = [domains] if phase.schedule == "joint" else [(domain,) for domain in domains]

    def optimizer_state(self) -> int:
        with self.memory:
            states = self._optimizer().state.values()
        return sum(value.nbytes for state in states for value in state.values() if isinstance(value, Tensor))

    def activations(self) -> int:
        objective, found = self.phase.objective, []
        with self.memory:
            for domains in self.turns:
                before = self.memory.live
                step = self._step(domains)
                loss = objective.loss(step, objective.active(step.batches, objective.multipliers())).total
                del step  # what is left is what the loss holds by its graph
                found.append(self.memory.live - before)
                del loss
        return max(found)

    def peak(self, regularizer: GradientVariance | None) -> int:
        objective = replace(self.phase.objective, gradient_variance=regularizer)
        turns = [domains for domains in self.turns if regularizer is None or regularizer.domain in domains]
        with self.memory:
            self.model.lay_out(torch.channels_last if regularizer is None else torch.contiguous_format)  # as a run does
            optimizer = self._optimizer()
            self.memory.peak = self.memory.live
            for domains in turns or self.turns:
                objective.backward(self._step(domains), objective.multipliers())
                if self.phase.optimizer != "adam":  # which is fused, and makes nothing on its way
                    optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        return self.memory.peak

    def _optimizer(self) -> torch.optim.Optimizer:
        """An optimizer that has taken a step, since its state comes with the first one."""
        optimizer = self.phase.make_optimizer(self.model.parameters())
        for group in optimizer.param_groups:
            group["fused"] = False  # shapes have no kernels
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return optimizer

    def _step(self, domains: Iterable[Domain]) -> Step:
        rows, classes = self.phase.batch_size, self.network.num_classes
        dtype = torch.uint8 if self.network.scale.is_bytes else torch.float32
        batches: dict[Domain, SourceBatch | TargetBatch] = {}
        for domain in domains:
            x = torch.empty((rows, *self.network.input_shape), dtype=dtype, device="meta")
            if domain == "source":
                batches[domain] = SourceBatch(x, torch.empty(rows, dtype=torch.int64, device="meta"))
            else:
                labels, selected = torch.empty(rows, classes, device="meta"), torch.empty(rows, device="meta")
                batches[domain] = TargetBatch(x, labels, selected, x)
        return Step(self.model, batches, _DeviceFreeSeeds(0), self.phase.num_samples)


class _DeviceFreeSeeds(Seeds):
    """Seeds with generators on the CPU alone: shapes have none of their own, and draw nothing from these."""

    def at(self, *place: str | int) -> Seeds:
        return self

    def generator(self, name: str, device: torch.device | str = "cpu") -> torch.Generator:
        return super().generator(name)


class OneGraph(GradientVariance):
    """Gradient variance as it is, but for its bound: a variance without a value is taken to be within it."""

    def _bounded(self, variance: Tensor, energy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return variance, torch.tensor(1.0), torch.tensor(-1.0 if self.bound == "relative" else 0.0)


class EveryGraph(GradientVariance):
    """Gradient variance as Algorithm 1 is written down: all group graphs live until the one backward pass."""

    def backward(self, step: Step, loss: Callable[[Step], StepLoss], names: Sequence[str] = ()) -> VarianceStep:
        parameters = [p for p in step.model.parameters() if p.requires_grad]
        counted = [parameters[i] for i in parameter_positions(step.model, self.part)]
        losses: list[StepLoss] = []
        gradients: list[list[Tensor]] = []
        for group in step.groups(self.domain, self.group_count(len(step.batches[self.domain]))):
            with scratch_buffers(step.model):
                losses.append(loss(group))
                found = torch.autograd.grad(losses[-1].total, counted, create_graph=True, allow_unused=True)
            gradients.append([g for g in found if g is not None])
        means = [torch.stack(row).mean(0) for row in zip(*gradients, strict=True)]
        deviations = [(g - m).square().sum() for row in gradients for g, m in zip(row, means, strict=True)]
        variance = self.inner_step**2 / max(len(gradients) - 1, 1) * sum_of(deviations)
        (sum_of(part.total for part in losses) / len(losses) - self.weight * variance).backward()
        return VarianceStep(losses[0].terms, variance.detach(), variance.detach())


class _LiveBytes(TorchDispatchMode):
    """Bytes of some tensors and of all that are made inside the block, while they live; and the most there were.

    Finding shapes takes long, and a network asks for the same ones over and over: what an operation made anew from
    some shapes, it makes again.
    """

    def __init__(self, given: Iterable[Tensor]) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        self._makers: dict[Any, Callable[[], Any]] = {}
        for tensor in given:
            self._meet(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        key = (func, _signature(args), _signature(tuple((kwargs or {}).items())))
        known = self._makers.get(key)
        out = func(*args, **(kwargs or {})) if known is None else known()
        tensors = [one for one in (out if isinstance(out, list | tuple) else [out]) if isinstance(one, Tensor)]
        if known is None and tensors and all(t.is_meta and id(t.untyped_storage()) not in self._alive for t in tensors):
            self._makers[key] = _maker(out)
        for tensor in tensors:
            self._meet(tensor)
        return out

    def _meet(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = id(storage), storage.nbytes()
        if key in self._alive:  # a view, or changed in place
            return

        def forget(_: object) -> None:
            del self._alive[key]
            self.live -= size

        self._alive[key] = weakref.ref(storage, forget)
        self.live += size
        self.peak = max(self.peak, self.live)


def _signature(value: Any) -> Any:
    """All of an operation's arguments that shapes can depend on."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype, value.device
    if isinstance(value, list | tuple):
        return tuple(_signature(one) for one in value)
    return type(value), value


def _maker(out: Any) -> Callable[[], Any]:
    """A function that gives tensors like these, without memory."""
    if isinstance(out, list | tuple):
        kind, parts = type(out), [_maker(one) for one in out]
        return lambda: kind(part() for part in parts)
    if not isinstance(out, Tensor):
        return lambda: out
    shape, stride, dtype = out.shape, out.stride(), out.dtype
    return lambda: torch.empty_strided(shape, stride, dtype=dtype, device="meta")
