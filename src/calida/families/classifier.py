"""A classifier that is no network: standardized features, and one fit or several whose probabilities are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calida.data import Samples
from calida.families.fit import Fit, LinearFit, OpaqueFit
from calida.families.trees import TreeFit
from calida.model import AnyClassifier, Sampling, Standardize
from calida.processes import ALONE, Processes

_KINDS: dict[str, type[Fit]] = {one.kind: one for one in (LinearFit, TreeFit, OpaqueFit)}
_MEMBERS = "members"
_ROWS_AT_ONCE = 8192  # whose copies stay in the cache


class FittedClassifier(AnyClassifier):
    """What estimators have learned, as arrays that are copied, saved and restored as a network's weights are.

    Members are its samples of the posterior: what they disagree about is the epistemic part of its uncertainty.
    """

    offsets: Tensor

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features, self.num_classes = num_features, num_classes
        self.standardize = Standardize((num_features,))
        self.register_buffer("offsets", torch.zeros(num_classes))
        self.members: list[Fit] = []
        self._opaque: list[OpaqueFit] = []  # all there have been; a state names them by number

    @property
    def storable(self) -> bool:
        """Whether every fit can be written to a file."""
        return all(member.storable for member in self.members)

    def fit_inputs(
        self, source: Samples, target: Samples, weight: Tensor | None = None, processes: Processes = ALONE
    ) -> None:
        """Scales by the source."""
        self.standardize.fit(source, target, weight, processes)

    def consist_of(self, members: Sequence[Fit]) -> None:
        """Predict with these fits from now on."""
        self.members = []
        for member in members:
            if isinstance(member, OpaqueFit) and member not in self._opaque:
                member = OpaqueFit(member.estimator, member.num_classes, len(self._opaque))
                self._opaque.append(member)
            self.members.append(member)

    def predict_batch(self, x: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """Each member's log-probabilities, [M, B, K], and the standardized inputs, [B, D]."""
        features = self.standardize(x).cpu()
        rows = features.numpy()
        samples = torch.stack([member.log_probs(rows) for member in self.members])
        return torch.log_softmax(samples + self.offsets.cpu(), -1), features

    def move_logits(self, offsets: Tensor) -> None:
        """Add to every member's logits, [K], for good."""
        self.offsets.add_(offsets.to(self.offsets))

    def rows_at_once(self, batch_size: int, sampling: Sampling) -> int:
        """Large batches: looking up nodes takes little memory, and a batch has a cost of its own."""
        return max(batch_size, _ROWS_AT_ONCE)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for index, member in enumerate(self.members):
            for name, tensor in member.arrays().items():
                destination[f"{prefix}{_MEMBERS}.{index}.{member.kind}.{name}"] = tensor

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        start, found = f"{prefix}{_MEMBERS}.", dict[str, dict[str, Tensor]]()
        for key in [key for key in state_dict if key.startswith(start)]:
            place, _, name = key.removeprefix(start).rpartition(".")
            found.setdefault(place, {})[name] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *others)
        try:
            places = sorted(found, key=lambda place: int(place.split(".")[0]))
            self.members = [self._member(place.partition(".")[2], found[place]) for place in places]
            if not self.members:
                raise ValueError("no fit is among them")
        except (KeyError, IndexError, ValueError, TypeError, RuntimeError) as error:
            others[-1].append(f"members: {error}")

    def _member(self, kind: str, arrays: dict[str, Tensor]) -> Fit:
        if kind == OpaqueFit.kind and self._opaque:
            return self._opaque[int(arrays["number"])]
        return _KINDS[kind].from_arrays(arrays, self.num_features, self.num_classes)
