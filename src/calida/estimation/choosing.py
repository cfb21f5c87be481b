"""Source-only, adapted, or the average of both: by what check classifiers make of each."""

from __future__ import annotations

from collections.abc import Mapping

from calida.estimation.agreement import AgreementEstimate, estimate_by_agreement
from calida.panel import Panel
from calida.validation import DomainPredictions, Returned

# Adapting pays where it gains this much by the estimate; within it on either side nobody can tell, and the average of
# both classifiers is never far from the better one.
MARGIN = 0.02


def choose_by_agreement(
    panel: Panel, apart: float, before: DomainPredictions, after: DomainPredictions
) -> tuple[Returned, Mapping[str, AgreementEstimate]]:
    """Which of the three is returned, and each one's estimate by the name of its kind."""
    candidates = {
        Returned.SOURCE_ONLY: before,
        Returned.ROUND: after,
        Returned.AVERAGE: averaged(before, after),
    }
    found = {
        kind: estimate_by_agreement(panel, said.validation.labels, said.target.labels, apart)
        for kind, said in candidates.items()
    }
    gain = found[Returned.ROUND].value - found[Returned.SOURCE_ONLY].value
    chosen = Returned.ROUND if gain > MARGIN else Returned.AVERAGE if gain > -MARGIN else Returned.SOURCE_ONLY
    return chosen, {kind.value: estimate for kind, estimate in found.items()}


def averaged(before: DomainPredictions, after: DomainPredictions) -> DomainPredictions:
    """What the average of two classifiers says; mixed pairs are the adapted one's, which it is calibrated by."""
    return DomainPredictions(
        after.validation.averaged_with(before.validation),
        after.labels,
        after.target.averaged_with(before.target),
        after.mixed,
    )
