"""Everything that a report tells, before it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calida.adaptation import Trust
from calida.estimation import with_mean
from calida.report.run_predictions import RunPredictions
from calida.run_warnings import RunWarning, shown_name
from calida.training import SOURCE_PHASE
from calida.validation import Returned, RoundRecord, returned_record


@dataclass(frozen=True)
class RunResults:
    """A finished run."""

    metrics: Mapping[str, Any]
    rounds: Sequence[RoundRecord]
    predictions: RunPredictions
    named_by: str  # "path" or "row"
    names: Sequence[str]

    @property
    def place(self) -> str:
        """The run's folder, as it was named when the run was made; for commands."""
        return str(self.metrics.get("place", "RUN"))

    @property
    def truth(self) -> np.ndarray | None:
        """The target's labels where an oracle gave them."""
        return self.predictions.truth if len(self.predictions.truth) else None

    @cached_property
    def classes(self) -> list[str]:
        """Names as the page has them; whole ones are in the metrics."""
        return [shown_name(name, number + 1) for number, name in enumerate(self.metrics["classes"])]

    def sample(self, row: int) -> str:
        """The name of a target sample, as the page has it."""
        return shown_name(self.names[row])

    @property
    def before(self) -> Mapping[str, Any]:
        return self.metrics["source_only"]  # type: ignore[no-any-return]

    @property
    def after(self) -> Mapping[str, Any]:
        return self.metrics["adapted"]  # type: ignore[no-any-return]

    @cached_property
    def trust(self) -> Trust:
        """What is said of the returned classifier without target labels."""
        return Trust.from_json(self.metrics["trust"], "metrics.json")

    @cached_property
    def data_findings(self) -> list[RunWarning]:
        """What was found when the data were read."""
        return [RunWarning.from_json(one, "metrics.json") for one in self.metrics["data"].get("findings", ())]

    @cached_property
    def answers(self) -> np.ndarray:
        """The returned classifier's answers on target, as numbers of classes: [N]."""
        labels: np.ndarray = self.predictions.after.target.argmax(1)
        return labels

    @cached_property
    def probability_right(self) -> Tensor:
        """How likely each answer is right: by the panel where one was asked, else by its own probability. [N]

        Where a few labels are known, the mean is what they say.
        """
        right = torch.from_numpy(self.predictions.after.target).double().amax(-1).exp()
        if len(self.predictions.right):
            right = torch.from_numpy(self.predictions.right).double()
        labeled = self.metrics.get("labeled")
        return right if labeled is None else with_mean(right, labeled["adapted"]["value"])

    @property
    def fell_back(self) -> bool:
        """Whether there was adaptation, and the source-only classifier was returned all the same."""
        return self.adapted and self.trust.decision.returned == Returned.SOURCE_ONLY

    @property
    def adapted(self) -> bool:
        """Whether there was any adaptation, or only training on source."""
        return any(record.phase != SOURCE_PHASE for record in self.rounds)

    @property
    def changed(self) -> bool:
        """Whether the returned classifier is another one than the source-only one."""
        return self.adapted and not self.fell_back

    @property
    def judged(self) -> list[RoundRecord]:
        """The candidates: records of the source-only classifier and of every round of adaptation."""
        return [record for record in self.rounds if record.validators]

    @property
    def returned(self) -> RoundRecord:
        """The record of the candidate that was returned."""
        return returned_record(self.rounds)

    def source_shares(self) -> np.ndarray:
        counts = np.bincount(self.predictions.validation_labels, minlength=len(self.classes))
        shares: np.ndarray = counts / counts.sum()
        return shares
