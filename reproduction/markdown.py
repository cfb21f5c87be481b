"""Pieces of the reproduction page: grids, lists, what runs were made with, and their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calida.recipes import Recipe
from calida.recipes.settings import to_plain
from calida.studies import RunRecord, grouped_settings
from reproduction.older_records import FLAT_NAMES

_SETTINGS = {
    "M": "posterior.num_samples",
    "sampled layers": "posterior.sampled",
    "batch": "optimization.batch_size",
    "source epochs": "pretraining.epochs",
    "source rate": "pretraining.learning_rate",
    "rounds": "adaptation.rounds",
    "rate": "adaptation.learning_rate",
    "order": "entropy.order",
    "class shares": "pseudo_labels.class_shares",
    "portion": "pseudo_labels.portion",
    "GVR weight": "gradient_variance.weight",
    "groups": "gradient_variance.groups",
    "inner step": "gradient_variance.inner_step",
    "GVR steps": "gradient_variance.share",
}


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
    machines = sorted(
        {f"{one['machine']}, {one.get('precision_used') or one.get('precision', 'fp32')}" for one in mine}
    )
    seconds = sum(one["seconds"] for one in mine)
    return (
        f"{len(mine)} run{'s' * (len(mine) > 1)}, seed{'s' * (len(seeds) > 1)} {listed(seeds)}; "
        f"{'; '.join(machines)}; {'; '.join(versions)}; {hours(seconds)} of one thread in all."
    )


def settings_grid(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """The settings that decide, a line a row; a dash where it has no use for one."""
    lines = []
    for name, settings in rows:
        recipe = Recipe(name).with_settings(grouped_settings(settings, FLAT_NAMES))
        used = {
            "adaptation": recipe.adaptation.rounds > 0,
            "entropy": recipe.entropy.order is not None,
            "pseudo_labels": recipe.uses_pseudo_labels,
            "gradient_variance": recipe.gradient_variance.grouped,
        }
        values = recipe.each()
        shown = [
            _in_words(to_plain(values[full].value)) if used.get(full.split(".")[0], True) else "-"
            for full in _SETTINGS.values()
        ]
        lines.append([name, *shown])
    return grid(["row", *_SETTINGS], lines)


def _in_words(value: object) -> str:
    """A number, a word, or a ramp [start, step, stop]."""
    if isinstance(value, list | tuple):
        start, step, *stop = value
        if step == "even":
            return f"{start:g} to {stop[0]:g}"
        return f"{start:g}" if not step else f"{start:g}, {step:g} more a round"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
