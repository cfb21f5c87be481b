"""Your own image folders: a labeled one, an unlabeled one, and new images afterwards.

    python examples/image_folders.py

Without your own folders at hand, it draws some: crosses and rings, drawn by pen for the source, and by a thick,
trembling marker for the target. Change SOURCE and TARGET to yours, and take out the drawing.
"""

import csv
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

FOLDER = Path(tempfile.mkdtemp())
SOURCE, TARGET, RUN = FOLDER / "pen", FOLDER / "marker", FOLDER / "run"


def draw(shape: str, width: int, tremble: float) -> Image.Image:
    image = Image.new("L", (28, 28), 255)
    pen = ImageDraw.Draw(image)
    size = random.uniform(6, 9)
    middle = [14 + random.uniform(-2, 2) for _ in range(2)]
    if shape == "ring":
        turns = [2 * math.pi * step / 16 for step in range(17)]
        points = [(size * math.cos(turn), size * math.sin(turn)) for turn in turns]
        strokes = [points]
    else:
        strokes = [[(-size, -size), (size, size)], [(-size, size), (size, -size)]]
    for stroke in strokes:
        shaken = [
            tuple(m + v + random.gauss(0, tremble) for m, v in zip(middle, point, strict=True)) for point in stroke
        ]
        pen.line(shaken, fill=random.randint(0, 60), width=width)
    return image


def main() -> None:
    random.seed(0)
    for index in range(120):
        shape = ("cross", "ring")[index % 2]
        for path, image in (
            (SOURCE / shape / f"{index}.png", draw(shape, 1, 0.2)),
            (TARGET / f"{index}-{shape}.png", draw(shape, 4, 1.0)),  # the name is for us: no label is read from it
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)

    command = [sys.executable, "-m", "calida"]
    quick = ["--set", "epochs=8", "--set", "rounds=4"]
    adapt = ["adapt", "--source", str(SOURCE), "--target", str(TARGET), "--out", str(RUN), *quick]
    subprocess.run([*command, *adapt], check=True)
    subprocess.run([*command, "predict", str(RUN), str(TARGET), "--out", str(FOLDER / "new.csv")], check=True)

    with (FOLDER / "new.csv").open() as file:
        rows = list(csv.DictReader(file))
    unsure = max(rows, key=lambda row: float(row["entropy"]))
    right = sum(row["label"] in row["path"] for row in rows)
    print(f"least sure of {unsure['path']}: {unsure['label']} at {float(unsure['probability']):.0%}")
    print(f"{right} of {len(rows)} right (oracle); the report is {RUN / 'report.html'}")


if __name__ == "__main__":
    main()
