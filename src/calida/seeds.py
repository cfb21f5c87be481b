"""Randomness by name: every draw has its own seed, so adding one reshuffles no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Seeds:
    """A tree of seeds: a root number, a path into the tree, and names at each place.

    A seed is a hash of root, path and name, not the state of a running generator. Nothing has to be saved to resume
    a run, and a pass can be repeated with the same dropout masks and noise by asking for the same name again.
    """

    root: int
    path: tuple[str | int, ...] = ()

    def at(self, *place: str | int) -> Seeds:
        """The part of the tree below `place`, e.g. `seeds.at("adapt", round, step)`."""
        return Seeds(self.root, self.path + place)

    def integer(self, name: str) -> int:
        text = repr((self.root, *self.path, name))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def generator(self, name: str, device: torch.device | str = "cpu") -> torch.Generator:
        """A fresh generator for one draw: on the CPU for orders and splits, on the device for noise."""
        return torch.Generator(device).manual_seed(self.integer(name))

    @contextmanager
    def globally(self, name: str, device: torch.device | str = "cpu") -> Iterator[None]:
        """Seed torch's global generators inside the block (dropout and initializers know no other); restore them after.

        `torch.manual_seed` would do, but slowly: it leaves a note, with a stack trace, for every idle backend.
        """
        device = torch.device(device)
        generators = [torch.default_generator]
        if device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            generators.append(torch.cuda.default_generators[index])
        states = [generator.get_state() for generator in generators]
        for generator in generators:
            generator.manual_seed(self.integer(name))
        try:
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)
