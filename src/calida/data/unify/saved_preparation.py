"""What a classifier must remember of its data to read new files as it read the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calida.data.unify.preparation import Preparation


@dataclass(frozen=True)
class SavedPreparation:
    """Class names in the order of the outputs, feature columns, and the preparation of each domain with its notes."""

    classes: tuple[str, ...]
    columns: tuple[str, ...]
    source: Preparation
    target: Preparation
    source_notes: tuple[str, ...] = ()
    target_notes: tuple[str, ...] = ()
    label: str | None = None  # the column of a table that is never a feature

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> SavedPreparation:
        plain: dict[str, Any] = {
            key: tuple(value) for key, value in values.items() if key not in ("source", "target", "label")
        }
        source, target = (Preparation.from_json(values[key]) for key in ("source", "target"))
        return SavedPreparation(source=source, target=target, label=values.get("label"), **plain)
