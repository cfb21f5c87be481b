"""What a classifier must remember of its data to read new files as it read the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from calida.data.tables.preparation import TablePreparation
from calida.data.unify.preparation import Preparation
from calida.json_values import from_json


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
    def from_json(values: Mapping[str, Any], place: str = "a saved preparation") -> SavedPreparation:
        """What `to_json` gave; CheckpointError or ValueError for values that do not belong together."""
        table = values.get("table")
        found = from_json(SavedPreparation, {**values, "table": None}, place)
        if table is not None:
            found = replace(found, table=TablePreparation.from_json(table, place))
        found._check()
        return found

    def _check(self) -> None:
        self.source.check()
        self.target.check()
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise ValueError(f"the names of classes {', '.join(self.classes[:10])} are not all different")
        if self.source.shape != self.target.shape:
            raise ValueError(f"source is brought to {self.source.shape} and target to {self.target.shape}")
        if self.table is not None and (len(self.table.features),) != self.source.shape:
            raise ValueError(f"{len(self.table.features)} features are made of a table, not {self.source.shape}")
