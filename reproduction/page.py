"""docs/reproduction.md and its figures, made of records alone: the paper's tables and claims beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calida.files import write_atomically
from calida.studies import RunRecord, StudyTask
from reproduction.claims import Verdict, examine_claims
from reproduction.markdown import grid, hours, listed, made_with, settings_grid
from reproduction.pictures import base_mark_of, course_of, draw_courses, draw_marks, mark_of
from reproduction.study import STUDIES, plan_study
from reproduction.summary import CHOICES, Line, Records, base_lines, table_lines
from reproduction.tables import TABLE1, TABLES, VISDA17, Table

RESULTS = "results/reproduction"
_CLOSE = 0.5  # points under the paper's figure that still count as reached
_OPENING = """# The paper's tables, run again

The figures that *Unsupervised Domain Adaptation via Calibrating Uncertainties* (Han, Zou, Gao, Wang, Metaxas, 2019)
prints, beside ours ({made}). Ours are computed from the records in `{results}`:
`python -m reproduction page` writes this page from them and trains nothing. The commands beside the tables make what is
missing among the records and print the same table.

Every accuracy and ECE on target was measured with target labels. They touched neither training, nor the label-free
choice, nor calibration. The column "oracle best" alone chooses by them.

## What is not the paper's setting

- **Table 2b** has all 73,257 SVHN images as source and 10,000 MNIST training images, drawn by the seed, as target. The
  authors do not say which part of MNIST was theirs. `--protocol full` takes all 60,000.
- **Weight samples** come from the dropout layers of the last block and the heads (`sampled = "top"`); the layers below
  run once. [method.md](method.md#the-paper-the-released-code-and-this-one) has what all layers would give.
- **Rows "expected shares"** and, on SVHN, those with GVR select pseudo-labels by the expected share of each class.
  The other rows at order infinity select by the counts of predicted classes, as the paper does.
- **Rows "groups alone"** are the control of GVR: the same groups, each with its own BatchNorm statistics, masks and
  noise, and weight 0.
- **Table 3** was not run here: it takes VisDA17's images. GTA-Res152 is another paper's method on another network.
- **Table 3's way on PACS** has none of the paper's figures beside it. A frozen EfficientNet-Lite0 reads 1,670
  photographs and 2,048 paintings of seven classes. The paper's recipes, point and Bayesian, with GVR and without,
  train a linear classifier on its features. The row `features` is calida's own recipe for embeddings. The guard is off
  here as in all tables, and with it the check classifiers that set the temperature of a usual run.

## Three choices of a round

- **label-free**: the round that validators chose without target labels, with the guard off. Rows and claims are judged
  by it.
- **last**: no choice at all.
- **oracle best**: the round with the highest target accuracy. The paper chose so. It takes the labels that unsupervised
  adaptation has not got.

Figures are means ± standard deviations over seeds, in percent. "to the paper" is the label-free choice less the paper's
figure, "gain" is it less the source-only network that the same run began with, both in points. "rise" is what accuracy
gained over the last three rounds. ECE is that of the label-free choice, after calibration and before it ("raw")."""


def write_page(
    docs: Path, tasks: Mapping[str, StudyTask], seeds: Mapping[str, Sequence[int]], records: Records
) -> Path:
    """Write the page and its figures from what is finished, and give the page's path."""
    page = _Page(tasks, seeds, records)
    text = page.text()
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    for name, picture in page.figures.items():
        write_atomically(docs / "figures" / name, picture.encode())
    path = docs / "reproduction.md"
    write_atomically(path, text.encode())
    return path


@dataclass
class _Page:
    """Sections as text; figures gather beside them by file name."""

    tasks: Mapping[str, StudyTask]
    seeds: Mapping[str, Sequence[int]]  # by study
    records: Records
    figures: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        shown = {one["key"]: one for name in STUDIES for one in self.runs(name)}
        seconds = sum(one["seconds"] for one in shown.values())
        made = f"{len(shown)} runs, {hours(seconds)} of one thread" if shown else "no run so far"
        parts = [_OPENING.format(made=made, results=RESULTS), self.table1()]
        parts += [self.table(table) for table in TABLES.values()]
        parts += [self.claims(), self.settings()]
        return "\n\n".join(parts) + "\n"

    def runs(self, study: str) -> list[RunRecord]:
        """The finished ones of those that a study needs."""
        keys = [job.key for job in plan_study(study, self.tasks, self.seeds[study]).jobs]
        return [self.records[key] for key in keys if key in self.records]

    def picture(self, name: str, words: str, drawn: str) -> str:
        self.figures[f"{name}.svg"] = drawn
        return f"![{words}](figures/{name}.svg)"

    def table1(self) -> str:
        parts = ["## Table 1: base networks", _command("table1"), made_with(self.runs("table1"))]
        parts.append("Each network is trained with its own number of weight samples M, and predicts with it.")
        header = ["model", "paper: source", "paper: target", "source, trained on", "source, held out", "target", "ECE"]
        for name in TABLE1:
            lines = base_lines(self.tasks[name], self.seeds["table1"], self.records)
            rows = [
                [
                    _with_seeds(line.row.name, max((s.seeds for s in line.figures.values()), default=0)),
                    f"{line.row.source:.2f}",
                    f"{line.row.target:.2f}",
                    *([spread.percent() for spread in line.figures.values()] or ["not run"] * 4),
                ]
                for line in lines
            ]
            parts += [f"### Table 1, {name}", grid(header, rows)]
            if any(line.figures for line in lines):
                words = f"Table 1, {name}: accuracy on target, the paper's and ours"
                drawn = draw_marks(words, [base_mark_of(line) for line in lines])
                parts.append(self.picture(f"table1-{name}", words, drawn))
        return "\n\n".join(parts)

    def table(self, table: Table) -> str:
        task = self.tasks[table.task]
        mine = [one for one in self.runs(table.study) if one["task"] == table.task]
        lines = table_lines(table, task, self.seeds[table.study], self.records)
        parts = [f"## {table.title}", _command(table.study), made_with(mine)]
        header = ["model", "paper", *CHOICES, "to the paper", "gain", "rise", "ECE", "ECE, raw"]
        cells = [header, *(_cells(line) for line in lines)]
        if not table.has_paper:
            cells = [[cell for name, cell in zip(header, row, strict=True) if "paper" not in name] for row in cells]
        parts.append(grid(cells[0], cells[1:]))
        if mine:
            parts += [_compared(lines)] if table.has_paper else []
            whose = "the paper's and ours" if table.has_paper else "ours"
            words = f"{table.title.replace('->', 'to')}: accuracy on target, {whose}"
            parts.append(self.picture(table.name, words, draw_marks(words, [mark_of(line) for line in lines])))
            adapting = [line for line in lines if line.row.recipe not in ("source", "bsource")]
            words = f"{table.task}: {task.measure.replace('_', ' ')} on target by round of adaptation"
            courses = [course_of(line.row.name, line.runs, task.measure, line.row.paper) for line in adapting]
            parts.append(self.picture(f"rounds-{table.task}", words, draw_courses(words, courses)))
        return "\n\n".join(parts)

    def claims(self) -> str:
        findings = examine_claims(self.tasks, self.seeds["claims"], self.records)
        parts = ["## What the paper claims", _command("claims")]
        if not findings:
            return "\n\n".join([*parts, "Not run: no claim has the runs that it takes."])
        counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in Verdict}
        rows = []
        for one in findings:
            mean, low, high = one.interval
            between = f"{low:.2f} to {high:.2f}" if math.isfinite(high - low) else "none from one seed"
            row = [one.claim, one.task, one.measured, f"{mean:.2f}", between, str(one.seeds), f"{one.adjusted:.3f}"]
            rows.append([*row, one.verdict.value])
        parts += [
            f"Of {len(findings)} findings {counts[Verdict.HOLDS]} hold, {counts[Verdict.FAILS]} do not hold, and "
            f"{counts[Verdict.OPEN]} are not settled. Differences are paired by seed, and those of accuracy are of the "
            "label-free choice. A finding is settled where its 95 % interval keeps clear of its border and its p-value "
            "is at most 0.05 after Holm's correction for all findings of this table.",
            grid(["claim", "task", "measured", "mean", "95 % interval", "seeds", "p, Holm", "verdict"], rows),
        ]
        return "\n\n".join(parts)

    def settings(self) -> str:
        parts = ["## Settings", "As the records have them. A ramp goes evenly from its first round to its last."]
        for table in TABLES.values():
            if table.task == VISDA17:
                continue
            lines = table_lines(table, self.tasks[table.task], self.seeds[table.study], self.records)
            known = [(line.row.name, line.runs[0]["settings"]) for line in lines if line.runs]
            parts += [f"### Settings, {table.task}", settings_grid(known) if known else "Not run."]
        return "\n\n".join(parts)


