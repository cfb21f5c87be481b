"""The front door: labelled source and unlabelled target in, an adapted classifier out."""

from __future__ import annotations

import copy
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from calida.data import (
    DataCard,
    ImageFiles,
    Labelled,
    Samples,
    Scale,
    as_inputs,
    as_labels,
    check_scale,
    check_shape,
    digest,
    split_validation,
    take,
)
from calida.errors import CheckpointError, InputError
from calida.model import CUSTOM, Classifier, Network, Prediction, build_classifier, predict
from calida.objective import Weighted, parameter_positions
from calida.recipes import DEFAULT_RECIPE, Recipe, get_recipe, phases
from calida.seeds import Seeds
from calida.training import (
    Bundle,
    Domains,
    Phase,
    Record,
    Run,
    describe_labelled,
    has_bundle,
    load_weights,
    read_bundle,
    run_rounds,
    write_bundle,
)

Array = ArrayLike | Tensor
_ADAPTED, _SOURCE_ONLY = "model", "source-only"
_DROPOUT_SAMPLES = 20


@dataclass(frozen=True)
class Adapted:
    """A classifier that has met its target domain."""

    classifier: Classifier
    network: Network
    recipe: Recipe
    seed: int = 0
    history: list[Record] = field(default_factory=list)
    source_only: Adapted | None = None  # the same classifier before it met the target
    card: DataCard | None = None  # how its data were read from files, if they were

    def predict(
        self,
        x: Array | ImageFiles,
        num_samples: int | None = None,
        batch_size: int = 500,
        monte_carlo_dropout: bool = False,
    ) -> Prediction:
        """Labels, probabilities, entropy, aleatoric and epistemic uncertainty of new samples, as CPU tensors."""
        inputs = as_inputs(x, "the input")
        if tuple(inputs.shape[1:]) != self.network.input_shape:
            raise InputError(
                f"samples have shape {tuple(inputs.shape[1:])}; this classifier reads {self.network.input_shape}"
            )
        check_scale("the source that this classifier was trained on", self.network.scale, "the input", Scale.of(inputs))
        if num_samples is None:
            num_samples = max(self.recipe.num_samples, _DROPOUT_SAMPLES if monte_carlo_dropout else 1)
        samples, rows = whole(num_samples, "num_samples", 1), whole(batch_size, "batch_size", 1)
        return predict(self.classifier, inputs, samples, Seeds(self.seed), rows, monte_carlo_dropout)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the classifier (safetensors and JSON, atomically); `calida.load` reads it back."""
        if self.source_only is not None:
            self.source_only._write(Path(folder), _SOURCE_ONLY)
        return self._write(Path(folder), _ADAPTED)

    def _write(self, folder: Path, name: str) -> Path:
        values = {
            "network": self.network.to_json(),
            "recipe": self.recipe.to_json(),
            "seed": self.seed,
            "history": self.history,
            "card": None if self.card is None else self.card.to_json(),
        }
        return write_bundle(folder, name, Bundle(dict(self.classifier.state_dict()), values))


def load(
    folder: str | os.PathLike[str],
    device: torch.device | str | None = None,
    backbone: nn.Module | None = None,
) -> Adapted:
    """Read a saved classifier; one with a backbone of your own needs that module again."""
    adapted = _load(Path(folder), _ADAPTED, device, backbone)
    if not has_bundle(Path(folder), _SOURCE_ONLY):
        return adapted
    return replace(adapted, source_only=_load(Path(folder), _SOURCE_ONLY, device, backbone))


def _load(folder: Path, name: str, device: torch.device | str | None, backbone: nn.Module | None) -> Adapted:
    bundle = read_bundle(folder, name)
    try:
        network = Network.from_json(bundle.values["network"])
        recipe = Recipe.from_json(bundle.values["recipe"])
        seed, history = int(bundle.values["seed"]), list(bundle.values["history"])
        card = DataCard.from_json(bundle.values["card"]) if bundle.values.get("card") else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the model in {folder} lacks or garbles {error}") from None
    classifier = build_classifier(network, Seeds(seed), backbone)
    load_weights(classifier, bundle.tensors, folder)
    classifier.eval().to(choose_device(device))
    return Adapted(classifier, network, recipe, seed, history, card=card)


def adapt(
    source: tuple[Array | ImageFiles, Array],
    target: Array | ImageFiles,
    recipe: str | Recipe = DEFAULT_RECIPE,
    *,
    num_classes: int | None = None,
    backbone: str | nn.Module = "auto",
    head: str = "auto",
    validation: float = 0.1,
    seed: int = 0,
    device: torch.device | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observe: Callable[[Record], None] | None = None,
    terms: Mapping[str, Weighted] | None = None,
    oracle_labels: Array | None = None,
    **settings: Any,
) -> Adapted:
    """Train on labelled `source` (x, y), adapt to unlabelled `target`, and return the classifier.

    Samples are vectors [N, D] or images [N, H, W], [N, C, H, W] or [N, H, W, C]; labels are 0..K-1. `settings`
    override the recipe's values, `terms` adds terms to adaptation. A batch is never larger than the smaller domain.
    With `folder`, each round leaves a checkpoint that `resume=True` goes on from. `oracle_labels` are the target's true
    labels, if known: they only add "oracle" figures to the history and never reach training.
    """
    seed, num_classes = whole(seed, "seed"), None if num_classes is None else whole(num_classes, "num_classes", 2)
    if resume and folder is None:
        raise InputError("resume=True needs the folder of the run")
    x, y, target_x, classes = _check_domains(source, target, num_classes)
    chosen = recipe if isinstance(recipe, Recipe) else get_recipe(recipe)
    chosen = chosen.with_settings(**settings)
    seeds = Seeds(seed)
    kept, held = split_validation(y, validation, seeds)
    domains = Domains(Labelled(take(x, kept), y[kept]), Labelled(take(x, held), y[held]), target_x, classes)
    for name, count in {"source (less validation)": len(kept), "target": len(target_x)}.items():
        if count < 2:
            raise InputError(f"{name} has {count} sample; training needs at least two")
    chosen = chosen.fitted_to(min(len(kept), len(target_x)))
    if not isinstance(backbone, str | nn.Module):
        raise InputError(f"backbone is a name or an nn.Module, not {backbone!r}")
    own, known = (backbone, CUSTOM) if isinstance(backbone, nn.Module) else (None, backbone)
    network = Network(tuple(x.shape[1:]), classes, known, chosen.gaussian, head, Scale.of(x))
    classifier = build_classifier(network, seeds, own)
    classifier.standardize.fit(domains.source.x)  # type: ignore[operator]
    classifier.to(choose_device(device))
    if chosen.gvr_weight:
        parameter_positions(classifier, chosen.gvr_part)  # a part that matches nothing is to be known now
    store = None if folder is None else _usable(Path(folder))
    before: list[Adapted] = []

    def keep_source_only(phase: Phase, model: Classifier) -> None:
        if phase.uses_target:
            return
        before.append(Adapted(copy.deepcopy(model).eval(), network, chosen, seed))
        if store is not None:
            before[-1]._write(store, _SOURCE_ONLY)

    run = Run(
        phases(chosen, terms),
        domains,
        seeds,
        chosen.num_samples,
        4 * chosen.batch_size,  # without gradients a batch takes far less memory than in training
        store,
        _identity(chosen, seed, network, domains, terms or {}),
        observe or (lambda record: None),
        _oracle(oracle_labels, len(target_x), classes),
        keep_source_only,
    )
    history = run_rounds(run, classifier, resume)
    classifier.lay_out(torch.channels_last)
    if not before and store is not None:  # kept before the run was interrupted
        before.append(_load(store, _SOURCE_ONLY, classifier.device, own))
    return Adapted(classifier.eval(), network, chosen, seed, history, before[-1] if before else None)


def choose_device(device: torch.device | str | None) -> torch.device:
    """The given device, or the GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"unknown device {device!r}: {str(error).splitlines()[0]}") from None
    # Dropout masks must follow the run's seeds, which is arranged for these two.
    if chosen.type not in ("cpu", "cuda") or (chosen.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"the device {chosen} cannot be used here; cpu always can, cuda where torch sees a GPU")
    return chosen


