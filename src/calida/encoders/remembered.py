"""Small answers in the cache folder, so that the next run need not look for them again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from calida.encoders.cache import cache_folder
from calida.errors import CalidaError
from calida.files import write_atomically

Value = TypeVar("Value")


@dataclass(frozen=True)
class Remembered(Generic[Value]):
    """A file of answers, by what each depended on; if `valid` refuses one, all are looked for anew."""

    name: str
    valid: Callable[[Any], bool]

    def get(self, depends_on: Sequence[Any], find: Callable[[], Value]) -> Value:
        """What is known for these circumstances, or what `find` says now. Their `repr` has to tell all of them."""
        key = hashlib.blake2b(repr(depends_on).encode(), digest_size=16).hexdigest()
        known = self._read()
        if key not in known:
            known[key] = find()
            place = cache_folder() / self.name
            with suppress(OSError, CalidaError):  # where nothing can be kept, the next run finds it again
                place.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(place, json.dumps(known, indent=1).encode())
        return known[key]

    def _read(self) -> dict[str, Value]:
        """What was found before; a file that is not there, or damaged, says nothing."""
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads((cache_folder() / self.name).read_text(encoding="utf-8"))
            if isinstance(found, dict) and all(map(self.valid, found.values())):
                return found
        return {}