def _command(what: str) -> str:
    return f"```sh\npython -m reproduction {what}\n```"


def _with_seeds(name: str, seeds: int) -> str:
    return f"{name} ({seeds} seed{'s' * (seeds > 1)})" if seeds else name


def _cells(line: Line) -> list[str]:
    row = line.row
    paper = "-" if row.paper is None else f"{row.paper:.2f}" + (f" ± {row.spread:.2f}" if row.spread else "")
    if row.recipe is None:
        return [row.name, paper, *["another method, not run"] + ["-"] * 7]
    if line.missing or line.ece is None or line.uncalibrated is None:
        return [row.name, paper, *["not run"] * 3, *["-"] * 5]
    return [
        _with_seeds(row.name, len(line.runs)),
        paper,
        *(line.accuracy[name].percent() for name in CHOICES),
        *("-" if value is None else f"{value:+.2f}" for value in (line.distance, line.gain and 100 * line.gain)),
        "-" if line.still_rising is None else f"{line.still_rising:+.2f}",
        line.ece.percent(),
        line.uncalibrated.percent(),
    ]


def _compared(lines: Sequence[Line]) -> str:
    """Which rows reach the paper's figures without target labels."""
    judged = [line for line in lines if line.distance is not None]
    above = [line.row.name for line in judged if (line.distance or 0) >= -_CLOSE - 1e-9]
    below = [f"{line.row.name} ({line.distance:+.2f})" for line in judged if line.row.name not in above]
    return (
        f"At or above the paper's figure less {_CLOSE} points: {listed(above) or 'no row'}. "
        f"Below it: {listed(below) or 'no row'}."
    )
