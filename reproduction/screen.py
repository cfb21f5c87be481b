"""The paper's tables and claims beside ours, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from calida.cli.screen import Screen
from calida.model import Network
from calida.studies import StudyTask
from calida.terminal import plain, table_of
from reproduction.claims import examine_claims
from reproduction.memory import memory_plan
from reproduction.summary import CHOICES, Records, base_lines, table_lines
from reproduction.tables import Table

_MEMORY = {
    "weights": "weights and statistics",
    "gradients": "gradients",
    "optimizer": "the optimizer's state",
    "activations": "activations kept for backward",
    "plain_peak": "peak of a plain step",
    "bounded_gvr_peak": "peak with GVR, one group's graph at a time",
    "kept_gvr_peak": "peak with GVR if every group's graph were kept",
}


def show_table(
    screen: Screen, table: Table, task: StudyTask, seeds: Sequence[int], records: Records
) -> list[dict[str, Any]]:
    """The paper's rows and ours; target accuracy in percent, all of it measured with target labels."""
    lines = table_lines(table, task, seeds, records)
    title = f"{table.title}, target {task.measure.replace('_', ' ')} in %, measured with labels"
    grid = table_of("model", "paper", *CHOICES, "ECE", title=title, title_justify="left")
    for line in lines:
        ours = [line.accuracy[name].percent() for name in CHOICES] if line.accuracy else [""] * len(CHOICES)
        paper = "" if line.row.paper is None else f"{line.row.paper:.2f}"
        grid.add_row(plain(line.row.name), paper, *ours, line.ece.percent() if line.ece else "")
    screen.console.print(grid)
    return [
        {"model": line.row.name, "paper": line.row.paper, **{name: s._asdict() for name, s in line.accuracy.items()}}
        for line in lines
    ]


def show_table1(screen: Screen, task: StudyTask, seeds: Sequence[int], records: Records) -> list[dict[str, Any]]:
    """Base networks: source and target accuracy by number of weight samples."""
    lines = base_lines(task, seeds, records)
    columns = ("paper: source", "target", "source, trained on", "source, held out", "target", "target ECE")
    title = f"Table 1: {task.name}, accuracy in %"
    grid = table_of("model", *columns, title=title, title_justify="left")
    for line in lines:
        ours = [spread.percent() for spread in line.figures.values()] or [""] * 4
        grid.add_row(line.row.name, f"{line.row.source:.2f}", f"{line.row.target:.2f}", *ours)
    screen.console.print(grid)
    return [
        {"model": line.row.name, **{name: spread._asdict() for name, spread in line.figures.items()}} for line in lines
    ]


def show_claims(
    screen: Screen, tasks: Mapping[str, StudyTask], seeds: Sequence[int], records: Records
) -> list[dict[str, Any]]:
    """What the paper asserts and what our runs say to it."""
    findings = examine_claims(tasks, seeds, records)
    grid = table_of(
        "claim", "task", "mean", "95 % interval", "verdict", title="Claims, paired by seed", title_justify="left"
    )
    for one in findings:
        mean, low, high = one.interval
        grid.add_row(one.claim, one.task, f"{mean:.2f}", f"{low:.2f} to {high:.2f}", one.verdict.value)
    screen.console.print(grid)
    return [{**asdict(one), "interval": one.interval._asdict(), "verdict": one.verdict.value} for one in findings]


def show_memory(screen: Screen, task: StudyTask, classes: int = 12) -> dict[str, Any]:
    """What a training step of table 3 takes, before anything is allocated."""
    recipe = task.job("brer-inf-gvr", 0).recipe
    shape = (3, task.size or 224, task.size or 224)
    plan = memory_plan(Network(shape, classes, task.backbone, gaussian=True, head=task.head), recipe)
    batch, groups = recipe.optimization.batch_size, recipe.gradient_variance.groups
    title = f"{task.backbone}, {shape[1]} pixels, batches of {batch}, {groups} groups"
    grid = table_of("memory of a training step", "GB", title=title, title_justify="left")
    for name, words in _MEMORY.items():
        grid.add_row(words, f"{getattr(plan, name) / 1e9:.2f}")
    screen.console.print(grid)
    screen.say(
        f"{plan.parameters:,} trainable parameters. Not counted: kernel workspaces, an allocator's slack, the data."
    )
    return asdict(plan)
