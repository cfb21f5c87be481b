"""Thumbnails of a target whose samples an encoder has read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from calida.data import Collection, UnreadableImageError, decode_image
from calida.report import thumbnails


def target_pictures(target: Collection, rows: Tensor) -> np.ndarray:
    """Images as the user has them, where an encoder has made features of them: [I, 3, H, W], empty if they are none."""
    if not target.is_images or not len(rows):
        return np.zeros((0,), np.uint8)
    if isinstance(target.samples, Tensor):
        return thumbnails(target.samples, rows)
    small = [_thumbnail(Path(target.samples[row])) for row in rows.tolist()]
    height, width = (max((one.shape[side] for one in small), default=1) for side in (1, 2))
    framed = np.zeros((len(small), 3, height, width), np.uint8)  # in the middle of a frame that holds them all
    for place, one in enumerate(small):
        top, left = (height - one.shape[1]) // 2, (width - one.shape[2]) // 2
        framed[place, :, top : top + one.shape[1], left : left + one.shape[2]] = one
    return framed


def _thumbnail(path: Path) -> np.ndarray:
    """One image; nothing of a file that has gone or changed since it was read, for which no run is to be lost."""
    try:
        small: np.ndarray = thumbnails(decode_image(path, 3)[None], torch.tensor([0]))[0]
        return small
    except UnreadableImageError:
        return np.zeros((3, 1, 1), np.uint8)
