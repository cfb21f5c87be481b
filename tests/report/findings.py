"""Findings that no run has made, with all that a report can show."""

import numpy as np

from calida.report import Evidence, Finding, compute_metrics
from calida.report.run_predictions import View
from calida.validation import VALIDATORS

HOSTILE = '<img src=x onerror="document.title=1">'
CLASSES = ["plain", HOSTILE, "c&d"]


def normalise(logits):
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def view(rng, labels, target_labels, sharpness, temperature=1.0, point=False):
    def log_probs(truth):
        logits = rng.normal(size=(len(truth), 3)) + sharpness * np.eye(3)[truth]
        return normalise(logits / temperature).astype(np.float32)

    validation, target = log_probs(labels), log_probs(target_labels)
    share = np.zeros(len(target)) if point else rng.uniform(0.1, 0.3, len(target))
    places = rng.normal(size=(20 + 30, 2)).astype(np.float32)
    return View(np.array(temperature), validation, target, uncertainty(target, share), places)


def uncertainty(target, share):
    """Entropy, its aleatoric part and its epistemic part, which is this share of it."""
    entropy = -(np.exp(target) * target).sum(1)
    return np.stack([entropy, (1 - share) * entropy, share * entropy], 1).astype(np.float32)


def record(phase, index, truth_known, kept):
    """A round's record; validators get better with every round, whichever end is the better one."""
    judged = phase == "adapt" or index == 1
    step = 0 if phase == "pretrain" else index + 1
    values = {name: 0.5 + (0.1 if one.higher_is_better else -0.1) * step for name, one in VALIDATORS.items()}
    return {
        "phase": phase,
        "round": index,
        "rounds": 2,
        "source": {"entropy": 0.3, "accuracy": 0.9 + 0.01 * index},
        "target": {"entropy": 0.5 - 0.1 * index, "class_shares": [0.3, 0.3, 0.4]},
        "selected": {"share": 0.3 + 0.1 * index},
        "multipliers": {"target_entropy": {"value": 0.2 + index}},
        "gradient_variance": {"source": 1e-3, "target": 2e-3},
        "kept": kept,
        **({"validators": values} if judged else {}),
        **({"oracle": {"accuracy": 0.8 + 0.05 * step}} if truth_known and judged else {}),
    }


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
):
    rng = np.random.default_rng(0)
    labels, target_labels = np.arange(60) % 3, np.arange(90) % 3
    before = view(rng, labels, target_labels, sharpness[0], point=point)
    after = view(rng, labels, target_labels, sharpness[1], temperature, point)
    if fell_back or not adapted:  # the same network, calibrated
        validation, target = (normalise(part / temperature) for part in (before.validation, before.target))
        parts = uncertainty(target, before.uncertainty[:, 2] / before.uncertainty[:, 0])
        after = View(np.array(temperature), validation, target, parts, before.map)
    shown = np.concatenate([np.flatnonzero(after.target.argmax(1) == label)[:12] for label in range(3)])
    pictures = rng.integers(0, 256, (len(shown), 3, 8, 8)).astype(np.uint8) if images else np.zeros(0, np.uint8)
    truth = target_labels if truth_known else np.zeros(0, np.int64)
    evidence = Evidence(before, after, labels, np.arange(20), np.arange(30), shown, pictures, truth)
    phases = [("pretrain", 0), ("pretrain", 1), *([("adapt", 0), ("adapt", 1)] if adapted else [])]
    rounds = [record(phase, index, truth_known, phase == "pretrain" or not fell_back) for phase, index in phases]
    metrics = {
        **compute_metrics(evidence),
        "classes": CLASSES,
        "data": {
            "source": {"origin": HOSTILE, "notes": ["60 images"]},
            "target": {"origin": "target", "notes": [f"skipped {HOSTILE}"]},
        },
        "recipe": "calida",
        "seed": 0,
        "trust": {
            "temperature": temperature,
            "calibration": "pseudocal",
            "accuracy": {"value": 0.812, "low": 0.754, "high": 0.876},
            "returned": returned or ("round 2 of 2" if adapted and not fell_back else "source only"),
            "reason": "It has the best corr-c.",
            "warnings": list(warnings),
            "candidates": candidates or {},
        },
        "validators": rounds[-1]["validators"],
        "training_seconds": 1.5,
        "command": f"calida adapt --source '{HOSTILE}'",
        "machine": "here",
        "versions": {"calida": "0"},
    }
    names = [f"{HOSTILE}/{row}.png" for row in range(90)]
    return Finding(metrics, rounds, evidence, "path", names)
