"""What differs between two tables: nothing, how frequent classes are, or where samples lie; and what follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from calida.seeds import Seeds
from calida.shift.label_shift import class_shares, mlls_shares, thin_out
from calida.shift.neighbors import neighbor_test

Record = Mapping[str, Any]

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


def measure_shift(source: Tensor, labels: Tensor, target: Tensor, said: Classified, seeds: Seeds) -> dict[str, Any]:
    """How far apart two tables lie, and what that may come from: a column of the source-only classifier's record.

    [S, D], [S], [T, D]. `class_separation` is what is left if the source is thinned out to classes as frequent as in
    the target, `centred_separation` if its mean is moved to the target's.
    """
    source, target, predicted = source.float(), target.float(), said.target
    shares = class_shares(labels, predicted.shape[-1])
    likely = mlls_shares(predicted[:: max(len(predicted) // _ENOUGH, 1)], shares)
    pairs = {
        "separation": source,
        "class_separation": source[thin_out(labels, likely, seeds.generator("alike"))],
        "centred_separation": source - source.mean(0) + target.mean(0),
    }
    found = {name: neighbor_test(domain, target, seeds) for name, domain in pairs.items()}
    # A class that is not found may still be there once, or as rarely as in the source.
    known = shares.clamp(min=1 / len(labels))
    likely = torch.maximum(likely, known.clamp(max=1 / len(target)))
    return {
        "shift": {
            **{name: value for name, value in found.items() if value is not None},
            "source_shares": known.tolist(),
            "target_shares": likely.tolist(),
            "share_error": _distance(mlls_shares(said.validation, shares), class_shares(said.labels, len(shares))),
            **_gain(predicted, (likely / known).log()),
        }
    }


def _gain(log_probs: Tensor, offsets: Tensor) -> dict[str, Any]:
    """Answers that change if logits move, [T, K] and [K], and how many more of them should be right then."""
    moved = (log_probs.double() + offsets).softmax(-1)
    now, then = moved.amax(-1), moved.gather(-1, log_probs.argmax(-1, keepdim=True)).squeeze(-1)
    return {"changed": int((now > then).sum()), "gain": float((now - then).sum())}


def _shares_explain(start: Record) -> bool:
    """Whether other class shares explain what tells the domains apart, and another place not clearly better."""
    found = start.get("shift", {})
    apart = found.get("class_separation", math.inf)
    return bool(apart <= _APART and apart <= found["centred_separation"] + _BETTER)


def is_shifted(start: Record) -> bool:
    """Whether the target's samples lie elsewhere than the source's, of the same classes too; unknown counts as yes."""
    return bool(start.get("shift", {}).get("separation", math.inf) > _APART) and not _shares_explain(start)


def prior_offsets(start: Record) -> Tensor | None:
    """What to add to the source-only classifier's logits where classes differ in frequency alone: [K], or None.

    By Bayes' rule, the logarithm of how much more frequent each class has become. Only where shares explain the
    difference clearly better than another place of the samples, which looks alike where classes overlap; where more
    answers clearly turn right by that than wrong; and where shares that are known are found: a good classifier has
    little to gain, and one that is too sure or not sure enough finds shares that are not there.
    """
    found = start.get("shift", {})
    if "class_separation" not in found:
        return None
    source, target = (torch.tensor(found[f"{domain}_shares"], dtype=torch.float64) for domain in ("source", "target"))
    sure = (
        found["separation"] > _APART >= found["class_separation"],
        found["centred_separation"] >= found["class_separation"] + _BETTER,
        found["share_error"] < _ERROR * _distance(source, target),
        found["gain"] > _CLEAR * math.sqrt(found["changed"]),
    )
    return (target / source).log() if all(sure) else None


def explain_no_shift(start: Record) -> str:
    """Why there is nothing to adapt to, and what was done instead, in sentences."""
    found = start["shift"]
    apart = f"neighbours are of one domain {found['separation']:.1f} standard deviations oftener than by chance"
    if found["separation"] <= _APART:
        return (
            "Nothing tells the target's samples from the source's, so there is no shift to adapt to: "
            f"{apart}, where {_APART} would be a sign."
        )
    told = (
        "Class frequencies explain what tells the domains apart, so no other shift is sure enough to adapt to: "
        f"{apart}, but {found['class_separation']:.1f} if classes are as frequent in both."
    )
    if prior_offsets(start) is None:
        return told
    return (
        f"{told} The source-only classifier now weighs classes by how frequent they are in the target, which changes "
        f"{found['changed']:,} answers; about {found['gain']:,.0f} more of them should be right than before."
    )


def _distance(first: Tensor, second: Tensor) -> float:
    """In total variation."""
    return float((first - second).abs().sum()) / 2
