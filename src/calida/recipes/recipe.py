"""A recipe: every setting of a run as plain values, in small groups."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from calida.errors import InputError
from calida.recipes.groups import (
    Adaptation,
    Augment,
    Entropy,
    Finetuning,
    Fitting,
    GradientVariance,
    Optimization,
    Posterior,
    Pretraining,
    PseudoLabeling,
    Teacher,
    Terms,
)
from calida.recipes.settings import Setting, Settings, fit, resolve


@dataclass(frozen=True)
class Recipe:
    """Every setting of a run, in groups of values that a config file can hold.

    Ramps move from round to round: [start, step, stop], or one number that stays; the step "even" reaches the stop in
    the last round.
    """

    name: str
    summary: str = ""
    posterior: Posterior = Posterior()
    optimization: Optimization = Optimization()
    augmentation: Augment = Augment()
    pretraining: Pretraining = Pretraining()
    adaptation: Adaptation = Adaptation()
    entropy: Entropy = Entropy()
    pseudo_labels: PseudoLabeling = PseudoLabeling()
    terms: Terms = Terms()
    gradient_variance: GradientVariance = GradientVariance()
    teacher: Teacher = Teacher()
    finetuning: Finetuning = Finetuning()
    fitting: Fitting = Fitting()

    def groups(self) -> dict[str, Settings]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Settings)}

    def each(self) -> dict[str, Setting]:
        """Every setting by its full name, group.name."""
        return {f"{group}.{one.name}": one for group, settings in self.groups().items() for one in settings.each()}

    def with_settings(self, settings: Mapping[str, Any] | None = None, /, **named: Any) -> Recipe:
        """The same recipe with other values, by full or short names, or by groups of them; what cannot be is named."""
        known, changed = self.each(), {}
        for name, value in _flat({**(settings or {}), **named}, self.groups()):
            full = resolve(name, known)
            changed[full] = fit(full, value, known[full].kind)
        recipe = self._replaced(changed)
        recipe.check()
        return recipe

    def _replaced(self, changed: Mapping[str, Any]) -> Recipe:
        groups: dict[str, dict[str, Any]] = {}
        for full, value in changed.items():
            group, name = full.split(".", 1)
            groups.setdefault(group, {})[name] = value
        values: dict[str, Any] = {name: replace(getattr(self, name), **some) for name, some in groups.items()}
        return replace(self, **values)

    def fitted_to(self, shape: Sequence[int], target_colors: bool) -> Recipe:
        """For source samples of this shape: with batches that so few can fill, and no more groups than they have pairs.

        A smaller target needs nothing: its batches are as large as it is, and short batches have fewer groups. The
        rows of a table have no views that a longer look would show: epochs and rounds are as short as they come. Where
        the target is gray, hues are all the same to it, and views with others of them would only take time.
        """
        samples, changed = shape[0], dict[str, Any]()
        if len(shape) == 2:
            changed |= {"pretraining.min_batches_per_epoch": 1, "adaptation.min_batches_per_round": 1}
        if not target_colors:
            changed["augmentation.color"] = 0.0
        changed["finetuning.finetune_batch_size"] = min(samples, self.finetuning.finetune_batch_size)
        if samples < self.optimization.batch_size:
            changed["optimization.batch_size"] = samples
            changed["gradient_variance.groups"] = max(2, min(self.gradient_variance.groups, samples // 2))
        recipe = self._replaced(changed)
        recipe.check()
        return recipe

    @property
    def uses_panel(self) -> bool:
        """Whether check classifiers label the target."""
        return self.uses_pseudo_labels and self.pseudo_labels.labeler == "panel"

    @property
    def is_self_training(self) -> bool:
        """Whether pseudo-labels take the place of an entropy, as they do at order infinity."""
        return self.entropy.order == math.inf and self.pseudo_labels.selection != "none"

    @property
    def uses_pseudo_labels(self) -> bool:
        """Whether adaptation learns from pseudo-labels."""
        beside = self.terms.pseudo_label > 0 and self.pseudo_labels.selection != "none"
        return self.is_self_training or beside

    @property
    def needs_network(self) -> bool:
        """Whether something in it asks for gradients or weight samples, and not for fits alone."""
        weights = (self.terms.diversity, self.terms.consistency, self.terms.mrkld, self.terms.mmd, self.terms.vat)
        adapts = self.adaptation.rounds > 0
        trained = any(weights) or self.gradient_variance.grouped or self.teacher.memory > 0
        return self.posterior.gaussian or (adapts and (trained or not self.uses_pseudo_labels))

    def check(self) -> None:
        """Refuse values that no run could use, each by itself and together."""
        for name, group in self.groups().items():
            group.check(name, self.adaptation.rounds)
        variance, largest = self.gradient_variance, self.optimization.batch_size // 2
        if variance.grouped and variance.groups > largest:
            raise InputError(
                f"gradient_variance.groups must be between 2 and half the batch size ({largest}), not {variance.groups}"
            )
        if variance.groups_only and variance.weight:
            raise InputError(f"gradient_variance.groups_only is the control at weight 0, not {variance.weight:g}")
        if self.entropy.budget is not None and (self.entropy.order is None or self.is_self_training):
            raise InputError("entropy.budget bounds an entropy: it needs an order, and no selection at order inf")
        if self.terms.mrkld and not self.uses_pseudo_labels:
            raise InputError("terms.mrkld holds pseudo-labels back: it needs order inf and a selection")
        if self.terms.mmd and self.adaptation.schedule != "joint":
            raise InputError("terms.mmd compares both domains in one step: it needs the joint schedule")
        try:
            re.compile(variance.part)
        except re.error as error:
            raise InputError(f"gradient_variance.part is not a regular expression: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Plain values by group, infinity as "inf"; `Recipe.from_json` reads them back."""
        groups = {name: group.to_json() for name, group in self.groups().items()}
        return {"name": self.name, "summary": self.summary, **groups}

    def settings(self) -> dict[str, Any]:
        """The groups alone: what a config file holds beside the recipe's name."""
        return {name: group.to_json() for name, group in self.groups().items()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Recipe:
        settings = dict(values)
        name, summary = str(settings.pop("name", "custom")), str(settings.pop("summary", ""))
        return Recipe(name, summary).with_settings(settings)


def _flat(settings: Mapping[str, Any], groups: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Settings one by one: a group of them, {"adaptation": {"rounds": 3}}, by full names."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if name in groups and isinstance(value, Mapping):
            found += [(f"{name}.{inner}", part) for inner, part in value.items()]
        else:
            found.append((name, value))
    return found
