"""The paper's tasks as values: which data, which network, and what differs from the recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from calida.data import INSIDE
from calida.recipes import get_recipe
from calida.runs import RunConfig
from calida.studies.job import PRETRAINING, Job
from calida.studies.paper import MNIST_USPS, SVHN_MNIST, VISDA17

Measure = Literal["accuracy", "mean_class_accuracy"]
_TINY: Mapping[str, Any] = {"pretrain_epochs": 1, "rounds": 2, "passes": 1, "batch_size": 40, "gvr_groups": 2}


@dataclass(frozen=True)
class StudyTask:
    """Two domains, a network and settings that hold for every recipe."""

    name: str
    source: str
    target: str
    backbone: str = "dtn"
    size: int | None = None
    measure: Measure = "accuracy"
    backbone_weights: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def job(self, recipe: str, seed: int) -> Job:
        """The paper's methods as they are: every round is trained, and the label-free choice is among them."""
        adapts = get_recipe(recipe).rounds > 0
        config = RunConfig(
            self.source,
            self.target,
            recipe,
            target_labels=INSIDE,
            seed=seed,
            backbone=self.backbone,
            backbone_weights=self.backbone_weights,
            guard=False,
            size=self.size,
            settings={name: value for name, value in self.settings.items() if adapts or name in PRETRAINING},
        )
        return Job(self.name, config)

    def smoke(self) -> StudyTask:
        """The same code on so little data that it shows nothing but that it runs."""
        return replace(self, **_SMOKE[self.name], settings={**self.settings, **_TINY})


PROTOCOLS: dict[str, dict[str, StudyTask]] = {
    "paper": {
        MNIST_USPS: StudyTask(MNIST_USPS, "mnist:train:2000", "usps:train:1800"),
        SVHN_MNIST: StudyTask(
            SVHN_MNIST,
            "svhn:train:20000",
            "mnist:train:2000",
            # Ten times the source: fewer epochs, settled at their end, and a part of source drawn anew each round.
            settings={"pretrain_epochs": 6, "pretrain_final_rate": 0.03, "source_portion": 0.15},
        ),
        VISDA17: StudyTask(
            VISDA17,
            "visda17:train",
            "visda17:validation",
            backbone="timm:resnet101",
            size=224,
            measure="mean_class_accuracy",
            # The released scripts: batches of 32, GVR in 4 groups of 8, SGD with Nesterov's momentum.
            settings={"batch_size": 32, "gvr_groups": 4, "optimizer": "sgd"},
        ),
    },
}
PROTOCOLS["full"] = {
    MNIST_USPS: replace(PROTOCOLS["paper"][MNIST_USPS], source="mnist:train", target="usps:train"),
    SVHN_MNIST: replace(PROTOCOLS["paper"][SVHN_MNIST], source="svhn:train", target="mnist:train"),
    VISDA17: PROTOCOLS["paper"][VISDA17],
}
_SMOKE: dict[str, dict[str, Any]] = {
    # A set that scikit-learn brings along serves as both domains: there is nothing to download.
    MNIST_USPS: {"source": "uci-digits:120", "target": "uci-digits:100", "backbone": "compact"},
    SVHN_MNIST: {"source": "uci-digits:100", "target": "uci-digits:120", "backbone": "compact"},
    VISDA17: {"backbone": "compact", "size": 32},
}
