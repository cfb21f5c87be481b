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

from calida.adaptation.adapted import Adapted
from calida.adaptation.checks import choose_device, read_weights, usable_folder
from calida.adaptation.finalize import finalize
from calida.adaptation.options import RunOptions
from calida.data import Scale, compare_domains, describe_balance, digest, has_colors
from calida.errors import InputError
from calida.model import CUSTOM, Classifier, Network, build_classifier
from calida.objective import Weighted, parameter_positions
from calida.recipes import Recipe, phases
from calida.seeds import Seeds
from calida.training import SOURCE_PHASE, Domains, Judgement, Record, Run, describe_labeled, run_rounds
from calida.validation import DomainPredictions, collapse, prefers, validate

Observe = Callable[[Record], None]


@dataclass(frozen=True)
class Task:
    """What is to be learnt, from what, and how results are judged."""

    options: RunOptions
    domains: Domains
    scale: Scale  # of the whole source
    terms: Mapping[str, Weighted]
    class_names: Sequence[str] | None  # for sentences
    truth: Tensor | None = field(repr=False)  # for oracle figures, and read by `_Judge.measure` alone
    start: Adapted | None = None  # a classifier that is trained on source already

    @property
    def own_backbone(self) -> nn.Module | None:
        return self.options.backbone if isinstance(self.options.backbone, nn.Module) else None

    def train(self, recipe: Recipe, folder: Path | None, observe: Observe, resume: bool) -> Adapted:
        """Train on source unless there is a start, adapt by the recipe, choose a round, calibrate it."""
        domains, options, seeds = self.domains, self.options, Seeds(self.options.seed)
        recipe = recipe.fitted_to(domains.source.x.shape, has_colors(domains.target))
        network = self._network(recipe)
        classifier = self._classifier(network, recipe)
        warnings = self._warnings()
        run = Run(
            phases(recipe, self.terms),
            domains,
            seeds,
            recipe.posterior.num_samples,
            4 * recipe.optimization.batch_size,  # without gradients a batch takes far less memory than in training
            None if folder is None else usable_folder(folder),
            self._identity(recipe, network),
            observe,
            _Judge(options, self.class_names, self.truth),
            () if self.start is None else pretraining_records(self.start),
        )
        done = run_rounds(run, classifier, resume)
        classifier.lay_out(torch.channels_last)
        before = copy.deepcopy(classifier)
        if done.source_only is not None:
            before.load_state_dict(done.source_only)
        names = self.class_names
        trust, seen = finalize(run.predictor, classifier, done.history, options, warnings, names, recipe)
        source_only = Adapted(before.eval(), network, recipe, options.seed)
        adapted = Adapted(classifier.eval(), network, recipe, options.seed, done.history, source_only, trust=trust)
        return replace(adapted, predictions=seen)

    def _classifier(self, network: Network, recipe: Recipe) -> Classifier:
        """The network before its first step, on its device."""
        options, domains = self.options, self.domains
        classifier = build_classifier(network, Seeds(options.seed), self.own_backbone)
        classifier.standardize.fit(domains.source.x, domains.target)  # type: ignore[operator]
        if options.backbone_weights is not None:
            read_weights(classifier.backbone, Path(options.backbone_weights))
        if self.start is not None:
            classifier.load_state_dict(self._fitting_start(network))
        classifier.to(choose_device(options.device)).precision = options.precision  # type: ignore[assignment]
        if recipe.gradient_variance.grouped:
            parameter_positions(classifier, recipe.gradient_variance.part)  # fails now if none matches
        return classifier

    def _network(self, recipe: Recipe) -> Network:
        name = self.options.backbone if isinstance(self.options.backbone, str) else CUSTOM
        shape = tuple(self.domains.source.x.shape[1:])
        gaussian, sampled = recipe.posterior.gaussian, recipe.posterior.sampled
        return Network(shape, self.domains.num_classes, name, gaussian, self.options.head, self.scale, sampled)

    def _warnings(self) -> list[str] | None:
        """What the guard finds in the data, if it is on."""
        if not self.options.guard:
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
        if self.start is not None:
            return digest(*(value.detach().cpu() for value in self.start.classifier.state_dict().values()))
        weights = self.options.backbone_weights
        return None if weights is None else hashlib.blake2b(Path(weights).read_bytes(), digest_size=16).hexdigest()

    def _identity(self, recipe: Recipe, network: Network) -> dict[str, Any]:
        """What makes two runs the same run, as JSON has it."""
        return {
            "recipe": recipe.to_json(),
            "seed": self.options.seed,
            "network": network.to_json(),
            "source": digest(*self.domains.source, *self.domains.validation),
            "target": digest(self.domains.target),
            "classes": None if self.class_names is None else list(self.class_names),
            "terms": {name: [_term_identity(term), repr(weight)] for name, (term, weight) in self.terms.items()},
            "start": self._start_identity(),
            "choice": self.options.choice,
            "guard": self.options.guard,
            "precision": self.options.precision,
        }


@dataclass(frozen=True)
class _Judge:
    """Rounds judged without target labels: by validators, a rule and the guard."""

    options: RunOptions
    class_names: Sequence[str] | None
    truth: Tensor | None = field(repr=False)

    def measure(self, predictions: DomainPredictions) -> dict[str, Any]:
        """Columns of a round's record. Target labels are read here alone, to return figures called oracle."""
        found: dict[str, Any] = {"validators": validate(predictions, Seeds(self.options.seed))}
        return found if self.truth is None else {**found, "oracle": describe_labeled(predictions.target, self.truth)}

    def judge(self, record: Record, history: Sequence[Record]) -> Judgement:
        if record["phase"] == SOURCE_PHASE:
            return Judgement()
        guard = self.options.guard
        stop = collapse(record, history, self.class_names) if guard else None
        return Judgement(stop is None and prefers(self.options.choice, record, history, guard), stop)


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
