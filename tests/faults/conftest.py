"""A small world for faults: data of several kinds, and a finished run on the table."""

import shutil

import numpy as np
import pytest
from commands import succeed
from PIL import Image

BRIEF = {"epochs": 1, "rounds": 2, "min_batches_per_epoch": 1, "min_batches_per_round": 1, "batch_size": 16}
SETTINGS = [word for key, value in BRIEF.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """The world as no fault has touched it."""
    folder = tmp_path_factory.mktemp("faults")
    numbers = np.random.default_rng(0)
    for name, moved in (("s", 0.0), ("t", 0.5)):
        y = np.arange(48) % 2
        a, b = numbers.normal(3 * y + moved, 1), numbers.normal(20 * y, 4)
        city = numbers.choice(["Rome", "Oslo"], 48)
        rows = zip(a, b, city, y, strict=True)
        lines = [f"r{i},{p:.4f},{q:.4f},{c},{'yes' if k else 'no'}" for i, (p, q, c, k) in enumerate(rows)]
        (folder / f"{name}.csv").write_text("\n".join(["name,a,b,city,y", *lines, ""]))
        x = numbers.integers(0, 255, (20, 8, 8)).astype(np.uint8)
        np.savez(folder / f"{name}.npz", x=x, y=np.arange(20) % 2)
        for index in range(8):
            place = folder / f"photos-{name}" / ("up" if index % 2 else "down")
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(x[index]).resize((16, 16)).save(place / f"{index}.png")
    words = ["--source", "s.csv", "--target", "t.csv", "--label", "y", "--id", "name", "--out", "run"]
    succeed("adapt", *words, *SETTINGS, cwd=folder)
    succeed("label", "run", "--budget", 6, cwd=folder)
    return folder


@pytest.fixture
def world(original, tmp_path):
    """A copy that a fault may spoil."""
    return shutil.copytree(original, tmp_path / "world")
