"""The state of a run between two rounds, saved and restored bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.errors import CheckpointError
from calida.json_values import from_json, to_json
from calida.objective import MultiplierState
from calida.processes import ALONE, Processes
from calida.training.store import Bundle, has_bundle, read_shared_bundle, with_prefix, without_prefix, write_bundle
from calida.validation import RoundRecord

_NAME = "checkpoint"


@dataclass
class Progress:
    """How far a run has come: the last finished round, what was recorded, and where the multipliers stand."""

    phase: int = 0
    rounds_done: int = 0  # in this phase
    history: list[RoundRecord] = field(default_factory=list)
    multipliers: dict[str, MultiplierState] = field(default_factory=dict)
    kept: dict[str, Tensor] | None = None  # weights of the round to keep so far, unless it is the last one
    source_only: dict[str, Tensor] | None = None  # weights after pre-training

    @property
    def stopped(self) -> bool:
        """Whether the last round was found to be one too many."""
        return bool(self.history) and self.history[-1].stopped is not None

    def set_aside(self, model: nn.Module) -> None:
        """Copy the weights of the round to keep before another round moves them."""
        if self.kept is None and self.history:
            self.kept = copied_weights(model)


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """A classifier's weights and buffers, apart from those that go on learning."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has left a checkpoint here."""
    return has_bundle(folder, _NAME)


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    progress: Progress,
    identity: Mapping[str, Any],
    of_trainer: Mapping[str, Tensor],
) -> None:
    """Everything that the next round depends on. Seeds are functions of names, so no generator state is among it."""
    tensors = with_prefix("model", model.state_dict()) | dict(of_trainer)
    tensors |= with_prefix("kept", progress.kept or {}) | with_prefix("source_only", progress.source_only or {})
    values = {
        "identity": dict(identity),
        "phase": progress.phase,
        "rounds_done": progress.rounds_done,
        "history": [record.to_json() for record in progress.history],
        "multipliers": to_json(progress.multipliers),
    }
    write_bundle(folder, _NAME, Bundle(tensors, values))


@dataclass
class _Saved:
    """What a checkpoint's JSON holds."""

    identity: dict[str, Any]
    phase: int
    rounds_done: int
    history: list[RoundRecord]
    multipliers: dict[str, MultiplierState]


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimizer's moments, by the index of their parameter."""
    entries = optimizer.state_dict()["state"].items()
    return {f"{index}/{key}": value for index, entry in entries for key, value in entry.items()}


@dataclass
class Checkpoint:
    """A checkpoint as read back; the optimizer is restored apart, as it is made when its phase begins."""

    progress: Progress
    tensors: dict[str, Tensor]
    folder: Path

    def restore(self, model: nn.Module, name: str = "model") -> None:
        """Put the weights that were saved under a name, "model" or "teacher", into a network."""
        load_weights(model, without_prefix(name, self.tensors), self.folder)

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Moments take their parameter's memory layout, without which vectorized arithmetic may round otherwise."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for path, value in without_prefix("optimizer", self.tensors).items():
            index, _, key = path.partition("/")
            place = int(index) if index.isdecimal() else len(parameters)
            if place >= len(parameters) or value.shape not in (parameters[place].shape, torch.Size()):
                raise CheckpointError(
                    f"the checkpoint in {self.folder} is not what calida wrote: it has no use for {path}"
                )
            parameter = parameters[place]
            # A count of steps lies where its parameter does: fused Adam takes it from nowhere else.
            moment = value.shape == parameter.shape
            like = torch.empty_like(parameter).copy_(value) if moment else value.to(parameter.device)
            optimizer.state[parameter][key] = like


def read_checkpoint(folder: Path, identity: Mapping[str, Any], processes: Processes = ALONE) -> Checkpoint | None:
    """Read back the last finished round of this very run, if there is one; a checkpoint of another run is refused."""
    bundle = read_shared_bundle(folder, _NAME, processes)
    if bundle is None:
        return None
    saved = from_json(_Saved, bundle.values, f"the checkpoint in {folder}")
    kept, before = (without_prefix(name, bundle.tensors) or None for name in ("kept", "source_only"))
    progress = Progress(saved.phase, saved.rounds_done, saved.history, saved.multipliers, kept, before)
    differing = differing_names(identity, saved.identity)
    if differing:
        raise CheckpointError(
            f"the checkpoint in {folder} belongs to another run: it differs in {', '.join(differing)}"
        )
    return Checkpoint(progress, bundle.tensors, folder)


def saved_identity(folder: Path, processes: Processes = ALONE) -> dict[str, Any] | None:
    """What the run whose checkpoint lies here said of itself; None where there is no checkpoint."""
    bundle = read_shared_bundle(folder, _NAME, processes)
    return None if bundle is None else from_json(_Saved, bundle.values, f"the checkpoint in {folder}").identity


def differing_names(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The names of values that are not the same, of values within values too."""
    found: list[str] = []
    for key in sorted(first.keys() | second.keys()):
        one, other = first.get(key), second.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found += [f"{key} {inner}" for inner in differing_names(one, other)]
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
