"""From records of runs to the lines of a table: three choices of a round, each a mean and a spread over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from calida.studies import Measure, RunRecord, Score, Spread, StudyTask, label_free
from calida.training import SOURCE_PHASE
from reproduction.study import base_job, row_job
from reproduction.tables import TABLE1, BaseRow, Row, Table

Records = Mapping[str, RunRecord]


def last_round(record: RunRecord, measure: Measure = "accuracy") -> Score:
    return Score.of(record["rounds"][-1]["oracle"], measure)


def oracle_round(record: RunRecord, measure: Measure = "accuracy") -> Score:
    """The paper's own choice: the best round by target accuracy."""
    rounds = adaptation_rounds(record) or record["rounds"][-1:]
    return max((Score.of(one["oracle"], measure) for one in rounds), key=lambda score: score.accuracy)


def adaptation_rounds(record: RunRecord) -> list[dict[str, Any]]:
    return [one for one in record["rounds"] if one["phase"] != SOURCE_PHASE]


CHOICES = {"label-free": label_free, "last": last_round, "oracle best": oracle_round}


@dataclass(frozen=True)
class Line:
    """A row of the paper beside ours: accuracy and ECE by each choice, over the seeds that are finished."""

    row: Row
    runs: Sequence[RunRecord]
    accuracy: Mapping[str, Spread]
    ece: Spread | None  # of the label-free choice, calibrated
    uncalibrated: Spread | None
    gain: float | None  # of the label-free choice over the source-only network of the same kind

    @property
    def missing(self) -> bool:
        return not self.accuracy

    @property
    def distance(self) -> float | None:
        """Points from the paper's figure to our label-free one."""
        if self.missing or self.row.paper is None:
            return None
        return 100 * self.accuracy["label-free"].mean - self.row.paper

    @property
    def still_rising(self) -> float | None:
        """Points that accuracy gains from the third last round to the last: what longer training might add."""
        courses = [[one["oracle"]["accuracy"] for one in adaptation_rounds(record)] for record in self.runs]
        gains = [100 * (course[-1] - course[-3]) for course in courses if len(course) >= 3]
        return fmean(gains) if gains else None


def table_lines(table: Table, task: StudyTask, seeds: Sequence[int], records: Records) -> list[Line]:
    """Every row of a table; rows of which no run is finished have no figures."""
    lines = []
    for row in table.rows:
        jobs = [row_job(task, row, seed) for seed in seeds] if row.recipe is not None else []
        mine = [records[job.key] for job in jobs if job.key in records]
        starts = {job.start.key: job.config.seed for job in jobs if job.start is not None}
        before = {seed: records[key] for key, seed in starts.items() if key in records}
        lines.append(_line(row, mine, before, task.measure))
    return lines


def _line(row: Row, mine: Sequence[RunRecord], before: Mapping[int, RunRecord], measure: Measure) -> Line:
    if not mine:
        return Line(row, (), {}, None, None, None)
    accuracy = {
        name: Spread.of([choose(record, measure).accuracy for record in mine]) for name, choose in CHOICES.items()
    }
    gains = [
        label_free(record, measure).accuracy - label_free(before[record["seed"]], measure).accuracy
        for record in mine
        if record["seed"] in before
    ]
    return Line(
        row,
        mine,
        accuracy,
        Spread.of([label_free(record, measure).ece for record in mine]),
        Spread.of([record["returned"]["oracle_uncalibrated"]["ece"] for record in mine]),
        fmean(gains) if gains else None,
    )


@dataclass(frozen=True)
class BaseLine:
    """A row of Table 1 beside ours: source (trained on and held out) and target accuracy, target ECE."""

    row: BaseRow
    figures: Mapping[str, Spread]


def base_lines(task: StudyTask, seeds: Sequence[int], records: Records) -> list[BaseLine]:
    """Table 1 for one task: every network trained with its own number of samples, and predicting with it."""
    lines = []
    for row in TABLE1[task.name]:
        keys = [base_job(task, row, seed).key for seed in seeds]
        mine = [records[key]["by_samples"][str(row.num_samples or 1)] for key in keys if key in records]
        figures = {}
        if mine:
            for name in ("source_trained_on", "source_held_out", "oracle"):
                figures[name] = Spread.of([one[name]["accuracy"] for one in mine])
            figures["ece"] = Spread.of([one["oracle"]["ece"] for one in mine])
        lines.append(BaseLine(row, figures))
    return lines
