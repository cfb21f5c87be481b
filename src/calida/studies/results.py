"""Finished runs as JSON lines, one file a task: what is committed, and what tables are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from calida.errors import InputError
from calida.files import make_folder, write_atomically
from calida.json_values import parse_json
from calida.studies.job import key_of
from calida.studies.summary import RunRecord, check_record


class Results:
    """Records of finished runs by key, kept in TASK.jsonl files of a folder; see `grouped_settings` for older names."""

    def __init__(self, folder: Path, older_names: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder = folder
        self.records: dict[str, RunRecord] = {}
        for path in sorted(folder.glob("*.jsonl")):
            for number, line in enumerate(_lines(path), 1):
                place = f"line {number} of {path}"
                record = check_record(parse_json(line, place), place)
                try:
                    self.records[key_of(record, older_names)] = record
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise InputError(f"{place} is no record of a run: {error}") from None

    def add(self, record: RunRecord) -> None:
        """Take a record in and write its task's file anew."""
        self.records[record["key"]] = record
        task = record["task"]
        mine = sorted(self._of(task), key=lambda one: (one["recipe"], one["seed"], one["key"]))
        make_folder(self.folder)
        write_atomically(self.folder / f"{task}.jsonl", "".join(json.dumps(one) + "\n" for one in mine).encode())

    def _of(self, task: str) -> Iterable[RunRecord]:
        return (record for record in self.records.values() if record["task"] == task)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
