"""Two domains and all that does not depend on the recipe; training by a recipe is one call."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from calida.adaptation.adapted import Adapted
from calida.adaptation.arguments import choose_device, read_weights, usable_folder
from calida.adaptation.finalize import Finished, finalize
from calida.adaptation.models import CANNOT_BE_SAVED, MLP, blank_classifier, family_of, trainer_of
from calida.adaptation.options import RunOptions
from calida.adaptation.panel_checks import FEWEST_TO_CHECK, PanelChecks, PanelFeatures, fit_panel_checks
from calida.data import Scale, compare_domains, describe_balance, digest, has_colors
from calida.encoders import is_encoder_name, load_encoder
from calida.errors import InputError
from calida.estimation import SetCalibration
from calida.families import Family
from calida.model import (
    AUTO_PRECISION,
    CUSTOM,
    AnyClassifier,
    Classifier,
    EncoderBackbone,
    Network,
    Precision,
    faster_precision,
)
from calida.objective import Weighted, parameter_positions
from calida.processes import ALONE, Processes
from calida.recipes import Recipe, phases
from calida.run_warnings import RunWarning
from calida.seeds import Seeds
from calida.training import (
    SOURCE_PHASE,
    Domains,
    Observe,
    Progress,
    RoundChoice,
    RoundMeasures,
    Run,
    RunEvent,
    run_rounds,
    saved_identity,
)
from calida.validation import DomainPredictions, Predictor, RoundRecord, collapse, describe_labeled, prefers, validate


@dataclass(frozen=True)
class Task:
    """What is to be learned, from what, and how results are judged."""

    options: RunOptions
    domains: Domains
    scale: Scale  # of the whole source
    terms: Mapping[str, Weighted]
    class_names: Sequence[str] | None  # for sentences
    truth: Tensor | None = field(repr=False)  # for oracle figures, and read by `ValidatorChooser.measure` alone
    start: Adapted | None = None  # a classifier that is trained on source already
    checked_by: Task | None = None  # the same samples in a form that check classifiers read
    findings: tuple[RunWarning, ...] = ()  # beside what the guard finds in the data
    processes: Processes = ALONE  # that train together

    @property
    def own_backbone(self) -> nn.Module | None:
        return self.options.backbone if isinstance(self.options.backbone, nn.Module) else None

    @property
    def can_check(self) -> bool:
        """Whether samples are feature vectors, and enough: images have none before training."""
        if self.checked_by is not None:
            return self.checked_by.can_check
        domains = self.domains
        counts = len(domains.source.y), len(domains.target)
        return domains.target.ndim == 2 and min(counts) >= FEWEST_TO_CHECK and len(domains.validation.y) > 0

    @cached_property
    def checks(self) -> PanelChecks | None:
        """Check classifiers on feature vectors, once for all recipes, where there can be any."""
        if self.checked_by is not None:
            return self.checked_by.checks
        if not self.can_check:
            return None
        domains = self.domains
        rows = [part for part in (domains.source.x, domains.validation.x, domains.target) if isinstance(part, Tensor)]
        source, validation, target = rows
        features = PanelFeatures(source, domains.source.y, validation, domains.validation.y, target)
        return fit_panel_checks(features, domains.num_classes, Seeds(self.options.seed))

    def train(self, recipe: Recipe, folder: Path | None, observe: Observe, resume: bool) -> Adapted:
        """Train on source unless there is a start, adapt by the recipe, choose a round, calibrate it."""
        return self.concluded(self.learn(recipe, folder, observe, resume))

    def learn(self, recipe: Recipe, folder: Path | None, observe: Observe, resume: bool) -> Learned:
        """Train on source unless there is a start, and adapt by the recipe."""
        domains, options, seeds = self.domains, self.options, Seeds(self.options.seed)
        family = family_of(options.model)
        recipe = recipe.fitted_to(domains.source.x.shape, has_colors(domains.target))
        network = self._network(recipe, family)
        classifier = self._classifier(network, recipe)
        if isinstance(classifier, Classifier):
            classifier.precision = self.precision(classifier, recipe, folder if resume else None)
            network = replace(network, precision=classifier.precision)
        checks = self.checks if recipe.uses_panel else None  # who else needs them can wait until training is done
        if recipe.uses_panel and checks is None:  # the classifier labels by itself
            recipe = recipe.with_settings({"labeler": "own"})
        run = Run(
            phases(recipe, self.terms),
            domains,
            seeds,
            recipe.posterior.num_samples,
            self.rows_at_once(recipe),
            self._folder(folder, family),
            self.identity(recipe, network),
            observe if self.processes.first else _ignore,
            self.chooser(recipe),
            None if self.start is None else pretraining_records(self.start),
            trainer_of(family, recipe),
            None if checks is None else checks.panel,
            None if checks is None else checks.seen,
            processes=self.processes,
        )
        return Learned(classifier, network, recipe, run_rounds(run, classifier, resume))

    def concluded(self, learned: Learned) -> Adapted:
        """The result of rounds, with the classifier before it met the target."""
        classifier, network, recipe, done = learned
        classifier.lay_out(torch.channels_last)
        before = copy.deepcopy(classifier)
        if done.source_only is not None:
            before.load_state_dict(done.source_only)
        source_only = Adapted(before.eval(), network, recipe, self.options.seed)
        return self.finished(classifier, network, recipe, done.history, source_only)

    def chooser(self, recipe: Recipe) -> ValidatorChooser:
        """Who judges rounds; in the end check classifiers do, where there are any."""
        checked = self.can_check and (self.options.guard or recipe.uses_panel)
        return ValidatorChooser(self.options, self.class_names, self.truth, checked)

    def finished(
        self,
        classifier: AnyClassifier,
        network: Network,
        recipe: Recipe,
        history: list[RoundRecord],
        source_only: Adapted,
        decided: bool = False,
    ) -> Adapted:
        """The result: what rounds have left, calibrated, with what can be said of it."""
        options = self.options
        finished = Finished(self.predictor(recipe), source_only.classifier, classifier, history, recipe, decided)
        checks = self.checks if options.guard else None
        done = finalize(finished, options, self.domains, self._warnings(), self.class_names, checks)
        adapted = Adapted(classifier.eval(), network, recipe, options.seed, history, source_only, trust=done.trust)
        return replace(
            adapted,
            predictions=done.predictions,
            right=done.right,
            domain_scores=done.domain_scores,
            set_calibration=SetCalibration.of(done.predictions, done.trust.accuracy.value),
        )

    def predictor(self, recipe: Recipe) -> Predictor:
        """The samples that classifiers are judged by."""
        seeds, samples = Seeds(self.options.seed), recipe.posterior.num_samples
        seen = (self.domains.validation, self.domains.target)
        return Predictor(*seen, samples, seeds, self.rows_at_once(recipe), self.processes)

    def rows_at_once(self, recipe: Recipe) -> int:
        """Of a prediction: without gradients a batch takes far less memory than in training."""
        batch = recipe.optimization.batch_size
        return 4 * (batch if self.checked_by is None else recipe.finetuning.finetune_batch_size)

    def _classifier(self, network: Network, recipe: Recipe) -> AnyClassifier:
        """The classifier before its first step, on its device."""
        options, domains = self.options, self.domains
        backbone = self.own_backbone
        weights = options.backbone_weights
        if backbone is None and weights is None and is_encoder_name(network.backbone):
            backbone = EncoderBackbone(load_encoder(network.backbone), standardized=False)
        classifier = blank_classifier(network, Seeds(options.seed), backbone)
        classifier.fit_inputs(domains.source.x, domains.target, domains.source_weight, self.processes)
        if isinstance(classifier, Classifier) and weights is not None:
            pretrained = classifier.pretrained
            read_weights(classifier.backbone if pretrained is None else pretrained.network, Path(weights))
        if self.start is not None:
            classifier.load_state_dict(self._fitting_start(network))
        classifier.to(self.processes.device(choose_device(options.device)))
        if isinstance(classifier, Classifier):
            classifier.tune(recipe.finetuning.blocks, recipe.finetuning.batch_statistics == "kept")
            if options.compile:
                if not self.processes.alone:
                    raise InputError("a network is compiled for one process alone; leave compile out", "compile")
                if recipe.gradient_variance.weight:
                    raise InputError("gradient variance has second derivatives, which compiled networks do not give")
                classifier.backbone.compile()
            if recipe.gradient_variance.grouped:
                parameter_positions(classifier, recipe.gradient_variance.part)  # fails now if none matches
        return classifier

    def precision(self, classifier: Classifier, recipe: Recipe, resumed: Path | None) -> Precision:
        """As asked for; else that of the run that is resumed or begun with, else what a trial finds faster."""
        options, shape = self.options, tuple(self.domains.source.x.shape[1:])
        if options.precision != AUTO_PRECISION:
            return options.precision  # type: ignore[return-value]
        if resumed is not None and (saved := saved_identity(resumed, self.processes)) is not None:
            return Network.from_json(saved.get("network"), f"the checkpoint in {resumed}").precision
        if self.start is not None:
            return self.start.network.precision
        seeds = Seeds(options.seed)
        found = faster_precision(classifier, shape, recipe.optimization.batch_size, seeds)
        return self.processes.say(found.encode()).decode()  # type: ignore[return-value]

    def _network(self, recipe: Recipe, family: Family | None) -> Network:
        shape, classes = tuple(self.domains.source.x.shape[1:]), self.domains.num_classes
        if family is not None:
            return Network(shape, classes, backbone="none", scale=self.scale, model=family.name)
        name = self.options.backbone if isinstance(self.options.backbone, str) else CUSTOM
        name = MLP if self.options.model == MLP and name == "auto" else name
        gaussian, sampled = recipe.posterior.gaussian, recipe.posterior.sampled
        return Network(shape, classes, name, gaussian, self.options.head, self.scale, sampled)

    def _folder(self, folder: Path | None, family: Family | None) -> Path | None:
        """The folder for checkpoints, if what is trained can be written at all."""
        if folder is not None and family is not None and not family.storable:
            raise InputError(CANNOT_BE_SAVED)
        return usable_folder(folder) if folder is not None and self.processes.first else folder

    def _warnings(self) -> list[RunWarning] | None:
        """What the guard finds in the data, if it is on."""
        if not self.options.guard:
            return None
        source, classes = self.domains.source, self.domains.num_classes
        found = compare_domains(source.x, self.domains.target) + describe_balance(source.y, classes, self.class_names)
        return found + list(self.findings)

    def _fitting_start(self, network: Network) -> dict[str, Tensor]:
        """The start's weights, if it is the network of this run."""
        assert self.start is not None
        for name in ("input_shape", "num_classes", "model", "backbone", "gaussian", "head", "sampled"):
            given, wanted = getattr(self.start.network, name), getattr(network, name)
            if given != wanted:
                raise InputError(f"the start has {name} {given!r} where this run has {wanted!r}")
        return dict(self.start.classifier.state_dict())

    def _start_identity(self) -> str | None:
        if self.start is not None:
            return digest(*(value.detach().cpu() for value in self.start.classifier.state_dict().values()))
        weights = self.options.backbone_weights
        return None if weights is None else hashlib.blake2b(Path(weights).read_bytes(), digest_size=16).hexdigest()

    def identity(self, recipe: Recipe, network: Network) -> dict[str, Any]:
        """What makes two runs the same run, as JSON has it."""
        return {
            "recipe": recipe.to_json(),
            "seed": self.options.seed,
            "network": network.to_json(),
            "source": digest(*self.domains.source, *self.domains.validation),
            "weights": None if self.domains.source_weight is None else digest(self.domains.source_weight),
            "target": digest(self.domains.target),
            "classes": None if self.class_names is None else list(self.class_names),
            "terms": {name: [_term_identity(term), repr(weight)] for name, (term, weight) in self.terms.items()},
            "start": self._start_identity(),
            "choice": self.options.choice,
            "guard": self.options.guard,
        }


