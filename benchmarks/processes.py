"""The same training on one process and on several: are the weights the same, and what is gained in time?

    python -m benchmarks.processes --counts 2 4              # weights after 20 steps, every term, in float64
    python -m benchmarks.processes --counts 2 --steps        # seconds a step

Processes are started by torchrun on this machine. Each case trains a small network through two phases: 20 steps, with
predictions, pseudo-labels and BatchNorm's averages between rounds. Reported is the largest difference of any tensor of
the trained classifier, relative to that tensor's largest value.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from calida.data import Labeled
from calida.model import Network, build_classifier
from calida.model.backbones import DropoutToFeatures
from calida.objective import Domain, Step, Weighted
from calida.processes import ALONE, Processes, join
from calida.recipes import get_recipe, phases
from calida.seeds import Seeds
from calida.training import Domains, Observe, Run, run_rounds

CLASSES = 4
VIEWS = {"contrast": 0.5, "sharpness": 0.5, "polarity": 0.2, "erasing": 0.5}
GROUPS = {"gradient_variance.weight": 2.0, "groups": 4, "inner_step": 0.3, "bound": "none"}


class Case(NamedTuple):
    """A recipe with settings, on a network whose layers look beyond their row or do not."""

    recipe: str
    settings: Mapping[str, Any] = {}
    norm: bool = True
    dropout: bool = True
    vectors: bool = False
    own_term: bool = False


class OwnTerm:
    """A term as somebody may write it: it looks at inputs, at gradients by them, and at weights."""

    domains: ClassVar[tuple[Domain, ...]] = ("target",)

    def __call__(self, step: Step) -> Tensor:
        inputs = step.model.standardize(step.target.x).requires_grad_()
        logits = step.run("target", inputs).logits.mean
        (gradient,) = torch.autograd.grad(logits.logsumexp(-1).sum(), inputs, create_graph=True)
        weights = torch.stack([parameter.square().sum() for parameter in step.model.parameters()]).sum()
        term: Tensor = gradient.square().mean() + 0.01 * weights
        return term


def _terms() -> dict[str, Case]:
    """Every term, beside the likelihood of the source, which all have."""
    joint = {"schedule": "joint", "rounds": 4}
    return {
        "source likelihood": Case("rer-1", {"multiplier": 0.0, "diversity": 0.001}),
        "entropy, order 1": Case("rer-1"),
        "dual ascent": Case("dual", {"schedule": "alternate"}),
        "pseudo-labels": Case("rer-inf"),
        "soft pseudo-labels": Case("annealed"),
        "mrkld": Case("rer-inf", {"mrkld": 0.3}),
        "diversity": Case("rer-1", {"diversity": 1.0, **joint}),
        "consistency": Case("rer-1", {"consistency": 1.0, "consistency_threshold": 0.2, "augmentation": VIEWS}),
        "virtual adversarial": Case("rer-1", {"vat": 1.0}),
        "mmd": Case("mmd", joint),
    }


def cases() -> dict[str, Case]:
    """Every term with gradient variance and without, and networks of all kinds with everything at once."""
    found = _terms()
    found |= {
        f"{name}, gradient variance": case._replace(settings={**case.settings, **GROUPS})
        for name, case in found.items()
    }
    bayesian = {"gaussian": True, "sampled": "top", "num_samples": 3}
    most = {"diversity": 1.0, "consistency": 1.0, "consistency_threshold": 0.2, "vat": 0.5, "mrkld": 0.1}
    whole = {**most, **bayesian, "augmentation": VIEWS, "teacher.memory": 1.0}
    for words, norm, dropout in (
        ("BatchNorm and dropout", True, True),
        ("BatchNorm", True, False),
        ("dropout", False, True),
        ("neither", False, False),
    ):
        found[f"Bayesian, {words}"] = Case("rer-inf", whole, norm, dropout)
        found[f"Bayesian, {words}, gradient variance"] = Case("rer-inf", {**whole, **GROUPS}, norm, dropout)
    found["masks in all layers"] = Case("rer-1", {**bayesian, "sampled": "all"})
    found["default recipe"] = Case("calida", {"augmentation": {**VIEWS, "affine": 0.0}})
    found["feature vectors"] = Case("features", {"augmentation": {"noise": 0.3, "dropping": 0.2}}, vectors=True)
    found["batches of three"] = Case("rer-1", {"batch_size": 3, "diversity": 1.0, "max_batches_per_round": 4})
    found["three groups"] = Case("rer-1", {**GROUPS, "groups": 3, "bound": "relative"})
    found["a term of one's own"] = Case("rer-1", own_term=True)
    found["some steps carry the variance"] = Case("rer-1", {**GROUPS, "gradient_variance.share": 0.5})
    return found


def train_case(
    case: Case,
    processes: Processes = ALONE,
    folder: Path | None = None,
    observe: Observe = lambda event: None,
    shifted: float = 0.4,
    batches: int = 4,
) -> dict[str, Tensor]:
    """The classifier's tensors after 20 steps in float64; with a folder, a run that is there is resumed.

    With fewer batches in an epoch there are fewer steps.
    """
    shape = (10,) if case.vectors else (1, 8, 8)
    short = {"batch_size": 13, "epochs": 1, "rounds": 2, "passes": 1, "schedule": "alternate", **_SHORT}
    recipe = get_recipe(case.recipe).with_settings({**short, **case.settings})
    backbone = _vector_layers() if case.vectors else _image_layers(case.norm, 0.3 if case.dropout else 0.0)
    network = Network(shape, CLASSES, "custom", recipe.posterior.gaussian, sampled=recipe.posterior.sampled)
    model = build_classifier(network, Seeds(1), backbone).double()
    terms = {"own": Weighted(OwnTerm(), 0.5)} if case.own_term else {}
    domains, identity = _domains(shape, shifted, batches), {"target": shifted}
    samples = recipe.posterior.num_samples
    run = Run(phases(recipe, terms), domains, Seeds(0), samples, 16, folder, identity, observe, processes=processes)
    done = run_rounds(run, model, resume=folder is not None)
    told = {f"term {name}": torch.tensor(value) for name, value in done.history[-1].terms.items()}
    weights = {name: value.clone(memory_format=torch.contiguous_format) for name, value in model.state_dict().items()}
    return weights | told


_SHORT = {"min_batches_per_epoch": 1, "min_batches_per_round": 1}


def _image_layers(norm: bool, dropout: float) -> nn.Module:
    """The layers of calida's networks for images, a few channels wide; smooth, so that no gradient is 0 by chance."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((1, 3), (3, 4)):
        layers.append(nn.Conv2d(before, after, 3, padding=1, bias=not norm))
        layers += [nn.BatchNorm2d(after)] * norm
        layers += [nn.Softplus(), nn.AvgPool2d(2, ceil_mode=True), nn.Dropout2d(dropout)]
    layers = [*layers[:-1], DropoutToFeatures(4, 6, dropout)]
    return nn.Sequential(*layers, *[nn.BatchNorm1d(6)] * norm, nn.Tanh())


