"""After training: which classifier is returned and why, its class shares, its temperature, how good it should be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from calida.adaptation.adapted import Trust
from calida.adaptation.data_checks import FEWEST_TO_CHECK, CheckFeatures, Checks, check_around
from calida.adaptation.options import RunOptions
from calida.estimation import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    AgreementEstimate,
    CalibrationData,
    Estimate,
    averaged,
    choose_by_agreement,
    estimate_accuracy,
    estimate_by_agreement,
    fitted_widths,
    honest_interval,
    name_calibration,
    probability_right,
)
from calida.model import AnyClassifier
from calida.panel import share_equal
from calida.recipes import Recipe
from calida.run_warnings import RunWarning, WarningCode
from calida.seeds import Seeds
from calida.shift import chance_distance, class_shares, estimate_shares, prior_logit_offsets, prior_offsets
from calida.training import SOURCE_PHASE, Domains, target_shares, unmet_budget
from calida.validation import (
    PSEUDOCAL_SHARE,
    Decision,
    DomainPredictions,
    Predictor,
    Reason,
    Returned,
    RoundRecord,
    decide,
    returned_record,
    warnings_of,
)

# Of accuracy from source to target. Among 90 tasks of benchmarks/shifts (seed 0), 8 of 10 with unknown classes and all
# of 10 nonsense targets have an alarm, and none of 6 whose domains are drawn alike.
_FAR = 0.1
_MOVED = 0.05  # of the target, beyond the interval of a class share


@dataclass(frozen=True)
class Finished:
    """A run after its last round: who says what of both domains, and what was recorded on the way."""

    predictor: Predictor
    source_only: AnyClassifier
    model: AnyClassifier  # after the round that was kept
    history: Sequence[RoundRecord]
    recipe: Recipe
    decided: bool = False  # whether check classifiers have chosen it before


@dataclass(frozen=True)
class Verdict:
    """What is said of the returned classifier, what it says of both domains, and how likely each answer is right."""

    trust: Trust
    predictions: DomainPredictions
    right: Tensor | None  # [T], where check classifiers were asked


def finalize(
    run: Finished,
    options: RunOptions,
    domains: Domains,
    warnings: Sequence[RunWarning] | None,
    class_names: Sequence[str] | None,
    checks: Checks | None,
) -> Verdict:
    """Choose, calibrate and estimate.

    `warnings` are the guard's on the data, None if it was off. `checks` are those of feature vectors, which decide
    between source-only, adapted and their average; a network's own features are checked here, for the estimate alone.
    """
    images = checks is None and run.predictor.target.ndim == 4  # that check classifiers see by the network's eyes alone
    decision = decide(run.history, options.choice, warnings is not None, checks is not None)
    offsets = (
        prior_offsets(returned_record(run.history).shift) if decision.returned == Returned.PRIOR_CORRECTED else None
    )
    decision = _move_logits(run, decision, offsets)
    predictions = run.predictor.predict_domains(run.model)
    estimate: AgreementEstimate | None = None
    if checks is not None and warnings is not None and decision.returned == Returned.ROUND and not run.decided:
        before = run.predictor.predict_domains(run.source_only)
        seen = checks.of(before), checks.of(predictions)
        kind, found = choose_by_agreement(checks.panel, checks.apart, *seen, run.recipe.uses_panel)
        values = {name: one.value for name, one in found.items()}
        decision = replace(decision, returned=kind, reason=Reason.AGREEMENT, compared=values)
        estimate = found[kind.value]
        if kind == Returned.SOURCE_ONLY:
            run.model.load_state_dict(run.source_only.state_dict())
            predictions = before
        elif kind == Returned.AVERAGE:
            predictions = averaged(before, predictions)
    elif warnings is not None and offsets is None:  # where class shares alone differ, confidence knows more
        checks = checks or _check_features(run, domains, predictions)
        if checks:
            said = checks.of(predictions)
            labels = said.validation.labels, said.target.labels
            estimate = estimate_by_agreement(checks.panel, *labels, checks.apart)
    mixed = run.predictor.mix(run.model, predictions.target.labels, PSEUDOCAL_SHARE)
    data = CalibrationData(predictions, mixed, offsets, None if estimate is None else estimate.value)
    accuracy = _estimate(data, checks, estimate, images)
    data = replace(data, accuracy=accuracy.value if estimate is not None else None)
    named = name_calibration(options.calibration, images, estimate is not None)
    unmet = unmet_budget(run.history, run.recipe.entropy.dual_maximum)
    found_all = (
        ()
        if warnings is None
        else (
            *([] if estimate is None else _falls(predictions, accuracy)),
            *_moved_shares(predictions, domains, run.predictor.seeds, class_names),
            *(checks.findings if checks else ()),
            *warnings,
            *warnings_of(run.history, class_names),
        )
    )
    temperature = CALIBRATIONS[named].temperature(data)
    trust = Trust(temperature, named, accuracy, decision, (*found_all, *filter(None, [unmet])))
    if estimate is None or checks is None:
        return Verdict(trust, predictions, None)
    confidence = predictions.target.tempered(temperature).confidence
    votes = checks.by_sample(estimate, len(predictions.target))
    return Verdict(trust, predictions, probability_right(votes, confidence, accuracy.value))


def _estimate(data: CalibrationData, checks: Checks | None, found: AgreementEstimate | None, images: bool) -> Estimate:
    """By agreement where check classifiers were asked, by confidence where not.

    A network that was trained on images brings its own features, in which all check classifiers see what it sees.
    There, what it makes of two images laid over each other is a second witness, and counts as much.
    """
    by_confidence = estimate_accuracy(
        data, CALIBRATIONS[name_calibration(DEFAULT_CALIBRATION, images, False)].temperature
    )
    if checks is None or found is None:
        return by_confidence
    value = (found.value + by_confidence.value) / 2 if images else found.value
    interval = honest_interval(value, checks.apart, checks.source_count, len(data.target), fitted_widths())
    return interval.reaching(found.value).reaching(by_confidence.value) if images else interval


def _falls(predictions: DomainPredictions, target: Estimate) -> list[RunWarning]:
    """An alarm where accuracy is expected to fall far: a shift too large, classes that the source lacks, nonsense."""
    source = share_equal(predictions.validation.labels, predictions.labels)
    if source - target.value <= _FAR:
        return []
    return [RunWarning(WarningCode.ACCURACY_FALLS, {"source": source, "target": target.value})]


def _moved_shares(
    predictions: DomainPredictions, domains: Domains, seeds: Seeds, class_names: Sequence[str] | None
) -> list[RunWarning]:
    """The class whose share has moved most, where no draw of the samples explains it."""
    known = class_shares(domains.source.y, domains.num_classes)
    said = predictions.validation.log_probs, predictions.labels, predictions.target.log_probs
    found = estimate_shares(*said, known, seeds.generator("class shares"))
    if found is None:
        return []
    beyond = torch.maximum(found.low - known, known - found.high)
    place = int(beyond.argmax())
    if float(beyond[place]) <= _MOVED:
        return []
    name = str(place) if class_names is None else class_names[place]
    shares = {"source": float(known[place]), "target": float(found.rlls[place])}
    ends = {"low": float(found.low[place]), "high": float(found.high[place])}
    return [RunWarning(WarningCode.LABEL_SHIFT, {"name": name, **shares, **ends})]


def _check_features(run: Finished, domains: Domains, predictions: DomainPredictions) -> Checks | None:
    """Check classifiers on the features of a network that was trained on images."""
    if min(len(domains.source.y), len(predictions.target)) < FEWEST_TO_CHECK or not len(predictions.labels):
        return None
    source = run.predictor.predict(run.model, domains.source.x)
    features = CheckFeatures(
        source.features,
        domains.source.y,
        predictions.validation.features,
        predictions.labels,
        predictions.target.features,
    )
    return check_around(features, domains.num_classes, run.predictor.seeds)


def _move_logits(run: Finished, decision: Decision, offsets: Tensor | None) -> Decision:
    """Give a classifier the target's class shares, for its probabilities rest on them.

    A source-only one where nothing else differs, an adapted one that learnt from classes drawn equally often where
    they are not.
    """
    if offsets is not None:
        run.model.move_logits(offsets)
    if returned_record(run.history).phase == SOURCE_PHASE:
        return decision
    learnt = _learned_prior_offsets(run.history, run.recipe, len(run.predictor.target))
    if learnt is None:
        return decision
    run.model.move_logits(learnt)
    return replace(decision, weighs_classes=True)


def _learned_prior_offsets(history: Sequence[RoundRecord], recipe: Recipe, count: int) -> Tensor | None:
    """What takes the logits of an adapted classifier from equal classes to the target's, where those are uneven: [K].

    Shares that one batch could have by chance are left alone, as those of the source are when batches are drawn.
    """
    if recipe.adaptation.uniform_prior_slack == math.inf:
        return None
    shares = target_shares(history, recipe.adaptation.uniform_prior_slack)
    return prior_logit_offsets(shares, count, chance_distance(len(shares), recipe.optimization.batch_size))
