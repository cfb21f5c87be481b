"""After training: the temperature, an estimate of target accuracy, and which classifier was returned and why."""

from __future__ import annotations

from collections.abc import Sequence

from calida.adaptation.adapted import Trust
from calida.calibration import CALIBRATIONS, DEFAULT_CALIBRATION, Grounds, estimate_accuracy, name_calibration
from calida.model import Classifier
from calida.training import Record
from calida.validation import PSEUDOCAL_SHARE, Viewpoint, explain_choice, warnings_of


def settle(
    viewpoint: Viewpoint,
    model: Classifier,
    history: Sequence[Record],
    choice: str,
    calibration: str,
    warnings: Sequence[str] | None,
    class_names: Sequence[str] | None,
) -> Trust:
    """All that is said of the returned classifier; `warnings` are the guard's on the data, None if it was off."""
    outlook = viewpoint.look(model)
    grounds = Grounds(outlook, viewpoint.mix(model, outlook.target.labels, PSEUDOCAL_SHARE))
    default, named = (name_calibration(name, viewpoint.target.ndim == 4) for name in (DEFAULT_CALIBRATION, calibration))
    returned, reason = explain_choice(history, choice, warnings is not None)
    return Trust(
        CALIBRATIONS[named].temperature(grounds),
        named,
        estimate_accuracy(grounds, CALIBRATIONS[default].temperature),
        returned,
        reason,
        () if warnings is None else (*warnings, *warnings_of(history, class_names)),
    )
