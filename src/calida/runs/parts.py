"""Prediction and embedding of what is too large for one process: partitions in, Parquet parts out.

Parquet files are cut into ranges of rows, folders and lists of images into ranges of files. A part is a file of its own
that appears whole or not at all, and what is there is not made again: a worker that dies loses the part that it was at,
and the same command goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl
import torch

from calida.adaptation import Adapted, choose_device, load
from calida.adaptation.new_samples import prepare_new, read_new
from calida.allocator import keep_freed_memory
from calida.data import (
    Collection,
    ColumnChoice,
    Loading,
    Place,
    RowRange,
    SavedPreparation,
    check_looks,
    read_collection,
)
from calida.encoders import Encoder, embed, load_encoder
from calida.errors import CalidaError, InputError
from calida.files import make_folder, turn, write_atomically
from calida.json_values import read_json
from calida.runs.folder import prediction_columns
from calida.seeds import Seeds
from calida.workers import Workers

ROWS_A_PART = 100_000
IMAGES_A_PART = 5_000
IN_A_WORKER = Loading(workers=0)  # which may have no children of its own
_PLAN, _LISTING, _FORMAT = "parts.json", "files.parquet", 1
# Monte-Carlo masks are set process-wide while a network predicts, so a process works on one part at a time.
_one_at_a_time = threading.Lock()


class Part(NamedTuple):
    """A range of rows of a Parquet file; if `listed`, each row is the name of an image file."""

    number: int
    file: str
    rows: RowRange
    listed: bool = False


class PartWork(Protocol):
    """What is done to every part; plain values, so that any worker can do it."""

    def read(self, path: str, rows: RowRange) -> Collection:
        """Rows of a Parquet file."""

    def compute(self, collection: Collection, scratch: Path) -> pl.DataFrame:
        """What a part holds; `scratch` is a folder for what a second attempt should not have to do again."""


class PartOutcome(NamedTuple):
    """A part that is there, how many rows it has, or the sentence that tells why it is not."""

    number: int
    rows: int = 0
    error: str = ""


@dataclass(frozen=True)
class PredictParts:
    """Predictions by the classifier of a run."""

    run: str
    weights: str  # their digest: a run that was made again predicts otherwise
    label: str | None = None
    samples: int | None = None
    sets: float | None = None
    raw: bool = False
    domain: str = "target"
    check_scale: bool = True
    loading: Loading = IN_A_WORKER
    device: str | None = None

    @staticmethod
    def weights_of(run: Path) -> str:
        """What tells the classifier of a run from that of another."""
        try:
            return hashlib.blake2b((run / "model.json").read_bytes(), digest_size=16).hexdigest()
        except OSError as error:
            raise InputError(f"{run} holds no finished run: {error.strerror}") from None

    def read(self, path: str, rows: RowRange) -> Collection:
        return read_new(path, self._saved()[1], False, self.label, rows)

    def compute(self, collection: Collection, scratch: Path) -> pl.DataFrame:
        adapted, preparation = self._saved()
        loaded = prepare_new(collection, preparation, self.loading, self.domain, self.check_scale, self.device)
        if self.check_scale:
            check_looks(adapted.network.scale, loaded.samples, "the input")
        own = adapted.predict(loaded.samples, num_samples=self.samples, raw=True, on_mismatch="ignore")
        prediction = own if self.raw else adapted.calibrated(own)
        inside = None if self.sets is None else adapted.sets_of(own, self.sets)
        (named_by, names), *columns = prediction_columns(
            loaded.collection, prediction, preparation.classes, sets=inside, right=prediction.right
        )
        taken = {name for name, _ in columns}
        return pl.DataFrame({"name" if named_by in taken else named_by: names, **dict(columns)})

    def _saved(self) -> tuple[Adapted, SavedPreparation]:
        adapted = _loaded(self.run, self.weights, self.device)
        assert adapted.preparation is not None
        return adapted, adapted.preparation


@lru_cache(maxsize=1)
def _loaded(run: str, weights: str, device: str | None) -> Adapted:
    return load(run, device)


@dataclass(frozen=True)
class EmbedParts:
    """Features by a pre-trained encoder."""

    encoder: str
    size: int | None = None
    text: str | None = None
    loading: Loading = IN_A_WORKER
    device: str | None = None

    def read(self, path: str, rows: RowRange) -> Collection:
        collection = read_collection(path, Seeds(0), False, ColumnChoice(text=self.text), rows=rows)
        if collection.kind == "feature vectors":
            raise InputError(f"{path} is a table of feature vectors, which need no encoder; name a column of texts")
        return collection

    def compute(self, collection: Collection, scratch: Path) -> pl.DataFrame:
        encoder = _encoder(self.encoder, self.size)
        features, rows = embed(encoder, collection.samples, self.loading, choose_device(self.device), root=scratch)
        names = [collection.names[row] for row in rows]
        columns = {f"f{place:04}": column.contiguous().numpy() for place, column in enumerate(features.T)}
        return pl.DataFrame({collection.named_by: names, **columns})


@lru_cache(maxsize=1)
def _encoder(name: str, size: int | None) -> Encoder:
    return load_encoder(name, size)


def make_parts(
    data: str,
    work: PartWork,
    out: Path,
    workers: Workers,
    rows: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Fill the folder `out` with parts; give how many samples they hold in all.

    Parts that are there are left as they are. The folder must be new, or that of the same command.
    """
    workers.check()
    parts = _plan(data, work, out, rows)
    outcomes: list[PartOutcome] = []
    progress(0, len(parts))
    for outcome in workers.each(partial(_attempt, work, out=out.resolve()), parts):
        outcomes.append(outcome)
        progress(len(outcomes), len(parts))
    if errors := [outcome for outcome in outcomes if outcome.error]:
        first = min(errors)
        raise InputError(f"{len(errors)} of {len(parts)} parts failed; part {first.number}: {first.error}")
    return sum(outcome.rows for outcome in outcomes)


