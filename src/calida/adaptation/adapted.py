"""The result: a classifier that has met its target domain, what can be said of it, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from calida.adaptation.checks import Array, choose_device, whole
from calida.data import ImageFiles, SavedPreparation, Scale, as_inputs, check_scale
from calida.errors import CheckpointError, InputError
from calida.estimation import Estimate
from calida.model import Classifier, Network, Prediction, build_classifier, predict
from calida.recipes import Recipe
from calida.seeds import Seeds
from calida.training import Bundle, Record, has_bundle, load_weights, read_bundle, write_bundle
from calida.validation import DomainPredictions

_ADAPTED, SOURCE_ONLY_FILES = "model", "source-only"
_DROPOUT_SAMPLES = 20


@dataclass(frozen=True)
class Trust:
    """What is known of a classifier without a target label."""

    temperature: float  # that its probabilities are given at
    calibration: str  # how the temperature was found
    accuracy: Estimate  # on target
    returned: str  # which of the candidates was returned, "source only" or "round 3 of 10"
    reason: str  # why, in a sentence
    warnings: tuple[str, ...] = ()  # of the guard
    candidates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # recipes, if several were tried

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "warnings": list(self.warnings)}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Trust:
        return Trust(**{**values, "accuracy": Estimate(**values["accuracy"]), "warnings": tuple(values["warnings"])})


@dataclass(frozen=True)
class Adapted:
    """A classifier that has met its target domain."""

    classifier: Classifier
    network: Network
    recipe: Recipe
    seed: int = 0
    history: list[Record] = field(default_factory=list)
    source_only: Adapted | None = None  # the same classifier before it met the target
    card: SavedPreparation | None = None  # how its data were read from files, if they were
    trust: Trust | None = None
    predictions: DomainPredictions | None = field(default=None, repr=False)  # made when it was trained, not saved

    @property
    def temperature(self) -> float:
        return 1.0 if self.trust is None else self.trust.temperature

    def predict(
        self,
        x: Array | ImageFiles,
        num_samples: int | None = None,
        batch_size: int = 500,
        monte_carlo_dropout: bool = False,
        raw: bool = False,
    ) -> Prediction:
        """Labels, probabilities, entropy, aleatoric and epistemic uncertainty of new samples, as CPU tensors.

        Probabilities are calibrated; `raw` gives the network's own.
        """
        inputs = as_inputs(x, "the input")
        if tuple(inputs.shape[1:]) != self.network.input_shape:
            raise InputError(
                f"samples have shape {tuple(inputs.shape[1:])}; this classifier reads {self.network.input_shape}"
            )
        check_scale("the source that this classifier was trained on", self.network.scale, "the input", Scale.of(inputs))
        if num_samples is None:
            num_samples = max(self.recipe.posterior.num_samples, _DROPOUT_SAMPLES if monte_carlo_dropout else 1)
        samples, rows = whole(num_samples, "num_samples", 1), whole(batch_size, "batch_size", 1)
        prediction = predict(self.classifier, inputs, samples, Seeds(self.seed), rows, monte_carlo_dropout)
        return prediction if raw else prediction.tempered(self.temperature)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the classifier (safetensors and JSON, atomically); `calida.load` reads it back."""
        if self.source_only is not None:
            self.source_only.write(Path(folder), SOURCE_ONLY_FILES)
        return self.write(Path(folder), _ADAPTED)

    def write(self, folder: Path, name: str) -> Path:
        values = {
            "network": self.network.to_json(),
            "recipe": self.recipe.to_json(),
            "seed": self.seed,
            "history": self.history,
            "card": None if self.card is None else self.card.to_json(),
            "trust": None if self.trust is None else self.trust.to_json(),
        }
        return write_bundle(folder, name, Bundle(dict(self.classifier.state_dict()), values))


def load(
    folder: str | os.PathLike[str],
    device: torch.device | str | None = None,
    backbone: nn.Module | None = None,
) -> Adapted:
    """Read a saved classifier; one with a backbone of your own needs that module again."""
    adapted = read_adapted(Path(folder), _ADAPTED, device, backbone)
    if not has_bundle(Path(folder), SOURCE_ONLY_FILES):
        return adapted
    return replace(adapted, source_only=read_adapted(Path(folder), SOURCE_ONLY_FILES, device, backbone))


def read_adapted(folder: Path, name: str, device: torch.device | str | None, backbone: nn.Module | None) -> Adapted:
    """One of a folder's two classifiers, by the name of its files."""
    bundle = read_bundle(folder, name)
    try:
        network = Network.from_json(bundle.values["network"])
        recipe = Recipe.from_json(bundle.values["recipe"])
        seed, history = int(bundle.values["seed"]), list(bundle.values["history"])
        card = SavedPreparation.from_json(bundle.values["card"]) if bundle.values.get("card") else None
        trust = Trust.from_json(bundle.values["trust"]) if bundle.values.get("trust") else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the model in {folder} lacks or garbles {error}") from None
    classifier = build_classifier(network, Seeds(seed), backbone)
    load_weights(classifier, bundle.tensors, folder)
    classifier.eval().to(choose_device(device))
    return Adapted(classifier, network, recipe, seed, history, card=card, trust=trust)
