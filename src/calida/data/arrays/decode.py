"""One image file -> one tensor of bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from calida.errors import InputError

MAX_PIXELS = 100_000_000  # of an image that is decoded, unless more are asked for
IMAGE_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm"))

# Pillow has one limit for the whole process, and threads open images at the same time.
_LIMIT = threading.Lock()
if hasattr(os, "register_at_fork"):  # a worker must find the limit as it was, and nobody who holds the lock
    os.register_at_fork(before=_LIMIT.acquire, after_in_parent=_LIMIT.release, after_in_child=_LIMIT.release)


class UnreadableImageError(InputError):
    """A file that should be an image and cannot be decoded."""

    def with_advice(self) -> UnreadableImageError:
        return UnreadableImageError(f"{self}; such files can be skipped", "skip_unreadable")


ImageSource = Path | Image.Image  # a file, or what Pillow has made of one


class TooManyPixelsError(UnreadableImageError):
    """An image that is too large to be decoded."""

    def with_advice(self) -> UnreadableImageError:
        return self


@contextmanager
def opened(path: ImageSource) -> Iterator[Image.Image]:
    """An image whose header alone is read: how large it may be is decided here, and not by Pillow."""
    if not isinstance(path, Path):
        yield path
        return
    with _LIMIT:
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            file = Image.open(path)
        finally:
            Image.MAX_IMAGE_PIXELS = before
    with file:
        yield file


def decode_image(path: ImageSource, channels: int, at_least: int | None = None, max_pixels: int = MAX_PIXELS) -> Tensor:
    """Bytes [C, h, w] of an image of any kind, upright, transparent parts on white; C is 1 or 3.

    With `at_least`, a JPEG is decoded at a half, a quarter or an eighth of its size if both sides still have twice that
    many pixels: a large photograph in a fraction of the time. What would still have more than `max_pixels` is refused
    before it is decoded.
    """
    try:
        with opened(path) as file:
            if at_least is not None and isinstance(path, Path):  # an image that is given is not to be changed
                file.draft(None, (2 * at_least, 2 * at_least))
            if file.width * file.height > max_pixels:
                raise TooManyPixelsError(
                    f"the image {path} has {file.width * file.height:,} pixels, more than the {max_pixels:,} allowed",
                    "max_pixels",
                )
            image: Image.Image = ImageOps.exif_transpose(file)
            if image.mode == "F":
                raise ValueError("its pixels are floating-point numbers; save it with 8 or 16 bits")
            if image.mode.startswith("I"):  # 16 bits, which Pillow would cut off at 255
                values = np.asarray(image)
                # In 32 bits, which no 16-bit file has, numbers up to 255 are those of 8 bits.
                full = 1 if image.mode == "I" and isinstance(path, Image.Image) and values.max() <= 255 else 257
                image = Image.fromarray((values / full).round().clip(0, 255).astype(np.uint8))
            if image.has_transparency_data:
                clear = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
            pixels = np.array(image.convert("L" if channels == 1 else "RGB"))
    except UnreadableImageError:
        raise
    except Exception as error:  # decoders of broken files raise whatever they stumble over
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableImageError(f"the image {path} cannot be read: {reason[:200]}") from None
    return torch.from_numpy(pixels.reshape(*pixels.shape[:2], channels)).permute(2, 0, 1)


def image_facts(path: ImageSource) -> tuple[int, int, int]:
    """Height, width and channels from the header alone; only gray images count as one channel."""
    try:
        with opened(path) as file:
            gray = file.mode in ("1", "L", "F") or file.mode.startswith("I")
            return file.height, file.width, 1 if gray else 3
    except Exception as error:
        raise UnreadableImageError(f"the image {path} cannot be read: {str(error)[:200]}") from None
