"""Choosing among finished runs on one target, from what their folders hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from calida.errors import InputError
from calida.runs.folder import RunFolder
from calida.validation import Candidate, Selection, choose_candidate


def select_run(paths: Sequence[Path]) -> Selection:
    """Compare runs whose target and classes are the same; recipes, seeds, settings and networks may differ."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a run is named twice; it can only be chosen once")
    if len(paths) < 2:
        raise InputError("name at least two runs to choose from")
    candidates: dict[str, Candidate] = {}
    first: tuple[Path, object] | None = None
    for path in paths:
        config, metrics, predictions, _, (_, names) = RunFolder(path).read_finished()
        same = (metrics["classes"], config.target, names)
        if first is None:
            first = (path, same)
        elif same != first[1]:
            raise InputError(f"{path} and {first[0]} have other targets or classes: they cannot be compared")
        candidates[str(path)] = Candidate(metrics["validators"], torch.from_numpy(predictions.after.target))
    return choose_candidate(candidates)