class Learned(NamedTuple):
    """A classifier after its last round, how it is built and trained, and what was recorded on the way."""

    classifier: AnyClassifier
    network: Network
    recipe: Recipe
    progress: Progress


@dataclass(frozen=True)
class ValidatorChooser:
    """Rounds judged without target labels: by validators, a rule and the guard."""

    options: RunOptions
    class_names: Sequence[str] | None
    truth: Tensor | None = field(repr=False)
    checked: bool = False  # by other classifiers, in the end

    def measure(self, predictions: DomainPredictions) -> RoundMeasures:
        """More of a round's record. Target labels are read here alone, to return figures called oracle."""
        oracle = None if self.truth is None else describe_labeled(predictions.target, self.truth)
        return RoundMeasures(validate(predictions, Seeds(self.options.seed)), oracle)

    def choose(self, record: RoundRecord, history: Sequence[RoundRecord]) -> RoundChoice:
        if record.phase == SOURCE_PHASE:
            return RoundChoice()
        guard = self.options.guard
        stop = collapse(record, history, self.class_names) if guard else None
        return RoundChoice(stop is None and prefers(self.options.choice, record, history, guard, self.checked), stop)


def _ignore(event: RunEvent) -> None:
    """What processes after the first one hear, nobody else has to."""


def pretraining_records(start: Adapted) -> list[RoundRecord]:
    """What a classifier's history says of its pre-training, if it has one."""
    return [record for record in start.history if record.phase == SOURCE_PHASE]


def _term_identity(term: Any) -> str:
    """A term's own description, or its class and attributes: the default one names a place in memory."""
    described = repr(term)
    if hex(id(term))[2:] not in described:
        return described
    return f"{getattr(term, '__qualname__', type(term).__qualname__)} {getattr(term, '__dict__', {})}"
