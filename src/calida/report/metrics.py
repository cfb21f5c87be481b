"""The figures of a finished run: what is known without target labels, and an oracle's where they were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from calida.report.run_predictions import ClassifierPredictions, RunPredictions
from calida.seeds import Seeds
from calida.shift import class_shares, estimate_shares
from calida.uncertainty import aurc, measure_answers, renyi_entropy


def compute_metrics(predictions: RunPredictions) -> dict[str, Any]:
    """`source_only` and `adapted`, each with `source`, `target` and, only where labels were given, `oracle`.

    Figures are those of the probabilities that `predict` gives; `oracle_uncalibrated` has the network's own.
    """
    truth = torch.from_numpy(predictions.truth) if len(predictions.truth) else None
    labels = torch.from_numpy(predictions.validation_labels)
    described = {
        name: _describe(view, labels, truth)
        for name, view in (("source_only", predictions.before), ("adapted", predictions.after))
    }
    described["adapted"]["target"]["estimated_shares"] = _estimated_shares(predictions.after, labels)
    return described


def _estimated_shares(view: ClassifierPredictions, labels: Tensor) -> dict[str, list[float]] | None:
    """The target's class shares if classes are confused as on held-out source; None where that cannot be told."""
    validation, target = torch.from_numpy(view.validation).double(), torch.from_numpy(view.target).double()
    known = class_shares(labels, target.shape[-1])
    found = estimate_shares(validation, labels, target, known, Seeds(0).generator("class shares"))
    return None if found is None else {name: shares.tolist() for name, shares in found._asdict().items()}


def _describe(view: ClassifierPredictions, validation_labels: Tensor, truth: Tensor | None) -> dict[str, Any]:
    validation, target = torch.from_numpy(view.validation).double(), torch.from_numpy(view.target).double()
    entropy, aleatoric, epistemic = np.asarray(view.uncertainty, dtype=np.float64).mean(0).tolist()
    described = {
        "source": {
            **measure_answers(validation, validation_labels),
            "entropy": float(renyi_entropy(validation, 1.0).mean()),
        },
        "target": {
            "entropy": entropy,
            "aleatoric": aleatoric,
            "epistemic": epistemic,
            "confidence": float(target.amax(-1).exp().mean()),
            "class_shares": class_shares(target.argmax(-1), target.shape[-1]).tolist(),
        },
    }
    if truth is None:
        return described
    oracle = {**measure_answers(target, truth), "aurc": _rejection(view, target, truth)}
    return {**described, "oracle": oracle, "oracle_uncalibrated": measure_answers(view.uncalibrated, truth)}


def _rejection(view: ClassifierPredictions, log_probs: Tensor, truth: Tensor) -> dict[str, float]:
    """How well each score orders errors: the area under the risk-coverage curve."""
    wrong = (log_probs.argmax(-1) != truth).double()
    return {name: float(aurc(score, wrong)) for name, score in view.scores().items()}
