"""What a user waits for: the start of the program, a whole run beside its training steps, a folder's embeddings."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.rates import write_photographs
from calida.data import Loading, read_collection
from calida.encoders import PACKAGED, Encoder, embed, embedding_precision, load_encoder
from calida.errors import InputError
from calida.runs import RunConfig, execute
from calida.seeds import Seeds
from calida.training import loop, network_trainer

_SOURCE, _TARGET, _WANTED = "mnist:train:2000", "usps:train:1800", 0.98
_PHOTOGRAPHS, _BATCH = 384, 32
_CPU = torch.device("cpu")


def print_starts() -> None:
    """Seconds until Python has the package, and until the command line has answered."""
    print("\nseconds to start, median of five")
    for name, command in {
        "import calida": ["-c", "import calida"],
        "calida --help": ["-m", "calida", "--help"],
    }.items():
        seconds = statistics.median(_seconds(partial(_python, command)) for _ in range(5))
        print(f"  {name:66s} {seconds:10.2f}", flush=True)


def print_default_run() -> None:
    """The default on MNIST -> USPS from start to report; its training steps; when it reached 98 %, by labels."""
    with tempfile.TemporaryDirectory() as name, _training_clock() as training:
        began = time.perf_counter()
        try:
            adapted, _ = execute(RunConfig(source=_SOURCE, target=_TARGET, target_labels="inside"), Path(name) / "run")
        except InputError as error:
            print(f"\na default run on MNIST -> USPS was not made: {error}")
            return
        seconds = time.perf_counter() - began
    print(f"\na default run on MNIST -> USPS: {seconds:.1f} s, of which steps {training[0]:.1f} s")
    print(f"  beside its steps {1 - training[0] / seconds:.0%} of the run  limit 12 %")
    passed = 0.0
    for record in adapted.history:
        passed += record.seconds
        if record.oracle is not None and record.oracle.accuracy >= _WANTED:
            print(f"  {_WANTED:.0%} of the target right, by labels that training did not see, after {passed:.1f} s")
            return
    print(f"  {_WANTED:.0%} of the target right was not reached")


def print_embedding() -> None:
    """Photographs a second to features, beside the bare network on prepared batches: one thread each."""
    if not PACKAGED["efficientnet-lite0"].is_installed():
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    encoder = load_encoder("efficientnet-lite0")
    images = torch.randint(0, 256, (_PHOTOGRAPHS, 3, 224, 224), dtype=torch.uint8)
    _run_bare(encoder, images[:_BATCH])
    bare = _PHOTOGRAPHS / _seconds(lambda: _run_bare(encoder, images))
    print("\nphotographs a second, efficientnet-lite0 at 224 pixels, one thread for the network")
    print(f"  {'the bare network on prepared batches':66s} {bare:10.0f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photographs(folder / "photographs", _PHOTOGRAPHS)
        files = read_collection(str(folder / "photographs"), Seeds(0), False).samples
        ways: dict[str, tuple[Any, int]] = {
            "images in memory": (images, 0),
            "JPEG files of 640 x 480, decoded by the same process": (files, 0),
            "JPEG files of 640 x 480, decoded by another process": (files, 1),
        }
        for title, (samples, workers) in ways.items():
            act = partial(embed, encoder, samples, Loading(workers=workers), root=folder / title)
            rate = _PHOTOGRAPHS / _seconds(act)
            print(f"  {title:66s} {rate:10.0f}  {rate / bare:.0%}", flush=True)
    torch.set_num_threads(threads)


@torch.inference_mode()
def _run_bare(encoder: Encoder, images: torch.Tensor) -> None:
    """The network alone, in the precision that embedding takes."""
    with torch.autocast("cpu", torch.bfloat16, enabled=embedding_precision(_CPU) == "bf16"):
        for batch in images.split(_BATCH):
            encoder.module((batch.float() / 255 - 0.5) / 0.25)


@contextmanager
def _training_clock() -> Iterator[list[float]]:
    """Seconds spent in training steps, while it is open."""
    spent = [0.0]

    def timed(*given: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return loop.train(*given, **options)
        finally:
            spent[0] += time.perf_counter() - began

    with patch.object(network_trainer, "train", timed):
        yield spent


def _python(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
