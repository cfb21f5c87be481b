"""The demo's digits: both domains as the network reads them, accuracy by round, and what it is least sure of."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from style import INK, RUN, SOFT, SOURCE, TARGET, TRUTH, panels, save

from calida.report import RunPredictions
from calida.runs import RunConfig, open_data

COLUMNS = 12


def draw(folder: Path) -> None:
    config = RunConfig.from_toml(RUN / "config.toml")
    data = open_data(config)
    draw_domains(folder, data)
    draw_rounds(folder)
    draw_least_sure(folder)


def draw_domains(folder: Path, data) -> None:
    figure, axes = plt.subplots(2, COLUMNS, figsize=(9.6, 1.9), layout="constrained")
    rows = (("source", np.asarray(data.source.samples), SOURCE), ("target", np.asarray(data.target.samples), TARGET))
    for line, (name, images, color) in zip(axes, rows, strict=True):
        chosen = np.random.default_rng(0).permutation(len(images))[:COLUMNS]
        for axis, row in zip(line, chosen, strict=True):
            _show(axis, images[row])
        line[0].set_ylabel(name, color=color, fontweight="bold")
    save(figure, folder, "digits")


def draw_rounds(folder: Path) -> None:
    records = [json.loads(line) for line in (RUN / "metrics.jsonl").read_text().splitlines()]
    judged = [one for one in records if "oracle" in one]
    figure, (left, right) = panels(2, width=9, height=3.2)
    rounds = range(len(judged))
    left.plot(rounds, [100 * one["oracle"]["accuracy"] for one in judged], color=TRUTH, marker="o")
    left.set_title("right answers in %, measured with labels")
    right.plot(rounds, [one["validators"]["corr-c"] for one in judged], color=SOURCE, marker="o")
    right.set_title("corr-c, which needs no label")
    for axis in (left, right):
        axis.set_xlabel("round (0 is source only)")
        axis.grid(axis="y")
    save(figure, folder, "digits-rounds")


def draw_least_sure(folder: Path) -> None:
    """Of the images that the report shows, those with the highest entropy, with label and probability."""
    known = RunPredictions.load(RUN / "predictions.npz")
    entropy = known.after.uncertainty[known.shown, 0]
    order = np.argsort(-entropy)[:COLUMNS]
    figure, axes = plt.subplots(1, COLUMNS, figsize=(9.6, 1.45), layout="constrained")
    for axis, place in zip(axes, order, strict=True):
        row = known.shown[place]
        log_probs = known.after.target[row]
        _show(axis, known.images[place])
        right = log_probs.argmax() == known.truth[row]
        color = INK if right else TARGET
        axis.set_title(f"{log_probs.argmax()}\n{np.exp(log_probs.max()):.0%}", fontsize=9.5, color=color)
    save(figure, folder, "digits-unsure")


def _show(axis, image) -> None:
    axis.imshow(np.asarray(image).squeeze(), cmap="gray", interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_color(SOFT)
