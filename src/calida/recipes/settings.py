"""Settings as small frozen dataclasses: each field has a default, one line of documentation, and its constraint."""

from __future__ import annotations

import difflib
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, NamedTuple

from calida.errors import InputError
from calida.selection import Ramp

_EVEN = "even"
_NONE = "none"  # as command lines and TOML files have it


class Constraint(NamedTuple):
    """What a value must be, in words and as a test; `None` is always allowed where the type has it."""

    words: str
    holds: Callable[[Any], bool]


def at_least(least: float) -> Constraint:
    return Constraint(f"at least {least:g}", lambda value: value >= least)


POSITIVE = Constraint("a positive number", lambda value: 0 < value < math.inf)
POSITIVE_OR_INF = Constraint("a positive number, or inf", lambda value: value > 0)
FROM_ZERO = Constraint("a number from 0 up", lambda value: 0 <= value < math.inf)
FROM_ZERO_OR_INF = Constraint("a number from 0 up, or inf", lambda value: value >= 0)
FRACTION = Constraint("a fraction between 0 and 1", lambda value: 0 <= value <= 1)
FRACTION_OVER_ZERO = Constraint("a fraction, more than 0 and at most 1", lambda value: 0 < value <= 1)
FRACTION_BELOW_ONE = Constraint("a fraction from 0 to less than 1", lambda value: 0 <= value < 1)


def setting(default: Any, words: str, constraint: Constraint | None = None) -> Any:
    """A field with a default, what it means in one line, and what its values must be."""
    return field(default=default, metadata={"words": words, "constraint": constraint})


class Setting(NamedTuple):
    """One setting of a group, as documentation and error messages show it."""

    name: str
    value: Any
    words: str
    kind: Any
    constraint: Constraint | None


@cache
def _kinds(group: type) -> dict[str, Any]:
    """The types of a group's fields; they are evaluated from text, which takes its time."""
    return typing.get_type_hints(group)


@dataclass(frozen=True)
class Settings:
    """A group of settings."""

    def each(self) -> Iterator[Setting]:
        """Every setting in the order of the fields."""
        group: Any = type(self)
        kinds = _kinds(group)
        for one in fields(self):
            if "words" in one.metadata:
                meta = one.metadata
                yield Setting(one.name, getattr(self, one.name), meta["words"], kinds[one.name], meta["constraint"])

    def check(self, prefix: str, rounds: int) -> None:
        """Refuse values that no run could use, of a ramp in its first or last round; `prefix` names the group."""
        for name, value, _, _, constraint in self.each():
            if constraint is None or value is None or isinstance(value, str):
                continue
            ramp = isinstance(value, Ramp)
            values = [value(index, rounds) for index in (0, max(rounds - 1, 0))] if ramp else [value]
            if not all(constraint.holds(one) for one in values):
                always = " in every round" if ramp else ""
                raise InputError(f"{prefix}.{name} must be {constraint.words}{always}, not {to_plain(value)}")

    def to_json(self) -> dict[str, Any]:
        return {one.name: to_plain(one.value) for one in self.each()}


def to_plain(value: Any) -> Any:
    """A value as JSON and TOML have it: a ramp as a list, infinity as a word."""
    if isinstance(value, Ramp):
        parts = [value.start, _EVEN if value.step is None else value.step, value.stop]
        return parts if value.stop is not None else parts[:2]
    return "inf" if value == math.inf else value


def fit(name: str, value: Any, kind: Any) -> Any:
    """Bring a value to its declared type: config files and command lines know numbers, words and lists."""
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        if value not in choices:
            raise InputError(f"{name} is one of {', '.join(map(str, choices))}, not {value!r}")
        return value
    for one in choices or (kind,):
        if one is type(None) and value in (None, _NONE):
            return None
        if typing.get_origin(one) is Literal and value in typing.get_args(one):
            return value
        if one is Ramp and isinstance(value, Ramp):
            return value
        try:
            if one is Ramp:
                parts = value if isinstance(value, list | tuple) else [value]
                return Ramp(float(parts[0]), *(None if part in (None, _EVEN) else float(part) for part in parts[1:]))
            if one is float and not isinstance(value, bool) and not math.isnan(float(value)):
                return float(value)
            if one is int and not isinstance(value, bool) and float(value) == int(value):
                return int(value)
        except (TypeError, ValueError, OverflowError, IndexError):
            continue
        if one in (bool, str) and isinstance(value, one):
            return value
    raise InputError(f"{name} cannot be {value!r}; it is {kind_in_words(kind)}")


def kind_in_words(kind: Any) -> str:
    """A type as people say it."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Ramp: "a number or a ramp"}
    if typing.get_origin(kind) is Literal:
        return " or ".join(map(str, typing.get_args(kind)))
    parts = [one for one in typing.get_args(kind) or (kind,) if one is not type(None)]
    return " or ".join(words.get(one) or kind_in_words(one) for one in parts)


def resolve(name: str, known: Mapping[str, Any]) -> str:
    """The full name of a setting, group.name, from that or from the short name where only one group has it."""
    if name in known:
        return name
    full = [one for one in known if one.split(".", 1)[1] == name]
    if len(full) == 1:
        return full[0]
    if full:
        raise InputError(f"{name!r} may be {' or '.join(full)}: give its full name")
    short: dict[str, list[str]] = {}
    for one in known:
        short.setdefault(one.split(".", 1)[1], []).append(one)
    near = [one for part in difflib.get_close_matches(name, short, n=3, cutoff=0.5) for one in short[part]]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(near)}" if near else "; calida recipes NAME shows all of them"
    raise InputError(f"unknown setting {name!r}{hint}")
