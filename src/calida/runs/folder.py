"""The folder of a run: which file holds what."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calida.data import Collection
from calida.errors import CheckpointError
from calida.files import read_toml, unfinished_files, write_atomically, writing
from calida.json_values import check_seal, digest_values, from_json, parse_json, read_json, sealed
from calida.model import Prediction
from calida.report import RunPredictions
from calida.runs.config import FORMAT, RunConfig
from calida.runs.saved_metrics import SavedMetrics
from calida.spreadsheets import Column, read_csv
from calida.training import bundle_digest, bundle_files, has_bundle, unfinished
from calida.validation import RoundRecord

_MODELS = ("model", "source-only")
BUNDLES = (*_MODELS, "checkpoint")


class FinishedRun(NamedTuple):
    """What the folder of a finished run holds."""

    config: RunConfig
    metrics: dict[str, Any]
    predictions: RunPredictions
    rounds: list[RoundRecord]
    named: tuple[str, list[str]]  # what samples are named by, and the names


class RunFolder:
    """config.toml, metrics.jsonl (one record a round), metrics.json, predictions.npz, predictions.csv, report.html, and
    the model. Rounds are added to their file one by one; every other file appears whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rounds = path / "metrics.jsonl"
        self.predictions = path / "predictions.csv"
        self.report = path / "report.html"
        self.tensorboard = path / "tensorboard"
        self._config = path / "config.toml"
        self._metrics = path / "metrics.json"
        self._arrays = path / "predictions.npz"

    def holds_run(self) -> bool:
        return self._config.exists()

    def files(self) -> list[Path]:
        """What lies in the folder under a name that a run gives its files."""
        written = (self._config, self._metrics, self._arrays, self.rounds, self.predictions, self.report)
        bundles = (file for name in BUNDLES if self.path.is_dir() for file in bundle_files(self.path, name))
        return [file for file in (*written, *bundles) if file.exists()]

    def remove(self) -> None:
        """Remove the run and nothing else that may lie in the folder."""
        for file in self.files():
            file.unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove what a process that was killed while it wrote has left; for whoever holds the folder."""
        for file in unfinished_files(self.path):
            file.unlink(missing_ok=True)

    def remove_checkpoint(self) -> None:
        """Remove what only an interrupted run needs."""
        for file in bundle_files(self.path, "checkpoint"):
            file.unlink(missing_ok=True)

    def write_config(self, config: RunConfig, command: str) -> None:
        """The run as values, below the command that began it."""
        # What TOML does not have in a comment, control characters and bytes that are no text, as Python writes it.
        shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in command)
        first = f"# {shown}\n" if command else ""
        write_atomically(self._config, (first + config.to_toml()).encode())

    def read_command(self) -> str:
        first = self._config.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
        return first.removeprefix("# ") if first.startswith("#") else ""

    def read_config(self) -> RunConfig:
        if not self.holds_run():
            raise CheckpointError(f"{self.path} holds no run: {self._config.name} is missing")
        if read_toml(self._config).get("format") != FORMAT:
            raise CheckpointError(f"{self.path} is a run of another version of calida: run it again")
        return RunConfig.from_toml(self._config)

    def begin_rounds(self, history: Sequence[RoundRecord]) -> None:
        """Start the records anew with those of the rounds that a resumed run has behind it."""
        write_atomically(self.rounds, "".join(map(_line, history)).encode())

    def add_round(self, record: RoundRecord) -> None:
        with writing(self.rounds), self.rounds.open("a", encoding="utf-8") as file:
            file.write(_line(record))

    def read_rounds(self) -> list[RoundRecord]:
        place = str(self.rounds)
        try:
            lines = self.rounds.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{place} cannot be read: {error}") from None
        records = [RoundRecord.from_json(check_seal(parse_json(line, place), place), place) for line in lines]
        if not any(record.validators and record.kept for record in records):
            raise CheckpointError(f"{place} is not what calida wrote: no round was kept")
        return records

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        write_atomically(self._metrics, (json.dumps(sealed(metrics), indent=1) + "\n").encode())

    def read_metrics(self) -> dict[str, Any]:
        try:
            values = read_json(self._metrics)
        except FileNotFoundError:
            if not self.path.is_dir():
                raise CheckpointError(f"there is no folder {self.path}") from None
            missing = f"{self.path} holds no finished run: {self._metrics.name} is missing"
            raise CheckpointError(f"{missing}{unfinished(self.path)}") from None
        if isinstance(values, dict) and "format" in values and values["format"] != FORMAT:
            raise CheckpointError(f"{self.path} is a run of another version of calida: run it again")
        metrics = check_seal(values, str(self._metrics))
        from_json(SavedMetrics, metrics, str(self._metrics))
        return metrics

    def read_finished(self) -> FinishedRun:
        """All that a finished run left, if its parts are of one run."""
        config, metrics, predictions = self.read_config(), self.read_metrics(), self.read_arrays()
        named, rounds, classes = self.read_names(predictions), self.read_rounds(), len(metrics["classes"])
        if predictions.after.target.shape[1] != classes or len(rounds) != metrics["rounds"]:
            raise CheckpointError(f"{self._metrics} is of another run than {self._arrays.name} or {self.rounds.name}")
        self.check_models(metrics)
        if digest_names(*named) != metrics["names"]:
            raise CheckpointError(
                f"{self.predictions} is not as the run wrote it: names were changed; resuming the run writes it again",
                "resume",
            )
        if any(len(record.source.class_shares) != classes for record in rounds):
            raise CheckpointError(f"{self.rounds} is of another run than {self._metrics.name}")
        return FinishedRun(config, metrics, predictions, rounds, named)

    def digest_models(self) -> dict[str, str]:
        """What tells both classifiers of a run from those of another: by the name of their files."""
        return {name: bundle_digest(self.path, name) for name in _MODELS if has_bundle(self.path, name)}

    def check_models(self, metrics: Mapping[str, Any] | None = None) -> None:
        """Refuse classifiers of another run. A folder without figures, or with older ones, has nothing to compare."""
        if metrics is None:
            try:
                metrics = self.read_metrics()
            except CheckpointError:
                return
        there = self.digest_models()
        for name, digest in metrics.get("models", {}).items():
            if there.get(name, digest) != digest:
                raise CheckpointError(
                    f"{self.path / name}.json is of another run than {self._metrics.name}: put its own files back, or "
                    "resume the run",
                    "resume",
                )

    def write_arrays(self, predictions: RunPredictions) -> None:
        predictions.save(self._arrays)

    def read_arrays(self) -> RunPredictions:
        return RunPredictions.load(self._arrays)

    def read_truth(self) -> Tensor | None:
        """The true labels that an evaluation left with the run, if there was one."""
        try:
            truth = self.read_arrays().truth
        except CheckpointError:
            return None
        return torch.from_numpy(truth) if len(truth) else None

    def read_right(self, named_by: str, names: Sequence[str], prediction: Prediction) -> Tensor | None:
        """How likely these answers are right, [N], if all are of samples that the run has judged; None otherwise.

        A name alone is no proof: the prediction has to be the one that was judged, too.
        """
        try:
            kept = self.read_arrays()
            if self.read_metrics()["names"] == digest_names(named_by, names):  # all of them, in their order
                rows = np.arange(len(names))
            else:
                known = self.read_names(kept)
                if self.read_metrics()["names"] != digest_names(*known):
                    return None
                places = {name: row for row, name in enumerate(known[1])}
                rows = np.array([places[name] for name in names])
                if len(places) < len(kept.right):
                    return None
        except (CheckpointError, KeyError):
            return None
        if not len(kept.right):
            return None
        same = np.allclose(np.exp(kept.after.target[rows]), prediction.probabilities.numpy(), atol=1e-3)
        return torch.from_numpy(kept.right[rows]).double() if same else None

    def read_names(self, predictions: RunPredictions) -> tuple[str, list[str]]:
        """What predictions.csv names its samples by, and the names, which are in the order of the predictions.

        People open that file in other programs: what has been sorted or filtered there would give samples the names of
        others, so labels and probabilities beside the names must be those of the predictions.
        """
        probabilities = np.exp(predictions.after.target)  # [N, K]
        try:
            header, *rows = read_csv(self.predictions)
            same = _as_written(header, rows, probabilities)
        except OSError as error:
            raise CheckpointError(f"{self.predictions} cannot be read: {error}") from None
        except (ValueError, IndexError, csv.Error):
            same = False
        if not same:
            raise CheckpointError(
                f"{self.predictions} is not as the run wrote it: rows, labels or probabilities were changed, sorted or "
                "left out; resuming the run writes it again",
                "resume",
            )
        return header[0], [row[0] for row in rows]


def _as_written(header: Sequence[str], rows: Sequence[Sequence[str]], probabilities: np.ndarray) -> bool:
    """Whether labels and probabilities of predictions.csv are these [N, K], as far as a spreadsheet leaves them."""
    classes = [name.removeprefix("p_") for name in header[-probabilities.shape[1] :]]
    sure = probabilities.max(1)
    wanted = np.column_stack([sure, probabilities])
    written = np.array([[row[2], *row[-probabilities.shape[1] :]] for row in rows], float)
    # Spreadsheets may leave three digits of a very small number.
    if written.shape != wanted.shape or not np.allclose(written, wanted, rtol=1e-4, atol=1e-6):
        return False
    best = probabilities.argmax(1).tolist()
    others = [place for place, row in enumerate(rows) if not _alike(row[1], classes[best[place]])]
    # Of classes that are equally probable, either may be the label.
    return all(
        any(_alike(rows[place][1], classes[one]) for one in np.flatnonzero(probabilities[place] > 0.9999 * sure[place]))
        for place in others
    )


def _alike(written: str, name: str) -> bool:
    """Whether a spreadsheet may have made one of the other: true is TRUE there, and 01 is 1."""
    if written.lower() == name.lower():
        return True
    try:
        return float(written) == float(name)
    except ValueError:
        return False


def digest_names(named_by: str, names: Sequence[str]) -> str:
    """Of what samples are named by, and of all names in their order."""
    return digest_values([named_by, list(names)])


def _line(record: RoundRecord) -> str:
    return json.dumps(sealed(record.to_json())) + "\n"


def prediction_columns(
    collection: Collection,
    prediction: Prediction,
    classes: Sequence[str],
    kept: Tensor | None = None,
    sets: Tensor | None = None,
    right: Tensor | None = None,
) -> list[tuple[str, Column]]:
    """A line a sample: path or row, label, probability, entropy, aleatoric, epistemic, one probability a class.

    With `right`, [N], a column before the classes' own says how likely the label is right.
    With `kept`, samples that are not are left without a label, and a last column says so. With `sets`, [N, K] booleans,
    two more columns say how many classes a sample's set has, and which, as a JSON list.
    """
    answered = [True] * len(prediction) if kept is None else kept.tolist()
    labels = zip(prediction.labels.tolist(), answered, strict=True)
    columns: list[tuple[str, Column]] = [
        (collection.named_by, list(collection.names)),
        ("label", [classes[label] if answer else "" for label, answer in labels]),
        ("probability", _numbers(prediction.confidence)),
        *((name, _numbers(getattr(prediction, name))) for name in ("entropy", "aleatoric", "epistemic")),
        *([] if right is None else [("right", _numbers(right))]),
        *((f"p_{name}", _numbers(column)) for name, column in zip(classes, prediction.probabilities.T, strict=True)),
    ]
    if sets is not None:
        chosen = [[name for name, inside in zip(classes, row, strict=True) if inside] for row in sets.tolist()]
        columns.append(("set_size", [len(one) for one in chosen]))
        columns.append(("set", [json.dumps(one, ensure_ascii=False) for one in chosen]))
    if kept is not None:
        columns.append(("abstained", ["no" if answer else "yes" for answer in answered]))
    return columns


def _numbers(column: Tensor) -> np.ndarray:
    numbers: np.ndarray = column.contiguous().numpy()
    return numbers
