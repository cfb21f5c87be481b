"""Backbones by name: inputs [B, ...] -> features [B, D]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from calida.errors import InputError, suggest
from calida.model.tabular import PiecewiseLinear, ResidualBlock

Shape = tuple[int, ...]
_LARGE = 32  # pixels; larger images get conv4; a first convolution that strides brings them to about so many


class Backbone(NamedTuple):
    """A feature extractor and the kind of head that belongs on it."""

    module: nn.Module
    head: str


class _ToGrid(nn.Module):
    """Pool a feature map to size x size, so that one network takes any image size; no work where it has it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] == (self.size, self.size):
            return x
        return nn.functional.adaptive_avg_pool2d(x, self.size)


class DropoutToFeatures(nn.Module):
    """Dropout of whole channels, a 4 x 4 grid and a linear layer in one, for any number of masks at once.

    A mask multiplies what a channel adds to the features: sum_c mask_c W_c x_c. The parts W_c x_c are computed once, so
    that M masks cost M small products [C] x [C, D] instead of M passes through the layer.
    """

    def __init__(self, channels: int, width: int, dropout: float) -> None:
        super().__init__()
        self.grid = _ToGrid(4)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(channels * 16, width, bias=False)

    def forward(self, maps: Tensor, num_samples: int = 1) -> Tensor:
        """[B, C, H, W] -> [M * B, D]."""
        cells = self.grid(maps).flatten(2)  # [B, C, 16]
        rows, channels = cells.shape[:2]
        keep = self.dropout(cells.new_ones(num_samples * rows, channels)).view(num_samples, rows, channels)
        if num_samples == 1:
            features: Tensor = self.linear((cells * keep[0, :, :, None]).flatten(1))
            return features
        weight = self.linear.weight.unflatten(1, cells.shape[1:])  # [D, C, 16]
        # As products of matrices in the layout that they have: einsum would copy them, which takes longer than these.
        parts = torch.bmm(cells.transpose(0, 1), weight.permute(1, 2, 0))  # [C, B, D]
        return torch.bmm(keep.transpose(0, 1), parts.transpose(0, 1)).transpose(0, 1).flatten(0, 1)


def _to_features(channels: int, width: int, dropout: float) -> list[nn.Module]:
    """The last layers of a backbone for images: a map of any size to features."""
    return [DropoutToFeatures(channels, width, dropout), nn.BatchNorm1d(width)]


