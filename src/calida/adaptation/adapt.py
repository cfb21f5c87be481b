"""The front door: labelled source and unlabelled target in, an adapted classifier out."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from calida.adaptation.adapted import SOURCE_ONLY, Adapted, read_adapted
from calida.adaptation.checks import Array, check_domains, choose_device, usable_folder, whole
from calida.adaptation.settling import settle
from calida.calibration import DEFAULT_CALIBRATION, check_calibration
from calida.data import ImageFiles, Labelled, Scale, as_labels, digest, split_validation, take
from calida.errors import InputError
from calida.model import CUSTOM, Classifier, Network, build_classifier
from calida.objective import Weighted, parameter_positions
from calida.recipes import DEFAULT_RECIPE, Recipe, get_recipe, phases
from calida.seeds import Seeds
from calida.training import SOURCE_PHASE, Domains, Judgement, Record, Run, describe_labelled, run_rounds
from calida.validation import DEFAULT_RULE, Outlook, check_rule, collapse, prefers, validate


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
    choice: str = DEFAULT_RULE,
    calibration: str = DEFAULT_CALIBRATION,
    guard: bool = True,
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

    Without a target label, `choice` decides which round is returned (the default rule, a validator's name, or "last"),
    and `calibration` at which temperature it gives probabilities. The `guard` ends a run that collapses, and has the
    source-only classifier returned unless something says that adaptation helped.

    With `folder`, each round leaves a checkpoint that `resume=True` goes on from. `oracle_labels` are the target's true
    labels, if known: they only add "oracle" figures to the history and never reach training.
    """
    seed, num_classes = whole(seed, "seed"), None if num_classes is None else whole(num_classes, "num_classes", 2)
    check_rule(choice)
    check_calibration(calibration)
    if resume and folder is None:
        raise InputError("resume=True needs the folder of the run")
    x, y, target_x, classes = check_domains(source, target, num_classes)
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
    store = None if folder is None else usable_folder(Path(folder))
    before: list[Adapted] = []

    oracle = _oracle(oracle_labels, len(target_x), classes)

    def measure(outlook: Outlook) -> dict[str, Any]:
        return {"validators": validate(outlook, seeds), **oracle(outlook)}

    def consider(record: Record, history: Sequence[Record], model: Classifier) -> Judgement:
        if record["phase"] == SOURCE_PHASE:
            before.append(Adapted(copy.deepcopy(model).eval(), network, chosen, seed))
            if store is not None:
                before[-1].write(store, SOURCE_ONLY)
            return Judgement()
        return Judgement(prefers(choice, record, history, guard), collapse(record, history) if guard else None)

    run = Run(
        phases(chosen, terms),
        domains,
        seeds,
        chosen.num_samples,
        4 * chosen.batch_size,  # without gradients a batch takes far less memory than in training
        store,
        _identity(chosen, seed, network, domains, terms or {}) | {"choice": choice, "guard": guard},
        observe or (lambda record: None),
        measure,
        consider,
    )
    history = run_rounds(run, classifier, resume)
    classifier.lay_out(torch.channels_last)
    if not before and store is not None:  # kept before the run was interrupted
        before.append(read_adapted(store, SOURCE_ONLY, classifier.device, own))
    trust = settle(run.viewpoint, classifier, history, choice, calibration, guard)
    return Adapted(classifier.eval(), network, chosen, seed, history, before[-1], trust=trust)


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
