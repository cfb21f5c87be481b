"""The multiplier of the entropy constraint: fixed (Eq. 7) or moved by dual ascent (Eq. 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EntropyBudget = float | Literal["source"]


@dataclass(frozen=True)
class DualAscent:
    """Raise the multiplier while mean H on target exceeds the budget C, lower it when it is under.

        multiplier <- clip(multiplier + rate * (H / C - 1), 0, maximum)

    H is a moving average over steps. The excess is taken relative to C, so one rate serves budgets of any size.
    `budget` is a number in nats or "source": the entropy that the model has on source validation, measured anew
    each round, which calibrates the target's uncertainty to the source's.
    """

    budget: EntropyBudget = "source"
    start: float = 0.0
    rate: float = 0.01
    maximum: float = 5.0
    decay: float = 0.9


@dataclass
class MultiplierState:
    """Where dual ascent stands; saved with every checkpoint."""

    value: float
    budget: float | None = None
    average: float | None = None
    # Training draws dropout and batch statistics, the budget is about prediction: H(training) / H(prediction).
    training_ratio: float = 1.0

    def update(self, rule: DualAscent, entropy: float) -> None:
        """One ascent step after a training step that measured `entropy` on target."""
        if self.average is None:
            self.average = entropy
        self.average = rule.decay * self.average + (1 - rule.decay) * entropy
        if self.budget is not None:
            excess = self.average / (self.budget * self.training_ratio) - 1
            self.value = min(max(self.value + rule.rate * min(excess, 1.0), 0.0), rule.maximum)

    def measure(self, rule: DualAscent, source_entropy: float, target_entropy: float) -> None:
        """Between rounds: set the budget, and learn how training-time entropy relates to predictive entropy.

        The ratio makes the constraint hold for the entropy that a user sees: without it dropout would leave the
        prediction more certain than the budget allows.
        """
        budget = source_entropy if rule.budget == "source" else float(rule.budget)
        self.budget = max(budget, 1e-6)
        if self.average is not None and target_entropy > 1e-6:
            self.training_ratio = min(max(self.average / target_entropy, 0.1), 10.0)
