"""The paper's tasks as values: which data, which network, and what differs from the recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calida.encoders.hubs import import_optional
from calida.errors import InputError, MissingExtraError
from calida.studies import StudyTask
from reproduction.tables import MNIST_USPS, PACS, SVHN_MNIST, VISDA17

RESNET101 = ("timm:resnet101", "torchvision:resnet101")  # with ImageNet's weights, the preferred one first
_PACS_FOLDERS = ("photo", "art_painting")
_TINY: Mapping[str, Any] = {"epochs": 1, "rounds": 2, "passes": 1, "batch_size": 40, "groups": 2}


PROTOCOLS: dict[str, dict[str, StudyTask]] = {
    "main": {
        MNIST_USPS: StudyTask(MNIST_USPS, "mnist:train:2000", "usps:train:1800", "dtn", precision="bf16"),
        SVHN_MNIST: StudyTask(
            SVHN_MNIST,
            "svhn:train",
            "mnist:train:10000",
            "dtn",
            validation=0.03,  # of 73,257
            precision="bf16",
            # A large source: few epochs, settled at their end; rounds are parts of it, and many enough to settle too.
            settings={"epochs": 8, "pretraining.final_rate_fraction": 0.03, "rounds": 30, "max_batches_per_round": 54},
        ),
        VISDA17: StudyTask(
            VISDA17,
            "visda17:train",
            "visda17:validation",
            backbone=RESNET101[0],
            head="visda",
            size=224,
            measure="mean_class_accuracy",
            settings={
                # The released scripts: batches of 32, GVR in 4 groups of 8, SGD with Nesterov's momentum.
                **{"batch_size": 32, "groups": 4, "optimizer": "sgd"},
                # The whole of a network that knows ImageNet learns, BatchNorm included.
                **{"blocks": "all", "batch_statistics": "adapted"},
            },
        ),
        **{
            name: StudyTask(name, f"pacs/{source}", f"pacs/{target}", encoder="efficientnet-lite0")
            for name, source, target in zip(PACS, _PACS_FOLDERS, reversed(_PACS_FOLDERS), strict=True)
        },
    },
}
PROTOCOLS["full"] = {
    MNIST_USPS: replace(PROTOCOLS["main"][MNIST_USPS], source="mnist:train", target="usps:train"),
    SVHN_MNIST: replace(PROTOCOLS["main"][SVHN_MNIST], target="mnist:train"),
    **{name: PROTOCOLS["main"][name] for name in (VISDA17, *PACS)},
}
PROTOCOLS["small"] = {
    **PROTOCOLS["main"],
    SVHN_MNIST: replace(PROTOCOLS["main"][SVHN_MNIST], source="svhn:train:20000", target="mnist:train:2000"),
}
_SMOKE: dict[str, dict[str, Any]] = {
    # A set that scikit-learn brings along serves as both domains: there is nothing to download.
    MNIST_USPS: {"source": "uci-digits:120", "target": "uci-digits:100", "backbone": "compact"},
    SVHN_MNIST: {"source": "uci-digits:100", "target": "uci-digits:120", "backbone": "compact"},
    VISDA17: {"backbone": "compact", "size": 32},
    **{name: {"size": 32} for name in PACS},
}


def with_weights_at_hand(task: StudyTask) -> StudyTask:
    """Table 3's network from the package that can be imported; if neither can, the run says what to install."""
    for name in RESNET101:
        try:
            import_optional(name.partition(":")[0], name)
        except MissingExtraError:
            continue
        return replace(task, backbone=name)
    return task


def in_folder(task: StudyTask, folder: Path) -> StudyTask:
    """A task whose images lie in the folder of data sets; PACS has no address that a program could fetch it from."""
    places = [folder / place for place in (task.source, task.target)]
    if absent := [place for place in places if not place.is_dir()]:
        raise InputError(f"there are no images in {absent[0]}; put PACS there, a folder a class")
    return replace(task, source=str(places[0]), target=str(places[1]))


def smoke(task: StudyTask) -> StudyTask:
    """The same code on so little data that it shows nothing but that it runs."""
    return replace(task, **_SMOKE[task.name], settings={**task.settings, **_TINY})
