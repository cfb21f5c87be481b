"""A network's parts in order: what is trained, and what is left as it came."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

_SEQUENCES = (nn.Sequential, nn.ModuleList)


def blocks_of(network: nn.Module) -> list[list[nn.Module]]:
    """The parts of a network that have weights, first to last, by the order in which they are registered.

    Sequences are opened, and so is what wraps a stack of layers of one kind. A part without a matrix of weights, such
    as a norm, goes with the part before it.
    """
    blocks: list[list[nn.Module]] = []
    for part in _opened(network, whole=True):
        weights = list(part.parameters())
        if blocks and all(weight.ndim < 2 for weight in weights):
            blocks[-1].append(part)
        elif weights:
            blocks.append([part])
    return blocks


def _opened(module: nn.Module, whole: bool = False) -> Iterator[nn.Module]:
    parts = [part for part in module.children() if next(part.parameters(), None) is not None]
    if whole and len(parts) == 1:
        yield from _opened(parts[0], whole=True)
    elif whole or isinstance(module, _SEQUENCES) or any(map(_is_stack, parts)):
        for part in parts:
            yield from _opened(part)
    else:
        yield module


def _is_stack(module: nn.Module) -> bool:
    """Whether this is a sequence of layers of one kind, each with parts of its own."""
    layers = list(module.children())
    same = len({type(layer) for layer in layers}) == 1
    return isinstance(module, _SEQUENCES) and len(layers) > 1 and same and next(layers[0].children(), None) is not None
