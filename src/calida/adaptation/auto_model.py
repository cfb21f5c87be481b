"""Several families on the same data, and the one that check classifiers of other kinds agree with most."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from calida.adaptation.adapted import Adapted
from calida.adaptation.auto import train_each
from calida.adaptation.panel_checks import PanelChecks
from calida.adaptation.task import Task
from calida.data import row_slices
from calida.estimation.agreement import estimate_by_agreement
from calida.families import FAMILIES, Family, FittedClassifier
from calida.model import Prediction
from calida.recipes import Recipe
from calida.seeds import Seeds
from calida.training import SOURCE_PHASE, Domains, Observe
from calida.validation import LAST, RoundRecord

MEAN = "mean"
# About as far as such estimates are off. Of eight margins on 91 runs, the one that leaving a data set out chooses;
# at a point the mean gain is half as large again and one in ten is harmed (docs/classifiers.md).
_MARGIN = 0.06
_FOLDS, _CROSS_VALIDATED = 3, 5000  # rows of source


@dataclass(frozen=True)
class _Candidate:
    """A classifier that may be returned, and the history that leads to it."""

    classifier: FittedClassifier
    history: list[RoundRecord]
    validation: Prediction
    target: Prediction


def try_models(task: Task, recipe: Recipe, folder: Path | None, observe: Observe, resume: bool) -> Adapted:
    """Adapt every family; return one of them, their mean, or source-only, whichever is estimated to be right most.

    Source-only is the family that cross-validation on source prefers. It stays unless another one's estimate is
    clearly higher: adaptation has to show something.
    """
    unguarded = replace(task.options, guard=False, choice=LAST)
    tasks = {name: replace(task, options=replace(unguarded, model=name)) for name in FAMILIES}
    results = train_each({name: (one, recipe) for name, one in tasks.items()}, folder, observe, resume)
    seeds = Seeds(task.options.seed).at("auto")
    usual = max(FAMILIES, key=lambda name: cross_validated(FAMILIES[name], task.domains, results[name], seeds))
    candidates = _candidates(results, usual, task)
    estimates = _estimates(candidates, task.checks)
    chosen = source_only = next(iter(candidates))
    best = max(estimates, key=lambda name: estimates[name], default=source_only)
    if best != source_only and estimates[best] > estimates[source_only] + _MARGIN:
        chosen = best
    found = candidates[chosen]
    network = replace(results[usual].network, model=chosen if chosen in FAMILIES else usual)
    before = results[chosen if chosen in FAMILIES else usual].source_only
    assert before is not None
    adapted = task.finished(found.classifier, network, results[usual].recipe, found.history, before, decided=True)
    assert adapted.trust is not None
    decision = replace(adapted.trust.decision, family=chosen, estimates=estimates)
    return replace(adapted, trust=replace(adapted.trust, decision=decision))


def _candidates(results: Mapping[str, Adapted], usual: str, task: Task) -> dict[str, _Candidate]:
    """Source-only first, then each adapted family, then the mean of those."""
    before = results[usual].source_only
    assert before is not None
    untouched = [replace(record, kept=record.phase == SOURCE_PHASE) for record in results[usual].history]
    mean = copy.deepcopy(results[usual].classifier)
    assert isinstance(mean, FittedClassifier)
    members = [member for result in results.values() for member in _fitted(result).members]
    mean.consist_of(members)
    # A copy: what is returned may be given the target's class shares, and source-only stays what it was.
    made = {f"{usual}, source only": (copy.deepcopy(_fitted(before)), untouched)}
    made |= {name: (_fitted(result), result.history) for name, result in results.items()}
    made[MEAN] = (mean, results[usual].history)
    predictor = task.predictor(results[usual].recipe)
    return {
        name: _Candidate(
            classifier,
            list(history),
            predictor.predict(classifier, task.domains.validation.x),
            predictor.predict(classifier, task.domains.target),
        )
        for name, (classifier, history) in made.items()
    }


def _fitted(adapted: Adapted) -> FittedClassifier:
    assert isinstance(adapted.classifier, FittedClassifier)
    return adapted.classifier


def _estimates(candidates: Mapping[str, _Candidate], checks: PanelChecks | None) -> dict[str, float]:
    """Accuracy on target, by agreement with check classifiers; of a few samples nobody can tell it."""
    if checks is None:
        return {}
    panel, seen = checks.panel, checks.seen
    said = {
        name: (one.validation.labels[seen.validation], one.target.labels[seen.target])
        for name, one in candidates.items()
    }
    return {name: estimate_by_agreement(panel, *labels, checks.apart).value for name, labels in said.items()}


def cross_validated(family: Family, domains: Domains, fitted: Adapted, seeds: Seeds) -> float:
    """Accuracy on held-out parts of the source, of which 5,000 rows are enough."""
    from sklearn.model_selection import KFold, StratifiedKFold

    rows = torch.randperm(len(domains.source.y), generator=seeds.generator("folds"))[:_CROSS_VALIDATED]
    x, y = _standard(fitted, domains.source.x[rows]).numpy(), domains.source.y[rows].numpy()
    weight = np.ones(len(y)) if domains.source_weight is None else domains.source_weight[rows].numpy()
    number = seeds.integer("folds") % 2**32
    rare = np.bincount(y)[np.unique(y)].min() < _FOLDS
    folds = (KFold if rare else StratifiedKFold)(_FOLDS, shuffle=True, random_state=number)
    right = asked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes with few samples, which scikit-learn would tell the user
        for fit, held in folds.split(x, y):
            if len(np.unique(y[fit])) < 2:  # a rare class may have all of its rows in one fold
                continue
            learned = family.fit(x[fit], y[fit], weight[fit], number % 2**31, domains.num_classes)
            right += int((learned.log_probs(x[held]).argmax(-1).numpy() == y[held]).sum())
            asked += len(held)
    return right / max(asked, 1)


def _standard(fitted: Adapted, x: object) -> Tensor:
    """Features as the families see them, in slices: a large table is not copied more often than needed."""
    standardize = _fitted(fitted).standardize
    assert isinstance(x, Tensor)
    return torch.cat([standardize(x[rows]).cpu() for rows in row_slices(len(x), 100_000)])
