"""What the rest of the package asks of a classifier, a network or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from calida.data import Samples
from calida.processes import ALONE, Processes
from calida.seeds import Seeds


class Sampling(NamedTuple):
    """How many weight samples a prediction averages, what they are drawn from, and whether all dropout layers draw."""

    num_samples: int
    seeds: Seeds
    monte_carlo_dropout: bool = False


class AnyClassifier(nn.Module, ABC):
    """A classifier that rounds are run on, that is judged, calibrated, saved and returned.

    Its state is a dictionary of tensors, whatever it was fitted by: copied, saved and restored as a network's weights.
    """

    @abstractmethod
    def predict_batch(self, x: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """Log-probabilities of every weight sample, [M, B, K], and features, [B, D]."""

    @abstractmethod
    def move_logits(self, offsets: Tensor) -> None:
        """Add to the logit of each class, [K], for good."""

    @abstractmethod
    def fit_inputs(
        self, source: Samples, target: Samples, weight: Tensor | None = None, processes: Processes = ALONE
    ) -> None:
        """Fit what is done to samples before anything is learned of them: scales by the source, weighted by [N]."""

    @property
    def storable(self) -> bool:
        """Whether its state is all there is to it, so that it can be written to a file."""
        return True

    def lay_out(self, memory_format: torch.memory_format) -> None:
        """Keep images and weights in this layout, where there are any."""

    def rows_at_once(self, batch_size: int, sampling: Sampling) -> int:
        """How many samples to predict in one batch."""
        return batch_size

    @property
    def device(self) -> torch.device:
        tensor: Tensor = next(iter(self.state_dict(keep_vars=True).values()))
        return tensor.device
