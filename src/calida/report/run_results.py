"""Everything that a report tells, before it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calida.report.run_predictions import Evidence
from calida.training import SOURCE_PHASE
from calida.validation import PRIOR_CORRECTED, SOURCE_ONLY, returned_record


@dataclass(frozen=True)
class Finding:
    """A finished run."""

    metrics: Mapping[str, Any]
    rounds: Sequence[Mapping[str, Any]]
    evidence: Evidence
    named_by: str  # "path" or "row"
    names: Sequence[str]

    @property
    def truth(self) -> np.ndarray | None:
        """The target's labels where an oracle gave them."""
        return self.evidence.truth if len(self.evidence.truth) else None

    @property
    def classes(self) -> list[str]:
        return list(self.metrics["classes"])

    @property
    def before(self) -> Mapping[str, Any]:
        return self.metrics["source_only"]  # type: ignore[no-any-return]

    @property
    def after(self) -> Mapping[str, Any]:
        return self.metrics["adapted"]  # type: ignore[no-any-return]

    @property
    def trust(self) -> Mapping[str, Any]:
        """What is said of the returned classifier without target labels."""
        return self.metrics["trust"]  # type: ignore[no-any-return]

    @property
    def fell_back(self) -> bool:
        """Whether there was adaptation, and the source-only classifier was returned all the same."""
        return self.adapted and bool(self.trust["returned"] == SOURCE_ONLY)

    @property
    def prior_corrected(self) -> bool:
        """Whether the source-only classifier was returned with other class shares."""
        return bool(self.trust["returned"] == PRIOR_CORRECTED)

    @property
    def adapted(self) -> bool:
        """Whether there was any adaptation, or only training on source."""
        return any(record["phase"] != SOURCE_PHASE for record in self.rounds)

    @property
    def changed(self) -> bool:
        """Whether the returned classifier is another one than the source-only one."""
        return self.adapted and not self.fell_back

    @property
    def judged(self) -> list[Mapping[str, Any]]:
        """The candidates: records of the source-only classifier and of every round of adaptation."""
        return [record for record in self.rounds if "validators" in record]

    @property
    def returned(self) -> Mapping[str, Any]:
        """The record of the candidate that was returned."""
        return returned_record(self.rounds)

    def source_shares(self) -> np.ndarray:
        counts = np.bincount(self.evidence.validation_labels, minlength=len(self.classes))
        shares: np.ndarray = counts / counts.sum()
        return shares
