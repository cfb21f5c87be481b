"""The result: a classifier that has met its target domain, what can be said of it, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.adaptation.arguments import check_kinds, choose_device, whole
from calida.adaptation.models import CANNOT_BE_SAVED, blank_classifier, check_shapes
from calida.adaptation.new_samples import open_new
from calida.adaptation.summary import as_html, as_text
from calida.data import (
    Loaded,
    Loading,
    Preparation,
    SavedPreparation,
    Scale,
    Values,
    as_inputs,
    check_looks,
    check_scale,
    check_sizes,
    is_collected,
)
from calida.devices import has_bf16
from calida.errors import CheckpointError, InputError
from calida.estimation import Agreement, Estimate, SetCalibration, check_level, right_by_confidence
from calida.json_values import from_json, to_json
from calida.model import AnyClassifier, Classifier, Network, Prediction, predict
from calida.recipes import MOST_SAMPLES, Recipe
from calida.run_warnings import RunWarning
from calida.seeds import Seeds
from calida.training import (
    Bundle,
    has_bundle,
    load_weights,
    read_bundle,
    with_prefix,
    without_prefix,
    write_bundle,
)
from calida.validation import ENSV, VALIDATORS, Decision, DomainPredictions, Returned, RoundRecord, explain

_ADAPTED, SOURCE_ONLY_FILES = "model", "source-only"
_SETS = "prediction-sets"  # before the names of their tensors, beside those of the network
_DROPOUT_SAMPLES = 20
_COLORS = (3, 4)  # with and without transparency
_ROUNDING = 1e-6
_COLDEST, _HOTTEST = 0.01, 1000.0  # calibration stays well within


@dataclass(frozen=True)
class Trust:
    """What is known of a classifier without a target label."""

    temperature: float  # that its probabilities are given at
    calibration: str  # how the temperature was found
    accuracy: Estimate  # on target
    decision: Decision  # which of the candidates was returned, and what says so
    warnings: tuple[RunWarning, ...] = ()  # of the guard
    candidates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # recipes, if several were tried
    agreements: tuple[Agreement, ...] = ()  # what each check classifier makes of it, where they were asked
    by_class: tuple[float | None, ...] = ()  # the share of each class's answers that should be right, if it has any
    worth: tuple[tuple[float, float], ...] = ()  # confidences, and how likely answers of each are right

    def __post_init__(self) -> None:
        if not _COLDEST <= self.temperature <= _HOTTEST:
            raise ValueError(f"{self.temperature} is no temperature")
        if not all(-_ROUNDING <= share <= 1 + _ROUNDING for share in vars(self.accuracy).values()):
            raise ValueError(f"{self.accuracy} are no shares")
        if any(not 0 <= share <= 1 for pair in self.worth for share in pair) or list(self.worth) != sorted(self.worth):
            raise ValueError("what confidences are worth are no shares that rise")
        columns = [row.keys() for row in self.candidates.values()]
        if any(column != columns[0] or column - {*VALIDATORS, ENSV} for column in columns):
            raise ValueError("the table of recipes has other columns than validators")

    @property
    def returned(self) -> str:
        """The returned candidate's name, "source only" or "round 3 of 10"."""
        return self.decision.candidate

    @property
    def reason(self) -> str:
        """Why it was returned, in words."""
        return explain(self.decision)

    def to_json(self) -> dict[str, Any]:
        """With the words beside the codes, for those who read the file."""
        words = {"returned": self.returned, "reason": self.reason}
        warnings = [warning.to_json() for warning in self.warnings]
        return {**to_json(self), **words, "decision": self.decision.to_json(), "warnings": warnings}

    @staticmethod
    def from_json(values: Any, place: str = "what is known of a classifier") -> Trust:
        return from_json(Trust, values, place)


