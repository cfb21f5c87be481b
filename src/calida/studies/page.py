"""docs/reproduction.md and its figures, made of records alone: the paper's tables and claims beside ours."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from calida.data import Place
from calida.files import write_atomically
from calida.recipes import RECIPES
from calida.studies.cells import Line, Spread, base_lines, line_figures, line_of, paper_figure, table_lines
from calida.studies.claims import FAILS, HOLDS, OPEN, examine_claims
from calida.studies.job import RunRecord
from calida.studies.paper import SVHN_MNIST, TABLE1, TABLES, VISDA17, Row, Table
from calida.studies.pictures import base_mark_of, course_of, draw_courses, draw_marks, mark_of
from calida.studies.study import STUDIES, plan_study
from calida.studies.tasks import Measure, StudyTask
from calida.studies.wording import grid, hours, listed, made_with, safe, settings_grid

_RESULTS = "results/reproduction"
_CLOSE = 0.5  # points under the paper's figure that still count as reached
_COLUMNS = ("model", "paper", "label-free", "last round", "oracle best", "gain", "ECE", "ECE, raw")
_BASES = ("source", "bsource")
_NETWORK = ("backbone", "backbone_weights", "size")
_CHOICES = """## Three choices of a round

- **label-free**: the round that validators chose without target labels ([trust.md](trust.md#choose)), with the guard
  off. Rows and claims are judged by it.
- **last round**: no choice at all.
- **oracle best**: the round with the highest target accuracy. The paper chose so. It takes the labels that unsupervised
  adaptation has not got.

Figures are means ± standard deviations over seeds, in percent. "gain" is the label-free choice less the source-only
network that the same run began with, in points. ECE is that of the label-free choice, after calibration without target
labels and before it ("raw")."""
_CHOSEN = """Learning rates, epochs, rounds, passes and portions were chosen on MNIST -> USPS, seed 0, by source
validation and label-free scores, and hold for every seed. It was no blind choice: target accuracies of earlier tries of
all four seeds had been seen when the longer portions were tried, and those of one try on SVHN -> MNIST when the paper's
recipes were given the target's BatchNorm statistics. A rate with two values falls by a half cosine. "source a
round" is the share of the source that a round trains on."""

Group = tuple[str, list[RunRecord]]  # a row's name and its runs


def write_page(
    docs: Path, tasks: Mapping[str, StudyTask], seeds: Sequence[int], records: Mapping[str, RunRecord]
) -> Path:
    """Write the page and its figures from what is finished, and give the page's path."""
    page = _Page(tasks, tuple(seeds), records)
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
    seeds: tuple[int, ...]
    records: Mapping[str, RunRecord]
    figures: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        own = {one["key"]: one for mine in self.runs.values() for one in mine}
        others = _other_tasks(self.records)
        shown = [*own.values(), *(one for groups in others.values() for _, mine in groups for one in mine)]
        parts = [
            _opening(shown),
            self.differences(shown),
            _CHOICES,
            self.table1(),
            *(self.table(table) for table in TABLES.values()),
            *(self.other_task(name, groups) for name, groups in others.items()),
            self.claims(),
            self.settings(list(own.values()), others),
        ]
        if left := len(self.records) - len(shown):
            parts.append(f"Records with other settings or seeds, which are not on this page: {left}.")
        return "\n\n".join(parts) + "\n"

    @cached_property
    def runs(self) -> dict[str, list[RunRecord]]:
        """The finished ones of those that each study needs."""
        plans = {name: plan_study(name, self.tasks, self.seeds).jobs for name in STUDIES}
        keys = {name: [job.key for job in jobs] for name, jobs in plans.items()}
        return {name: [self.records[key] for key in some if key in self.records] for name, some in keys.items()}

    def picture(self, name: str, words: str, drawn: str) -> str:
        self.figures[f"{name}.svg"] = drawn
        return f"![{safe(words)}](figures/{name}.svg)"

    def differences(self, shown: Sequence[RunRecord]) -> str:
        points = []
        source, target = (Place.parse(text) for text in (self.tasks[SVHN_MNIST].source, self.tasks[SVHN_MNIST].target))
        if source.count is not None or target.count is not None:
            points.append(
                f"- **Table 2b** is on {_in_words(source)}, the first ones in our copy of the set, and on "
                f"{_in_words(target)}, drawn by the seed. `--protocol full` takes the whole sets."
            )
        samples = listed(sorted({self.tasks[name].job("bsource", 0).recipe.num_samples for name in TABLE1}))
        points.append(
            f"- **M in Table 1** is the number of samples at prediction (Eq. 2). One network a seed, trained with "
            f"M = {samples}, predicts with every M; none was trained for another."
        )
        shares: dict[float, set[str]] = {}
        for one in shown:
            if one["settings"].get("gvr_weight") and one["settings"].get("gvr_share", 1) < 1:
                shares.setdefault(one["settings"]["gvr_share"], set()).add(one["task"])
        points += [
            f"- **Rows with GVR** ({safe(listed(sorted(names)))}) regularise gradient variance in a share of {share:g} "
            "of the target steps, and the other steps are plain. In Algorithm 1 every target step has it."
            for share, names in sorted(shares.items())
        ]
        if not self.runs["table3"]:
            points.append("- **Table 3** was not run here: it takes VisDA17's images.")
        return "## What is not the paper's setting\n\n" + "\n".join(points)

    def table1(self) -> str:
        parts = ["## Table 1: base networks", _command("table1"), made_with(self.runs["table1"])]
        header = ["model", "paper: source", "paper: target", "source, trained on", "source, held out"]
        for name in TABLE1:
            lines = base_lines(self.tasks[name], self.seeds, self.records)
            names = _names([line.row.name for line in lines], [line.figures.get("oracle") for line in lines])
            rows = [
                [called, f"{line.row.source:.2f}", f"{line.row.target:.2f}"]
                + ([spread.percent() for spread in line.figures.values()] or ["not run"] * 4)
                for called, line in zip(names, lines, strict=True)
            ]
            parts += [f"### Table 1, {name}", grid([*header, "target (oracle)", "target ECE (oracle)"], rows)]
            if any(line.figures for line in lines):
                words = f"Table 1, {name}: oracle accuracy on target, the paper's and ours"
                drawn = draw_marks(words, [base_mark_of(line) for line in lines])
                parts.append(self.picture(f"table1-{name}", words, drawn))
        return "\n\n".join(parts)

    def table(self, table: Table) -> str:
        task, mine = self.tasks[table.task], self.runs[table.name]
        lines = table_lines(table, task, self.seeds, self.records)
        absent = "not run here" if table.task == VISDA17 and not mine else "not run"
        parts = [f"## {table.title}", _command(table.name), made_with(mine), grid(_COLUMNS, _cells(lines, absent))]
        if mine:
            parts.append(_compared(lines))
            words = f"{table.title.replace('->', 'to')}: oracle accuracy on target, the paper's and ours"
            parts.append(self.picture(table.name, words, draw_marks(words, [mark_of(line) for line in lines])))
            groups = [(row, [one for one in mine if one["recipe"] == row.recipe]) for row in table.rows]
            parts += self.courses(table.task, groups, task.measure)
        return "\n\n".join(parts)

    def other_task(self, name: str, groups: Sequence[Group]) -> str:
        """A task that the paper has not: its images went through the code of Table 3."""
        measure: Measure = "mean_class_accuracy"
        rows = [(Row(recipe, mine[0]["recipe"]), mine) for recipe, mine in groups]
        # A record keeps the key of its day, and is kept under today's.
        known = {**{one["key"]: one for one in self.records.values()}, **self.records}
        lines = [
            line_of(row, mine, [known[one["start"]] for one in mine if one["start"] in known], measure)
            for row, mine in rows
        ]
        cells = _cells(lines, "not run")
        parts = [
            f"### Beside Table 3: {safe(name)}, mean class accuracy",
            "Other images through the same code, started beside their folders; the paper has no figures for them.",
            f"```\n{self.other_command(groups)}\n```",
            made_with([one for _, mine in groups for one in mine]),
            grid([*_COLUMNS[:1], *_COLUMNS[2:]], [[*row[:1], *row[2:]] for row in cells]),
            *self.courses(name, rows, measure),
        ]
        return "\n\n".join(parts)

    def other_command(self, groups: Sequence[Group]) -> str:
        """What made the runs: the images, the network, and every setting that is not that of Table 3."""
        first = groups[0][1][0]
        words = ["calida", "reproduce", "table3"]
        for key in ("source", "target", *_NETWORK):
            if first.get(key) is not None:
                words += [f"--{key.replace('_', '-')}", str(first[key])]
        changed: dict[str, Any] = {}
        for _, mine in groups:
            if mine[0]["recipe"] not in RECIPES:
                continue
            settings = self.tasks[VISDA17].job(mine[0]["recipe"], 0).recipe.to_json()
            changed |= {key: value for key, value in mine[0]["settings"].items() if settings.get(key) != value}
        words += ["--seeds", str(max(len(mine) for _, mine in groups))]
        for key, value in changed.items():
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        # Nothing that could end the block it stands in.
        return "".join(sign for sign in shlex.join(words) if sign.isprintable() and sign != "`")

    def courses(self, name: str, rows: Sequence[tuple[Row, Sequence[RunRecord]]], measure: Measure) -> list[str]:
        """The figure of a task's rounds, if a run of it has adapted anything."""
        adapting = [(row, mine) for row, mine in rows if row.recipe not in _BASES]
        if not any(mine for _, mine in adapting):
            return []
        words = f"{name}: oracle {measure.replace('_', ' ')} on target by round of adaptation"
        drawn = draw_courses(words, [course_of(row.name, mine, measure, row.paper) for row, mine in adapting])
        return [self.picture(f"rounds-{_file_name(name)}", words, drawn)]

    def claims(self) -> str:
        findings = examine_claims(self.tasks, self.seeds, self.records)
        parts = ["## What the paper claims", _command("claims")]
        if not findings:
            return "\n\n".join([*parts, "Not run: no claim has the runs that it takes."])
        hold, fail, open_ = (sum(one.verdict == verdict for one in findings) for verdict in (HOLDS, FAILS, OPEN))
        rows = []
        for one in findings:
            mean, low, high = one.interval
            between = f"{low:.2f} to {high:.2f}" if math.isfinite(high - low) else "none from so few seeds"
            rows.append([one.claim, one.task, one.measured, f"{mean:.2f}", between, str(one.seeds), one.verdict])
        parts += [
            made_with(self.runs["claims"]),
            f"Of {len(findings)} findings, hold: {hold}; do not hold: {fail}; are not settled: {open_}. Differences "
            "are paired by seed, and those of accuracy are of the label-free choice. A claim holds if all of its 95 % "
            "interval over seeds lies on its side.",
            grid(
                ["claim", "task", "measured", "mean", "95 % interval", "seeds", "verdict"],
                [[safe(cell) for cell in row] for row in rows],
            ),
        ]
        return "\n\n".join(parts)

    def settings(self, own: Sequence[RunRecord], others: Mapping[str, Sequence[Group]]) -> str:
        own_values = [
            f"{name} has values of its own for {safe(listed(task.settings))}."
            for name, task in self.tasks.items()
            if task.settings and any(one["task"] == name for one in own)
        ]
        parts = ["## Settings", "\n".join([_CHOSEN, *own_values])]
        for task in self.tasks:
            known = {one["recipe"]: one["settings"] for one in own if one["task"] == task}
            parts += [f"### Settings, {task}", settings_grid(known.items()) if known else "Not run."]
        for task, groups in others.items():
            rows = [(name, mine[0]["settings"]) for name, mine in groups]
            parts += [f"### Settings, {safe(task)}", settings_grid(rows)]
        return "\n\n".join(parts)


def _opening(shown: Sequence[RunRecord]) -> str:
    seconds = sum(one["seconds"] for one in shown)
    made = f"{len(shown)} runs, {hours(seconds)} in all, {hours(seconds / 2)} on 2 cores" if shown else "no run so far"
    return f"""# The paper's tables, run again

The figures that *Unsupervised Domain Adaptation via Calibrating Uncertainties* (Han, Zou, Gao, Wang, Metaxas, 2019)
prints, beside ours ({made}). Ours are computed from the records in `{_RESULTS}`:
`calida reproduce page --results {_RESULTS} --docs docs` writes this page from them and trains nothing. The commands
beside the tables make what is missing among the records and print the same table.

Every accuracy and ECE on target is an **oracle** figure: it was measured with target labels that touched neither
training, nor the label-free choice, nor calibration. The column "oracle best" alone chooses by them."""


def _command(what: str) -> str:
    return f"```sh\ncalida reproduce {what} --results {_RESULTS}\n```"


def _in_words(place: Place) -> str:
    count = "all" if place.count is None else f"{place.count:,}"
    return safe(f"{count} {place.split or ''} images of {Path(place.name).name}".replace("  ", " "))


def _other_tasks(records: Mapping[str, RunRecord]) -> dict[str, list[Group]]:
    """Runs of tasks that the paper has not, by task; runs of a row differ in nothing but their seed."""
    known = {*TABLE1, *(table.task for table in TABLES.values())}
    order = list(dict.fromkeys(row.recipe for name in ("table2a", "table3") for row in TABLES[name].rows))
    rows: dict[tuple[str, int, str, str], list[RunRecord]] = {}
    for one in sorted(records.values(), key=lambda one: (one["seed"], one["key"])):
        if one["task"] not in known:
            recipe = one["recipe"]
            decisive = {name: one.get(name) for name in ("source", "target", *_NETWORK, "settings")}
            place = order.index(recipe) if recipe in order else len(order)
            rows.setdefault((one["task"], place, recipe, json.dumps(decisive, sort_keys=True)), []).append(one)
    found: dict[str, list[Group]] = {}
    for (task, _, recipe, _), mine in sorted(rows.items()):
        groups = found.setdefault(task, [])
        before = sum(some[0]["recipe"] == recipe for _, some in groups)
        groups.append((f"{recipe}, other settings ({before + 1})" if before else recipe, mine))
    return found


def _names(names: Sequence[str], figures: Sequence[Spread | None]) -> list[str]:
    """Names of rows; one with fewer seeds than another says so."""
    counts = [0 if figure is None else figure.seeds for figure in figures]
    most = max(counts)
    return [
        safe(name) + (f" ({count} of {most} seeds)" if 0 < count < most else "")
        for name, count in zip(names, counts, strict=True)
    ]


def _cells(lines: Sequence[Line], absent: str) -> list[list[str]]:
    names = _names([line.row.name for line in lines], [line.accuracy.get("label-free") for line in lines])
    rows = []
    for name, line in zip(names, lines, strict=True):
        *choices, ece, raw = line_figures(line, absent)
        gain = absent if line.missing else "-" if line.gain is None else f"{100 * line.gain:+.2f}"
        rows.append([name, paper_figure(line.row), *choices, gain, ece, raw])
    return rows


def _compared(lines: Sequence[Line]) -> str:
    """Which rows reach the paper's figures, without target labels and by the paper's own choice."""
    said = []
    for choice, words in (("label-free", "the label-free choice"), ("oracle best", "the paper's own, oracle best")):
        above: list[str] = []
        below: list[str] = []
        for line in lines:
            if line.missing or line.row.paper is None:
                continue
            ours, paper = 100 * line.accuracy[choice].mean, line.row.paper
            reached = ours >= paper - _CLOSE - 1e-9  # sums of floats must not decide
            if reached:
                above.append(line.row.name)
            else:
                below.append(f"{line.row.name} ({ours:.2f} against {paper:.2f})")
        said.append(
            f"By {words}, at or above the paper's figure less {_CLOSE} point: {listed(above) or 'no row'}. "
            f"Below it: {listed(below) or 'no row'}."
        )
    if missing := [line.row.name for line in lines if line.missing]:
        said.append(f"Not run: {listed(missing)}.")
    return "\n\n".join(said)


def _file_name(task: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", task)[:60]
    # Two tasks must not meet in one file: a name that had to be changed gets a mark of its own.
    return plain if plain == task else f"{plain}-{hashlib.blake2b(repr(task).encode(), digest_size=3).hexdigest()}"
