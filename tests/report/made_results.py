"""Results that no run has made, with all that a report can show."""

import numpy as np
from histories import labeled, unlabeled

from calida.adaptation import Trust
from calida.estimation import Estimate
from calida.objective import MultiplierState
from calida.report import RunPredictions, RunResults, compute_metrics
from calida.report.run_predictions import ClassifierPredictions
from calida.shift import MeasuredShift
from calida.validation import VALIDATORS, VOTERS, Decision, PseudoLabelSummary, Reason, Returned, RoundRecord

DECISIONS = {
    Returned.SOURCE_ONLY: Decision(Returned.SOURCE_ONLY, Reason.NO_ROUND_HELPED),
    Returned.PRIOR_CORRECTED: Decision(
        Returned.PRIOR_CORRECTED,
        Reason.NO_SHIFT,
        shift=MeasuredShift((0.5, 0.5), (0.9, 0.1), 0.1, 100, 30.0, 0.9, 9.0, 2.0, 9.0),
    ),
    Returned.ROUND: Decision(Returned.ROUND, Reason.BEST, round=1, rounds=2, votes=VOTERS),
}
HOSTILE = '<img src=x onerror="document.title=1">'
CLASSES = ["plain", HOSTILE, "c&d"]


def normalize(logits):
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def view(rng, labels, target_labels, sharpness, temperature=1.0, point=False):
    def log_probs(truth):
        logits = rng.normal(size=(len(truth), 3)) + sharpness * np.eye(3)[truth]
        return normalize(logits / temperature).astype(np.float32)

    validation, target = log_probs(labels), log_probs(target_labels)
    share = np.zeros(len(target)) if point else rng.uniform(0.1, 0.3, len(target))
    places = rng.normal(size=(20 + 30, 2)).astype(np.float32)
    return ClassifierPredictions(np.array(temperature), validation, target, uncertainty(target, share), places)


def uncertainty(target, share):
    """Entropy, its aleatoric part and its epistemic part, which is this share of it."""
    entropy = -(np.exp(target) * target).sum(1)
    return np.stack([entropy, (1 - share) * entropy, share * entropy], 1).astype(np.float32)


def record(phase, index, truth_known, kept):
    """A round's record; validators get better with every round, whichever end is the better one."""
    judged = phase == "adapt" or index == 1
    step = 0 if phase == "pretrain" else index + 1
    values = {name: 0.5 + (0.1 if one.higher_is_better else -0.1) * step for name, one in VALIDATORS.items()}
    source = labeled(0.9 + 0.01 * index, 0.3, [0.3, 0.3, 0.4])
    return RoundRecord(
        phase,
        index,
        2,
        source,
        target=unlabeled(0.5 - 0.1 * index, [0.3, 0.3, 0.4]),
        selected=PseudoLabelSummary(0.3 + 0.1 * index, (0.3, 0.3, 0.4)),
        multipliers={"target_entropy": MultiplierState(0.2 + index)},
        gradient_variance={"source": 1e-3, "target": 2e-3},
        kept=kept,
        validators=values if judged else {},
        oracle=labeled(0.8 + 0.05 * step, shares=[0.3, 0.3, 0.4]) if truth_known and judged else None,
    )


def make(
    truth_known=True,
    images=True,
    adapted=True,
    sharpness=(1.0, 4.0),
    temperature=1.5,
    point=False,
    fell_back=False,
    returned=None,
    warnings=(),
    candidates=None,
    judged=False,
    estimate=(0.812, 0.754, 0.876),
    agreements=(),
):
    rng = np.random.default_rng(0)
    labels, target_labels = np.arange(60) % 3, np.arange(90) % 3
    before = view(rng, labels, target_labels, sharpness[0], point=point)
    after = view(rng, labels, target_labels, sharpness[1], temperature, point)
    if fell_back or not adapted:  # the same network, calibrated
        validation, target = (normalize(part / temperature) for part in (before.validation, before.target))
        parts = uncertainty(target, before.uncertainty[:, 2] / before.uncertainty[:, 0])
        after = ClassifierPredictions(np.array(temperature), validation, target, parts, before.map)
    shown = np.concatenate([np.flatnonzero(after.target.argmax(1) == label)[:12] for label in range(3)])
    pictures = rng.integers(0, 256, (len(shown), 3, 8, 8)).astype(np.uint8) if images else np.zeros(0, np.uint8)
    truth = target_labels if truth_known else np.zeros(0, np.int64)
    right = rng.uniform(0.3, 1.0, 90).astype(np.float32) if judged else np.zeros(0, np.float32)
    by_domain = np.arange(10, 26) if images else np.zeros(0, np.int64)
    compared = rng.integers(0, 256, (len(by_domain), 3, 8, 8)).astype(np.uint8)
    predictions = RunPredictions(
        before, after, labels, np.arange(20), np.arange(30), shown, pictures, truth, right, by_domain, compared
    )
    phases = [("pretrain", 0), ("pretrain", 1), *([("adapt", 0), ("adapt", 1)] if adapted else [])]
    rounds = [record(phase, index, truth_known, phase == "pretrain" or not fell_back) for phase, index in phases]
    decision = DECISIONS[returned or (Returned.ROUND if adapted and not fell_back else Returned.SOURCE_ONLY)]
    metrics = {
        **compute_metrics(predictions),
        "classes": CLASSES,
        "data": {
            "source": {"origin": HOSTILE, "notes": ["60 images"]},
            "target": {"origin": "target", "notes": [f"skipped {HOSTILE}"]},
        },
        "recipe": "calida",
        "seed": 0,
        "trust": Trust(
            temperature,
            "pseudocal",
            Estimate(*estimate),
            decision,
            tuple(warnings),
            candidates or {},
            tuple(agreements),
        ).to_json(),
        "validators": rounds[-1].validators,
        "training_seconds": 1.5,
        "command": f"calida adapt --source '{HOSTILE}'",
        "machine": "here",
        "versions": {"calida": "0"},
    }
    names = [f"{HOSTILE}/{row}.png" for row in range(90)]
    return RunResults(metrics, rounds, predictions, "path", names)
