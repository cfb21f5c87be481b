"""What a classifier must remember of its data to read new files as it read the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from calida.data.tables.preparation import TablePreparation
from calida.data.unify.preparation import Preparation


class SavedEncoder(NamedTuple):
    """The name of an encoder, the hash of its weights, and the pixels a side, where they are not its own."""

    name: str
    weights: str
    size: int | None = None


@dataclass(frozen=True)
class SavedPreparation:
    """Class names in the order of the outputs, a table's encoders, each domain's preparation and notes on it."""

    classes: tuple[str, ...]
    table: TablePreparation | None
    source: Preparation
    target: Preparation
    source_notes: tuple[str, ...] = ()
    target_notes: tuple[str, ...] = ()
    label: str | None = None  # the column of a table that is never a feature
    text: str | None = None  # the column of a table that holds texts
    encoder: SavedEncoder | None = None  # what turns samples into the features that the classifier reads

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a table's features."""
        return () if self.table is None else self.table.features

    def to_json(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            key: value.to_json() if isinstance(value, Preparation | TablePreparation) else value
            for key, value in values.items()
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> SavedPreparation:
        return SavedPreparation(
            tuple(values["classes"]),
            None if values["table"] is None else TablePreparation.from_json(values["table"]),
            Preparation.from_json(values["source"]),
            Preparation.from_json(values["target"]),
            tuple(values["source_notes"]),
            tuple(values["target_notes"]),
            values["label"],
            values.get("text"),
            None if values.get("encoder") is None else SavedEncoder(*values["encoder"]),
        )
