"""Tables of docs/results.md and of the notes from the records of runs: each between two comments that name it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.recipe import ADDED, CALIDA, FIELD, REMOVED, SPECIAL, TUNED_ON, Variant, make_job
from benchmarks.recipe_tasks import DIGITS, TASKS, Task
from calida.files import write_atomically
from calida.studies import Job, Results, RunRecord, Score, Spread, label_free
from reproduction.markdown import grid, made_with
from reproduction.summary import last_round, oracle_round

_NOTHING = "-"
_PLACE = r"(?<=<!-- {name} -->\n).*?(?=\n<!-- end -->)"


def render(pages: Sequence[Path], store: Results, skada: Path, seeds: Sequence[int], work: Path) -> None:
    """Write every table anew where a page has its comments; each has its place on one page."""
    own, small = (_Study(store.records, seeds, work, small) for small in (False, True))
    tables = _Tables(own, small, _skada(skada))
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    for name, made in tables.all().items():
        places = {page: re.search(_PLACE.format(name=name), text, re.S) for page, text in texts.items()}
        found = [(page, place) for page, place in places.items() if place is not None]
        if not found:
            raise SystemExit(f"no page has a place for the table {name}: {', '.join(map(str, pages))}")
        for page, place in found:
            texts[page] = texts[page][: place.start()] + made() + texts[page][place.end() :]
    for page, text in texts.items():
        write_atomically(page, text.encode())


def _skada(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass(frozen=True)
class _Study:
    """Finds the records of runs, with images of their own size or small ones."""

    records: Mapping[str, RunRecord]
    seeds: Sequence[int]
    work: Path
    small: bool

    def runs(self, task: str, variant: Variant) -> list[RunRecord]:
        return self._known(job.key for job in self._jobs(task, variant))

    def starts(self, task: str, variant: Variant) -> list[RunRecord]:
        return self._known(job.start.key for job in self._jobs(task, variant) if job.start is not None)

    def made(self, tasks: Iterable[str], variants: Iterable[Variant]) -> str:
        """How the runs of a table were made, those that they start from included."""
        chosen = [(task, variant) for variant in variants for task in tasks]
        mine = [one for pair in chosen for one in (*self.starts(*pair), *self.runs(*pair))]
        return f"\n\n{made_with(list({one['key']: one for one in mine}.values()))}"

    def _jobs(self, task: str, variant: Variant) -> list[Job]:
        return [make_job(task, variant, seed, self.work, self.small) for seed in self.seeds]

    def _known(self, keys: Iterable[str]) -> list[RunRecord]:
        return [self.records[key] for key in keys if key in self.records]


class _Tables:
    def __init__(self, own: _Study, small: _Study, skada: list[dict[str, Any]]) -> None:
        self.own, self.small, self.skada = own, small, skada

    def all(self) -> dict[str, Callable[[], str]]:
        return {"aims": self.aims, "parts": self.parts, "special": self.special, "field": self.field}

    def aims(self) -> str:
        """Every task: source-only, the recipe by three choices of a round, calibration, and its own estimate."""
        header = ["task", "source only", "**label-free**", "aim", "", "last round", "oracle best", "ECE", "ECE, raw"]
        rows = []
        for name, task in TASKS.items():
            mine, starts = self.own.runs(name, CALIDA), self.own.starts(name, CALIDA)
            cells = [_percent(starts, label_free), f"**{_percent(mine, label_free)}**", *_verdict(task, starts, mine)]
            cells += [_percent(mine, last_round), _percent(mine, oracle_round), _ece(mine), _ece(mine, True)]
            rows.append([task.title, *cells, _estimate(mine), _minutes(starts, mine)])
        return _table([*header, "estimate off by", "minutes"], rows, 1) + self.own.made(TASKS, [CALIDA])

    def parts(self) -> str:
        """The recipe with each part removed, then with each of those that were tried added."""
        lines: dict[str, Variant] = {"**calida**": CALIDA}
        lines |= {f"without {name}": variant for name, variant in REMOVED.items()}
        lines |= {f"with {name}": variant for name, variant in ADDED.items()}
        header = ["", *(what for task in TUNED_ON for what in (TASKS[task].title, "oracle best", "ECE"))]
        rows = []
        for title, variant in lines.items():
            cells = []
            for task in TUNED_ON:
                mine = self.small.runs(task, variant)
                cells += [_percent(mine, label_free), _percent(mine, oracle_round), _ece(mine)]
            rows.append([title, *cells])
        return _table(header, rows, 1) + self.small.made(TUNED_ON, lines.values())

    def special(self) -> str:
        """What only some tasks can show."""
        header = ["task", "change", "source only", "calida", "changed", "ECE, calida", "ECE, changed"]
        rows = []
        for task, variants in SPECIAL.items():
            for title, variant in variants.items():
                runs = self.small.runs(task, CALIDA), self.small.runs(task, variant)
                accuracies = [_percent(mine, label_free) for mine in (self.small.starts(task, variant), *runs)]
                eces = [_ece(mine) if runs[1] else _NOTHING for mine in runs]
                rows.append([TASKS[task].title, title, *(accuracies if runs[1] else [_NOTHING] * 3), *eces])
        return _table(header, rows, 2)

    def field(self) -> str:
        """Ours, the paper's and skada's: accuracy, ECE and one-thread minutes by task."""
        rows = []
        for title, variant in {"**calida**": CALIDA, **FIELD}.items():
            cells = []
            for task in DIGITS:
                mine = self.small.runs(task, variant)
                cells.append(
                    _cell(_percent(mine, label_free), _ece(mine), _minutes(self.small.starts(task, variant), mine))
                )
            rows.append([title, *cells])
        for method in dict.fromkeys(one["method"] for one in self.skada):
            cells = []
            for task in DIGITS:
                theirs = [one for one in self.skada if (one["task"], one["method"]) == (task, method)]
                accuracy, ece = (_spread([one[name] for one in theirs]) for name in ("accuracy", "ece"))
                minutes = f"{fmean(one['seconds'] for one in theirs) / 60:.1f}" if theirs else _NOTHING
                cells.append(_cell(accuracy, ece, minutes))
            rows.append([f"skada {method}", *cells])
        return _table(["", *(task.title for task in DIGITS.values())], rows, 1)


def _table(header: list[str], rows: list[list[str]], names: int) -> str:
    """The rows that have a figure, and by the cells that name them, those that have none."""
    run = [row for row in rows if any(cell.strip("*") != _NOTHING for cell in row[names:])]
    missing = "; ".join(", ".join(row[:names]) for row in rows if row not in run)
    return grid(header, run) + (f"\n\nNot run yet: {missing}." if missing else "")


def _verdict(task: Task, starts: Sequence[RunRecord], runs: Sequence[RunRecord]) -> list[str]:
    if not (starts and runs):
        return [_NOTHING, _NOTHING]
    source, reached = (100 * fmean(label_free(one).accuracy for one in some) for some in (starts, runs))
    return [str(task.aim), task.aim.verdict(reached, source)]


def _percent(runs: Sequence[RunRecord], choose: Callable[[RunRecord], Score]) -> str:
    return _spread([choose(one).accuracy for one in runs])


def _ece(runs: Sequence[RunRecord], raw: bool = False) -> str:
    which = "oracle_uncalibrated" if raw else "oracle"
    return _spread([one["returned"][which]["ece"] for one in runs])


def _estimate(runs: Sequence[RunRecord]) -> str:
    """Mean distance of the accuracy that runs say of themselves from what labels say, in points."""
    off = [
        abs(one["trust"]["accuracy"]["value"] - one["returned"]["oracle"]["accuracy"])
        for one in runs
        if one["trust"]["accuracy"] is not None
    ]
    return f"{100 * fmean(off):.1f}" if off else _NOTHING


def _minutes(starts: Sequence[RunRecord], runs: Sequence[RunRecord]) -> str:
    """One thread, pre-training included."""
    if not runs:
        return _NOTHING
    return f"{(fmean(one['seconds'] for one in runs) + fmean([one['seconds'] for one in starts] or [0])) / 60:.1f}"


def _spread(values: Sequence[float]) -> str:
    return Spread.of(values).percent() if values else _NOTHING


def _cell(accuracy: str, ece: str, minutes: str) -> str:
    return _NOTHING if accuracy == _NOTHING else f"{accuracy}, ECE {ece} ({minutes} min)"
