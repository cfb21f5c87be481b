"""After training: which classifier is returned and why, its class shares, its temperature, how good it should be."""

from __future__ import annotations

from collections.abc import Sequence

from calida.adaptation.adapted import Trust
from calida.calibration import CALIBRATIONS, DEFAULT_CALIBRATION, Grounds, estimate_accuracy, name_calibration
from calida.model import Classifier
from calida.training import Record
from calida.validation import (
    PSEUDOCAL_SHARE,
    RESHARED,
    Viewpoint,
    explain_choice,
    returned_record,
    share_offsets,
    warnings_of,
)


def settle(
    viewpoint: Viewpoint,
    model: Classifier,
    history: Sequence[Record],
    choice: str,
    calibration: str,
    warnings: Sequence[str] | None,
    class_names: Sequence[str] | None,
) -> Trust:
    """All that is said of the returned classifier; `warnings` are the guard's on the data, None if it was off.

    One that is returned with the target's class shares gets them here, for its probabilities rest on them.
    """
    returned, reason = explain_choice(history, choice, warnings is not None)
    offsets = share_offsets(returned_record(history)) if returned == RESHARED else None
    if offsets is not None:
        model.move_logits(offsets)
    outlook = viewpoint.look(model)
    grounds = Grounds(outlook, viewpoint.mix(model, outlook.target.labels, PSEUDOCAL_SHARE), offsets)
    default, named = (name_calibration(name, viewpoint.target.ndim == 4) for name in (DEFAULT_CALIBRATION, calibration))
    return Trust(
        CALIBRATIONS[named].temperature(grounds),
        named,
        estimate_accuracy(grounds, CALIBRATIONS[default].temperature),
        returned,
        reason,
        () if warnings is None else (*warnings, *warnings_of(history, class_names)),
    )
