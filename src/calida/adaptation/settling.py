"""After training: which classifier is returned and why, its class shares, its temperature, how good it should be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from calida.adaptation.adapted import Trust
from calida.calibration import CALIBRATIONS, DEFAULT_CALIBRATION, Grounds, estimate_accuracy, name_calibration
from calida.model import Classifier
from calida.recipes import Recipe
from calida.selection import chance_distance, share_logits
from calida.training import SOURCE_PHASE, Record, believed_shares, unmet_budget
from calida.validation import (
    PSEUDOCAL_SHARE,
    RESHARED,
    Viewpoint,
    explain_choice,
    returned_record,
    share_offsets,
    warnings_of,
)

_WEIGHED = " It learnt from classes drawn equally often, and weighs them by how frequent they are in the target."


def settle(
    viewpoint: Viewpoint,
    model: Classifier,
    history: Sequence[Record],
    choice: str,
    calibration: str,
    warnings: Sequence[str] | None,
    class_names: Sequence[str] | None,
    recipe: Recipe,
) -> Trust:
    """All that is said of the returned classifier; `warnings` are the guard's on the data, None if it was off.

    One that is returned with the target's class shares gets them here, for its probabilities rest on them: a
    source-only one where nothing else differs, an adapted one that learnt from classes drawn equally often where they
    are not.
    """
    unmet = unmet_budget(history, recipe.dual_maximum)
    returned, reason = explain_choice(history, choice, warnings is not None)
    kept = returned_record(history)
    offsets = share_offsets(kept) if returned == RESHARED else None
    learnt = None if kept["phase"] == SOURCE_PHASE else _shares_put_back(history, recipe, len(viewpoint.target))
    if offsets is not None:
        model.move_logits(offsets)
    if learnt is not None:
        model.move_logits(learnt)
        reason += _WEIGHED
    outlook = viewpoint.look(model)
    grounds = Grounds(outlook, viewpoint.mix(model, outlook.target.labels, PSEUDOCAL_SHARE), offsets)
    default, named = (name_calibration(name, viewpoint.target.ndim == 4) for name in (DEFAULT_CALIBRATION, calibration))
    return Trust(
        CALIBRATIONS[named].temperature(grounds),
        named,
        estimate_accuracy(grounds, CALIBRATIONS[default].temperature),
        returned,
        reason,
        (*(() if warnings is None else (*warnings, *warnings_of(history, class_names))), *filter(None, [unmet])),
    )


def _shares_put_back(history: Sequence[Record], recipe: Recipe, count: int) -> Tensor | None:
    """What takes the logits of an adapted classifier from equal classes to the target's, where those are uneven: [K].

    Shares that one batch could have by chance are left alone, as those of the source are when batches are drawn.
    """
    if recipe.share_doubt == math.inf:
        return None
    shares = believed_shares(history, recipe.share_doubt)
    return share_logits(shares, count, chance_distance(len(shares), recipe.batch_size))
