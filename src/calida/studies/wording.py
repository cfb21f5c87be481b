"""Words and grids of the reproduction page: Markdown that no name in a record can break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calida.studies.job import RunRecord
from calida.studies.pictures import printable

_UNSAFE = re.compile(r"[^\w .,:;()%+±=/'-]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_SETTINGS = (
    "recipe",
    "M",
    "batch",
    "optimiser",
    "source epochs",
    "source rate",
    "rounds",
    "passes a round",
    "source a round",
    "rate",
    "multiplier",
    "portion",
    "GVR",
)


def safe(text: object) -> str:
    """Text from a record: whatever Markdown or HTML could take for a sign is written as its number."""
    return _UNSAFE.sub(lambda found: "".join(f"&#{ord(sign)};" for sign in found[0]), printable(text))


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
    machines = sorted({str(one["machine"]) for one in mine})
    seconds = sum(one["seconds"] for one in mine)
    return (
        f"{len(mine)} run{'s' * (len(mine) > 1)}, seed{'s' * (len(seeds) > 1)} {safe(listed(seeds))}; "
        f"{safe('; '.join(machines))}; {safe('; '.join(versions))}; "
        f"{hours(seconds)} of training in all, {hours(seconds / 2)} on 2 cores."
    )


def settings_grid(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """The settings that decide, a line a recipe; a dash where a recipe has no use for one."""
    return grid(_SETTINGS, [[safe(cell) for cell in _settings_row(name, values)] for name, values in rows])


def _settings_row(name: str, values: Mapping[str, Any]) -> list[str]:
    def shown(key: str, used: bool = True) -> str:
        return _number(values.get(key)) if used else "-"

    adapts = bool(values.get("rounds"))
    taught = adapts and values.get("order") == "inf" and values.get("selection") != "none"
    return [
        name,
        shown("num_samples"),
        shown("batch_size"),
        shown("optimizer"),
        shown("pretrain_epochs"),
        _rate(values.get("pretrain_learning_rate"), values.get("pretrain_final_rate")),
        shown("rounds", adapts),
        shown("passes", adapts),
        _ramp(values.get("source_portion")) if adapts else "-",
        _rate(values.get("learning_rate"), values.get("final_rate")) if adapts else "-",
        "dual ascent" if values.get("entropy_budget") else shown("multiplier", adapts and bool(values.get("order"))),
        _ramp(values.get("portion")) if taught else "-",
        _gvr(values) if adapts and values.get("gvr_weight") else "-",
    ]


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _rate(first: object, share: object) -> str:
    """A learning rate, and what is left of it at the end."""
    if isinstance(first, int | float) and isinstance(share, int | float) and share != 1:
        return f"{first:g} to {first * share:g}"
    return _number(first)


def _ramp(value: object) -> str:
    """[start, step, stop], or [start, step] without an end."""
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        return _number(value)
    start, step, *stop = value
    if step == "even":
        return f"{_number(start)} to {_number(*stop or ['?'])}, evenly"
    if not step:
        return _number(start)
    return f"{_number(start)}, {_number(step)} more a round" + "".join(f", up to {_number(end)}" for end in stop)


def _gvr(values: Mapping[str, Any]) -> str:
    weight, groups, step = (_number(values.get(f"gvr_{name}")) for name in ("weight", "groups", "inner_step"))
    cap = f", capped at {_number(values.get('gvr_cap'))}" if values.get("gvr_bound") == "cap" else ""
    share = values.get("gvr_share", 1)
    steps = "all target steps" if share == 1 else f"{_number(share)} of target steps"
    return f"weight {weight}, {groups} groups, inner step {step}{cap}, in {steps}"
