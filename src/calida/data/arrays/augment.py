"""Random views of training samples, a whole batch at once and on its own device."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from calida.processes import Share
from calida.seeds import Seeds

_Change = Callable[[Tensor, torch.Generator, Share], Tensor]


@dataclass(frozen=True)
class Augmentation:
    """Changes of each sample by amounts of its own, drawn by seed; a strength of 0 leaves them out, bit for bit.

    Images are turned, stretched, sheared and moved (`affine`), made paler or stronger, lighter or darker (`contrast`),
    turned into their negative (`polarity`, a probability), and covered by a patch of their own mean (`erasing`). They
    lose fine detail or get more of it (`sharpness`), as if another camera had taken them. Color images get other hues,
    more or less of them, and another contrast (`color`). Photographs are cut out and mirrored first (`crop`, and
    `flip`, a probability). With `changes`, each image gets so many of the other kinds, drawn for it alone, and not all
    of them (after RandAugment, Cubuk et al., 2020).
    Feature vectors, which have no geometry, get `noise` in units of each feature's spread in the batch, and features
    that are replaced by their mean in the batch (`dropping`, a probability).
    """

    crop: float = 0.0
    flip: float = 0.0
    changes: int = 0
    affine: float = 0.0
    sharpness: float = 0.0
    color: float = 0.0
    contrast: float = 0.0
    polarity: float = 0.0
    erasing: float = 0.0
    noise: float = 0.0
    dropping: float = 0.0
    # What strength 1 of `crop`, `affine`, `sharpness`, `color`, `contrast` and `erasing` means at most.
    cut: float = 0.5  # of the image's height and width that is left out
    proportion: float = 0.3  # of the logarithm of a cut-out's width by its height
    rotation: float = math.radians(20)
    stretch: float = 0.3  # of the logarithm of width and height, each on its own
    shear: float = 0.3
    shift: float = 0.15  # of the image's size
    detail: float = 0.05  # of the image's size: what a Gaussian of this standard deviation takes away
    hue: float = math.radians(60)
    richness: float = 1.0  # of the logarithm of the saturation
    gain: float = 0.7  # of the logarithm of the contrast
    brightness: float = 0.5  # in standard deviations of the image
    patch: float = 0.5  # of the image's height and width

    def __call__(self, x: Tensor, seeds: Seeds, share: Share | None = None) -> Tensor:
        """A view of the batch, [B, C, H, W] or [B, D]: floats as the classifier reads them (bytes become 0..1).

        With a `share`, `x` are the own rows of a batch of which other processes have the rest.
        """
        kinds = self._image_steps() if x.ndim == 4 else self._vector_steps()
        steps = {name: step for name, step in kinds.items() if getattr(self, name)}
        if not steps:
            return x
        share = share or Share.whole(len(x))
        view = x.float() / 255 if x.dtype == torch.uint8 else x
        chosen = self._chosen([name for name in steps if name not in _FRAMING], view, seeds, share)
        for name, change in steps.items():
            changed = change(view, seeds.generator(name, view.device), share)
            view = torch.where(chosen[name].view(-1, 1, 1, 1), changed, view) if name in chosen else changed
        return view

    def _chosen(self, names: list[str], view: Tensor, seeds: Seeds, share: Share) -> dict[str, Tensor]:
        """Which images get each of these kinds of change, [B] a kind; none named where all get all."""
        if not 0 < self.changes < len(names) or view.ndim != 4:
            return {}
        draws = _uniform((share.count, len(names)), view, seeds.generator("changes", view.device), share)
        among = draws.argsort(1).argsort(1) < self.changes  # [B, kinds]
        return dict(zip(names, among.unbind(1), strict=True))

    def _image_steps(self) -> dict[str, _Change]:
        return {
            "crop": self._cut_out,
            "flip": self._mirror,
            "affine": self._move,
            "sharpness": self._sharpen,
            "color": self._tint,
            "contrast": self._fade,
            "polarity": self._invert,
            "erasing": self._cover,
        }

    def _vector_steps(self) -> dict[str, _Change]:
        return {"noise": self._disturb, "dropping": self._drop}

    def _cut_out(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        """A part of each image, at the size of the whole."""
        draws = _draw(4, images, generator, share)
        size = 1 - (draws[0] + 1) / 2 * self.crop * self.cut
        longer = (draws[1] * self.crop * self.proportion / 2).exp()
        width, height = (size * longer).clamp(max=1), (size / longer).clamp(max=1)
        zero = torch.zeros_like(size)
        # From -1 to 1 across the image, a part of this width has its middle within 1 - width on either side.
        rows = [width, zero, draws[2] * (1 - width), zero, height, draws[3] * (1 - height)]
        return _sampled(images, torch.stack(rows, 1).view(-1, 2, 3))

    def _mirror(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        chosen = _uniform((share.count,), images, generator, share) < self.flip
        return torch.where(chosen.view(-1, 1, 1, 1), images.flip(3), images)

    def _move(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        return _sampled(images, self._matrices(images, generator, share))

    def _matrices(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        """One map from output to input coordinates a sample: [B, 2, 3]."""
        draws = _draw(6, images, generator, share) * self.affine
        angle, shear = draws[0] * self.rotation, draws[1] * self.shear
        width, height = (draws[2:4] * self.stretch).exp()
        cos, sin = angle.cos(), angle.sin()
        rows = [cos * width, (shear * cos - sin) * height, draws[4] * 2 * self.shift]
        rows += [sin * width, (shear * sin + cos) * height, draws[5] * 2 * self.shift]
        return torch.stack(rows, 1).view(-1, 2, 3)

    def _sharpen(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        """At strength 1, each image with none of its fine detail, twice as much, or anything between."""
        more = (_draw(1, images, generator, share) * self.sharpness).view(-1, 1, 1, 1)
        sharpened: Tensor = images + more * (images - _blur(images, self.detail * max(images.shape[2:])))
        return sharpened.clamp(*share.extremes(images))

    def _tint(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        """Turn each image's colors around the axis of grays, stretch them away from it, and all away from the mean."""
        if images.shape[1] != 3:
            return images
        turn, more, gain = (_draw(3, images, generator, share) * self.color).view(3, -1, 1, 1, 1)
        gray = images.mean(1, keepdim=True)
        colors, mean = images - gray, gray.mean((2, 3), keepdim=True)
        # The turn of a vector v around a unit axis that is normal to it is cos v + sin (axis x v).
        across = (colors.roll(1, 1) - colors.roll(-1, 1)) / math.sqrt(3)
        angle = turn * self.hue
        turned = (more * self.richness).exp() * (angle.cos() * colors + angle.sin() * across)
        tinted: Tensor = mean + (gray - mean + turned) * (gain * self.gain).exp()
        return tinted.clamp(*share.extremes(images))

    def _fade(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        gain, lift = (_draw(2, images, generator, share) * self.contrast).view(2, -1, 1, 1, 1)
        spread, mean = torch.std_mean(images, (1, 2, 3), keepdim=True)
        faded: Tensor = mean + (images - mean) * (gain * self.gain).exp() + lift * self.brightness * spread
        return faded.clamp(*share.extremes(images))

    def _invert(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        chosen = _uniform((share.count,), images, generator, share) < self.polarity
        low, high = share.extremes(images)
        return torch.where(chosen.view(-1, 1, 1, 1), low + high - images, images)

    def _cover(self, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        draws = _uniform((4, share.count), images, generator, share, dim=1)
        covered = torch.ones((), dtype=torch.bool, device=images.device)
        for size, place, axis in ((draws[0], draws[1], 2), (draws[2], draws[3], 3)):
            length = size * self.patch * self.erasing
            start = place * (1 - length)
            points = (torch.arange(images.shape[axis], device=images.device) + 0.5) / images.shape[axis]
            inside = (points >= start[:, None]) & (points < (start + length)[:, None])  # [B, H] or [B, W]
            covered = covered & inside.view(len(images), 1, *((-1, 1) if axis == 2 else (1, -1)))
        return torch.where(covered, images.mean((1, 2, 3), keepdim=True), images)

    def _disturb(self, rows: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        shape = (share.count, *rows.shape[1:])
        noise = torch.randn(shape, generator=generator, device=rows.device, dtype=rows.dtype)
        return rows + self.noise * share.std(rows) * share.take(noise)

    def _drop(self, rows: Tensor, generator: torch.Generator, share: Share) -> Tensor:
        chosen = _uniform((share.count, *rows.shape[1:]), rows, generator, share) < self.dropping
        return torch.where(chosen, share.mean(rows), rows)


def _sampled(images: Tensor, matrices: Tensor) -> Tensor:
    """Images [B, C, H, W] whose pixels are read where maps from output to input coordinates, [B, 2, 3], say."""
    grid = torch.nn.functional.affine_grid(matrices, list(images.shape), align_corners=False)
    # Repeating the border fits any background; zeros would frame light images in black.
    return torch.nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _blur(images: Tensor, spread: float) -> Tensor:
    """Convolved with a Gaussian of this standard deviation in pixels: [B, C, H, W]; nothing lies beyond the border.

    As a matrix for rows and one for columns: convolutions of one channel are several times slower on a CPU.
    """
    rows, columns = (
        torch.arange(length, device=images.device, dtype=images.dtype) / spread for length in images.shape[2:]
    )
    down, across = (torch.softmax(-0.5 * (axis[:, None] - axis) ** 2, 1) for axis in (rows, columns))
    return down @ images @ across.T


def _draw(count: int, images: Tensor, generator: torch.Generator, share: Share) -> Tensor:
    """Numbers in -1..1 for every image: [count, B]."""
    return _uniform((count, share.count), images, generator, share, dim=1).mul(2).sub(1)


def _uniform(shape: tuple[int, ...], like: Tensor, generator: torch.Generator, share: Share, dim: int = 0) -> Tensor:
    """Numbers in 0..1: drawn for all rows of the batch, kept for one's own."""
    return share.take(torch.rand(shape, generator=generator, device=like.device), dim)


_FRAMING = ("crop", "flip")  # every image gets these


def photograph_views(strength: float) -> Augmentation:
    """Views of photographs: a part of each, mirrored or not, and two of five other changes."""
    half = 0.5 * strength
    return Augmentation(
        crop=0.7 * strength,
        flip=half,
        changes=2,
        affine=half,
        sharpness=half,
        color=half,
        contrast=half,
        erasing=half,
    )


UNCHANGED = Augmentation()
