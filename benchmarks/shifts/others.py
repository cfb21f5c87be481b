"""What others make of the same tasks: estimates of a source-only network's accuracy, and shallow methods of skada."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import calida
from benchmarks.shifts.tasks import Shift, ShiftTask
from calida.estimation import (
    CalibrationData,
    confidence_difference,
    disagreement_floor,
    thresholded_confidence,
)
from calida.seeds import Seeds
from calida.uncertainty import mean_confidence

Fit = Callable[[Shift, int], np.ndarray]


def _skada(name: str) -> Fit:
    """A shallow method of skada in front of logistic regression, on columns that each domain scales by itself."""

    def fit(shift: Shift, seed: int) -> np.ndarray:
        import skada
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        last = getattr(skada, name)(LogisticRegression(max_iter=500))
        scaled = [StandardScaler().fit(part).transform(part) for part in (shift.source, shift.target)]
        x = np.concatenate(scaled).astype(np.float64)
        y = np.concatenate([shift.labels, np.full(len(shift.target), -1)])
        domain = np.concatenate([np.ones(len(shift.labels)), np.full(len(shift.target), -2)]).astype(int)
        last.fit(x, y, sample_domain=domain)
        said: np.ndarray = last.predict(scaled[1].astype(np.float64), sample_domain=np.full(len(shift.target), -2))
        return said

    return fit


METHODS: dict[str, Fit] = {
    name: _skada(name) for name in ("CORAL", "SubspaceAlignment", "OTMapping", "LinearOTMapping", "JDOTClassifier")
}


def cbpe(validation: np.ndarray, labels: np.ndarray, target: np.ndarray) -> float | None:
    """NannyML's CBPE, where it is installed: confidence that is calibrated on held-out source, on average."""
    try:
        import nannyml
        import pandas
    except ImportError:
        return None
    names = [f"p{place}" for place in range(target.shape[1])]

    def frame(probabilities: np.ndarray) -> Any:
        rows = pandas.DataFrame(probabilities, columns=names)
        rows["said"] = probabilities.argmax(1)
        return rows

    reference, analysis = frame(validation), frame(target)
    reference["y"] = labels
    binary = target.shape[1] == 2
    estimator = nannyml.CBPE(
        y_pred_proba="p1" if binary else dict(enumerate(names)),
        y_pred="said",
        y_true="y",
        problem_type="classification_binary" if binary else "classification_multiclass",
        metrics=["accuracy"],
        chunk_number=1,
    )
    estimator.fit(reference)
    found = estimator.estimate(analysis).filter(period="analysis").to_df()
    return float(found[("accuracy", "value")].iloc[0])


def measure_others(task: ShiftTask, seed: int) -> dict[str, Any]:
    """One task by everybody else, measured with labels that nobody saw."""
    torch.set_num_threads(1)
    shift = task.load(seed)
    classes = int(shift.labels.max()) + 1
    adapted = calida.adapt((shift.source, shift.labels), shift.target, "source", num_classes=classes, seed=seed)
    said = adapted.predictions
    assert said is not None
    assert adapted.trust is not None
    data = CalibrationData(said, said.mixed)
    right = float((said.target.labels.numpy() == shift.truth).mean())
    estimates = {
        "calida": adapted.trust.accuracy.value,
        "mean confidence": mean_confidence(said.target.log_probs),
        "ATC": thresholded_confidence(data),
        "DoC": confidence_difference(data),
        "Dis^2 (a floor)": disagreement_floor(
            said.validation.log_probs, said.labels, said.target.log_probs, Seeds(seed)
        ),
        "CBPE": cbpe(said.validation.probabilities.numpy(), said.labels.numpy(), said.target.probabilities.numpy()),
    }
    methods: dict[str, Any] = {}
    for name, fit in METHODS.items():
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accuracy: float | None = float((fit(shift, seed) == shift.truth).mean())
        except Exception as error:  # another package's failure is a result too
            accuracy = None
            methods[f"{name} failed"] = f"{type(error).__name__}: {error}"[:200]
        methods[name] = accuracy
        methods[f"{name} seconds"] = round(time.perf_counter() - started, 1)
    return {
        "task": task.name,
        "data_set": task.data_set,
        "kind": task.kind,
        "seed": seed,
        "source_only": right,
        "estimates": estimates,
        "methods": methods,
    }
