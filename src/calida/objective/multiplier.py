"""The multiplier of the entropy constraint: fixed (Eq. 7) or moved by dual ascent (Eq. 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

EntropyBudget = float | Literal["source"]


@dataclass(frozen=True)
class DualAscent:
    """Raise the multiplier while mean H on target exceeds the budget C, lower it when it is under.

        excess     = H / C - 1, with H a moving average over steps, at most 1
        ascent    <- clip(ascent + rate * excess, 0, maximum)
        multiplier = clip(ascent + damping * excess, 0, maximum)

    The excess is relative to C, so one rate serves budgets of any size. The damping is the method of multipliers
    (Hestenes, 1969): pure ascent reacts to what has added up and overshoots, after which the target stays too certain.
    `budget` is a number in nats or "source": the entropy that the pre-trained model has on source validation, which
    calibrates the target's uncertainty to the source's. It is measured once: a budget that followed the model would
    shrink as source is fitted ever more surely, and with it the brake on over-confidence.
    """

    budget: EntropyBudget = "source"
    rate: float = 0.03
    damping: float = 2.0
    maximum: float = 5.0
    decay: float = 0.9


@dataclass
class MultiplierState:
    """Where dual ascent stands; saved with every checkpoint."""

    value: float = 0.0  # the weight that the next step uses
    ascent: float = 0.0
    budget: float | None = None
    average: float | None = None
    # Training draws dropout and batch statistics, the budget is about prediction: H(training) / H(prediction).
    training_ratio: float = 1.0

    def __post_init__(self) -> None:
        known = (self.value, self.ascent, self.average or 0.0)
        over_zero = (1.0 if self.budget is None else self.budget, self.training_ratio)
        if not all(map(math.isfinite, (*known, *over_zero))) or min(over_zero) <= 0:
            raise ValueError(f"a multiplier cannot stand at {self}")

    def update(self, rule: DualAscent, entropy: float) -> None:
        """One ascent step after a training step that measured `entropy` on target."""
        if self.average is None:
            self.average = entropy
        self.average = rule.decay * self.average + (1 - rule.decay) * entropy
        if self.budget is not None:
            excess = min(self.average / (self.budget * self.training_ratio) - 1, 1.0)
            self.ascent = min(max(self.ascent + rule.rate * excess, 0.0), rule.maximum)
            self.value = min(max(self.ascent + rule.damping * excess, 0.0), rule.maximum)

    def measure(self, rule: DualAscent, source: float, target: float, training: float) -> None:
        """Before a round: set the budget if there is none, and see how training entropy relates to predictive.

        `source` and `target` are predictive entropies, `training` is the target's with dropout and batch statistics.
        Their ratio makes the constraint hold for the entropy that a user sees: without it dropout would leave the
        prediction more certain than the budget asks for.
        """
        if self.budget is None:
            self.budget = max(source if rule.budget == "source" else rule.budget, 1e-6)
        self.training_ratio = min(max(training / max(target, 1e-6), 0.1), 10.0)
