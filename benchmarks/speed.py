"""What things cost beside each other: our loop and a bare one, bf16 and fp32, weight samples, gradient variance, whole
runs; and how many samples a second are predicted and embedded.

    python -m benchmarks.speed [--rounds 3] [--threads 2] [--memory]

Every pair is measured side by side, in turns, and reported as the median of the per-round ratios with its range: on a
shared machine seconds are noise, ratios less so. DTN on 32 x 32 x 3, batch 128, in fp32 unless the line says otherwise.
`benchmarks/rates.py` has rates, and trainings as their steps times what one takes; `benchmarks/whole_run.py` has the
start of the program, embedding beside the bare network, and a run with all that is not training.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from benchmarks.rates import print_rates, print_runs
from benchmarks.whole_run import print_default_run, print_embedding, print_starts
from calida.allocator import keep_freed_memory
from calida.data import Labeled, TargetBatch
from calida.model import Classifier, Network, Precision, Sampled, build_classifier, follow, make_teacher, predict
from calida.objective import (
    GradientVariance,
    Objective,
    PredictiveLikelihood,
    PseudoLabelLikelihood,
    Step,
    TargetEntropy,
    Weighted,
)
from calida.recipes import get_recipe, phases
from calida.seeds import Seeds
from calida.training import Domains, Phase, PseudoLabels, build_steps, train
from reproduction.memory import EveryGraph

SHAPE, BATCH, CLASSES, STEPS = (3, 32, 32), 128, 10, 2


def network(sampled: Sampled = "none") -> Classifier:
    """A point DTN, or a Bayesian one with weight samples in some of its dropout layers."""
    return build_classifier(Network(SHAPE, CLASSES, "dtn", sampled != "none", sampled=sampled), Seeds(0))


def samples(count: int = BATCH * STEPS) -> Labeled:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (count, *SHAPE), dtype=torch.uint8, generator=generator)
    return Labeled(x, torch.randint(CLASSES, (count,), generator=generator))


def adam(model: Classifier) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), 1e-4, weight_decay=5e-4)


def bare_loop(model: Classifier, data: Labeled) -> Callable[[], None]:
    """The training loop that anybody would write, over the same tensors and model."""
    optimizer = adam(model)

    def run() -> None:
        model.train()
        for rows in torch.randperm(len(data.y)).split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(data.x[rows]).logits.mean, data.y[rows])
            loss.backward()
            optimizer.step()
            loss.item()

    return run


def our_steps(model: Classifier, data: Labeled, num_samples: int = 1) -> Callable[[], None]:
    """The same passes through our loop: index, fetch, seeds, terms, checks."""
    optimizer = adam(model)
    objective = Objective({"likelihood": Weighted(PredictiveLikelihood())})
    phase = Phase("benchmark", objective, rounds=1, batch_size=BATCH, num_samples=num_samples)
    domains = Domains(data, data, data.x, CLASSES)

    def steps() -> Iterator[Step]:
        pseudo_labels = PseudoLabels.none(len(data.y), CLASSES)
        pools = phase.pools(domains, pseudo_labels, 0, Seeds(0))
        return build_steps(phase.plan(pools, Seeds(0)), model, domains, pseudo_labels, phase.augmentation)

    return lambda: void(train(model, optimizer, objective, steps(), {}))


def target_steps(model: Classifier, data: Labeled, regularizer: GradientVariance | None) -> Callable[[], None]:
    """Steps on target images by pseudo-labels, with or without gradient variance."""
    model.lay_out(torch.channels_last if regularizer is None else torch.contiguous_format)  # as a run would
    optimizer = adam(model)
    objective = Objective({"pseudo_label": Weighted(PseudoLabelLikelihood())}, regularizer)
    labels = torch.nn.functional.one_hot(data.y, CLASSES).float()

    def steps() -> Iterator[Step]:
        for index in range(STEPS):
            rows = slice(index * BATCH, (index + 1) * BATCH)
            batch = TargetBatch(data.x[rows], labels[rows], torch.ones(BATCH))
            yield Step(model, {"target": batch}, Seeds(0).at(index))

    return lambda: void(train(model, optimizer, objective, steps(), {}))


def adaptation(recipe: str, data: Labeled, backbone: str = "dtn", precision: Precision = "fp32") -> Callable[[], None]:
    """A pass of a recipe's adaptation, views and teacher included."""
    phase = phases(get_recipe(recipe).with_settings(batch_size=BATCH, passes=1, min_batches_per_round=1))[-1]
    model = build_classifier(Network(SHAPE, CLASSES, backbone, precision=precision), Seeds(0))
    domains = Domains(data, data, data.x, CLASSES)
    teacher = make_teacher(model) if phase.teacher_memory else None
    optimizer, pseudo_labels = phase.make_optimizer(model.parameters()), PseudoLabels.none(len(data.y), CLASSES)

    def steps() -> Iterator[Step]:
        plans = phase.plan(phase.pools(domains, pseudo_labels, 0, Seeds(0)), Seeds(0))
        for step in build_steps(plans, model, domains, pseudo_labels, phase.augmentation, teacher):
            yield step
            if teacher is not None:
                follow(teacher, model, 0.99)

    return lambda: void(train(model, optimizer, phase.objective, steps(), phase.objective.multipliers()))


