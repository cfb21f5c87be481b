"""Small generated images in VisDA17's layout: class folders and the official kind of list beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from calida.files import write_atomically

CLASSES = (
    "aeroplane",
    "bicycle",
    "bus",
    "car",
    "horse",
    "knife",
    "motorcycle",
    "person",
    "plant",
    "skateboard",
    "train",
    "truck",
)


def generate_visda17(root: Path, per_class: int = 6, size: int = 40) -> Path:
    """Write train and validation folders of colored shapes, one shape a class; what is there already is left alone."""
    for seed, part in enumerate(("train", "validation")):
        listed = root / part / "image_list.txt"
        if listed.exists():  # written last
            continue
        generator = np.random.default_rng(seed)
        lines = []
        for label, name in enumerate(CLASSES):
            (root / part / name).mkdir(parents=True, exist_ok=True)
            for number in range(per_class):
                path = f"{name}/{part}_{number:04d}.png"
                _draw(label, part == "validation", size, generator).save(root / part / path)
                lines.append(f"{path} {label}\n")
        write_atomically(listed, "".join(lines).encode())
    return root


def _draw(label: int, photographed: bool, size: int, generator: np.random.Generator) -> Image.Image:
    """A polygon of label + 3 corners; "photographs" have a noisy, brighter ground."""
    low, high = (90, 200) if photographed else (0, 40)
    image = Image.fromarray(generator.integers(low, high, (size, size, 3), dtype=np.uint8))
    angles = np.linspace(0, 2 * np.pi, label + 3, endpoint=False) + generator.uniform(0, 0.3)
    centre, radius = size / 2 + generator.uniform(-3, 3, 2), size * generator.uniform(0.3, 0.4)
    corners = [(float(x), float(y)) for x, y in centre + radius * np.stack([np.cos(angles), np.sin(angles)], 1)]
    color = tuple(int(value) for value in generator.integers(120, 255, 3))
    ImageDraw.Draw(image).polygon(corners, fill=color)
    return image
