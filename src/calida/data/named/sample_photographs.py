"""A few photographs that installed packages carry, cut into parts: two folders that show how a run with images goes."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from calida.errors import MissingExtraError
from calida.files import write_atomically
from calida.seeds import Seeds

# Packages, the folder within each, and its photographs in color; the first comes with calida itself.
_CARRIED = {
    ("sklearn", "datasets/images"): ("china.jpg", "flower.jpg"),
    ("skimage", "data"): ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"),
}
_PARTS, _SIDE = 60, 96  # of a photograph in each domain, and their pixels a side
_TONES = 5


def carried_photographs() -> dict[str, Path]:
    """The photographs that are installed, by name."""
    found: dict[str, Path] = {}
    for (package, folder), files in _CARRIED.items():
        spec = importlib.util.find_spec(package)
        for place in [] if spec is None else list(spec.submodule_search_locations or ()):
            paths = (Path(place, folder, file) for file in files)
            found |= {path.stem: path for path in paths if path.is_file()}
    return found


def write_parts(folder: Path, seeds: Seeds) -> tuple[Path, Path]:
    """Parts of the left half of every photograph in one folder, of the right half in another; a photograph is a class.

    Those of the right half are made to look badly printed: few tones, another tint, blurred.
    """
    photographs = carried_photographs()
    if len(photographs) < 2:
        raise MissingExtraError("the photographs that scikit-learn carries are not there: pip install scikit-learn")
    source, target = folder / "photographs", folder / "prints"
    for name, path in photographs.items():
        with Image.open(path) as file:
            pixels = np.asarray(file.convert("RGB"))
        middle = pixels.shape[1] // 2
        for place, half in ((source, pixels[:, :middle]), (target, pixels[:, middle:])):
            (place / name).mkdir(parents=True, exist_ok=True)
            random = np.random.default_rng(seeds.integer(f"{place.name} {name}"))
            for number in range(_PARTS):
                part = _part(half, random)
                _save(_printed(part) if place == target else part, place / name / f"{number:02}.png")
    return source, target


def _part(pixels: NDArray[np.uint8], random: np.random.Generator) -> Image.Image:
    """A square of a random place and size, a third to two thirds of the shorter side."""
    shorter = min(pixels.shape[:2])
    side = int(random.uniform(shorter / 3, 2 * shorter / 3))
    top, left = (int(random.integers(0, length - side + 1)) for length in pixels.shape[:2])
    return Image.fromarray(pixels[top : top + side, left : left + side]).resize((_SIDE, _SIDE))


def _printed(part: Image.Image) -> Image.Image:
    values = np.asarray(part.filter(ImageFilter.GaussianBlur(1.5))).astype(np.float64) / 255
    tones = np.round(values * (_TONES - 1)) / (_TONES - 1)
    tint = np.array([0.95, 0.8, 0.6])
    return Image.fromarray(np.uint8(255 * (0.15 + 0.75 * tones * tint)))


def _save(image: Image.Image, path: Path) -> None:
    content = io.BytesIO()
    image.save(content, "PNG")
    write_atomically(path, content.getvalue())
