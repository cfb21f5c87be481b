"""How long whole runs take by their steps, and how many samples a second are read, predicted and embedded."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from PIL import Image

from calida.data import Labeled, Loading, read_collection
from calida.encoders import PACKAGED, embed, load_encoder
from calida.model import Network, Precision, build_classifier, follow, make_teacher, predict
from calida.objective import Step
from calida.recipes import Recipe, get_recipe, phases, quick
from calida.runs import PredictParts, RunConfig, execute, make_parts
from calida.seeds import Seeds
from calida.training import Domains, Phase, PseudoLabels, build_steps, train
from calida.workers import Workers

_ROWS, _COLUMNS, _PHOTOGRAPHS = 100_000, 50, 48
_DIGITS, _SOURCE, _TARGET = (1, 28, 28), 1800, 1800  # MNIST -> USPS, of whose 2,000 digits 1,800 are trained on
# The default until commit e8b022c, when a step took a tenth longer as well. It trained `compact`.
_BEFORE = {
    "pretraining.epochs": 40,
    "min_batches_per_epoch": 68,
    "rounds": 10,
    "min_batches_per_round": 135,
}


class Length(NamedTuple):
    """How a run is made, and how many steps its two phases have."""

    name: str
    recipe: Recipe
    backbone: str
    precision: Precision

    def steps(self) -> list[int]:
        """Of pre-training and of adaptation, on MNIST -> USPS."""
        first, second = phases(self.recipe)
        batch = self.recipe.optimization.batch_size
        return [
            first.rounds * first.estimate_samples(_SOURCE, _TARGET) // batch,
            second.rounds * second.estimate_samples(_SOURCE, _TARGET) // (2 * batch),
        ]


def lengths() -> list[Length]:
    """The default of today by precision, its quick form, and what it was."""
    today = get_recipe("calida").with_settings(color=0.0)
    before = today.with_settings(_BEFORE)
    return [
        Length("before: 40 epochs, 10 rounds, compact, fp32", before, "compact", "fp32"),
        Length("today, fp32", today, "conv3", "fp32"),
        Length("today, bf16", today, "conv3", "bf16"),
        Length("today, --quick, bf16", quick(today), "conv3", "bf16"),
    ]


def digits(count: int) -> Labeled:
    """Noise in the shape of digits: a step takes as long on it."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (count, *_DIGITS), dtype=torch.uint8, generator=generator)
    return Labeled(x, torch.arange(count) % 10)


def seconds_of_step(phase: Phase, length: Length, turns: int = 4) -> float:
    """The fastest of a few turns of three steps each: CPU seconds of one step."""
    data = digits(3 * phase.batch_size)
    phase = replace(phase, passes=1, min_batches=1)
    model = build_classifier(Network(_DIGITS, 10, length.backbone, precision=length.precision), Seeds(0))
    domains, pseudo_labels = Domains(data, data, data.x, 10), PseudoLabels.none(len(data.y), 10)
    teacher = make_teacher(model) if phase.teacher_memory else None
    optimizer = phase.make_optimizer(model.parameters())

    def steps() -> Iterator[Step]:
        plans = phase.plan(phase.pools(domains, pseudo_labels, 0, Seeds(0)), Seeds(0))
        for step in build_steps(plans, model, domains, pseudo_labels, phase.augmentation, teacher):
            yield step
            if teacher is not None:
                follow(teacher, model, 0.99)

    multipliers = phase.objective.multipliers()
    return fastest(lambda: train(model, optimizer, phase.objective, steps(), multipliers), turns) / 3


def fastest(act: Callable[[], object], turns: int) -> float:
    """CPU seconds of the fastest of some turns: what other processes take of the machine hardly counts."""
    best = float("inf")
    for _ in range(turns):
        began = time.process_time()
        act()
        best = min(best, time.process_time() - began)
    return best


def print_runs() -> None:
    """Whole trainings on MNIST -> USPS: steps times milliseconds."""
    print("\ntraining on MNIST -> USPS (2,000 / 1,800, 28 pixels), CPU time: steps x ms of each phase, seconds in all")
    first = None
    for length in lengths():
        costs = [seconds_of_step(phase, length) for phase in phases(length.recipe)]
        steps = length.steps()
        total = sum(count * cost for count, cost in zip(steps, costs, strict=True))
        first = first or total
        told = " + ".join(f"{count:,} x {1000 * cost:.1f}" for count, cost in zip(steps, costs, strict=True))
        print(f"  {length.name:50s} {told:28s} = {total:6.1f} s   {first / total:4.1f} x as fast", flush=True)


def print_rates() -> None:
    """Samples a second and thread of prediction, embedding and reading."""
    print("\nsamples a CPU second, one thread")
    for name, rate in {**_network_rates(), **_table_rates(), **_photograph_rates()}.items():
        print(f"  {name:66s} {rate:10,.0f}", flush=True)


def _network_rates() -> dict[str, float]:
    x, rates = digits(1000).x, dict[str, float]()
    precisions: tuple[Precision, ...] = ("fp32", "bf16")
    for precision in precisions:
        model = build_classifier(Network(_DIGITS, 10, "conv3", precision=precision), Seeds(0))
        rates[f"digits predicted, conv3, 28 pixels, {precision}"] = len(x) / fastest(partial(predict, model, x), 3)
    bayesian = build_classifier(Network(_DIGITS, 10, "conv3", True, sampled="top"), Seeds(0))
    rates["the same, fp32, M = 10 in the top layers"] = len(x) / fastest(lambda: predict(bayesian, x, 10), 2)
    return rates


def _table_rates() -> dict[str, float]:
    """From one Parquet file to parts, as `calida predict --engine` does it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, count in (("source", 400), ("target", 400), ("new", _ROWS)):
            rows = np.random.default_rng(count).normal(size=(count, _COLUMNS)).astype(np.float32)
            columns = {f"x{index}": rows[:, index] for index in range(_COLUMNS)}
            pl.DataFrame({**columns, "kind": np.where(rows[:, 0] > 0, "yes", "no")}).write_parquet(
                folder / f"{part}.parquet"
            )
        config = RunConfig(
            source=str(folder / "source.parquet"),
            target=str(folder / "target.parquet"),
            label="kind",
            recipe="rer-1",
            guard=False,
            settings={"epochs": 1, "rounds": 1, "passes": 1},
        )
        execute(config, folder / "run", draw=False)
        work = PredictParts(str(folder / "run"), PredictParts.weights_of(folder / "run"))
        began = time.process_time()
        make_parts(str(folder / "new.parquet"), work, folder / "parts", Workers(jobs=1), _ROWS)
        return {f"rows of {_COLUMNS} numbers, Parquet to Parquet, mlp": _ROWS / (time.process_time() - began)}


def write_photographs(folder: Path, count: int) -> None:
    """JPEG files of 640 x 480, smooth as photographs are."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for index in range(count):
        rough = generator.integers(0, 256, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(rough).resize((640, 480)).save(folder / f"{index:03}.jpg", quality=90)


def _photograph_rates() -> dict[str, float]:
    if not PACKAGED["efficientnet-lite0"].is_installed():
        return {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photographs(folder / "photographs", _PHOTOGRAPHS)
        samples = read_collection(str(folder / "photographs"), Seeds(0), False).samples
        encoder = load_encoder("efficientnet-lite0", 160)
        began = time.process_time()
        embed(encoder, samples, Loading(workers=0), root=folder / "cache")
        seconds = time.process_time() - began
    return {"photographs of 640 x 480, JPEG to features, efficientnet-lite0 at 160": _PHOTOGRAPHS / seconds}