@dataclass(frozen=True, repr=False)
class Adapted:
    """A classifier that has met its target domain; as a string, what a user wants to know of it."""

    classifier: AnyClassifier
    network: Network
    recipe: Recipe
    seed: int = 0
    history: list[RoundRecord] = field(default_factory=list)
    source_only: Adapted | None = None  # the same classifier before it met the target
    preparation: SavedPreparation | None = None  # how its data were read from files or data frames, if they were
    trust: Trust | None = None
    class_names: tuple[str, ...] = ()  # where they were given with arrays; those of files are in the preparation
    set_calibration: SetCalibration | None = field(default=None, repr=False)
    predictions: DomainPredictions | None = field(default=None, repr=False)  # made when it was trained, not saved
    right: Tensor | None = field(default=None, repr=False)  # how likely each answer on target is right, not saved
    domain_scores: Tensor | None = field(default=None, repr=False)  # how unlike the source each sample is, not saved

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def classes(self) -> tuple[str, ...]:
        """The user's own names of the classes, in the order of labels and probabilities; numbers if there are none."""
        known = self.class_names if self.preparation is None else self.preparation.classes
        return known or tuple(map(str, range(self.network.num_classes)))

    def named(self, class_names: Sequence[str], preparation: SavedPreparation | None) -> Adapted:
        """With what makes words of its answers and reads new data, the classifier before adaptation included."""
        before = self.source_only and self.source_only.named(class_names, preparation)
        return replace(self, class_names=tuple(class_names), preparation=preparation, source_only=before)

    @property
    def temperature(self) -> float:
        return 1.0 if self.trust is None else self.trust.temperature

    def predict(
        self,
        x: Any,
        num_samples: int | None = None,
        batch_size: int = 500,
        monte_carlo_dropout: bool = False,
        raw: bool = False,
        *,
        domain: str = "target",
        on_mismatch: str = "stop",
        skip_unreadable: bool = False,
        max_pixels: int = Loading.max_pixels,
    ) -> Prediction:
        """Labels, probabilities, entropy, aleatoric and epistemic uncertainty of new samples, as CPU tensors.

        `x` is an array as the classifier reads it. A classifier that was trained from files, frames, texts or images
        also takes new ones, as they are: "image.jpg", "folder/", a table or a named set, an image of Pillow or a list
        of them, a frame, a row as a dict or a list of rows, a list of texts. They are prepared as the `domain` was, by
        the same encoder. Samples in another scale are refused, unless `on_mismatch` is "ignore". Probabilities are
        calibrated; `raw` gives the network's own.
        """
        check_kinds(raw=(raw, bool), monte_carlo_dropout=(monte_carlo_dropout, bool), on_mismatch=(on_mismatch, str))
        if on_mismatch not in ("stop", "ignore"):
            raise InputError(f"on_mismatch is stop or ignore here, not {on_mismatch!r}")
        if is_collected(x):
            loading = Loading(skip_unreadable=skip_unreadable, max_pixels=max_pixels)
            loaded = self.read(x, domain, on_mismatch, loading, self.classifier.device)
            if on_mismatch == "stop":
                check_looks(self.network.scale, loaded.samples, "the input")
            said = self.predict(loaded.samples, num_samples, batch_size, monte_carlo_dropout, raw, on_mismatch="ignore")
            return replace(said, names=loaded.collection.names)
        inputs = as_inputs(_one_image(x, self.network.input_shape), "the input")
        if isinstance(inputs, Tensor) and (steps := self._resizing(inputs)) is not None:
            inputs = steps(inputs)
        if tuple(inputs.shape[1:]) != self.network.input_shape:
            raise InputError(f"samples have shape {tuple(inputs.shape[1:])}; this classifier reads {self._input()}")
        trained_on = "the source that this classifier was trained on"
        if self.network.scale.is_bytes != (inputs.dtype == torch.uint8):
            check_scale(trained_on, self.network.scale, "the input", Scale.of(inputs))
        if on_mismatch == "stop":
            check_sizes(self.network.scale, inputs, "the input", trained_on)
            check_looks(self.network.scale, inputs, "the input")
        if num_samples is None:
            num_samples = max(self.recipe.posterior.num_samples, _DROPOUT_SAMPLES if monte_carlo_dropout else 1)
        samples, rows = whole(num_samples, "num_samples", 1), whole(batch_size, "batch_size", 1)
        if samples > MOST_SAMPLES:
            raise InputError(f"num_samples is at most {MOST_SAMPLES:,}, which more would not change, not {samples:,}")
        prediction = predict(self.classifier, inputs, samples, Seeds(self.seed), rows, monte_carlo_dropout)
        if self.trust is not None and self.trust.decision.returned == Returned.AVERAGE and self.source_only is not None:
            other = self.source_only.classifier
            before = predict(other, inputs, samples, Seeds(self.seed), rows, monte_carlo_dropout)
            prediction = prediction.averaged_with(before)
        prediction = replace(prediction, classes=self.classes)
        return prediction if raw else self.calibrated(prediction)

    def calibrated(self, raw: Prediction) -> Prediction:
        """A prediction that was made with `raw=True`, calibrated, and how likely each of its answers is right."""
        prediction = raw.tempered(self.temperature)
        if self.trust is None or not self.trust.worth:
            return prediction
        return replace(prediction, right=right_by_confidence(self.trust.worth, prediction.confidence))

    def _resizing(self, samples: Tensor) -> Preparation | None:
        """What brings images of another size to the one that the network reads."""
        shape, before = self.network.input_shape, tuple(samples.shape[1:])
        if self.preparation is None or len(shape) != 3 or len(before) != 3 or before == shape:
            return None
        known = self.preparation.target
        return known.for_values(Values.of(samples)) if known.shape == shape else None

    def _input(self) -> str:
        if self.preparation is None or self.preparation.encoder is None:
            return str(self.network.input_shape)
        return f"features of {self.preparation.encoder.name}: to encode, name files or give images or texts"

    def read(
        self,
        data: Any,
        domain: str = "target",
        on_mismatch: str = "stop",
        loading: Loading | None = None,
        device: torch.device | str | None = None,
    ) -> Loaded:
        """New samples of any kind, prepared as those that it was trained on; what `predict` does first."""
        if self.preparation is None:
            raise InputError("this classifier was trained on arrays: give arrays of the shape that it reads")
        if on_mismatch not in ("stop", "ignore"):
            raise InputError(f"on_mismatch is stop or ignore here, not {on_mismatch!r}")
        check = on_mismatch == "stop"
        return open_new(data, self.preparation, loading, domain=domain, check_scale=check, device=device)

    def predict_sets(self, x: Any, level: float = 0.9, num_samples: int | None = None) -> Tensor:
        """For each sample the classes that should hold the right one at this level, as booleans: [N, K].

        Refused where the source validation samples are too few for the level; docs/prediction-sets.md says how sure
        the level is.
        """
        self.check_sets(level)
        return self.sets_of(self.predict(x, num_samples, raw=True), level)

    def sets_of(self, raw: Prediction, level: float) -> Tensor:
        """The sets of a prediction that was made with `raw=True`: [N, K] booleans."""
        assert self.set_calibration is not None
        return self.set_calibration.sets(raw.log_probs, level)

    def check_sets(self, level: float) -> None:
        """Refuse a level that no sets can be made at, before samples are predicted."""
        check_level(level)
        if self.set_calibration is None:
            raise InputError("this classifier was saved without what prediction sets need: train it again")
        self.set_calibration.class_thresholds(level)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the classifier (safetensors and JSON, atomically); `calida.load` reads it back."""
        check_kinds(folder=(folder, str | os.PathLike))
        if not self.classifier.storable:
            raise InputError(CANNOT_BE_SAVED)
        if self.source_only is not None:
            self.source_only.write(Path(folder), SOURCE_ONLY_FILES)
        return self.write(Path(folder), _ADAPTED)

    def write(self, folder: Path, name: str) -> Path:
        values = {
            "network": self.network.to_json(),
            "recipe": self.recipe.to_json(),
            "seed": self.seed,
            "class_names": list(self.class_names),
            "history": [record.to_json() for record in self.history],
            "preparation": None if self.preparation is None else self.preparation.to_json(),
            "trust": None if self.trust is None else self.trust.to_json(),
        }
        tensors = dict(self.classifier.state_dict())
        if self.set_calibration is not None:
            tensors |= with_prefix(_SETS, self.set_calibration.to_tensors())
        return write_bundle(folder, name, Bundle(tensors, values))


def _one_image(x: Any, shape: tuple[int, ...]) -> Any:
    """A single color image [H, W, C] as an array of one, which a classifier of images would read as H gray ones."""
    given: tuple[int, ...] = tuple(getattr(x, "shape", ()))
    return x[None] if len(shape) == 3 and len(given) == 3 and given[-1] in _COLORS else x


def load(
    folder: str | os.PathLike[str],
    device: torch.device | str | None = None,
    backbone: nn.Module | None = None,
) -> Adapted:
    """Read a saved classifier or the folder of a run; one with a backbone of your own needs that module again."""
    check_kinds(folder=(folder, str | os.PathLike), backbone=(backbone, nn.Module | None))
    adapted = read_adapted(Path(folder), _ADAPTED, device, backbone)
    if not has_bundle(Path(folder), SOURCE_ONLY_FILES):
        if adapted.trust is not None and adapted.trust.decision.returned == Returned.AVERAGE:
            raise CheckpointError(f"the model in {folder} averages two classifiers, and {SOURCE_ONLY_FILES} is missing")
        return adapted
    return replace(adapted, source_only=read_adapted(Path(folder), SOURCE_ONLY_FILES, device, backbone))


@dataclass
class _Saved:
    """What a model's JSON holds."""

    network: Network
    recipe: dict[str, Any]
    seed: int
    history: list[RoundRecord]
    preparation: dict[str, Any] | None
    trust: Trust | None
    class_names: tuple[str, ...] = ()


