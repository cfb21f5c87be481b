"""An encoder: a pre-trained network, how it reads its inputs, and what tells its embeddings from another's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from calida.data import Preparation
from calida.encoders.sentence_transformer import Tokens
from calida.errors import InputError

Reads = Literal["images", "texts"]
_VERSION = 1  # of what is done to samples before the network sees them; another one is another embedding


@dataclass(frozen=True)
class ImageInput:
    """How a network reads images: the middle part at size x size, each channel less its mean, by its spread.

    Mean and spread are of values in 0..1. `crop` is the share of the shorter side that is kept.
    """

    size: int
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # ImageNet's
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    crop: float = 1.0

    @property
    def frame(self) -> Preparation:
        """What brings an image of any size to bytes [3, S, S], the part to be cropped included."""
        side = round(self.size / self.crop)
        return Preparation((3, side, side), as_bytes=True)

    def __call__(self, frames: Tensor) -> Tensor:
        """Bytes, or floats in 0..1, [B, 3, h, w] -> what the network reads, [B, 3, S, S]."""
        edge = (frames.shape[-1] - self.size) // 2
        middle = frames[..., edge : edge + self.size, edge : edge + self.size]
        unit = middle.float() / 255 if middle.dtype == torch.uint8 else middle.float()
        mean, std = (torch.tensor(part, device=unit.device).view(-1, 1, 1) for part in (self.mean, self.std))
        return (unit - mean) / std


class Tokenizer(Protocol):
    """Texts -> word pieces, each text by itself."""

    def __call__(self, texts: Sequence[str]) -> list[list[int]]: ...


@dataclass(frozen=True)
class TextInput:
    """How a network reads texts: at most `length` word pieces of each."""

    tokenize: Tokenizer = field(repr=False)
    length: int
    padding: int = 0

    def __call__(self, texts: Sequence[str]) -> Tokens:
        pieces = [row[: self.length] for row in self.tokenize(texts)]
        longest = max(map(len, pieces))
        ids = torch.tensor([row + [self.padding] * (longest - len(row)) for row in pieces])
        present = torch.tensor([[place < len(row) for place in range(longest)] for row in pieces])
        return Tokens(ids, present)


@dataclass(frozen=True)
class Encoder:
    """A network that turns samples into features, [B, D]: the same for the same sample, whatever its batch.

    `weights` is a hash of the network's weights, and of its layers where no name tells them. With the name and the
    input's values it makes the `fingerprint`: equal fingerprints give equal embeddings.
    """

    name: str
    module: nn.Module = field(repr=False)
    input: ImageInput | TextInput
    weights: str
    num_features: int

    @property
    def reads(self) -> Reads:
        return "images" if isinstance(self.input, ImageInput) else "texts"

    def identity(self, precision: str) -> dict[str, Any]:
        """What the embeddings depend on, beside the samples."""
        how = asdict(self.input) if isinstance(self.input, ImageInput) else {"length": self.input.length}
        return {"version": _VERSION, "name": self.name, "weights": self.weights, "precision": precision, "input": how}

    def fingerprint(self, precision: str) -> str:
        """A short hash of the identity."""
        told = json.dumps(self.identity(precision), sort_keys=True)
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    @torch.inference_mode()
    def __call__(self, samples: Tensor | Sequence[str], precision: str, device: torch.device) -> Tensor:
        """Features of one batch, float32 on the CPU: frames [B, 3, h, w], or texts."""
        inputs: Any = self.input(samples)  # type: ignore[arg-type]
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            found = self.module(inputs.to(device))
        if not isinstance(found, Tensor) or found.ndim != 2:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InputError(f"the encoder {self.name} gives {got}; an encoder gives features [B, D]")
        return found.float().cpu()


def weights_hash(module: nn.Module) -> str:
    """A hash of all tensors of a module by name, for weights that no file vouches for."""
    state = hashlib.sha256()
    for name, value in module.state_dict().items():
        state.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        state.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def _own_hash(module: nn.Module) -> str:
    """A hash of a module's tensors and of its layout as it is printed: layers without tensors change features too."""
    layout = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(module))  # where an object lies in memory says nothing
    return hashlib.sha256(f"{weights_hash(module)} {layout}".encode()).hexdigest()


class _Calling(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: Any) -> Tensor:
        return self.function(inputs)


def own_encoder(
    network: nn.Module | Callable[[Any], Tensor],
    name: str | None = None,
    size: int = 224,
    mean: Sequence[float] = ImageInput.mean,
    std: Sequence[float] = ImageInput.std,
) -> Encoder:
    """An encoder of one's own for images: any module or function of images [B, 3, S, S] that gives features [B, D].

    The weights and the layers of a module tell its embeddings from others'. A function has neither, so its `name` must:
    another function needs another name. The name of a module is "own" unless it is given.
    """
    if not callable(network):
        raise InputError(f"an encoder is a module or a function of a batch, not {type(network).__name__}")
    if name is None and not isinstance(network, nn.Module):
        raise InputError("an encoder that is a function needs a name of its own, by which its embeddings are kept")
    module = network if isinstance(network, nn.Module) else _Calling(network)
    input = ImageInput(size, tuple(map(float, mean)), tuple(map(float, std)))
    return make_encoder("own" if name is None else name, module, input, _own_hash(module))


@torch.no_grad()
def make_encoder(name: str, module: nn.Module, input: ImageInput | TextInput, weights: str) -> Encoder:
    """An encoder, its features counted by a first pass."""
    module.eval()
    device = next(module.parameters(), torch.zeros(())).device
    trial: Any = torch.zeros(2, 3, input.size, input.size) if isinstance(input, ImageInput) else input(["one", "two"])
    try:
        found = module(trial.to(device))
    except Exception as error:  # a module of the user's own may raise anything
        raise InputError(f"the encoder {name} cannot read its inputs: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(found, Tensor) or found.ndim != 2:
        got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise InputError(f"the encoder {name} gives {got} for two samples; an encoder gives features [B, D]")
    return Encoder(name, module, input, weights, int(found.shape[1]))
