"""Small generated images: bars that lie or stand, light on dark."""

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("lying", "standing")


def draw(kind, rng, size=16, low=20, high=230):
    """One image of bytes: a bar of random place and thickness on a noisy ground."""
    image = rng.integers(low, low + 12, (size, size))
    place, thickness = rng.integers(size // 4, 3 * size // 4), rng.integers(2, 4)
    bar = np.zeros((size, size), bool)
    bar[place : place + thickness, 2:-2] = True
    image[bar if kind == 0 else bar.T] = high
    return image.astype(np.uint8)


def arrays(count, seed, **look):
    """[N, H, W] bytes and labels 0, 1, 0, 1, ..."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    return np.stack([draw(label, rng, **look) for label in labels]), labels


def class_folders(folder: Path, count, seed, names=CLASSES, **look):
    """The same images as files, one sub-folder a class."""
    for index, (image, label) in enumerate(zip(*arrays(count, seed, **look), strict=True)):
        place = folder / names[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{index:03}.png")
    return folder


def color_photographs(folder, count, seed, light=1.0):
    """Red stripes and blue checks with noise, 80 pixels: two classes that any features tell apart."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        image = rng.integers(0, 60, (80, 80, 3))
        wide = int(rng.integers(5, 9))
        lines = (np.arange(80) // wide) % 2
        kind = ("stripes", "checks")[index % 2]
        pattern = np.tile(lines, (80, 1)) if kind == "stripes" else lines[:, None] ^ lines[None]
        image[..., 0 if kind == "stripes" else 2] += 190 * pattern
        place = folder / kind
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((light * image).clip(0, 255).astype(np.uint8)).save(place / f"{index:02}.png")
    return folder
