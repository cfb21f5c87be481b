"""Choosing among finished runs on one target, from what their folders hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from calida.errors import InputError
from calida.runs.folder import RunFolder
from calida.validation import Candidate, Selection, choose_candidate


def comparable(paths: Sequence[Path]) -> list[list[Path]]:
    """The runs by target and classes: seeds that draw a part of a data set draw other samples each."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        groups.setdefault(_compared_by(path)[0], []).append(path)
    return list(groups.values())


def _compared_by(path: Path) -> tuple[object, Candidate]:
    """What must be the same of two runs, and what is compared."""
    config, metrics, predictions, _, (_, names) = RunFolder(path).read_finished()
    same = (tuple(metrics["classes"]), config.target, tuple(names))
    return same, Candidate(metrics["validators"], torch.from_numpy(predictions.after.target))


def select_run(paths: Sequence[Path]) -> Selection:
    """Compare runs whose target and classes are the same; recipes, seeds, settings and networks may differ."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a run is named twice; it can only be chosen once")
    if len(paths) < 2:
        raise InputError("name at least two runs to choose from")
    candidates: dict[str, Candidate] = {}
    first: tuple[Path, object] | None = None
    for path in paths:
        same, candidates[str(path)] = _compared_by(path)
        if first is None:
            first = (path, same)
        elif same != first[1]:
            raise InputError(f"{path} and {first[0]} have other targets or classes: they cannot be compared")
    return choose_candidate(candidates)