def _vector_layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2))


def _domains(shape: tuple[int, ...], shifted: float, batches: int) -> Domains:
    """Four classes at places of their own; the target is brighter and noisier."""
    generator = torch.Generator().manual_seed(2)
    places = torch.randn(CLASSES, *shape, generator=generator, dtype=torch.float64)

    def drawn(rows: int, noise: float) -> tuple[Tensor, Tensor]:
        labels = torch.arange(rows) % CLASSES
        return places[labels] + noise * torch.randn(rows, *shape, generator=generator, dtype=torch.float64), labels

    target, _ = drawn(13 * batches, 0.9)
    return Domains(Labeled(*drawn(15 * batches, 0.6)), Labeled(*drawn(12, 0.6)), 1.2 * target + shifted, CLASSES)


def torchrun(count: int) -> list[str]:
    """The command that starts so many processes on this machine."""
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]


def _run_together(count: int, arguments: Sequence[str]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun(count), "-m", "benchmarks.processes", *arguments], check=True, env=environment)


def largest_difference(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    """Of any tensor, relative to its largest value."""
    assert one.keys() == other.keys()
    return max(
        float((value - other[name]).abs().max() / value.abs().max().clamp(min=1e-12)) for name, value in one.items()
    )


def train_all(out: Path, batches: int = 4) -> None:
    """What each process does: all cases, and the first one saves what came out."""
    processes, found = join(), dict[str, Tensor]()
    for name, case in cases().items():
        found |= {f"{name}/{key}": value for key, value in train_case(case, processes, batches=batches).items()}
    if processes.first:
        save_file(found, out)


def trained_together(count: int) -> dict[str, dict[str, Tensor]]:
    """The tensors of every case, trained on so many processes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "weights.safetensors")
        _run_together(count, ["--work", str(out)])
        return read_cases(out)


def read_cases(path: Path) -> dict[str, dict[str, Tensor]]:
    """The tensors of every case, as `train_all` has saved them."""
    tensors = load_file(path)
    found: dict[str, dict[str, Tensor]] = {name: {} for name in cases()}
    for place, value in tensors.items():
        name, _, key = place.partition("/")
        found[name][key] = value
    return found


def _step_seconds(out: Path, rows: int = 128) -> None:
    """Seconds of a training step of the default recipe's network on images of 28 pixels."""
    processes = join()
    torch.manual_seed(0)
    images, labels = torch.rand(10 * rows, 1, 28, 28), torch.arange(10 * rows) % 10
    settings = {"batch_size": rows, "epochs": 1, "rounds": 1, "passes": 1, "augmentation.color": 0.0}
    recipe = get_recipe("calida").with_settings({**settings, **_SHORT, "teacher.memory": 0.0})
    domains = Domains(Labeled(images, labels), Labeled(images[:10], labels[:10]), images.flip(0), 10)
    model = build_classifier(Network((1, 28, 28), 10, "compact"), Seeds(0))
    records: list[Any] = []
    pretraining, *_ = phases(recipe)
    run = Run([pretraining, pretraining], domains, Seeds(0), observe=records.append, processes=processes)
    started = time.perf_counter()
    run_rounds(run, model)
    if processes.first:
        out.write_text(f"{(time.perf_counter() - started) / 20:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", action="store_true", help="time steps instead")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.work is not None:
        (_step_seconds if given.steps else train_all)(given.work)
        return
    if given.steps:
        for count in (1, *given.counts):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder, "seconds")
                _run_together(count, ["--steps", "--work", str(out)])
                print(f"{count} processes: {1000 * float(out.read_text()):.1f} ms a step")
        return
    alone = {name: train_case(case) for name, case in cases().items()}
    together = {count: trained_together(count) for count in given.counts}
    print("case".ljust(52), *(f"{count} processes".rjust(12) for count in given.counts))
    for name, weights in alone.items():
        apart = (largest_difference(weights, together[count][name]) for count in given.counts)
        print(name.ljust(52), *(f"{value:12.1e}" for value in apart))


if __name__ == "__main__":
    main()
