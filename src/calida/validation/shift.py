"""What differs between two tables: where samples lie, or only how frequent their classes are; and what follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from calida.seeds import Seeds
from calida.selection import likely_shares, thin_out
from calida.validation.neighbours import neighbour_test

Record = Mapping[str, Any]

_SHIFTED = 3  # standard deviations from domains that mix
_CLEAR = 2  # standard deviations of as many answers that turn right or wrong by chance


def measure_shift(source: Tensor, labels: Tensor, target: Tensor, log_probs: Tensor, seeds: Seeds) -> dict[str, Any]:
    """How far apart the domains lie, how far the same classes do, and how frequent these are: columns of a record.

    [S, D], [S], [T, D], [T, K] by the source-only classifier. For the same classes, the target is compared with source
    samples whose classes are as frequent as in the target. `changed` are the answers that would change if the
    classifier knew these frequencies, and `gain` is how many more of them it would then expect to be right.
    """
    shares = torch.bincount(labels, minlength=log_probs.shape[-1]).double() / len(labels)
    likely = likely_shares(log_probs, shares)
    alike = thin_out(labels, likely, seeds.generator("alike"))
    found = {
        "separation": neighbour_test(source, target, seeds),
        "class_separation": neighbour_test(source[alike], target, seeds),
    }
    # No class is rarer than one sample of its domain.
    frequencies = {"source": shares.clamp(min=1 / len(labels)), "target": likely.clamp(min=1 / len(target))}
    moved = (log_probs.double() + _offsets(frequencies)).softmax(-1)
    now, then = moved.amax(-1), moved.gather(-1, log_probs.argmax(-1, keepdim=True)).squeeze(-1)
    return {
        **{name: value for name, value in found.items() if value is not None},
        "frequencies": {
            **{domain: values.tolist() for domain, values in frequencies.items()},
            "changed": int((now > then).sum()),
            "gain": float((now - then).sum()),
        },
    }


def is_shifted(start: Record) -> bool:
    """Whether the target's samples lie elsewhere than the source's, of the same classes too; unknown counts as yes."""
    return all(start.get(measure, math.inf) > _SHIFTED for measure in ("separation", "class_separation"))


def share_offsets(start: Record) -> Tensor | None:
    """What to add to the source-only classifier's logits where classes differ in frequency alone: [K], or None.

    By Bayes' rule, the logarithm of how much more frequent each class has become. Only where it is clear that more
    answers turn right by that than wrong: frequencies are estimates, and a good classifier has little to gain.
    """
    found = start.get("frequencies")
    if found is None or is_shifted(start) or found["gain"] <= _CLEAR * math.sqrt(found["changed"]):
        return None
    return _offsets({domain: torch.tensor(found[domain], dtype=torch.float64) for domain in ("source", "target")})


def explain_no_shift(start: Record) -> str:
    """Why there is nothing to adapt to, and what was done instead, in sentences."""
    measure, found = "separation", "Nothing tells the target's samples from the source's"
    if start[measure] > _SHIFTED or share_offsets(start) is not None:
        measure, found = "class_separation", "Classes differ in frequency alone, and each looks as it did"
    told = (
        f"{found}, so there is no shift to adapt to: neighbours are of one domain {start[measure]:.1f} standard "
        f"deviations oftener than by chance, where {_SHIFTED} would be a sign."
    )
    if share_offsets(start) is None:
        return told
    changed, gain = start["frequencies"]["changed"], start["frequencies"]["gain"]
    return (
        f"{told} The source-only classifier now weighs classes by how frequent they are in the target, which changes "
        f"{changed:,} answers; about {gain:,.0f} more of them should be right than before."
    )


def _offsets(frequencies: Mapping[str, Tensor]) -> Tensor:
    return (frequencies["target"] / frequencies["source"]).log()
