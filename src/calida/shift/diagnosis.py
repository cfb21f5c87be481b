"""What differs between two tables: nothing, how frequent classes are, or where samples lie; and what follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from calida.seeds import Seeds
from calida.shift.domain_classifier import domain_gap
from calida.shift.label_shift import class_shares, mlls_shares, thin_out

_APART = 3  # standard deviations from domains that mix
_BETTER = 1  # standard deviations less, to explain the difference clearly better
_CLEAR = 2  # standard deviations of as many answers that turn right or wrong by chance
_ENOUGH = 20_000  # target samples to find shares from
_ERROR = 1 / 3  # of what shares are said to have moved by, the most that is wrong on source


class Classified(NamedTuple):
    """What a classifier says of source validation and of target, and the labels of the former."""

    validation: Tensor  # [V, K] log-probabilities
    labels: Tensor  # [V]
    target: Tensor  # [T, K] log-probabilities


@dataclass(frozen=True)
class MeasuredShift:
    """How far apart two tables lie, and what that may come from.

    `auc` is the domain classifier's. Separations are its z-scores: as the tables are, with the source thinned out to
    classes as frequent as in the target, and with its mean moved to the target's. None where samples are too few, or
    where it decides nothing: the second where domains mix, the third where class shares do not explain the first.
    """

    source_shares: tuple[float, ...]
    target_shares: tuple[float, ...]
    share_error: float  # of shares that are known, as far as the classifier misses them
    changed: int  # answers that other shares change
    gain: float  # how many more of those should be right then
    auc: float
    separation: float | None
    class_separation: float | None
    centred_separation: float | None

    @property
    def apart(self) -> float:
        """0 for domains that mix, 1 for domains that never meet."""
        return min(max(2 * self.auc - 1, 0.0), 1.0)


def measure_shift(source: Tensor, labels: Tensor, target: Tensor, said: Classified, seeds: Seeds) -> MeasuredShift:
    """Measured on the tables and by what the source-only classifier says of them: [S, D], [S], [T, D]."""
    source, target, predicted = source.float(), target.float(), said.target
    shares = class_shares(labels, predicted.shape[-1])
    likely = mlls_shares(predicted[:: max(len(predicted) // _ENOUGH, 1)], shares)
    alike = source[thin_out(labels, likely, seeds.generator("alike"))]
    # A class that is not found may still be there once, or as rarely as in the source.
    known = shares.clamp(min=1 / len(labels))
    likely = torch.maximum(likely, known.clamp(max=1 / len(target)))
    changed, gain = _gain(predicted, (likely / known).log())
    whole = domain_gap(source, target, seeds)
    by_class = domain_gap(alike, target, seeds).separation if _exceeds(whole.separation) else None
    explained = by_class is not None and not _exceeds(by_class)
    centered = domain_gap(source - source.mean(0) + target.mean(0), target, seeds).separation if explained else None
    return MeasuredShift(
        tuple(known.tolist()),
        tuple(likely.tolist()),
        _distance(mlls_shares(said.validation, shares), class_shares(said.labels, len(shares))),
        changed,
        gain,
        whole.auc,
        whole.separation,
        by_class,
        centered,
    )


def _exceeds(separation: float | None) -> bool:
    """Whether domains are told apart, more than by chance."""
    return separation is not None and separation > _APART


def _gain(log_probs: Tensor, offsets: Tensor) -> tuple[int, float]:
    """Answers that change if logits move, [T, K] and [K], and how many more of them should be right then."""
    moved = (log_probs.double() + offsets).softmax(-1)
    now, then = moved.amax(-1), moved.gather(-1, log_probs.argmax(-1, keepdim=True)).squeeze(-1)
    return int((now > then).sum()), float((now - then).sum())


def is_shifted(found: MeasuredShift | None) -> bool:
    """Whether the target's samples lie elsewhere than the source's, of the same classes too; unknown counts as yes."""
    if found is None or found.separation is None:
        return True
    if found.separation <= _APART:
        return False
    if found.class_separation is None or found.centred_separation is None:
        return True
    # Other class shares explain what tells the domains apart, and another place not clearly better.
    return found.class_separation > min(_APART, found.centred_separation + _BETTER)


def prior_offsets(found: MeasuredShift | None) -> Tensor | None:
    """What to add to the source-only classifier's logits where classes differ in frequency alone: [K], or None.

    By Bayes' rule, the logarithm of how much more frequent each class has become. Only where shares explain the
    difference clearly better than another place of the samples, which looks alike where classes overlap; where more
    answers clearly turn right by that than wrong; and where shares that are known are found: a good classifier has
    little to gain, and one that is too sure or not sure enough finds shares that are not there.
    """
    if found is None or found.separation is None or found.class_separation is None or found.centred_separation is None:
        return None
    source, target = (torch.tensor(part, dtype=torch.float64) for part in (found.source_shares, found.target_shares))
    sure = (
        found.separation > _APART >= found.class_separation,
        found.centred_separation >= found.class_separation + _BETTER,
        found.share_error < _ERROR * _distance(source, target),
        found.gain > _CLEAR * math.sqrt(found.changed),
    )
    return (target / source).log() if all(sure) else None


def explain_no_shift(found: MeasuredShift) -> str:
    """Why there is nothing to adapt to, and what was done instead, in sentences."""
    apart = f"a classifier tells which domain a sample is from in {found.auc:.0%} of pairs"
    if found.separation is None or found.separation <= _APART:
        return (
            "Nothing tells the target's samples from the source's, so there is no shift to adapt to: "
            f"{apart}, which may be chance."
        )
    told = (
        "Class frequencies explain what tells the domains apart, so no other shift is sure enough to adapt to: "
        f"{apart}, and hardly better than by chance if classes are as frequent in both."
    )
    if prior_offsets(found) is None:
        return told
    return (
        f"{told} The source-only classifier now weighs classes by how frequent they are in the target, which changes "
        f"{found.changed:,} answers; about {found.gain:,.0f} more of them should be right than before."
    )


def _distance(first: Tensor, second: Tensor) -> float:
    """In total variation."""
    return float((first - second).abs().sum()) / 2
