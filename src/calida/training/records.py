"""What a round's record says: of its pseudo-labels, the target's class shares, an unmet budget; and in one line."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calida.run_warnings import RunWarning, WarningCode
from calida.shift import class_shares, shares_nearest_uniform
from calida.training.events import RunEvent
from calida.training.phase import SOURCE_PHASE, PseudoLabels
from calida.validation import PseudoLabelSummary, RoundRecord

_OVER_BUDGET = 1.1  # times the budget: what dual ascent ends within, where it can meet it at all


def describe_pseudo_labels(pseudo_labels: PseudoLabels) -> PseudoLabelSummary:
    """How much of the target was selected and how its pseudo-labels spread over the classes."""
    chosen = pseudo_labels.labels[pseudo_labels.selected].argmax(-1)
    shares = class_shares(chosen, pseudo_labels.labels.shape[-1])
    return PseudoLabelSummary(float(pseudo_labels.selected.double().mean()), tuple(shares.tolist()))


def target_shares(history: Sequence[RoundRecord], slack: float) -> Tensor:
    """The target's class shares, as near to equal as predictions and doubts of the source-only classifier allow: [K].

    Neither BatchNorm nor diversity, which take classes for equal, has touched that one.
    """
    seen = next(record for record in reversed(history) if record.phase == SOURCE_PHASE).on_target
    return shares_nearest_uniform(torch.tensor(seen.class_shares), slack * (1 - seen.confidence))


def unmet_budget(history: Sequence[RoundRecord], maximum: float) -> RunWarning | None:
    """A warning if the last round ended over an entropy budget with its multiplier at the maximum."""
    for state in history[-1].multipliers.values():
        reached = (state.average or 0.0) / state.training_ratio
        if state.budget and state.value >= maximum and reached > _OVER_BUDGET * state.budget:
            values = {"budget": state.budget, "reached": reached, "maximum": maximum}
            return RunWarning(WarningCode.BUDGET_UNMET, values)
    return None


def print_rounds(event: RunEvent) -> None:
    """An observer for notebooks and scripts: one line a round."""
    if isinstance(event, RoundRecord):
        print(round_line(event), flush=True)


def round_line(record: RoundRecord) -> str:
    """A round in one line."""
    line = f"{record.phase} {record.round + 1}/{record.rounds}  source accuracy {record.source.accuracy:.3f}"
    if record.target is not None:
        line += f"  target entropy {record.target.entropy:.3f}"
    if record.selected is not None:
        line += f"  selected {record.selected.share:.0%}"
    if record.oracle is not None:
        line += f"  oracle accuracy {record.oracle.accuracy:.3f}"
    line += f"  {record.seconds:.1f} s"
    return f"{line}  {record.stopped}" if record.stopped else line
