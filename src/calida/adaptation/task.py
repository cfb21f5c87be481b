"""Two domains and all that does not depend on the recipe; training by a recipe is one call."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calida.adaptation.adapted import SOURCE_ONLY_FILES, Adapted, read_adapted
from calida.adaptation.checks import read_weights, usable_folder
from calida.adaptation.settling import settle
from calida.data import Scale, compare_domains, describe_balance, digest, has_colours
from calida.errors import InputError
from calida.model import CUSTOM, Classifier, Network, Precision, build_classifier
from calida.objective import Weighted, parameter_positions
from calida.recipes import Recipe, phases
from calida.seeds import Seeds
from calida.training import SOURCE_PHASE, Domains, Judgement, Record, Run, describe_labelled, run_rounds
from calida.validation import Outlook, collapse, prefers, validate

Observe = Callable[[Record], None]


@dataclass(frozen=True)
class Task:
    """What is to be learnt, from what, and how results are judged."""

    domains: Domains
    scale: Scale  # of the whole source
    seed: int
    backbone: str | nn.Module
    head: str
    device: torch.device
    choice: str
    calibration: str
    guard: bool
    terms: Mapping[str, Weighted]
    class_names: Sequence[str] | None  # for sentences
    truth: Tensor | None = field(repr=False)  # for oracle figures, and read by `_measure` alone
    start: Adapted | None = None  # a classifier that is trained on source already
    backbone_weights: Path | None = None
    precision: Precision = "fp32"

    @property
    def own_backbone(self) -> nn.Module | None:
        return self.backbone if isinstance(self.backbone, nn.Module) else None

    def train(self, recipe: Recipe, folder: Path | None, observe: Observe, resume: bool) -> Adapted:
        """Train on source unless there is a start, adapt by the recipe, choose a round, calibrate it."""
        domains, seeds = self.domains, Seeds(self.seed)
        recipe = recipe.fitted_to(domains.source.x.shape, has_colours(domains.target))
        network = self._network(recipe)
        classifier = build_classifier(network, seeds, self.own_backbone)
        classifier.standardize.fit(domains.source.x, domains.target)  # type: ignore[operator]
        if self.backbone_weights is not None:
            read_weights(classifier.backbone, self.backbone_weights)
        if self.start is not None:
            classifier.load_state_dict(self._fitting_start(network))
        classifier.to(self.device).precision = self.precision
        if recipe.grouped:
            parameter_positions(classifier, recipe.gvr_part)  # a part that matches nothing is to be known now
        store = None if folder is None else usable_folder(folder)
        warnings = self._warnings()
        before = [] if self.start is None else [replace(self.start, history=[], source_only=None, trust=None)]

        def consider(record: Record, history: Sequence[Record], model: Classifier) -> Judgement:
            if record["phase"] == SOURCE_PHASE:
                before.append(Adapted(copy.deepcopy(model).eval(), network, recipe, self.seed))
                if store is not None:
                    before[-1].write(store, SOURCE_ONLY_FILES)
                return Judgement()
            stop = collapse(record, history, self.class_names) if self.guard else None
            return Judgement(stop is None and prefers(self.choice, record, history, self.guard), stop)

        run = Run(
            phases(recipe, self.terms),
            domains,
            seeds,
            recipe.num_samples,
            4 * recipe.batch_size,  # without gradients a batch takes far less memory than in training
            store,
            self._identity(recipe, network),
            observe,
            self._measure,
            consider,
            () if self.start is None else pretraining_records(self.start),
        )
        history = run_rounds(run, classifier, resume)
        classifier.lay_out(torch.channels_last)
        if not before and store is not None:  # kept before the run was interrupted
            before.append(read_adapted(store, SOURCE_ONLY_FILES, classifier.device, self.own_backbone))
        trust = settle(
            run.viewpoint, classifier, history, self.choice, self.calibration, warnings, self.class_names, recipe
        )
        return Adapted(classifier.eval(), network, recipe, self.seed, history, before[-1], trust=trust)

    def _network(self, recipe: Recipe) -> Network:
        name = self.backbone if isinstance(self.backbone, str) else CUSTOM
        shape = tuple(self.domains.source.x.shape[1:])
        return Network(shape, self.domains.num_classes, name, recipe.gaussian, self.head, self.scale, recipe.sampled)

    def _measure(self, outlook: Outlook) -> dict[str, Any]:
        """Columns of a round's record. Target labels are read here alone, to return figures called oracle."""
        found: dict[str, Any] = {"validators": validate(outlook, Seeds(self.seed))}
        return found if self.truth is None else {**found, "oracle": describe_labelled(outlook.target, self.truth)}

    def _warnings(self) -> list[str] | None:
        """What the guard finds in the data, if it is on."""
        if not self.guard:
            return None
        source, classes = self.domains.source, self.domains.num_classes
        return compare_domains(source.x, self.domains.target) + describe_balance(source.y, classes, self.class_names)

    def _fitting_start(self, network: Network) -> dict[str, Tensor]:
        """The start's weights, if it is the network of this run."""
        assert self.start is not None
        for name in ("input_shape", "num_classes", "backbone", "gaussian", "head", "sampled"):
            given, wanted = getattr(self.start.network, name), getattr(network, name)
            if given != wanted:
                raise InputError(f"the start has {name} {given!r} where this run has {wanted!r}")
        return dict(self.start.classifier.state_dict())

    def _start_identity(self) -> str | None:
        weights = self.start or self.backbone_weights
        if isinstance(weights, Adapted):
            return digest(*(value.detach().cpu() for value in weights.classifier.state_dict().values()))
        return None if weights is None else hashlib.blake2b(weights.read_bytes(), digest_size=16).hexdigest()

    def _identity(self, recipe: Recipe, network: Network) -> dict[str, Any]:
        """What makes two runs the same run, as JSON has it."""
        return {
            "recipe": recipe.to_json(),
            "seed": self.seed,
            "network": network.to_json(),
            "source": digest(*self.domains.source, *self.domains.validation),
            "target": digest(self.domains.target),
            "classes": None if self.class_names is None else list(self.class_names),
            "terms": {name: [_term_identity(term), repr(weight)] for name, (term, weight) in self.terms.items()},
            "start": self._start_identity(),
            "choice": self.choice,
            "guard": self.guard,
            "precision": self.precision,
        }


def pretraining_records(start: Adapted) -> list[Record]:
    """What a classifier's history says of its pre-training; one that has none gets a record to start with."""
    known = [record for record in start.history if record["phase"] == SOURCE_PHASE]
    return known or [{"kind": "round", "phase": SOURCE_PHASE, "round": 0, "rounds": 1, "terms": {}, "seconds": 0.0}]


def _term_identity(term: Any) -> str:
    """A term's own description, or its class and attributes: the default one names a place in memory."""
    described = repr(term)
    if hex(id(term))[2:] not in described:
        return described
    return f"{getattr(term, '__qualname__', type(term).__qualname__)} {getattr(term, '__dict__', {})}"
