"""Typed values as JSON holds them, and back: what does not fit its type is refused in one sentence."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from calida.errors import CheckpointError

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Dataclasses, enums and tuples as the dictionaries, words and lists of JSON."""
    return _with_lists(msgspec.to_builtins(value))


def _with_lists(value: Any) -> Any:
    """What was a tuple equals what is read back."""
    if isinstance(value, dict):
        return {key: _with_lists(inner) for key, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def from_json(kind: type[T], value: Any, place: str) -> T:
    """A value of this type, or CheckpointError with the place that it was read from; nothing is guessed."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{place} is not what calida wrote: {error}") from None
