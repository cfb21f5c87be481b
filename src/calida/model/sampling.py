"""Weight samples by dropout: which layers draw masks, and random numbers that belong to a sample.

Dropout draws networks from an approximate posterior Q(w) (Gal and Ghahramani, 2016): a mask is a weight sample. The
layers below the first sampled one run once, the rest runs as one folded batch of M * B rows, sample by sample of Q.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calida.seeds import Seeds

Sampled = Literal["none", "top", "all"]

_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)  # which drop whole channels
_DROPOUTS = (nn.Dropout, *_CHANNELS)
_TAPE = 1 << 20  # random numbers that all draws are cut from; a power of two
_AT_ONCE = 1 << 22  # values that are turned into 64-bit integers at a time


def dropouts(module: nn.Module) -> list[nn.Module]:
    """The dropout layers of a module, in order."""
    return [part for part in module.modules() if isinstance(part, _DROPOUTS)]


def layers_of(backbone: nn.Module) -> list[nn.Module]:
    """A backbone as a list of layers; one that is no sequence is a single layer."""
    return list(backbone) if isinstance(backbone, nn.Sequential) else [backbone]


def first_sampled(backbone: nn.Module, sampled: Sampled) -> int:
    """How many layers of a backbone run once, below the first whose masks are samples of Q(w).

    "all" counts every dropout layer, as the paper does; "top" the last one of a sequence and whatever the heads have;
    of a network that is no sequence, the heads alone.
    """
    layers = layers_of(backbone)
    places = [index for index, layer in enumerate(layers) if dropouts(layer)]
    if sampled == "none" or not places or (sampled == "top" and len(layers) == 1):
        return len(layers)
    return places[0] if sampled == "all" else places[-1]


def repeat_rows(x: Tensor, times: int) -> Tensor:
    """All rows, then all of them again: [B, ...] -> [times * B, ...], in the memory layout that they have."""
    return x if times == 1 else torch.cat([x] * times)


class SampleNoise:
    """Random numbers that are a function of a sample's values, a seed, a name and the draw's number.

    So samples have draws of their own, and a prediction depends on nothing but its sample: not on its place, not on
    its neighbors, not on the size of the batch. The numbers are windows of one long tape, each beginning at a place
    that is a hash of all four.
    """

    def __init__(self, x: Tensor, seeds: Seeds) -> None:
        self.seeds = seeds
        self.keys = _fingerprints(x)  # [B]

    def masks(self, name: str, draws: int, width: int, drop: float) -> Tensor:
        """0 with probability `drop`, else 1 / (1 - drop): [draws, B, width]."""
        return self._windows(drop, name, draws, width)

    def normal(self, name: str, draws: int, width: int) -> Tensor:
        """Standard normal: [draws, B, width]."""
        return self._windows(None, name, draws, width)

    def _windows(self, drop: float | None, name: str, draws: int, width: int) -> Tensor:
        device = self.keys.device
        tape = _tape(drop, self.seeds.integer("tape"), 2 + width // _TAPE, str(device))
        numbers = torch.arange(draws, device=device)[:, None]
        starts = _mixed(_mixed(self.keys ^ self.seeds.integer(name)) + numbers) & (_TAPE - 1)  # [draws, B]
        return tape.unfold(0, width, 1)[starts]


@lru_cache(maxsize=16)
def _tape(drop: float | None, seed: int, length: int, device: str) -> Tensor:
    """Normal numbers, or masks that drop so much, several times over: a window may begin anywhere in the first."""
    generator = torch.Generator().manual_seed(seed)  # on the CPU whatever the device: draws are the same on all
    if drop is None:
        tape = torch.randn(_TAPE, generator=generator)
    else:
        tape = (torch.rand(_TAPE, generator=generator) >= drop).float() / max(1 - drop, 1e-12)
    return tape.repeat(length).to(device)


def _fingerprints(x: Tensor) -> Tensor:
    """A number of 64 bits for each sample, equal for equal values: [B, ...] -> [B]."""
    bits = (x.detach().float() + 0.0).flatten(1).view(torch.int32)  # plus zero: there are two of them in floats
    weights = _odd_numbers(bits.shape[1], str(x.device))
    parts = bits.split(max(_AT_ONCE // max(bits.shape[1], 1), 1))
    return torch.cat([(part.long() * weights).sum(1) for part in parts])


@lru_cache(maxsize=8)
def _odd_numbers(count: int, device: str) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-(1 << 62), 1 << 62, (count,), generator=generator).mul(2).add(1).to(device)


def _mixed(z: Tensor) -> Tensor:
    """A hash of 64-bit integers (the finaliser of SplitMix64; Steele et al., 2014). Products wrap around."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15), (31, 1)):
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return z


@contextmanager
def masks_from(noise: SampleNoise, layers: Sequence[nn.Module], num_samples: int) -> Iterator[None]:
    """Let dropout layers in evaluation mode drop by this noise inside the block: M masks for each of B samples."""
    with ExitStack() as held:
        for index, layer in enumerate(layers):
            hook = partial(_drop, noise, f"mask {index}", num_samples)
            held.callback(layer.register_forward_hook(hook).remove)
        yield


def _drop(noise: SampleNoise, name: str, num_samples: int, layer: Any, inputs: Any, x: Tensor) -> Tensor:
    """Rows are M times B, sample by sample of Q(w), in the first axis or the first two."""
    rows = num_samples * len(noise.keys)
    folded = x if len(x) == rows else x.flatten(0, 1)
    if len(folded) != rows:  # a network of somebody's own that cuts samples up before it drops
        return nn.functional.dropout(x, float(layer.p), training=True)
    whole_channels = isinstance(layer, _CHANNELS) and folded.ndim > 2
    width = folded.shape[1] if whole_channels else folded[0].numel()
    keep = noise.masks(name, num_samples, width, float(layer.p)).to(x.dtype)
    shape = (rows, width, *[1] * (folded.ndim - 2)) if whole_channels else folded.shape
    dropped: Tensor = folded * keep.view(shape)
    return dropped.reshape(x.shape)


@contextmanager
def dropping_only(module: nn.Module, layers: Sequence[nn.Module]) -> Iterator[None]:
    """Inside the block no dropout layer but these drops; all else stays in its mode."""
    kept = set(layers)
    quiet = [part for part in dropouts(module) if part.training and part not in kept]
    for part in quiet:
        part.eval()
    try:
        yield
    finally:
        for part in quiet:
            part.train()
