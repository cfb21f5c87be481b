"""Typed values as JSON holds them, and back: what does not fit its type, or was changed, is refused in one sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
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


def read_json(path: Path) -> Any:
    """What a JSON file holds, or CheckpointError; FileNotFoundError is left to those who know what should be there."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is truncated or not a calida file: {error}") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None
    return parse_json(text, str(path))


def parse_json(text: str, place: str) -> Any:
    """The values of a JSON text, however deep its brackets go; CheckpointError if it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise CheckpointError(f"{place} is not what calida wrote: its brackets are nested too deep") from None
    except ValueError as error:
        raise CheckpointError(f"{place} is truncated or not a calida file: {error}") from None


def digest_values(values: Any, *contents: bytes) -> str:
    """A digest of JSON values, whatever their order and spaces, and of the bytes that belong to them."""
    state = hashlib.blake2b(digest_size=16)
    try:  # through JSON and back, since that is what a reader has: keys are words there
        state.update(json.dumps(json.loads(json.dumps(values)), sort_keys=True, separators=(",", ":")).encode())
    except RecursionError:
        raise CheckpointError("the values of a file are nested too deep to be calida's") from None
    for content in contents:
        state.update(b"\0")
        state.update(content)
    return state.hexdigest()


_DIGEST = "digest"


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """With a digest of all other values, by which `check_seal` tells whether one of them was changed."""
    plain = {key: value for key, value in values.items() if key != _DIGEST}
    return {**plain, _DIGEST: digest_values(plain)}


def check_seal(values: Any, place: str) -> dict[str, Any]:
    """The values without their digest; CheckpointError where it does not match them."""
    if not isinstance(values, dict) or _DIGEST not in values:
        raise CheckpointError(f"{place} is not what calida wrote: it has no digest")
    plain = {key: value for key, value in values.items() if key != _DIGEST}
    if values[_DIGEST] != digest_values(plain):
        raise CheckpointError(f"{place} was changed after calida wrote it: its digest does not match its values")
    return plain
