"""How often a classifier is right on target, by how far classifiers of other kinds agree with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from calida.panel import Panel, beyond_chance, share_equal


@dataclass(frozen=True)
class Agreement:
    """One check classifier and the classifier in question."""

    name: str
    kind: str
    weight: float  # in the panel
    accuracy: float  # of the check classifier on source validation
    source: float  # share of equal labels on source validation
    target: float  # and on target
    estimate: float  # of the classifier's accuracy on target, by this one alone
    view: str  # the scale that it sees both domains on


@dataclass(frozen=True)
class AgreementEstimate:
    """Accuracy on target by a panel, and what each of its members makes of it."""

    value: float
    agreements: tuple[Agreement, ...]
    by_sample: Tensor = field(repr=False)  # [T] share of the panel, by weight, that is with the classifier
    belief: float  # probability that the panel gives to the classifier's labels on target, on average
    checked_belief: float  # the same, less what such belief was too high by on source validation


def estimate_by_agreement(
    panel: Panel, validation: Tensor, target: Tensor, apart: float, taught: bool = False
) -> AgreementEstimate:
    """From the panel and the classifier's labels on source validation and target: [V], [T].

    Each member g gives two estimates of the accuracy of f: the share of its accuracy on source that agreement keeps on
    target, and that accuracy less what agreement loses. Where labels are hard to tell, classifiers that have learned
    the same agree more often than they are right; both forms take that off. A third is what probability the panel
    gives to the label of f on average. The mean of the three is taken. Either both domains share a scale or each has
    its own: whoever sees them on the wrong one agrees with nobody, so the view that agrees more is believed. Where the
    panel has `taught` a classifier, both views have, and agreeing with one of them proves less: the mean of both views,
    by their weights, is half of the answer then, and more than on source validation is believed only as far as both
    say so.

    Agreement counts beyond chance. Where two domains mix, their classes are as frequent as in the source and plain
    shares are right. Where they never meet, nothing is known of class shares, and they count as equal. `apart` goes
    from the one, 0, to the other, 1.
    """
    classes = panel.num_classes
    right, right_beyond = share_equal(validation, panel.labels), beyond_chance(validation, panel.labels, classes)
    found = []
    for opinion, weight in zip(panel.opinions, panel.weights.tolist(), strict=True):
        theirs, there = opinion.validation.argmax(-1), opinion.target.argmax(-1)
        source, met = share_equal(validation, theirs), share_equal(target, there)
        plain = _mean_form(right, source, met)
        beyond = beyond_chance(target, there, classes)
        usual = beyond_chance(validation, theirs, classes)
        even = 1 / classes + (1 - 1 / classes) * _mean_form(right_beyond, usual, beyond)
        estimate = (1 - apart) * plain + apart * even
        accuracy = share_equal(theirs, panel.labels)
        found.append(Agreement(opinion.name, opinion.kind, weight, accuracy, source, met, estimate, opinion.view))
    weights = panel.weights
    each = torch.tensor([one.estimate for one in found], dtype=torch.float64)
    same = torch.stack([(opinion.target.argmax(-1) == target).double() for opinion in panel.opinions])
    believed = panel.consensus().gather(1, target[:, None]).squeeze(1)
    by_sample = (weights @ same + believed) / 2
    by_view = [
        (2 * float(weights[some] @ each[some] / weights[some].sum()) + _belief(panel, some, validation, target, apart))
        / 3
        for some in panel.views()
    ]
    value = max(by_view)
    if taught:
        heard = [float(weights[some].sum()) for some in panel.views()]
        mean = sum(weight * value for weight, value in zip(heard, by_view, strict=True))
        value = min((value + mean) / 2, max(right, min(by_view)))
    belief = float(believed.mean())
    usual = float(panel.consensus_on_validation().gather(1, validation[:, None]).mean())
    return AgreementEstimate(_share(value), tuple(found), by_sample, belief, belief + right - usual)


def _belief(panel: Panel, members: list[int], validation: Tensor, target: Tensor, apart: float) -> float:
    """The probability that these members give to the labels of f on target, on average: [V], [T].

    What they believe on source validation, against how often f is right there, is what their doubt is worth.
    """
    believed = float(panel.consensus(members).gather(1, target[:, None]).mean())
    usual = float(panel.consensus_on_validation(members).gather(1, validation[:, None]).mean())
    return believed + (1 - apart) * (share_equal(validation, panel.labels) - usual)


def _mean_form(right: float, usual: float, met: float) -> float:
    """From the accuracy of f on source and its agreement there and on target: by their ratio, by their difference.

    Agreement that is rarer on source than being right says nothing of how much to take off.
    """
    kept = met * min(right / usual, 1.0) if usual > 0 else 0.0
    return (_share(kept) + _share(right - usual + met)) / 2


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
