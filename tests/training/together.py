"""What each of two processes does in `test_processes.py`, in one go: to start them takes longer than what they do."""

import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import torch
from histories import is_round
from safetensors.torch import save_file

from benchmarks.processes import cases, train_all, train_case
from calida.data import Augmentation
from calida.errors import InputError
from calida.model import as_one_batch
from calida.processes import join, telling_reasons
from calida.seeds import Seeds

BATCHES = 2  # two of everything: batches, rounds, processes
RESUMED = "Bayesian, BatchNorm and dropout, gradient variance"


class Interrupted(Exception):
    """A run is given up after a round."""


def interrupt_after(rounds):
    """An observer that gives up after so many rounds."""
    seen = []

    def observe(event):
        seen.extend([event] * is_round(event))
        if len(seen) == rounds:
            raise Interrupted

    return observe


def begin(folder, *processes):
    """The first two of a run's three rounds."""
    try:
        train_case(cases()[RESUMED], *processes, folder=folder, observe=interrupt_after(2), batches=BATCHES)
    except Interrupted:
        return
    raise AssertionError("the run was not interrupted")


def augmented(share=None):
    """Views of a batch, images and vectors, or this process's rows of them, brought together."""
    generator = torch.Generator().manual_seed(0)
    images, rows = torch.rand(7, 3, 6, 6, generator=generator), torch.rand(7, 4, generator=generator)
    every = Augmentation(affine=1.0, sharpness=1.0, color=1.0, contrast=1.0, polarity=0.5, erasing=1.0)
    noisy = Augmentation(noise=1.0, dropping=0.3)
    if share is None:
        return every(images, Seeds(0)), noisy(rows, Seeds(0))
    views = every(share.take(images), Seeds(0), share), noisy(share.take(rows), Seeds(0), share)
    return tuple(share.gather(view) for view in views)


def normalized(share=None):
    """BatchNorm in training mode, its gradient and its running statistics, in float32 far from zero."""
    generator = torch.Generator().manual_seed(1)
    x = (30 + torch.randn(9, 3, 4, 4, generator=generator)).requires_grad_()
    layer = torch.nn.BatchNorm2d(3)
    pull = torch.randn(9, 3, 4, 4, generator=generator)
    if share is None:
        y = layer(x)
    else:
        with as_one_batch(share, 1):
            y = share.gather(layer(share.take(x)))
    (y * pull).sum().backward()
    return y.detach(), x.grad, layer.running_mean, layer.running_var


def fail_alone(processes, folder):
    """The second process meets an error and ends; the first one, which waits for it, is told which."""
    try:
        with telling_reasons():
            if processes.rank:
                raise InputError("the disk of this machine is on fire")
            processes.sum(torch.zeros(1))
    except InputError as error:
        if processes.rank:
            raise
        (folder / "reason.txt").write_text(str(error))


def main(folder):
    processes = join()
    torch.set_num_threads(1)
    train_all(folder / "cases.safetensors", BATCHES)
    begin(folder / "from-two", processes)
    resumed = train_case(cases()[RESUMED], processes, folder / "from-one", batches=BATCHES)
    found = {f"resumed/{key}": value for key, value in resumed.items()}
    found |= {f"view {index}": view for index, view in enumerate(augmented(processes.share(7)))}
    found |= {f"norm {index}": value for index, value in enumerate(normalized(processes.share(9)))}
    found["everyone"] = torch.tensor([len(text) for text in processes.everyones("x" * (3 + processes.rank))])
    refused = ""
    try:
        train_case(cases()["mmd"], processes, shifted=0.1 * processes.rank)
    except InputError as error:
        refused = str(error)
    assert processes.everyones(refused) == [refused] * 2
    if processes.first:
        save_file(found, folder / "found.safetensors")
        (folder / "refused.txt").write_text(refused)
    with suppress(InputError) if processes.rank else nullcontext():
        fail_alone(processes, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
