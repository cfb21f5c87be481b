"""Finished runs as JSON lines, one file a task: what is committed, and what tables are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from calida.errors import InputError
from calida.files import write_atomically
from calida.studies.job import key_of
from calida.studies.summary import RunRecord


class Results:
    """Records of finished runs by key, kept in TASK.jsonl files of a folder; see `grouped_settings` for older names."""

    def __init__(self, folder: Path, older_names: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder = folder
        self.records: dict[str, RunRecord] = {}
        for path in sorted(folder.glob("*.jsonl")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    record = json.loads(line)
                    self.records[key_of(record, older_names)] = record
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(f"line {number} of {path} is no record of a run: {error}") from None

    def add(self, record: RunRecord) -> None:
        """Take a record in and write its task's file anew."""
        self.records[record["key"]] = record
        task = record["task"]
        mine = sorted(self._of(task), key=lambda one: (one["recipe"], one["seed"], one["key"]))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / f"{task}.jsonl", "".join(json.dumps(one) + "\n" for one in mine).encode())

    def _of(self, task: str) -> Iterable[RunRecord]:
        return (record for record in self.records.values() if record["task"] == task)
