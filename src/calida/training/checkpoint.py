"""The state of a run between two rounds, saved and restored bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.errors import CheckpointError
from calida.objective import MultiplierState
from calida.training.store import Bundle, has_bundle, read_bundle, with_prefix, without_prefix, write_bundle

_NAME = "checkpoint"


@dataclass
class Progress:
    """How far a run has come: the last finished round, what was recorded, and where the multipliers stand."""

    phase: int = 0
    rounds_done: int = 0  # in this phase
    history: list[dict[str, Any]] = field(default_factory=list)
    multipliers: dict[str, MultiplierState] = field(default_factory=dict)
    kept: dict[str, Tensor] | None = None  # weights of the round to keep so far, unless it is the last one
    source_only: dict[str, Tensor] | None = None  # weights after pre-training

    @property
    def stopped(self) -> bool:
        """Whether the last round was found to be one too many."""
        return bool(self.history) and "stopped" in self.history[-1]

    def set_aside(self, model: nn.Module) -> None:
        """Copy the weights of the round to keep before another round moves them."""
        if self.kept is None and self.history:
            self.kept = copied_weights(model)


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has left a checkpoint here."""
    return has_bundle(folder, _NAME)


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    identity: Mapping[str, Any],
    teacher: nn.Module | None = None,
) -> None:
    """Everything that the next round depends on. Seeds are functions of names, so no generator state is among it."""
    moments = {
        f"{index}/{key}": value
        for index, entry in optimizer.state_dict()["state"].items()
        for key, value in entry.items()
    }
    tensors = with_prefix("model", model.state_dict()) | with_prefix("optimizer", moments)
    tensors |= with_prefix("kept", progress.kept or {}) | with_prefix("source_only", progress.source_only or {})
    tensors |= with_prefix("teacher", {} if teacher is None else teacher.state_dict())
    values = asdict(replace(progress, kept=None, source_only=None))
    write_bundle(folder, _NAME, Bundle(tensors, {"identity": dict(identity), "progress": values}))


@dataclass
class Checkpoint:
    """A checkpoint as read back; the optimiser is restored apart, as it is made when its phase begins."""

    progress: Progress
    tensors: dict[str, Tensor]
    folder: Path

    def restore(self, model: nn.Module, name: str = "model") -> None:
        """Put the weights that were saved under a name, "model" or "teacher", into a network."""
        load_weights(model, without_prefix(name, self.tensors), self.folder)

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Moments take their parameter's memory layout, without which vectorised arithmetic may round otherwise."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for path, value in without_prefix("optimizer", self.tensors).items():
            index, key = path.split("/", 1)
            parameter = parameters[int(index)]
            like = torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value
            optimizer.state[parameter][key] = like


def read_checkpoint(folder: Path, identity: Mapping[str, Any]) -> Checkpoint:
    """Read back the last finished round of this very run; a checkpoint of another run is refused."""
    bundle = read_bundle(folder, _NAME)
    try:
        saved, values = bundle.values["identity"], bundle.values["progress"]
        states = {name: MultiplierState(**state) for name, state in values["multipliers"].items()}
        kept, before = (without_prefix(name, bundle.tensors) or None for name in ("kept", "source_only"))
        place = int(values["phase"]), int(values["rounds_done"])
        progress = Progress(*place, list(values["history"]), states, kept, before)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the checkpoint in {folder} lacks or garbles {error}") from None
    differing = _differing(identity, saved)
    if differing:
        raise CheckpointError(
            f"the checkpoint in {folder} belongs to another run: it differs in {', '.join(differing)}"
        )
    return Checkpoint(progress, bundle.tensors, folder)


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The names of values that are not the same, of values within values too."""
    found: list[str] = []
    for key in sorted(first.keys() | second.keys()):
        one, other = first.get(key), second.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found += [f"{key} {inner}" for inner in _differing(one, other)]
        elif one != other:
            found.append(key)
    return found


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Put saved weights into a model of the same shape, or say that they do not fit."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"the weights in {folder} do not fit this network: {reason[:300]}") from None
