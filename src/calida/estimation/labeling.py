"""A few labels, well chosen: which samples to label, and what their labels say of all the others.

The target is cut into strata of samples that are about equally likely to be right, and samples are drawn at random
within each (Neyman, 1934). What is found holds whatever those likelihoods are worth: good ones make the interval
narrower, bad ones no less honest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from calida.errors import InputError
from calida.estimation.estimate import Estimate

LABEL_LEVEL = 0.9  # of the interval
_SAYS_LITTLE = 0.25  # width of an interval that hardly any estimate falls out of
_PER_STRATUM = 10  # labels; with fewer the interval is narrower, and holds the truth too seldom
# No sample is taken for surer than 80 %: sure ones are where a wrong probability costs most. Of 0.2, 0.3 and 0.4, this
# had the narrowest intervals on real shifts, and they held the truth most often (docs/label-a-few.md).
_LEAST_DEVIATION = 0.4


@dataclass(frozen=True)
class LabelDesign:
    """Samples to label, in an order whose first ones are of all strata wherever it is cut, and what they stand for."""

    rows: Tensor  # [n] of the target
    strata: Tensor  # [n] each one's stratum
    sizes: Tensor  # [H] samples of the target in each stratum

    @property
    def probabilities(self) -> Tensor:
        """With which each of these samples was drawn: [n]."""
        drawn = torch.bincount(self.strata, minlength=len(self.sizes))
        return (drawn / self.sizes)[self.strata]

    def to_json(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in vars(self).items()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> LabelDesign:
        rows, strata, sizes = (torch.tensor(values[name]).long() for name in ("rows", "strata", "sizes"))
        apart = rows.shape != strata.shape or bool(((strata < 0) | (strata >= len(sizes))).any())
        if apart or bool((torch.bincount(strata, minlength=len(sizes)) > sizes).any()):
            raise ValueError("strata and rows that do not belong together")
        return LabelDesign(rows, strata, sizes)


def draw_design(right: Tensor, budget: int, generator: torch.Generator) -> LabelDesign:
    """Choose `budget` samples by how probably the classifier is right about each: [N] -> a design.

    Strata are cut where the expected deviation of a sample, sqrt(p (1 - p)), sums to equal parts. Neyman's allocation,
    in proportion to that sum, then gives every stratum the same number.
    """
    if budget < 1:
        raise InputError(f"the budget is the number of samples to label, at least 1, not {budget}")
    budget = min(budget, len(right))
    right = right.double().nan_to_num(0.5).clamp(0, 1)
    deviation = (right * (1 - right)).sqrt().clamp(min=_LEAST_DEVIATION)
    shuffled = torch.randperm(len(right), generator=generator)  # so that equal samples fall to either side of a cut
    order = shuffled[right[shuffled].argsort(stable=True)]
    ends = deviation[order].cumsum(0)
    count = max(round(budget / _PER_STRATUM), 1)
    stratum = torch.empty(len(right), dtype=torch.long)
    stratum[order] = (count * (ends - deviation[order] / 2) / ends[-1]).long().clamp(max=count - 1)
    # A cut through few samples may leave nothing between two of them.
    _, stratum = stratum.unique(return_inverse=True)
    sizes = torch.bincount(stratum)
    needs = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, stratum, deviation)
    drawn, places = [], []
    for index, number in enumerate(_allocate(needs, sizes, budget).tolist()):
        members = (stratum == index).nonzero().flatten()
        drawn.append(members[torch.randperm(len(members), generator=generator)[:number]])
        places.append((torch.arange(number) + 0.5) / max(number, 1))
    rows = torch.cat(drawn)[torch.cat(places).argsort(stable=True)]
    return LabelDesign(rows, stratum[rows], sizes)


def _allocate(needs: Tensor, sizes: Tensor, budget: int) -> Tensor:
    """The budget in proportion to needs, whole, at least one each and never more than there are: [H], [H] -> [H]."""
    given = torch.ones_like(sizes)
    while int(given.sum()) < budget:
        # To whom one more is worth most, as in the method of equal proportions (Huntington, 1921).
        worth = torch.where(given < sizes, needs / (given * (given + 1.0)).sqrt(), -1.0)
        given[worth.argmax()] += 1
    return given


def estimate_from_labels(right: Tensor, strata: Tensor, sizes: Tensor, level: float = LABEL_LEVEL) -> Estimate:
    """The share of all samples that are right, from some in every stratum: [m] booleans, [m], [H] -> an estimate.

    The value is the mean of strata, each counted by its size. The interval holds the shares that a score test does not
    reject (as Miettinen and Nurminen, 1985, for two samples): with one stratum it is Wilson's. What is left to label
    in each stratum counts, so labels of all samples leave no doubt.
    """
    labeled = torch.bincount(strata, minlength=len(sizes)).double()
    if not bool((labeled > 0).all()):
        raise InputError("there are too few labels, or they are not from the top: fill in more rows from the top")
    share = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, strata, right.double()) / labeled
    weights = sizes.double() / sizes.sum()
    value = float((weights * share).sum())
    opened = sizes > labeled  # a stratum that is labeled throughout is known
    if not bool(opened.any()):
        return Estimate(value, value, value)
    known = float((weights * share)[~opened].sum())
    share, weights, labeled, sizes = share[opened], weights[opened], labeled[opened], sizes[opened].double()
    # Labels without replacement say as much as more of them with: all of a stratum but one say all.
    strength = labeled * (sizes - 1) / (sizes - labeled)
    loss = float(labeled.sum() / (labeled.sum() - len(sizes) + 1).clamp(min=1))  # a share a stratum is fitted
    limit = NormalDist().inv_cdf((1 + level) / 2) ** 2 * loss

    def end(direction: int) -> float:
        """The last share that the test does not reject, downwards (1) or upwards (-1)."""

        def at(price: float) -> tuple[bool, float]:
            shares = _likeliest_shares(direction * price, share, strength, weights)
            distance = float((weights * (share - shares)).sum())
            variance = float((weights.square() * shares * (1 - shares) / strength).sum())
            return distance**2 <= limit * variance, known + float((weights * shares).sum())

        low, high = 0.0, 1.0
        while at(high)[0] and high < 1e12:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if at(middle)[0] else (low, middle)
        return at(low)[1]

    return Estimate(value, min(end(1), value), max(end(-1), value))


def _likeliest_shares(price: float, share: Tensor, strength: Tensor, weights: Tensor) -> Tensor:
    """Each stratum's likeliest share if the weighted mean is another than was found: [H] -> [H].

    Where the gradient of the log-likelihood, n (s / p - (1 - s) / (1 - p)), is the price of the constraint times the
    weight, which is a quadratic in p. Price 0 is what was found; a higher one lowers every share.
    """
    cost = price * weights
    linear = cost + strength
    root = (linear.square() - 4 * cost * strength * share).clamp(min=0).sqrt()
    falling = 2 * strength * share / (linear + root)
    return torch.where(linear > 0, falling, (linear - root) / (2 * cost)).clamp(0, 1)


def compare_estimates(label_free: Estimate, measured: Estimate) -> str:
    """Whether what was estimated without labels held, in a sentence."""
    said = f"The estimate without labels, {label_free.value:.1%} ({label_free.low:.1%} to {label_free.high:.1%}),"
    if measured.low <= label_free.value <= measured.high:
        if measured.high - measured.low > _SAYS_LITTLE:
            allowed = f"anything from {measured.low:.1%} to {measured.high:.1%}"
            return f"{said} cannot be refuted by so few labels: they allow {allowed}. Label more to find out."
        return f"{said} held: it lies within what the labels allow."
    apart = label_free.value - measured.value
    side = "high" if apart > 0 else "low"
    if label_free.low <= measured.high and measured.low <= label_free.high:
        return f"{said} is {abs(apart) * 100:.0f} points too {side}, though its interval reaches what the labels allow."
    return f"{said} did not hold: it is {abs(apart) * 100:.0f} points too {side}. Go by the labels."
