"""What a round tells the outside, as plain values that JSON can hold; nothing here knows a target label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from calida.model import Prediction
from calida.shift import class_shares, shares_nearest_uniform
from calida.training.phase import SOURCE_PHASE, PseudoLabels
from calida.uncertainty import calibration_error, nll

_OVER_BUDGET = 1.1  # times the budget: what dual ascent ends within, where it can meet it at all


def describe_target(prediction: Prediction) -> dict[str, Any]:
    """What can be said of a prediction without labels."""
    return {
        "entropy": float(prediction.entropy.mean()),
        "aleatoric": float(prediction.aleatoric.mean()),
        "epistemic": float(prediction.epistemic.mean()),
        "confidence": float(prediction.confidence.mean()),
        "class_shares": class_shares(prediction.labels, prediction.log_probs.shape[-1]).tolist(),
    }


def describe_labeled(prediction: Prediction, labels: Tensor) -> dict[str, Any]:
    """The same, and how it fares against labels: for source validation, or for an oracle's figures on target."""
    return {
        **describe_target(prediction),
        "accuracy": float((prediction.labels == labels).double().mean()),
        "mean_class_accuracy": mean_class_accuracy(prediction.labels, labels),
        "nll": float(nll(prediction.log_probs, labels).mean()),
        "ece": float(calibration_error(prediction.log_probs, labels)),
    }


def mean_class_accuracy(predicted: Tensor, labels: Tensor) -> float:
    """The mean over the classes that occur of the share of each that is found."""
    right = (predicted == labels).double()
    return float(torch.stack([right[labels == label].mean() for label in labels.unique()]).mean())


def describe_pseudo_labels(pseudo_labels: PseudoLabels) -> dict[str, Any]:
    """How much of the target was selected and how its pseudo-labels spread over the classes."""
    chosen = pseudo_labels.labels[pseudo_labels.selected].argmax(-1)
    return {
        "share": float(pseudo_labels.selected.double().mean()),
        "class_shares": class_shares(chosen, pseudo_labels.labels.shape[-1]).tolist(),
    }


def target_shares(history: Sequence[Mapping[str, Any]], doubt: float) -> Tensor:
    """The target's class shares, as near to equal as predictions and doubts of the source-only classifier allow: [K].

    Neither BatchNorm nor diversity, which take classes for equal, has touched that one.
    """
    seen = next(record for record in reversed(history) if record["phase"] == SOURCE_PHASE)["target"]
    return shares_nearest_uniform(torch.tensor(seen["class_shares"]), doubt * (1 - seen["confidence"]))


def unmet_budget(history: Sequence[Mapping[str, Any]], maximum: float) -> str | None:
    """A sentence if the last round ended over an entropy budget with its multiplier at the maximum."""
    for state in (history[-1].get("multipliers") or {}).values():
        reached = (state["average"] or 0.0) / state["training_ratio"]
        if state["budget"] and state["value"] >= maximum and reached > _OVER_BUDGET * state["budget"]:
            return (
                f"The entropy budget of {state['budget']:.3g} nats was not reached: the target ended at {reached:.3g} "
                f"with the multiplier at its maximum of {maximum:g}."
            )
    return None


def print_rounds(record: dict[str, Any]) -> None:
    """An observer for notebooks and scripts: one line a round."""
    if record["kind"] == "round":
        print(round_line(record), flush=True)


def round_line(record: dict[str, Any]) -> str:
    """A round in one line."""
    line = f"{record['phase']} {record['round'] + 1}/{record['rounds']}"
    line += f"  source accuracy {record['source']['accuracy']:.3f}"
    if "target" in record:
        line += f"  target entropy {record['target']['entropy']:.3f}"
    if "selected" in record:
        line += f"  selected {record['selected']['share']:.0%}"
    if "oracle" in record:
        line += f"  oracle accuracy {record['oracle']['accuracy']:.3f}"
    line += f"  {record['seconds']:.1f} s"
    return f"{line}  {record['stopped']}" if "stopped" in record else line
