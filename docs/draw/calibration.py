"""How often the demo's digits are right at each confidence, before adaptation and after it."""

from pathlib import Path

import torch
from style import RUN, SOFT, SOURCE, TARGET, panels, save

from calida.report import RunPredictions
from calida.uncertainty import calibration_error, reliability_bins


def draw(folder: Path) -> None:
    known = RunPredictions.load(RUN / "predictions.npz")
    truth = torch.from_numpy(known.truth)
    figure, axes = panels(2, width=8.6, height=3.9, sharey=True)
    shown = (("source only", known.before, TARGET), ("adapted and calibrated", known.after, SOURCE))
    for axis, (title, view, color) in zip(axes, shown, strict=True):
        log_probs = torch.from_numpy(view.target)
        bins = reliability_bins(log_probs.amax(1).exp(), log_probs.argmax(1) == truth, 10)
        for place, (count, right) in enumerate(zip(bins.counts.tolist(), (100 * bins.accuracy).tolist(), strict=True)):
            if count:
                axis.bar((place + 0.5) / 10, right, width=0.09, color=color, alpha=0.75)
                axis.text((place + 0.5) / 10, right + 1.5, f"{count:.0f}", ha="center", fontsize=8.5, color=SOFT)
        axis.plot([0, 1], [0, 100], color=SOFT, linestyle=":", linewidth=1.2)
        axis.set_title(f"{title}: ECE {100 * float(calibration_error(log_probs, truth)):.1f} %")
        axis.set_xlabel("confidence")
        axis.set_xlim(0.1, 1)
        axis.set_ylim(0, 108)
    axes[0].set_ylabel("right answers in %, measured with labels")
    save(figure, folder, "calibration")
