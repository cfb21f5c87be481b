"""What a study runs on: two domains, a network, and settings that hold for every recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from calida.data import INSIDE
from calida.recipes import get_recipe, resolve
from calida.runs import AUTO_ENCODER, RunConfig
from calida.studies.job import PRETRAINING, Job
from calida.studies.summary import Measure


@dataclass(frozen=True)
class StudyTask:
    """Two domains, a network and settings that hold for every recipe."""

    name: str
    source: str
    target: str
    backbone: str = "auto"
    head: str = "auto"
    encoder: str = AUTO_ENCODER
    size: int | None = None
    measure: Measure = "accuracy"
    backbone_weights: str | None = None
    validation: float = 0.1
    precision: str = "fp32"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def job(
        self,
        recipe: str,
        seed: int,
        settings: Mapping[str, Any] = MappingProxyType({}),
        measured_with: tuple[int, ...] = (),
    ) -> Job:
        """A run without the guard: every round is trained, and the label-free choice is among them."""
        named = get_recipe(recipe)
        adapts, every = named.adaptation.rounds > 0, named.each()
        known = {
            name: value
            for name, value in self.settings.items()
            if adapts or resolve(name, every).split(".")[0] in PRETRAINING
        }
        config = RunConfig(
            source=self.source,
            target=self.target,
            recipe=recipe,
            target_labels=INSIDE,
            seed=seed,
            precision=self.precision,
            backbone=self.backbone,
            head=self.head,
            encoder=self.encoder,
            backbone_weights=self.backbone_weights,
            validation=self.validation,
            guard=False,
            size=self.size,
            settings={**known, **settings},
        )
        return Job(self.name, config, measured_with)
