"""Loaded by the workers of a cluster in tests: they are slow, and note which parts they begin and end."""

import os
import time
from pathlib import Path

from calida.runs import parts


def note(text):
    with Path(os.environ["CALIDA_TEST_NOTES"]).open("a") as file:
        file.write(f"{text}\n")


def slow_compute(self, collection, scratch, compute=parts.PredictParts.compute):
    note(f"begun {scratch.name.strip('.')}")
    time.sleep(0.3)
    return compute(self, collection, scratch)


def noted_write(path, frame, write=parts._write):
    write(path, frame)
    note(f"ended {path.stem}")


if not hasattr(parts, "noted"):  # Dask loads this file more than once
    parts.PredictParts.compute, parts._write, parts.noted = slow_compute, noted_write, True
