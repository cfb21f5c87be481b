"""Source-only, adapted, or the average of both: by what check classifiers make of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from calida.estimation.agreement import AgreementEstimate, estimate_by_agreement
from calida.panel import Panel, share_equal
from calida.validation import DomainPredictions, Returned


class _Margins(NamedTuple):
    """Standard errors of as many changed answers that are enough to decide."""

    gain: float  # to return the adapted classifier
    loss: float  # to return the source-only one


# A panel is partial. One that has taught the adapted classifier is on its side: it has to say much for it, and anything
# against it is enough. On real shifts of tables (seed 0, 84 of today's 87), gains of 2, 3 and 4 standard errors at a
# loss of 0 all leave a mean gain of 2.4 points; they harm 8, 6 and 5 % of the tasks.
_TAUGHT = _Margins(4, 0)
# One that has learned from the source alone errs as the source-only classifier does. From photographs to paintings it
# put an adapted classifier 3 to 6 points (3 to 5 standard errors) under source-only that was 10 to 13 points better.
_UNTAUGHT = _Margins(1, 10)
# A classifier that the panel has taught agrees with it by construction. Over 60 real shifts (seed 0), it gained half of
# what the panel said; leaving one data set out, 0.3 to 0.7 of it.
_TAUGHT_SHARE = 0.5


def choose_by_agreement(
    panel: Panel, apart: float, before: DomainPredictions, after: DomainPredictions, taught: bool = False
) -> tuple[Returned, Mapping[str, AgreementEstimate]]:
    """Which of the three is returned, and each one's estimate by the name of its kind.

    Either sensors drifted, and each domain's own scale is right, or classes are more or less frequent, and one scale
    for both is. Nobody knows which. So adapting has to pay for those who see either; it is dropped where it costs for
    one of them. In between the average of both classifiers is returned.

    A classifier that the panel has `taught` agrees with it by construction. There it also has to pay by how sure the
    panel is of the answers that changed, and by what such sureness was worth on held-out source: where columns say
    little of the label, the panel is hardly surer of its own answers, and no more often right. What adapted is worth
    is not all believed then. What is returned instead of source-only is not put below it: a panel that has learned from
    the source alone sees its errors in all that differs from it.
    """
    candidates = {
        Returned.SOURCE_ONLY: before,
        Returned.ROUND: after,
        Returned.AVERAGE: averaged(before, after),
    }
    found = {
        kind: estimate_by_agreement(panel, said.validation.labels, said.target.labels, apart, taught)
        for kind, said in candidates.items()
    }
    first, last = found[Returned.SOURCE_ONLY], found[Returned.ROUND]
    gains = [*gains_by_view(first, last).values()]
    if taught:
        gains += [last.belief - first.belief, last.checked_belief - first.checked_belief]
    gain = min(gains)
    changed = 1 - share_equal(before.target.labels, after.target.labels)
    error = math.sqrt(changed / len(before.target))
    margins = _TAUGHT if taught else _UNTAUGHT
    chosen = Returned.AVERAGE
    if gain > margins.gain * error:
        chosen = Returned.ROUND
    elif gain < -margins.loss * error:
        chosen = Returned.SOURCE_ONLY
    start = first.value
    if taught:
        found = {kind: replace(one, value=start + _TAUGHT_SHARE * (one.value - start)) for kind, one in found.items()}
    found[chosen] = replace(found[chosen], value=max(found[chosen].value, start))
    return chosen, {kind.value: estimate for kind, estimate in found.items()}


def gains_by_view(before: AgreementEstimate, after: AgreementEstimate) -> dict[str, float]:
    """What adapting gains by the members of each view, weighted as they are heard."""
    gains: dict[str, float] = {}
    for view in dict.fromkeys(one.view for one in before.agreements):
        pairs = [
            (then.weight, now.estimate - then.estimate)
            for then, now in zip(before.agreements, after.agreements, strict=True)
            if then.view == view
        ]
        gains[view] = sum(weight * gain for weight, gain in pairs) / sum(weight for weight, _ in pairs)
    return gains


def averaged(before: DomainPredictions, after: DomainPredictions) -> DomainPredictions:
    """What the average of two classifiers says; mixed pairs are the adapted one's, which it is calibrated by."""
    return DomainPredictions(
        after.validation.averaged_with(before.validation),
        after.labels,
        after.target.averaged_with(before.target),
        after.mixed,
    )