def prediction(model: Classifier, data: Labeled, num_samples: int) -> Callable[[], None]:
    return lambda: void(predict(model, data.x, num_samples))


def void(_: object) -> None:
    """Drop a result."""


def compare(name: str, limit: float | None, ours: Callable[[], None], other: Callable[[], None], rounds: int) -> bool:
    """Time both in turns; print the median ratio, its range, and the limit that it must keep, if any."""
    ours()
    other()
    ratios = []
    for _ in range(rounds):
        seconds = []
        for action in (other, ours, ours, other):  # symmetric in time: a drift hits both alike
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
        ratios.append((seconds[1] + seconds[2]) / (seconds[0] + seconds[3]))
    median = statistics.median(ratios)
    met = limit is None or median <= limit
    verdict = "no limit" if limit is None else f"limit {limit:.2f}  {'ok' if met else 'OVER'}"
    print(f"{name:50s} {median:6.3f} x  [{min(ratios):.3f}, {max(ratios):.3f}]  {verdict}", flush=True)
    return met


def peak_memory(kind: str, groups: int) -> float:
    """Extra MB at the height of one step, beyond the loaded model and data, in a process of its own (Linux)."""
    code = f"from benchmarks.speed import memory_step; memory_step({kind!r}, {groups})"
    # Large blocks go back to the system when freed, so that the resident set follows what is alive.
    environment = {
        **os.environ,
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def memory_step(kind: str, groups: int, group_size: int = 32) -> None:
    """Run one step of a kind and print how far the resident set rose above where it was before."""
    torch.set_num_threads(1)
    model, data = network(), samples(groups * group_size)
    model.lay_out(torch.contiguous_format)
    model.train()
    labels = torch.nn.functional.one_hot(data.y, CLASSES).float()

    def step(count: int) -> Step:
        batch = TargetBatch(data.x[: count * group_size], labels[: count * group_size], torch.ones(count * group_size))
        return Step(model, {"target": batch}, Seeds(0))

    def act(count: int) -> None:
        regularizer: GradientVariance = {
            "one graph": GradientVariance(groups=count, bound="none", memory=0),
            "ours": GradientVariance(groups=count, bound="none"),
            "every graph": EveryGraph(groups=count, bound="none"),
        }[kind]
        Objective({"entropy": Weighted(TargetEntropy())}, regularizer).backward(step(count), {})

    act(2)  # warm up: gradients exist, kernels are chosen
    print(growth(lambda: act(groups)))


def growth(act: Callable[[], object]) -> float:
    """How far this process grows at most while it acts, in MB."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before = status("VmRSS")
    act()
    return status("VmHWM") - before


def status(key: str) -> float:
    """A field of this process's memory status, in MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns a pair is measured in")
    parser.add_argument("--memory", action="store_true", help="also how much memory gradient variance takes")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # as a run does
    print(f"torch {torch.__version__}, {platform.machine()}, {options.threads} threads, DTN 32x32x3, batch {BATCH}\n")
    data, rounds = samples(), options.rounds
    point, top = network(), network("top")
    met = [
        compare(
            "training step: our loop / bare loop", 1.05, our_steps(point, data), bare_loop(network(), data), rounds
        ),
        compare(
            "training step: M = 10 in the top layers / point",
            2.0,
            our_steps(top, data, 10),
            our_steps(point, data),
            rounds,
        ),
        compare(
            "training step: M = 10 in all layers / point",
            None,
            our_steps(network("all"), data, 10),
            our_steps(point, data),
            max(rounds // 3, 1),
        ),
        compare(
            "prediction: M = 100 in the top layers / M = 1",
            3.0,
            prediction(top, data, 100),
            prediction(top, data, 1),
            rounds,
        ),
    ]
    met.append(
        compare(
            "a pass of adaptation: calida / rer-1", 3.0, adaptation("calida", data), adaptation("rer-1", data), rounds
        )
    )
    for groups, limit in ((4, 4.5), (8, 5.0), (10, None)):
        regularizer = GradientVariance(groups=groups, bound="none")
        title = f"gradient variance, {groups} groups of {BATCH // groups} / plain step"
        ours, plain = target_steps(network(), data, regularizer), target_steps(network(), data, None)
        met.append(compare(title, limit, ours, plain, rounds))
    for backbone in ("dtn", "compact", "conv3", "conv4"):
        half, full = adaptation("calida", data, backbone, "bf16"), adaptation("calida", data, backbone, "fp32")
        compare(f"a pass of adaptation, {backbone}: bf16 / fp32", None, half, full, rounds)
    print_runs()
    print_rates()
    torch.set_num_threads(options.threads)  # predicting in parts takes one
    print_starts()
    print_embedding()
    print_default_run()
    if options.memory and Path("/proc/self/clear_refs").exists():
        kinds = ("one graph", "ours", "every graph")
        print(f"\npeak extra memory of one gradient variance step, groups of 32 (MB): {' / '.join(kinds)}")
        for groups in (2, 4, 8, 16):
            print(f"  {groups:2d} groups" + "".join(f"  {peak_memory(kind, groups):8.1f}" for kind in kinds))
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
