"""Random views of training samples, a whole batch at once and on its own device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.seeds import Seeds


@dataclass(frozen=True)
class Augmentation:
    """Affine changes of images: each sample turned, stretched, sheared and moved by amounts of its own.

    The amounts are the limits of what is drawn at strength 1; strength 0 changes nothing. Feature vectors have no
    geometry and stay as they are.
    """

    affine: float = 0.0  # strength
    rotation: float = math.radians(20)
    stretch: float = 0.3  # of the logarithm of width and height, each on its own
    shear: float = 0.3
    shift: float = 0.15  # of the image's size

    def __call__(self, x: Tensor, seeds: Seeds) -> Tensor:
        """A view of the batch [B, C, H, W], floats as the classifier reads them (bytes become 0..1)."""
        if self.affine == 0 or x.ndim != 4:
            return x
        images = x.float() / 255 if x.dtype == torch.uint8 else x
        grid = torch.nn.functional.affine_grid(self._matrices(images, seeds), list(images.shape), align_corners=False)
        # Repeating the border fits any background; zeros would frame light images in black.
        return torch.nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)

    def _matrices(self, images: Tensor, seeds: Seeds) -> Tensor:
        """One map from output to input coordinates a sample: [B, 2, 3]."""
        generator = seeds.generator("affine", images.device)
        draws = torch.rand(6, len(images), generator=generator, device=images.device).mul(2).sub(1) * self.affine
        angle, shear = draws[0] * self.rotation, draws[1] * self.shear
        width, height = (draws[2:4] * self.stretch).exp()
        cos, sin = angle.cos(), angle.sin()
        rows = [cos * width, (shear * cos - sin) * height, draws[4] * 2 * self.shift]
        rows += [sin * width, (shear * sin + cos) * height, draws[5] * 2 * self.shift]
        return torch.stack(rows, 1).view(-1, 2, 3)


UNCHANGED = Augmentation()