def _plan(data: str, work: PartWork, out: Path, rows: int | None) -> list[Part]:
    """Cut the data into parts, and write down what they are parts of."""
    if out.is_file():
        raise InputError(f"{out} is a file; parts need a folder", "out")
    files = _parquet_files(data)
    identity: dict[str, Any] = {"format": _FORMAT, "work": type(work).__name__, **_decisive(work)}
    if files:
        about = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        length = rows or ROWS_A_PART
        _claim(out, {**identity, "rows": length, "data": _digest(about)})
        ranges = ((path, pl.scan_parquet(path).select(pl.len()).collect().item()) for path in files)
        cut = [(str(path), RowRange(start, length)) for path, count in ranges for start in range(0, count, length)]
        return [Part(number, file, part) for number, (file, part) in enumerate(cut)]
    collection = read_collection(data, Seeds(0), False)
    if not collection.is_images or isinstance(collection.samples, torch.Tensor):
        raise InputError(f"{data} cannot be cut into parts: folders and lists of images can, and Parquet files")
    length = rows or IMAGES_A_PART
    paths = [
        os.fsencode(path.resolve()) for path in collection.files if isinstance(path, Path)
    ]  # bytes: a name need not be text
    _claim(out, {**identity, "rows": length, "data": _digest([path.hex() for path in paths])})
    listing = (out / _LISTING).resolve()
    if not listing.exists():
        _write(listing, pl.DataFrame({"path": paths, "name": list(collection.names)}))
    starts = range(0, len(paths), length)
    return [Part(number, str(listing), RowRange(start, length), True) for number, start in enumerate(starts)]


def _parquet_files(data: str) -> list[Path]:
    """The Parquet file that is named, or all in the folder that is."""
    path = Path(Place.parse(data).name).expanduser().resolve()
    if path.is_file():
        return [path] if path.suffix.lower() == ".parquet" else []
    return sorted(one for one in path.glob("*.parquet") if one.is_file()) if path.is_dir() else []


def _decisive(work: PartWork) -> dict[str, Any]:
    """What decides a part's content; not on what device it is made."""
    return {name: value for name, value in asdict(work).items() if name != "device"}  # type: ignore[call-overload]


def _claim(out: Path, identity: dict[str, Any]) -> None:
    """Begin a folder of parts, or go on in one of the same command."""
    plan = out / _PLAN
    if plan.exists():
        if read_json(plan) != identity:
            raise InputError(f"{out} holds parts of other data or by other options; choose another folder", "out")
        return
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} has files in it that are no parts; choose another folder", "out")
    make_folder(out)
    write_atomically(plan, (json.dumps(identity) + "\n").encode())


def _attempt(work: PartWork, part: Part, out: Path) -> PartOutcome:
    """A part that cannot be made is told at the end; the others go on."""
    try:
        return make_part(work, part, out)
    except CalidaError as error:
        return PartOutcome(part.number, error=str(error))
    except Exception:
        return PartOutcome(part.number, error=traceback.format_exc())


def make_part(work: PartWork, part: Part, out: Path) -> PartOutcome:
    """Make a part that is not there. Where another process is at it, wait for it."""
    file = out / f"part-{part.number:06}.parquet"
    scratch = out / f".part-{part.number:06}"
    with _one_at_a_time, turn(out / f".part-{part.number:06}.lock"):
        if not file.exists():
            torch.set_num_threads(1)  # several parts share the cores, one each
            keep_freed_memory()
            _write(file, work.compute(_read(work, part), scratch))
            shutil.rmtree(scratch, ignore_errors=True)
    return PartOutcome(part.number, pl.scan_parquet(file).select(pl.len()).collect().item())


def _read(work: PartWork, part: Part) -> Collection:
    if not part.listed:
        return work.read(part.file, part.rows)
    listed = pl.scan_parquet(part.file).slice(*part.rows).collect()
    paths = [Path(os.fsdecode(path)) for path in listed["path"]]
    return Collection(part.file, paths, listed["name"].to_list())


def _write(path: Path, frame: pl.DataFrame) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    write_atomically(path, content.getvalue())


def _digest(values: Any) -> str:
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
