"""After training: which classifier is returned and why, its class shares, its temperature, how good it should be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from calida.adaptation.adapted import Trust
from calida.adaptation.options import RunOptions
from calida.estimation import CALIBRATIONS, DEFAULT_CALIBRATION, CalibrationData, estimate_accuracy, name_calibration
from calida.model import Classifier
from calida.recipes import Recipe
from calida.shift import chance_distance, prior_logit_offsets, prior_offsets
from calida.training import SOURCE_PHASE, Record, target_shares, unmet_budget
from calida.validation import (
    PRIOR_CORRECTED,
    PSEUDOCAL_SHARE,
    DomainPredictions,
    Predictor,
    explain_choice,
    returned_record,
    warnings_of,
)

_WEIGHED = " It learnt from classes drawn equally often, and weighs them by how frequent they are in the target."


def finalize(
    predictor: Predictor,
    model: Classifier,
    history: Sequence[Record],
    options: RunOptions,
    warnings: Sequence[str] | None,
    class_names: Sequence[str] | None,
    recipe: Recipe,
) -> tuple[Trust, DomainPredictions]:
    """What is said of the returned classifier, and what it says of both domains.

    `warnings` are the guard's on the data, None if it was off.

    One that is returned with the target's class shares gets them here, for its probabilities rest on them: a
    source-only one where nothing else differs, an adapted one that learnt from classes drawn equally often where they
    are not.
    """
    unmet = unmet_budget(history, recipe.entropy.dual_maximum)
    returned, reason = explain_choice(history, options.choice, warnings is not None)
    kept = returned_record(history)
    offsets = prior_offsets(kept) if returned == PRIOR_CORRECTED else None
    learnt = None if kept["phase"] == SOURCE_PHASE else _learned_prior_offsets(history, recipe, len(predictor.target))
    if offsets is not None:
        model.move_logits(offsets)
    if learnt is not None:
        model.move_logits(learnt)
        reason += _WEIGHED
    predictions = predictor.predict_domains(model)
    data = CalibrationData(predictions, predictor.mix(model, predictions.target.labels, PSEUDOCAL_SHARE), offsets)
    default, named = (
        name_calibration(name, predictor.target.ndim == 4) for name in (DEFAULT_CALIBRATION, options.calibration)
    )
    trust = Trust(
        CALIBRATIONS[named].temperature(data),
        named,
        estimate_accuracy(data, CALIBRATIONS[default].temperature),
        returned,
        reason,
        (*(() if warnings is None else (*warnings, *warnings_of(history, class_names))), *filter(None, [unmet])),
    )
    return trust, predictions


def _learned_prior_offsets(history: Sequence[Record], recipe: Recipe, count: int) -> Tensor | None:
    """What takes the logits of an adapted classifier from equal classes to the target's, where those are uneven: [K].

    Shares that one batch could have by chance are left alone, as those of the source are when batches are drawn.
    """
    if recipe.adaptation.uniform_prior_slack == math.inf:
        return None
    shares = target_shares(history, recipe.adaptation.uniform_prior_slack)
    return prior_logit_offsets(shares, count, chance_distance(len(shares), recipe.optimization.batch_size))
