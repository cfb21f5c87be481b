"""Pieces of the reproduction page: grids, lists, what runs were made with, and their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calida.studies import RunRecord

_SETTINGS = {
    "M": "num_samples",
    "sampled layers": "sampled",
    "batch": "batch_size",
    "optimiser": "optimizer",
    "source epochs": "pretrain_epochs",
    "source rate": "pretrain_learning_rate",
    "rounds": "rounds",
    "rate": "learning_rate",
    "order": "order",
    "class shares": "selection_shares",
    "portion": "portion",
    "GVR weight": "gvr_weight",
    "groups": "gvr_groups",
    "inner step": "gvr_inner_step",
    "GVR steps": "gvr_share",
}
_ADAPTING = ("rounds", "learning_rate", "order")
_SELF_TRAINING = ("selection_shares", "portion")
_GROUPED = ("gvr_weight", "gvr_groups", "gvr_inner_step", "gvr_share")


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, ["---"] * len(header), *rows))


def listed(words: Iterable[object]) -> str:
    every = [str(word) for word in words]
    return " and ".join(filter(None, [", ".join(every[:-1]), *every[-1:]]))


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def made_with(mine: Sequence[RunRecord]) -> str:
    """Seeds, machine, versions and time of runs, as they say themselves."""
    if not mine:
        return "Not run."
    seeds = sorted({one["seed"] for one in mine})
    versions = sorted({", ".join(f"{name} {value}" for name, value in one["versions"].items()) for one in mine})
    machines = sorted({f"{one['machine']}, {one.get('precision', 'fp32')}" for one in mine})
    seconds = sum(one["seconds"] for one in mine)
    return (
        f"{len(mine)} run{'s' * (len(mine) > 1)}, seed{'s' * (len(seeds) > 1)} {listed(seeds)}; "
        f"{'; '.join(machines)}; {'; '.join(versions)}; {hours(seconds)} of one thread in all."
    )


def settings_grid(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """The settings that decide, a line a row; a dash where it has no use for one."""
    return grid(
        ["row", *_SETTINGS], [[name, *(_shown(values, key) for key in _SETTINGS.values())] for name, values in rows]
    )


def _shown(values: Mapping[str, Any], key: str) -> str:
    adapts = bool(values.get("rounds"))
    self_training = adapts and values.get("order") == "inf" and values.get("selection") != "none"
    grouped = adapts and bool(values.get("gvr_weight") or values.get("gvr_groups_only"))
    for keys, used in ((_ADAPTING, adapts), (_SELF_TRAINING, self_training), (_GROUPED, grouped)):
        if key in keys and not used:
            return "-"
    return _in_words(values.get(key))


def _in_words(value: object) -> str:
    """A number, a word, or a ramp [start, step, stop]."""
    if isinstance(value, list | tuple):
        start, step, *stop = value
        if step == "even":
            return f"{start:g} to {stop[0]:g}"
        return f"{start:g}" if not step else f"{start:g}, {step:g} more a round"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
