"""What seeds say together: scores of finished runs, their mean and spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple

from calida.json_values import from_json

Measure = Literal["accuracy", "mean_class_accuracy"]
RunRecord = dict[str, Any]


@dataclass(frozen=True)
class _Checked:
    """What every record of a run has, and of what kind; the rest is checked where it is used."""

    key: str
    task: str
    recipe: str
    seed: int
    returned: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    rounds: list[dict[str, Any]]
    training_seconds: float
    seconds: float


def check_record(record: Any, place: str) -> RunRecord:
    """The record, or CheckpointError if it is none."""
    from_json(_Checked, record, place)
    return record  # type: ignore[no-any-return]


class Spread(NamedTuple):
    """Mean and standard deviation over seeds, of shares."""

    mean: float
    std: float
    seeds: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(fmean(values), stdev(values) if len(values) > 1 else math.nan, len(values))

    def percent(self) -> str:
        around = "" if math.isnan(self.std) else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{around}"


class Score(NamedTuple):
    """What target labels say of one classifier: oracle figures."""

    accuracy: float
    ece: float

    @staticmethod
    def of(oracle: Mapping[str, float], measure: Measure = "accuracy") -> Score:
        return Score(oracle[measure], oracle["ece"])


def label_free(record: RunRecord, measure: Measure = "accuracy") -> Score:
    """The round that validators chose without target labels, at its calibrated temperature."""
    return Score.of(record["returned"]["oracle"], measure)