def dtn(shape: Shape) -> Backbone:
    """DTN, the paper's digit network (Zhang et al., 2015); 28 and 32 pixels give its 4 x 4 map as they are."""
    layers: list[nn.Module] = []
    channels = _image_channels("dtn", shape)
    for width, dropout in ((64, 0.1), (128, 0.3), (256, 0.5)):
        # A bias before BatchNorm is subtracted again: it would be a parameter that no loss can reach. ReLU and the
        # dropout of whole channels can change places, so the last one goes along with the layer after it.
        layers += [
            nn.Conv2d(channels, width, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Dropout2d(dropout),
        ]
        channels = width
    return Backbone(nn.Sequential(*layers[:-1], *_to_features(channels, 512, dropout)), "dtn")


def lenet(shape: Shape) -> Backbone:
    """LeNet with 20 and 50 filters and 500 features (LeCun et al., 1998, in its common variant)."""
    return Backbone(
        nn.Sequential(
            nn.Conv2d(_image_channels("lenet", shape), 20, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(20, 50, 5, padding=2),
            nn.MaxPool2d(2),
            nn.Dropout2d(0.5),
            nn.ReLU(),
            _ToGrid(4),
            nn.Flatten(),
            nn.Linear(50 * 16, 500),
            nn.ReLU(),
            nn.Dropout(0.5),
        ),
        "linear",
    )


def compact(shape: Shape) -> Backbone:
    """Three small convolutions with BatchNorm and 256 features: a third of DTN's work, for a CPU and small images."""
    layers: list[nn.Module] = []
    channels = _image_channels("compact", shape)
    for width, dropout in ((32, 0.1), (64, 0.2), (128, 0.3)):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            # The largest of rectified values is the rectified largest: ReLU after it has a quarter of the work.
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
            nn.Dropout2d(dropout),
        ]
        channels = width
    return Backbone(nn.Sequential(*layers[:-1], *_to_features(channels, 256, dropout)), "dtn")


class Stage(NamedTuple):
    """Convolutions of these widths, of which the last one's map is pooled."""

    widths: tuple[int, ...]
    dropout: float


def pooled_first(name: str, stages: Sequence[Stage], shape: Shape) -> Backbone:
    """Convolutions that pool before they normalize, and 256 features; the first one strides over large images.

    On a map that is pooled already, BatchNorm and ReLU are a quarter of the work; a first convolution that reads every
    second of 64 pixels makes them cost as much as 32.
    """
    channels, stride = _image_channels(name, shape), max(1, round(max(shape[1:]) / _LARGE))
    layers: list[nn.Module] = []
    for widths, dropout in stages:
        for place, width in enumerate(widths, 1):
            layers.append(nn.Conv2d(channels, width, 2 * stride + 1, stride, padding=stride, bias=False))
            if place == len(widths):
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels, stride = width, 1
        layers.append(nn.Dropout2d(dropout))
    return Backbone(nn.Sequential(*layers[:-1], *_to_features(channels, 256, dropout)), "dtn")


def mlp(shape: Shape) -> Backbone:
    """Two hidden layers of 256 for feature vectors."""
    layers: list[nn.Module] = [nn.Flatten()]
    width = _size(shape)
    for _ in range(2):
        layers += [nn.Linear(width, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.1)]
        width = 256
    return Backbone(nn.Sequential(*layers), "linear")


def tabular(shape: Shape) -> Backbone:
    """For tables: every number as ramps over its quantiles, two residual blocks of 256."""
    size, each = _size(shape), 4
    blocks = [ResidualBlock(256, 0.1) for _ in range(2)]
    layers = [PiecewiseLinear(size, width=each), nn.Linear(size * each, 256), *blocks, nn.BatchNorm1d(256), nn.ReLU()]
    return Backbone(nn.Sequential(nn.Flatten(), *layers), "linear")


def linear(shape: Shape) -> Backbone:
    """Feature vectors as they are, some left out in training: with its head, a linear classifier for embeddings."""
    return Backbone(nn.Sequential(nn.Flatten(), nn.Dropout(0.2)), "linear")


def _size(shape: Shape) -> int:
    return int(torch.Size(shape).numel())


def _image_channels(name: str, shape: Shape) -> int:
    if len(shape) != 3:
        raise InputError(f"the {name} backbone reads images [C, H, W], not samples of shape {shape}; use mlp")
    return shape[0]


BACKBONES: dict[str, Callable[[Shape], Backbone]] = {
    "dtn": dtn,
    "lenet": lenet,
    "compact": compact,
    # `compact` with less work, and the same with a fourth convolution.
    "conv3": partial(pooled_first, "conv3", (Stage((32,), 0.1), Stage((64,), 0.2), Stage((128,), 0.3))),
    "conv4": partial(pooled_first, "conv4", (Stage((32,), 0.1), Stage((64,), 0.2), Stage((128, 128), 0.3))),
    "mlp": mlp,
    "tabular": tabular,
    "linear": linear,
}


def name_backbone(name: str, shape: Shape) -> str:
    """The name as it is; for `auto`, mlp for vectors, conv3 for small images, conv4 for larger ones."""
    if name != "auto":
        return name
    if len(shape) != 3:
        return "mlp"
    return "conv4" if max(shape[1:]) > _LARGE else "conv3"


def build_backbone(name: str, shape: Shape) -> Backbone:
    """`dtn`, `lenet`, `compact`, `conv3`, `conv4`, `mlp`, `tabular` or `linear`; or `auto`, by the shape."""
    name = name_backbone(name, shape)
    if name not in BACKBONES:
        raise InputError(f"unknown backbone {name!r}{suggest(name, list(BACKBONES))}, or the name of an encoder")
    return BACKBONES[name](shape)
