"""After training: which classifier is returned and why, its class shares, its temperature, how good it should be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from calida.adaptation.adapted import Trust
from calida.adaptation.answer_findings import look_at_answers
from calida.adaptation.options import RunOptions
from calida.adaptation.panel_checks import FEWEST_TO_CHECK, PanelChecks, PanelFeatures, fit_panel_checks
from calida.estimation import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    AgreementEstimate,
    CalibrationData,
    Counts,
    Estimate,
    averaged,
    choose_by_agreement,
    empirical_interval,
    estimate_accuracy,
    estimate_by_agreement,
    fitted_widths,
    name_calibration,
    probability_right,
    worth_of_confidence,
)
from calida.model import AnyClassifier
from calida.panel import share_equal
from calida.recipes import Recipe
from calida.run_warnings import RunWarning, WarningCode
from calida.seeds import Seeds
from calida.shift import chance_distance, class_shares, estimate_shares, prior_logit_offsets, prior_offsets
from calida.training import SOURCE_PHASE, Domains, target_shares, unmet_budget
from calida.uncertainty import wilson
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

# Of accuracy from source to target. Of the tasks of benchmarks/shifts (seed 0), 8 of 10 with unknown classes and all of
# 10 nonsense targets have an alarm, and none of 6 whose domains are drawn alike.
_FAR = 0.1
_FEW = 100  # samples of a domain
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
class Finalized:
    """What is said of the returned classifier, what it says of both domains, and how likely each answer is right."""

    trust: Trust
    predictions: DomainPredictions
    right: Tensor | None = None  # [T], where check classifiers were asked
    domain_scores: Tensor | None = None  # [T], how much each looks like the target and not the source, likewise


@dataclass(frozen=True)
class _Chosen:
    """What is returned: why, what it says of both domains, and what check classifiers make of it."""

    decision: Decision
    predictions: DomainPredictions
    checks: PanelChecks | None = None
    estimate: AgreementEstimate | None = None


def finalize(
    run: Finished,
    options: RunOptions,
    domains: Domains,
    warnings: Sequence[RunWarning] | None,
    class_names: Sequence[str] | None,
    checks: PanelChecks | None,
) -> Finalized:
    """Choose the classifier to return, calibrate it and estimate its accuracy. Changes `run.model` in place.

    `warnings` are the guard's on the data, None if it was off. `checks` are those of feature vectors, which decide
    between source-only, adapted and their average; a network's own features are checked here, for the estimate alone.
    """
    images = checks is None and run.predictor.target.ndim == 4  # that check classifiers see by the network's eyes alone
    decision = decide(run.history, options.choice, warnings is not None, checks is not None)
    shift = returned_record(run.history).shift
    offsets = prior_offsets(shift) if decision.returned == Returned.PRIOR_CORRECTED else None
    decision = _move_logits(run, decision, offsets)
    chosen = _Chosen(decision, run.predictor.predict_domains(run.model), checks)
    if warnings is not None and checks is not None and decision.returned == Returned.ROUND and not run.decided:
        chosen = _choose_by_panel(run, chosen, checks)
    elif warnings is not None and offsets is None:  # where class shares alone differ, confidence knows more
        chosen = _asked(chosen, checks or _check_features(run, domains, chosen.predictions))
    predictions, estimate = chosen.predictions, chosen.estimate
    mixed = run.predictor.mix(run.model, predictions.target.labels, PSEUDOCAL_SHARE)
    data = CalibrationData(predictions, mixed, offsets, None if estimate is None else estimate.value)
    counts = Counts(len(domains.source.y) + len(domains.validation.y), len(domains.validation.y), len(domains.target))
    accuracy = _estimate(data, counts, chosen, images)
    data = replace(data, accuracy=None if estimate is None else accuracy.value)
    named = name_calibration(options.calibration, images, estimate is not None)
    temperature = CALIBRATIONS[named].temperature(data)
    unmet = unmet_budget(run.history, run.recipe.entropy.dual_maximum)
    findings = [] if warnings is None else _findings(run, chosen, accuracy, domains, class_names)
    every = [*findings, *(warnings or ()), *filter(None, [unmet])]
    if chosen.decision.returned != Returned.PRIOR_CORRECTED:  # whose shares, and so certainty, are meant to differ
        start = next(record for record in run.history if record.validators)
        adapted = chosen.decision.returned != Returned.SOURCE_ONLY
        codes = {one.code for one in every}
        every += look_at_answers(start, chosen.predictions, temperature, adapted, codes, class_names)
    agreements = () if estimate is None else estimate.agreements
    trust = Trust(temperature, named, accuracy, chosen.decision, tuple(every), agreements=agreements)
    if estimate is None or chosen.checks is None:
        return Finalized(trust, predictions)
    confidence = predictions.target.tempered(temperature).confidence
    votes = chosen.checks.by_sample(estimate, len(predictions.target))
    right = probability_right(votes, confidence, accuracy.value)
    by_class = _by_class(right, predictions.target.labels, domains.num_classes)
    worth = worth_of_confidence(confidence, right)
    domain_scores = chosen.checks.domain_scores_of(len(predictions.target))
    return Finalized(replace(trust, by_class=by_class, worth=worth), predictions, right, domain_scores)


def _by_class(right: Tensor, labels: Tensor, classes: int) -> tuple[float | None, ...]:
    """The mean probability of being right among the answers of each class: [T], [T]."""
    given = [right[labels == label] for label in range(classes)]
    return tuple(float(some.mean()) if len(some) else None for some in given)


def _choose_by_panel(run: Finished, chosen: _Chosen, checks: PanelChecks) -> _Chosen:
    """Source-only, adapted or the average of both; the model is given the weights of what is chosen."""
    before, after = run.predictor.predict_domains(run.source_only), chosen.predictions
    seen = checks.of(before), checks.of(after)
    kind, found = choose_by_agreement(checks.panel, checks.apart, *seen, run.recipe.uses_panel)
    values = {name: one.value for name, one in found.items()}
    decision = replace(chosen.decision, returned=kind, reason=Reason.AGREEMENT, compared=values)
    if kind != Returned.ROUND:  # the source-only classifier has the source's class shares
        decision = replace(decision, weighs_classes=False)
    if kind == Returned.SOURCE_ONLY:
        run.model.load_state_dict(run.source_only.state_dict())
        after = before
    elif kind == Returned.AVERAGE:
        after = averaged(before, after)
    return _Chosen(decision, after, checks, found[kind.value])


def _asked(chosen: _Chosen, checks: PanelChecks | None) -> _Chosen:
    """The same with what check classifiers make of it, if there are any."""
    if checks is None:
        return chosen
    said = checks.of(chosen.predictions)
    estimate = estimate_by_agreement(checks.panel, said.validation.labels, said.target.labels, checks.apart)
    return replace(chosen, checks=checks, estimate=estimate)


def _findings(
    run: Finished, chosen: _Chosen, accuracy: Estimate, domains: Domains, class_names: Sequence[str] | None
) -> list[RunWarning]:
    """What a user should know of the data and of the returned classifier."""
    predictions = chosen.predictions
    return [
        *([] if chosen.estimate is None else _falls(predictions, accuracy)),
        *_moved_shares(predictions, domains, run.predictor.seeds, class_names),
        *(chosen.checks.findings if chosen.checks else ()),
        *_few_samples(domains),
        *warnings_of(run.history, class_names),
    ]


def _estimate(data: CalibrationData, counts: Counts, chosen: _Chosen, images: bool) -> Estimate:
    """By agreement where check classifiers were asked, by confidence where not; of a few samples nobody can tell much.

    A network that was trained on images brings its own features, in which all check classifiers see what it sees.
    There, what it makes of two images laid over each other is a second witness, and counts as much.
    """
    by_confidence = estimate_accuracy(
        data, CALIBRATIONS[name_calibration(DEFAULT_CALIBRATION, images, False)].temperature
    )
    checks, found = chosen.checks, chosen.estimate
    if checks is None or found is None:
        if min(counts.source, counts.target) >= FEWEST_TO_CHECK:
            return by_confidence
        widest = empirical_interval(by_confidence.value, 1.0, counts, fitted_widths())
        return widest.reaching(by_confidence.low).reaching(by_confidence.high)
    value = (found.value + by_confidence.value) / 2 if images else found.value
    interval = empirical_interval(value, checks.apart, counts, fitted_widths())
    return interval.reaching(found.value).reaching(by_confidence.value) if images else interval


def _falls(predictions: DomainPredictions, target: Estimate) -> list[RunWarning]:
    """An alarm where accuracy is expected to fall far: a shift too large, classes that the source lacks, nonsense.

    What is known of the source by few held-out samples counts for a standard error less.
    """
    source = share_equal(predictions.validation.labels, predictions.labels)
    if not len(predictions.labels) or wilson(source, len(predictions.labels), 1)[0] - target.value <= _FAR:
        return []
    return [RunWarning(WarningCode.ACCURACY_FALLS, {"source": source, "target": target.value})]


def _few_samples(domains: Domains) -> list[RunWarning]:
    counts = {"The source": len(domains.source.y) + len(domains.validation.y), "The target": len(domains.target)}
    found = [{"domain": domain, "count": count} for domain, count in counts.items() if count < _FEW]
    return [RunWarning(WarningCode.FEW_SAMPLES, values) for values in found]


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


def _check_features(run: Finished, domains: Domains, predictions: DomainPredictions) -> PanelChecks | None:
    """Check classifiers on the features of a network that was trained on images."""
    if min(len(domains.source.y), len(predictions.target)) < FEWEST_TO_CHECK or not len(predictions.labels):
        return None
    source = run.predictor.predict(run.model, domains.source.x)
    features = PanelFeatures(
        source.features,
        domains.source.y,
        predictions.validation.features,
        predictions.labels,
        predictions.target.features,
    )
    return fit_panel_checks(features, domains.num_classes, run.predictor.seeds)


def _move_logits(run: Finished, decision: Decision, offsets: Tensor | None) -> Decision:
    """Give a classifier the target's class shares, for its probabilities rest on them.

    A source-only one where nothing else differs, an adapted one that learned from classes drawn equally often where
    they are not.
    """
    if offsets is not None:
        run.model.move_logits(offsets)
    if returned_record(run.history).phase == SOURCE_PHASE:
        return decision
    learned = _learned_prior_offsets(run.history, run.recipe, len(run.predictor.target))
    if learned is None:
        return decision
    run.model.move_logits(learned)
    return replace(decision, weighs_classes=True)


def _learned_prior_offsets(history: Sequence[RoundRecord], recipe: Recipe, count: int) -> Tensor | None:
    """What takes the logits of an adapted classifier from equal classes to the target's, where those are uneven: [K].

    Shares that one batch could have by chance are left alone, as those of the source are when batches are drawn.
    """
    if recipe.adaptation.uniform_prior_slack == math.inf:
        return None
    shares = target_shares(history, recipe.adaptation.uniform_prior_slack)
    return prior_logit_offsets(shares, count, chance_distance(len(shares), recipe.optimization.batch_size))
