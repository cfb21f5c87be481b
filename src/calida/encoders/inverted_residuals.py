"""EfficientNet-Lite0 and MobileNetV2: two networks of one kind of block, for photographs on a CPU.

A block widens its input by a 1 x 1 convolution, filters every channel by itself, and narrows again without an
activation; where shapes allow, the input is added (MobileNetV2, Sandler et al., 2018). EfficientNet-Lite (Google, 2020)
is EfficientNet-B0 (Tan and Le, 2019) without squeeze-and-excitation and with ReLU6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

NUM_FEATURES = 1280
_IMAGENET_CLASSES = 1000


class Stage(NamedTuple):
    """Blocks in a row; the first of them strides."""

    expansion: int
    channels: int
    blocks: int
    stride: int
    kernel: int = 3


class Style(NamedTuple):
    """What two families of these networks differ in beside their stages."""

    even_padding: bool  # the same on both sides; TensorFlow's way pads an odd pixel at the far side
    epsilon: float  # of BatchNorm


EFFICIENTNET_LITE0 = (
    (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 2, 2),
        Stage(6, 40, 2, 2, 5),
        Stage(6, 80, 3, 2),
        Stage(6, 112, 3, 1, 5),
        Stage(6, 192, 4, 2, 5),
        Stage(6, 320, 1, 1),
    ),
    Style(even_padding=False, epsilon=1e-3),
)
MOBILENET_V2 = (
    (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 2, 2),
        Stage(6, 32, 3, 2),
        Stage(6, 64, 4, 2),
        Stage(6, 96, 3, 1),
        Stage(6, 160, 3, 2),
        Stage(6, 320, 1, 1),
    ),
    Style(even_padding=True, epsilon=1e-5),
)


class _Convolution(nn.Conv2d):
    """A convolution without a bias whose map has ceil(size / stride) pixels a side."""

    def __init__(self, channels: int, width: int, kernel: int, stride: int, groups: int, even_padding: bool) -> None:
        padding = kernel // 2 if even_padding else 0
        super().__init__(channels, width, kernel, stride, padding, groups=groups, bias=False)
        self.pads = not even_padding and kernel > 1

    def forward(self, input: Tensor) -> Tensor:
        if self.pads:
            edges: list[int] = []
            for size in (input.shape[3], input.shape[2]):
                kernel, stride = self.kernel_size[0], self.stride[0]
                missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
                edges += [missing // 2, missing - missing // 2]
            input = nn.functional.pad(input, edges)
        return super().forward(input)


def _convolve(
    channels: int, width: int, style: Style, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True
) -> list[nn.Module]:
    layers: list[nn.Module] = [
        _Convolution(channels, width, kernel, stride, groups, style.even_padding),
        nn.BatchNorm2d(width, style.epsilon),
    ]
    return [*layers, nn.ReLU6()] if active else layers


class InvertedResidual(nn.Module):
    """Widen, filter each channel, narrow; the input is added where it has the output's shape."""

    def __init__(self, channels: int, stage: Stage, stride: int, style: Style) -> None:
        super().__init__()
        wide = channels * stage.expansion
        layers = _convolve(channels, wide, style) if stage.expansion > 1 else []
        layers += _convolve(wide, wide, style, stage.kernel, stride, groups=wide)
        layers += _convolve(wide, stage.channels, style, active=False)
        self.layers = nn.Sequential(*layers)
        self.adds = stride == 1 and channels == stage.channels

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.adds else y


class InvertedResidualNetwork(nn.Module):
    """Images [B, 3, H, W] -> features [B, 1280]; `classify` gives the logits of ImageNet's 1,000 classes."""

    def __init__(self, stages: Sequence[Stage], style: Style) -> None:
        super().__init__()
        layers, channels = _convolve(3, 32, style, kernel=3, stride=2), 32
        for stage in stages:
            for place in range(stage.blocks):
                layers.append(InvertedResidual(channels, stage, stage.stride if place == 0 else 1, style))
                channels = stage.channels
        self.layers = nn.Sequential(*layers, *_convolve(channels, NUM_FEATURES, style))
        self.classifier = nn.Linear(NUM_FEATURES, _IMAGENET_CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.layers(images.contiguous(memory_format=torch.channels_last))
        return maps.mean((2, 3))

    def classify(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self(images))
        return logits
