"""From records of runs to the cells of a table: three choices of a round, each a mean and a spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from calida.studies.job import RunRecord
from calida.studies.paper import NUM_SAMPLES, TABLE1, BaseRow, Row, Table
from calida.studies.tasks import Measure, StudyTask
from calida.training import SOURCE_PHASE


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


def label_free(record: RunRecord, measure: Measure = "accuracy") -> Score:
    """The round that validators chose without target labels, at its calibrated temperature."""
    return _score(record["returned"]["oracle"], measure)


def last_round(record: RunRecord, measure: Measure = "accuracy") -> Score:
    return _score(record["rounds"][-1]["oracle"], measure)


def oracle_round(record: RunRecord, measure: Measure = "accuracy") -> Score:
    """The paper's own choice: the best round by target accuracy."""
    rounds = adaptation_rounds(record) or record["rounds"][-1:]
    return max((_score(one["oracle"], measure) for one in rounds), key=lambda score: score.accuracy)


def adaptation_rounds(record: RunRecord) -> list[dict[str, Any]]:
    return [one for one in record["rounds"] if one["phase"] != SOURCE_PHASE]


def _score(oracle: Mapping[str, float], measure: Measure) -> Score:
    return Score(oracle[measure], oracle["ece"])


CHOICES = {"label-free": label_free, "last": last_round, "oracle best": oracle_round}


@dataclass(frozen=True)
class Line:
    """A row of the paper beside ours: accuracy and ECE by each choice, over the seeds that are finished."""

    row: Row
    accuracy: Mapping[str, Spread]
    ece: Mapping[str, Spread]
    uncalibrated: Spread | None  # ECE of the label-free choice before its temperature
    gain: float | None  # of the label-free choice over the source-only network of the same kind
    seconds: float

    @property
    def missing(self) -> bool:
        return not self.accuracy


def table_lines(table: Table, task: StudyTask, seeds: Sequence[int], records: Mapping[str, RunRecord]) -> list[Line]:
    """Every row of a table; rows of which no run is finished have no figures."""

    def found(recipe: str) -> list[RunRecord]:
        keys = [task.job(recipe, seed).key for seed in seeds]
        return [records[key] for key in keys if key in records]

    lines = []
    for row in table.rows:
        start = task.job(row.recipe, 0).start
        before = [] if start is None else found(start.config.recipe)
        lines.append(line_of(row, found(row.recipe), before, task.measure))
    return lines


def line_of(row: Row, mine: Sequence[RunRecord], before: Sequence[RunRecord], measure: Measure) -> Line:
    """A row from its finished runs and the source-only ones that they began with."""
    if not mine:
        return Line(row, {}, {}, None, None, 0.0)
    scores = {name: [choose(record, measure) for record in mine] for name, choose in CHOICES.items()}
    starts = {record["seed"]: label_free(record, measure).accuracy for record in before}
    gains = [
        label_free(record, measure).accuracy - starts[record["seed"]] for record in mine if record["seed"] in starts
    ]
    return Line(
        row,
        {name: Spread.of([score.accuracy for score in some]) for name, some in scores.items()},
        {name: Spread.of([score.ece for score in some]) for name, some in scores.items()},
        Spread.of([record["returned"]["oracle_uncalibrated"]["ece"] for record in mine]),
        fmean(gains) if gains else None,
        sum(record["seconds"] for record in mine),
    )


def paper_figure(row: Row) -> str:
    """What the paper prints, as text; a dash where it prints nothing."""
    if row.paper is None:
        return "-"
    return f"{row.paper:.2f}" + (f" ± {row.spread:.2f}" if row.spread is not None else "")


def line_figures(line: Line, absent: str = "") -> list[str]:
    """Accuracy by each choice, and ECE of the label-free one, calibrated and raw, as texts."""
    if line.missing or line.uncalibrated is None:
        return [absent] * (len(CHOICES) + 2)
    accuracies = [line.accuracy[name].percent() for name in CHOICES]
    return [*accuracies, line.ece["label-free"].percent(), line.uncalibrated.percent()]


@dataclass(frozen=True)
class BaseLine:
    """A row of Table 1 beside ours: source (trained on and held out) and target accuracy, target ECE."""

    row: BaseRow
    figures: Mapping[str, Spread]


def base_lines(task: StudyTask, seeds: Sequence[int], records: Mapping[str, RunRecord]) -> list[BaseLine]:
    """Table 1 for one task; one network a seed predicts with every number of samples."""
    lines = []
    for row in TABLE1[task.name]:
        recipe = "source" if row.num_samples is None else "bsource"
        keys = [task.job(recipe, seed).key for seed in seeds]
        mine = [records[key]["by_samples"][str(row.num_samples or 1)] for key in keys if key in records]
        figures = {}
        if mine:
            for name in ("source_trained_on", "source_held_out", "oracle"):
                figures[name] = Spread.of([one[name]["accuracy"] for one in mine])
            figures["ece"] = Spread.of([one["oracle"]["ece"] for one in mine])
        lines.append(BaseLine(row, figures))
    return lines


assert {row.num_samples for rows in TABLE1.values() for row in rows} == {None, *NUM_SAMPLES}