def _check_together(
    network: Network, preparation: SavedPreparation | None, history: list[RoundRecord], names: Sequence[str]
) -> None:
    """Refuse parts that are of different classifiers: they would answer, and with the names of other classes."""
    for known in (names, () if preparation is None else preparation.classes):
        if known and len(known) != network.num_classes:
            raise ValueError(f"it names {len(known)} classes and has {network.num_classes}")
    if preparation is not None and not preparation.classes:
        raise ValueError("it names no classes")
    if preparation is not None and preparation.target.shape != network.input_shape:
        raise ValueError(f"samples of {preparation.target.shape} are prepared, and {network.input_shape} are read")
    if any(len(record.source.class_shares) != network.num_classes for record in history):
        raise ValueError("a round has shares of other classes")


def read_adapted(folder: Path, name: str, device: torch.device | str | None, backbone: nn.Module | None) -> Adapted:
    """One of a folder's two classifiers, by the name of its files."""
    bundle, place = read_bundle(folder, name), f"the model in {folder}"
    saved = from_json(_Saved, bundle.values, place)
    network, seed, history, trust = saved.network, saved.seed, saved.history, saved.trust
    tensors = {key: value for key, value in bundle.tensors.items() if not key.startswith(f"{_SETS}/")}
    kept = without_prefix(_SETS, bundle.tensors)
    try:
        network.check()
        recipe = Recipe.from_json(saved.recipe)
        preparation = None if saved.preparation is None else SavedPreparation.from_json(saved.preparation, place)
        sets = SetCalibration.from_tensors(kept, network.num_classes) if kept else None
        _check_together(network, preparation, history, saved.class_names)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{place} is not what calida wrote: {error}") from None
    check_shapes(network, tensors, folder)
    classifier = blank_classifier(network, Seeds(seed), backbone)
    load_weights(classifier, tensors, folder)
    classifier.eval().to(choose_device(device))
    if isinstance(classifier, Classifier) and not has_bf16(classifier.device):
        classifier.precision = "fp32"  # which is faster here, and rounds less
    return Adapted(classifier, network, recipe, seed, history, None, preparation, trust, saved.class_names, sets)