def whole(value: Any, name: str, least: int | None = None) -> int:
    """A whole number of any kind, NumPy's included, as Python's own."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, not {value!r}") from None
    if least is not None and number < least:
        raise InputError(f"{name} must be at least {least}, not {number}")
    return number


def _usable(folder: Path) -> Path:
    """The folder for checkpoints, made before any training is spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be used: {error.strerror}") from None
    return folder


def _check_domains(
    source: tuple[Array | ImageFiles, Array], target: Array | ImageFiles, num_classes: int | None
) -> tuple[Samples, Tensor, Samples, int]:
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise InputError("source is a pair (samples, labels)")
    if isinstance(target, tuple):
        raise InputError("target is an array of samples without labels, not a tuple; give labels as oracle_labels")
    x, target_x = as_inputs(source[0], "source"), as_inputs(target, "target")
    check_shape(x, target_x)
    check_scale("source", Scale.of(x), "target", Scale.of(target_x))
    y, classes = as_labels(source[1], len(x), num_classes, "source")
    return x, y, target_x, classes


def _oracle(labels: Array | None, count: int, classes: int) -> Callable[[Any], Mapping[str, Any]]:
    """The only reader of target labels: it sees predictions and returns figures."""
    if labels is None:
        return lambda outlook: {}
    truth, _ = as_labels(labels, count, classes, "oracle")
    return lambda outlook: {"oracle": describe_labelled(outlook.target, truth)}


def _identity(
    recipe: Recipe, seed: int, network: Network, domains: Domains, terms: Mapping[str, Weighted]
) -> dict[str, Any]:
    """What makes two runs the same run, as JSON has it."""
    return {
        "recipe": recipe.to_json(),
        "seed": seed,
        "network": network.to_json(),
        "source": digest(*domains.source, *domains.validation),
        "target": digest(domains.target),
        "terms": {name: [_term_identity(term), repr(weight)] for name, (term, weight) in terms.items()},
    }


def _term_identity(term: Any) -> str:
    """A term's own description, or its class and attributes: the default one names a place in memory."""
    described = repr(term)
    if hex(id(term))[2:] not in described:
        return described
    return f"{getattr(term, '__qualname__', type(term).__qualname__)} {getattr(term, '__dict__', {})}"
