"""Fine-tuning: after a classifier was adapted on an encoder's features, the encoder's network learns as well."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from calida.adaptation.adapted import Adapted
from calida.adaptation.arguments import choose_device
from calida.adaptation.panel_checks import PanelChecks
from calida.adaptation.task import Learned, Task
from calida.data import Labeled, Preparation, Samples, Scale, digest, has_colors, take
from calida.encoders import Encoder, is_encoder_name
from calida.errors import InputError
from calida.estimation import estimate_by_agreement
from calida.model import CUSTOM, STANDARDIZED, Classifier, EncoderBackbone, Network, build_classifier, step_memory
from calida.model.encoder_backbone import SMALLEST_VARIANCE
from calida.recipes import Recipe, finetuning_phase, phases
from calida.run_warnings import RunWarning, WarningCode
from calida.seeds import Seeds
from calida.shift import is_shifted
from calida.training import (
    FINETUNING_PHASE,
    Domains,
    Observe,
    Progress,
    Run,
    copied_weights,
    has_checkpoint,
    run_rounds,
)
from calida.validation import RoundRecord

# Check classifiers see the encoder's features as they came, and lean towards a classifier on those: about as far as
# such estimates are off, a lower one says nothing.
_MARGIN = 0.06
_FOLDER = "finetuning"  # of checkpoints, within the run's


@dataclass(frozen=True)
class Tuning:
    """An encoder, what brought its features of the target to one scale, and all samples as the images it reads."""

    encoder: Encoder
    standardized: Preparation
    source: Samples
    target: Samples

    def domains(self, features: Domains, kept: Tensor, held: Tensor) -> Domains:
        """The images in the places of their features."""
        source, validation = (
            Labeled(take(self.source, rows), part.y)
            for rows, part in ((kept, features.source), (held, features.validation))
        )
        return replace(features, source=source, validation=validation, target=self.target)


def train_and_tune(
    task: Task,
    tuning: Tuning,
    rows: tuple[Tensor, Tensor],
    recipe: Recipe,
    folder: Path | None,
    observe: Observe,
    resume: bool,
) -> Adapted:
    """Adapt on features, then go on with the network that made them; `rows` are those trained on, and held out."""
    if not task.processes.alone:
        raise InputError("fine-tuning is done by one process alone; run it without torchrun")
    if recipe.adaptation.rounds == 0:
        raise InputError(f"fine-tuning goes on where adaptation ends, and the recipe {recipe.name} has none")
    learned = task.learn(recipe, folder, observe, resume)
    images = replace(task, domains=tuning.domains(task.domains, *rows), scale=Scale.of(tuning.source), checked_by=task)
    recipe = recipe.fitted_to(images.domains.source.x.shape, has_colors(tuning.target))
    device = choose_device(task.options.device)
    network = _network(learned.network, tuning)
    classifier = build_classifier(network, Seeds(task.options.seed), EncoderBackbone(tuning.encoder, True))
    assert isinstance(learned.classifier, Classifier)
    begun = _mapped(learned.classifier.state_dict(), classifier, tuning.standardized)
    assert learned.progress.source_only is not None
    before = _mapped(learned.progress.source_only, classifier, tuning.standardized)
    classifier.load_state_dict(begun)
    classifier.to(device)
    classifier.tune(recipe.finetuning.blocks, recipe.finetuning.batch_statistics == "kept")
    place = None if folder is None else folder / _FOLDER
    resume = resume and place is not None and has_checkpoint(place)
    classifier.precision = images.precision(classifier, recipe, place if resume else None)
    network = replace(network, precision=classifier.precision)
    checks = task.checks if recipe.uses_panel else None
    every = phases(recipe, task.terms)
    last = finetuning_phase(recipe, every[-1], device.type == "cpu")
    history = learned.progress.history
    start = next(record for record in history if record.validators)
    needless = task.options.guard and not is_shifted(start.shift)  # nothing to adapt to, and nothing to tune for
    run = Run(
        [*every, last],
        images.domains,
        Seeds(task.options.seed),
        recipe.posterior.num_samples,
        images.rows_at_once(recipe),
        place,
        {**images.identity(recipe, network), "continued": digest(*begun.values())},
        observe,
        images.chooser(recipe),
        panel=None if checks is None else checks.panel,
        panel_rows=None if checks is None else checks.seen,
        continued=Progress(len(every) + needless, history=list(history), source_only=before),
        memory=_memory(classifier, images.domains, recipe, last.schedule == "joint"),
    )
    done = run_rounds(run, classifier, resume)
    tuned = any(record.phase == FINETUNING_PHASE for record in done.history)
    judges = task.checks if task.options.guard and tuned else None
    if judges is not None:
        images, done.history = _judged(images, Learned(classifier, network, recipe, done), learned, task, judges, begun)
    return images.concluded(Learned(classifier, network, recipe, done))


def _judged(
    images: Task, tuned: Learned, learned: Learned, task: Task, checks: PanelChecks, begun: dict[str, Tensor]
) -> tuple[Task, list[RoundRecord]]:
    """Undo fine-tuning that check classifiers find clearly worse than what it began with."""
    values = []
    for one, part in ((learned, task), (tuned, images)):
        predictor = part.predictor(one.recipe)
        held, met = (
            predictor.predict(one.classifier, x).labels for x in (part.domains.validation.x, part.domains.target)
        )
        said = held[checks.seen.validation], met[checks.seen.target]
        values.append(estimate_by_agreement(checks.panel, *said, checks.apart).value)
    history = tuned.progress.history
    if values[1] >= values[0] - _MARGIN:
        return images, history
    tuned.classifier.load_state_dict(begun)
    undone = RunWarning(WarningCode.FINETUNING_UNDONE, {"before": values[0], "after": values[1]})
    kept = [replace(record, kept=record.kept and record.phase != FINETUNING_PHASE) for record in history]
    return replace(images, findings=(undone,)), kept


def _network(adapted: Network, tuning: Tuning) -> Network:
    """The adapted classifier's own values, behind the encoder's network."""
    name = tuning.encoder.name
    return replace(
        adapted,
        input_shape=tuple(tuning.source.shape[1:]),
        backbone=f"{STANDARDIZED}{name}" if is_encoder_name(name) else CUSTOM,
        head="linear",
        scale=Scale.of(tuning.source),
    )


def _mapped(adapted: dict[str, Tensor], classifier: Classifier, standardized: Preparation) -> dict[str, Tensor]:
    """The state of a linear classifier on standardized features, as that of the whole network."""
    gain, offset = (torch.tensor(part, dtype=torch.float64) for part in (standardized.gain, standardized.offset))
    known = gain > 0
    # A feature that was constant was taken for nothing: an immense spread does the same.
    state = copied_weights(classifier)
    state["backbone.1.running_mean"] = torch.where(known, -offset / gain.clamp(min=1e-30), 0.0).float()
    variance = gain.clamp(min=1e-30) ** -2 - SMALLEST_VARIANCE  # which the norm adds
    state["backbone.1.running_var"] = torch.where(known, variance.clamp(min=0), 1e30).float()
    moved = {"standardize.": "backbone.2.", "head.": "head."}
    for name, value in adapted.items():
        for old, new in moved.items():
            if name.startswith(old):
                state[new + name.removeprefix(old)] = value.detach().cpu().clone()
    return state


def _memory(classifier: Classifier, domains: Domains, recipe: Recipe, joint: bool) -> int:
    """Of a step; refused if the machine has less in all."""
    two = domains.target[torch.arange(min(2, len(domains.target)))]
    rows = (1 + joint) * recipe.finetuning.finetune_batch_size
    needed = step_memory(classifier, two, rows, recipe.teacher.memory > 0, recipe.posterior.num_samples)
    have = _memory_of(classifier.device)
    if have is not None and needed > have:
        raise InputError(
            f"fine-tuning would take about {needed / 1e9:.1f} GB of memory and there are {have / 1e9:.1f}: "
            "let fewer blocks learn (finetuning.blocks), or take smaller batches (finetune_batch_size)"
        )
    return needed


def _memory_of(device: torch.device) -> int | None:
    """All memory of a device, or None where nobody can tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
