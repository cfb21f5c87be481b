"""A pre-trained encoder as a backbone that learns: its own reading of images, and what of it is trained."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Literal

from torch import Tensor, nn

from calida.data import Samples
from calida.encoders import Encoder, ImageInput, blank_encoder, blocks_of
from calida.encoders.inverted_residuals import InvertedResidualNetwork
from calida.errors import InputError
from calida.model.backbones import Shape
from calida.model.standardize import Standardize
from calida.processes import ALONE, Processes

Blocks = int | Literal["all"]
Norm = nn.modules.batchnorm._BatchNorm
STANDARDIZED = "standardized:"  # before the encoder's name: features to mean 0 and spread 1, batch by batch
SMALLEST_VARIANCE = 1e-6


class EncoderBackbone(nn.Sequential):
    """Images as the encoder reads them -> its features, [B, D].

    Where they are `standardized`, a norm without weights brings each domain's features to mean 0 and spread 1 while the
    network learns, and to those of the target when it predicts. They are bounded and dropped as the features of a
    linear classifier are, so that one which was adapted on embeddings can go on from here.
    """

    def __init__(self, encoder: Encoder, standardized: bool) -> None:
        if not isinstance(encoder.input, ImageInput):
            raise InputError(f"the encoder {encoder.name} reads texts, and only those of images can be fine-tuned")
        network = copy.deepcopy(encoder.module)
        if isinstance(network, InvertedResidualNetwork):
            network.classifier = nn.Identity()  # type: ignore[assignment]  # of ImageNet, which no feature goes through
        width = encoder.num_features
        norm = nn.BatchNorm1d(width, SMALLEST_VARIANCE, affine=False)
        more = [norm, Standardize((width,)), nn.Dropout(0.2)] if standardized else []
        super().__init__(network, *more)
        self.num_features = width
        # Of images that the encoder's own frame has cut out, the middle is read; of others, all.
        self.reads = encoder.input if standardized else replace(encoder.input, crop=1.0)

    @property
    def network(self) -> nn.Module:
        """What was trained before."""
        return self[0]

    def norms(self) -> list[nn.Module]:
        """The norms whose statistics came with the weights."""
        return [part for part in self.network.modules() if isinstance(part, Norm)]

    def train_last(self, blocks: Blocks) -> None:
        """Let the last blocks learn, and none before them."""
        every = blocks_of(self.network)
        learning = every if blocks == "all" else every[len(every) - min(blocks, len(every)) :]
        self.network.requires_grad_(False)
        for part in (part for block in learning for part in block):
            part.requires_grad_(True)


class EncoderInput(Standardize):
    """Images as an encoder reads them: the middle of its frame, by its own means and spreads, whatever the data are."""

    def __init__(self, shape: Shape, reads: ImageInput) -> None:
        super().__init__(shape)
        self.mean.copy_(self.mean.new_tensor(reads.mean).view_as(self.mean))
        self.scale.copy_(self.scale.new_tensor(reads.std).view_as(self.scale))
        self.size = round(shape[-1] * reads.crop)

    def fit(
        self,
        x: Samples,
        target: Samples | None = None,
        weight: Tensor | None = None,
        processes: Processes = ALONE,
    ) -> EncoderInput:
        """Nothing: the scale is the encoder's."""
        return self

    def forward(self, x: Tensor) -> Tensor:
        edge = (x.shape[-1] - self.size) // 2
        return super().forward(x[..., edge : edge + self.size, edge : edge + self.size])


def blank_encoder_backbone(name: str, shape: Shape) -> EncoderBackbone:
    """By an encoder's name, after "standardized:" or alone, with weights that are to be filled in."""
    standardized = name.startswith(STANDARDIZED)
    if len(shape) != 3 or shape[0] != 3:
        raise InputError(f"the backbone {name} reads images [3, H, W], not samples of shape {shape}")
    return EncoderBackbone(blank_encoder(name.removeprefix(STANDARDIZED)), standardized)
