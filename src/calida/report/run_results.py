"""Everything that a report tells, before it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calida.adaptation import Trust
from calida.report.run_predictions import RunPredictions
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
    def truth(self) -> np.ndarray | None:
        """The target's labels where an oracle gave them."""
        return self.predictions.truth if len(self.predictions.truth) else None

    @property
    def classes(self) -> list[str]:
        return list(self.metrics["classes"])

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

    @property
    def fell_back(self) -> bool:
        """Whether there was adaptation, and the source-only classifier was returned all the same."""
        return self.adapted and self.trust.decision.returned == Returned.SOURCE_ONLY

    @property
    def prior_corrected(self) -> bool:
        """Whether the source-only classifier was returned with other class shares."""
        return self.trust.decision.returned == Returned.PRIOR_CORRECTED

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
