"""One run of a study: keyed by all that decides it, in a folder of its own, resumed where it was killed."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from calida.adaptation import Adapted, Trust, load
from calida.data import Samples, split_validation, take
from calida.errors import CheckpointError
from calida.files import make_folder, turn, write_atomically
from calida.json_values import check_seal, read_json, sealed, to_json
from calida.recipes import Recipe
from calida.runs import Metrics, RunConfig, RunFolder, execute, open_data
from calida.seeds import Seeds
from calida.studies.summary import RunRecord, check_record
from calida.training import SOURCE_PHASE
from calida.validation import describe_labeled

# What pre-training is made of: runs that agree in these groups begin with the same source-only classifier.
PRETRAINING = ("posterior", "optimization", "augmentation", "pretraining", "finetuning")
_DECISIVE = (
    *("recipe", "seed", "backbone", "head", "validation", "choice", "calibration", "guard", "size", "precision"),
    "encoder",
)
_DEFAULTS = {"precision": "fp32", "encoder": "auto"}  # of what older records do not have
_WHERE = ("source", "target", "backbone_weights")  # are known by their names, wherever they lie
_INDIFFERENT = ("device", "workers", "memory", "max_pixels", "tensorboard", "start", "settings", "target_labels")
# All other options decide a run as well. A record has those that are not at their defaults.
_OTHERS = {
    one.name: getattr(RunConfig(), one.name)
    for one in fields(RunConfig)
    if one.name not in (*_DECISIVE, *_WHERE, *_INDIFFERENT)
}
_RETURNED = ("source", "target", "oracle", "oracle_uncalibrated")
_TRAINED_ON_SHOWN = 2000  # samples that a network was trained on, to see how well it knows them
# Seeds are set process-wide while a network is built, so a process works on one run at a time.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Job:
    """A task's data, a recipe with its settings, and a seed.

    `measured_with` are numbers of Monte-Carlo samples that the finished network predicts with, for its record.
    """

    task: str
    config: RunConfig
    measured_with: tuple[int, ...] = ()
    draw: bool = False  # a report of each run

    @cached_property
    def recipe(self) -> Recipe:
        return self.config.recipes()[0]

    @cached_property
    def start(self) -> Job | None:
        """The run that trains the source-only classifier which this one adapts; none if it does so itself."""
        recipe = self.recipe
        if recipe.adaptation.rounds == 0:
            return None
        settings = {name: group for name, group in recipe.settings().items() if name in PRETRAINING}
        name = "bsource" if recipe.posterior.gaussian else "source"
        return replace(self, config=replace(self.config, recipe=name, settings=settings), draw=False)

    def identity(self) -> dict[str, Any]:
        """All that decides the result, as JSON has it; not where the data lie or on what device it runs."""
        config = self.config
        weights = config.backbone_weights
        return {
            "task": self.task,
            "source": short_origin(config.source),
            "target": short_origin(config.target),
            **{name: getattr(config, name) for name in _DECISIVE},
            "backbone_weights": None if weights is None else Path(weights).name,
            **{name: value for name in _OTHERS if (value := getattr(config, name)) != _OTHERS[name]},
            "settings": self.recipe.settings(),
        }

    @cached_property
    def key(self) -> str:
        return _key(self.identity())

    @property
    def folder(self) -> str:
        return f"{self.task}.{self.config.recipe}.{self.config.seed}.{self.key[:8]}"


def _key(identity: Mapping[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def key_of(record: RunRecord, older_names: Mapping[str, str]) -> str:
    """The key that a run with this record has today: what is younger than the record had its default."""
    names = ("task", "source", "target", *_DECISIVE, "backbone_weights")
    identity = {name: record.get(name, _DEFAULTS.get(name)) for name in names}
    identity |= {name: record[name] for name in _OTHERS if name in record}
    return _key({**identity, "settings": grouped_settings(record["settings"], older_names)})


def grouped_settings(settings: Mapping[str, Any], older_names: Mapping[str, str]) -> dict[str, Any]:
    """A record's settings in today's groups; `older_names` are what settings were called once, and are called now."""
    named = {older_names.get(name, name): value for name, value in settings.items()}
    return Recipe("").with_settings(named).settings()


def short_origin(text: str) -> str:
    """The last two parts of a path; the name of a set as it is."""
    return "/".join(Path(text).parts[-2:])


def finished_record(job: Job, out: Path) -> RunRecord | None:
    """What a finished run left, or None."""
    path = out / job.folder / "record.json"
    try:
        record: RunRecord = check_seal(read_json(path), str(path))
    except FileNotFoundError:
        return None
    Trust.from_json(check_record(record, str(path)).get("trust"), str(path))
    if record["key"] != job.key:
        raise CheckpointError(f"{path} is the record of another run than {job.folder}")
    was, now = RunFolder(path.parent).read_config(), job.config.resolved()
    for domain in ("source", "target"):
        if (read := getattr(was, domain)) != (given := getattr(now, domain)):
            raise CheckpointError(f"{path.parent} was made from {read}, and this study has {given}: use another folder")
    return record


def run_job(job: Job, out: Path, device: str | None = None) -> RunRecord:
    """Run what is not finished of a job and of its start, and give its record.

    Where another process is at the same run, wait for it: a start is made once, by whoever comes first.
    """
    if (known := finished_record(job, out)) is not None:
        return known
    if job.start is not None:
        run_job(job.start, out, device)
    make_folder(out)
    with _one_at_a_time, turn(out / f".{job.folder}.lock"):
        if (known := finished_record(job, out)) is not None:
            return known
        torch.set_num_threads(1)  # several runs share the cores, one each
        began = time.perf_counter()
        folder, start = RunFolder(out / job.folder), job.start
        config = replace(job.config, device=device, start=None if start is None else str(out / start.folder))
        _, metrics = execute(config, folder.path, resume=folder.holds_run(), draw=job.draw)
        record = _record(job, folder, metrics, _by_samples(job, config, load(folder.path, device)))
        record["seconds"] = round(max(time.perf_counter() - began, record["training_seconds"]), 1)
        write_atomically(folder.path / "record.json", (json.dumps(sealed(record)) + "\n").encode())
        folder.remove_checkpoint()
    return record


def _record(job: Job, folder: RunFolder, metrics: Metrics, by_samples: Mapping[str, Any]) -> RunRecord:
    history = folder.read_rounds()
    training = metrics["training_seconds"]
    if job.start is not None:  # the rounds of pre-training are in the record of the run that did them
        last = max(index for index, past in enumerate(history) if past.phase == SOURCE_PHASE)
        history = history[last:]
        training = sum(past.seconds for past in history[1:])
    return {
        "key": job.key,
        **job.identity(),
        "start": None if job.start is None else job.start.key,
        "returned": {name: metrics["adapted"][name] for name in _RETURNED if name in metrics["adapted"]},
        "trust": metrics["trust"],
        "by_samples": by_samples,
        "rounds": rounded([past.to_json() for past in history]),
        "training_seconds": round(training, 1),
        "machine": f"{platform.system()} {platform.machine()}, one thread",
        "precision_used": metrics["precision"],
        "versions": metrics["versions"],
    }


def _by_samples(job: Job, config: RunConfig, adapted: Adapted) -> dict[str, Any]:
    """How a finished network does with each number of Monte-Carlo samples, on both domains."""
    if not job.measured_with or job.start is not None:
        return {}
    data = open_data(config)
    kept, held = split_validation(data.labels, config.validation, Seeds(config.seed))
    samples = data.source.samples
    parts: dict[str, tuple[Samples, Any]] = {
        "source_trained_on": (take(samples, kept[:_TRAINED_ON_SHOWN]), data.labels[kept[:_TRAINED_ON_SHOWN]]),
        "source_held_out": (take(samples, held), data.labels[held]),
        "oracle": (data.target.samples, data.truth),
    }
    return {
        str(count): {
            name: to_json(describe_labeled(adapted.predict(x, count, raw=True, on_mismatch="ignore"), labels))
            for name, (x, labels) in parts.items()
        }
        for count in job.measured_with
    }


def rounded(value: Any) -> Any:
    """The same JSON with six digits a number: what is kept for years need not have sixteen."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value
