"""Data frames as arguments: their columns become features, as those of a table on disk do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from calida.adaptation.adapted import Adapted
from calida.data import (
    ColumnChoice,
    Preparation,
    Samples,
    SavedPreparation,
    TablePreparation,
    as_frame,
    column_sizes,
    is_frame,
)
from calida.errors import InputError, warn_user
from calida.run_warnings import WarningCode


def encode_frames(
    source: tuple[Any, Any], target: Any, table: TablePreparation | None = None
) -> tuple[tuple[Any, Any], Any, TablePreparation | None]:
    """Both domains as arrays, and what made arrays of them; what is no frame is left as it is.

    A frame's columns are typed and encoded as fitted on source, or by `table`, and found by name in the target.
    """
    if not isinstance(source, tuple | list) or len(source) != 2 or not is_frame(source[0]):
        return source, target, None
    if not is_frame(target):
        raise InputError("source is a data frame and target is not: give both as frames, with the same columns")
    rows, labels = as_frame(source[0], "source"), source[1]
    fitted = table or TablePreparation.fit(rows, _label_words(labels, len(rows)), ColumnChoice(), "source")
    x = fitted.apply(rows, "source")
    others = as_frame(target, "target")
    values = fitted.read(others, "target")
    for sentence in (*fitted.warnings(), *fitted.compare(others, values)):
        warn_user(f"table: {sentence}")
    return (x, labels), fitted.encode(values), fitted


def frame_preparation(table: TablePreparation, x: Samples, classes: tuple[str, ...]) -> SavedPreparation:
    """What a classifier must remember to read frames, and files, of the same columns."""
    assert isinstance(x, torch.Tensor)
    same = Preparation((x.shape[1],), **column_sizes(x, torch.tensor(table.measured)))
    return SavedPreparation(classes, table, same, same)


def with_column_names(adapted: Adapted, columns: Sequence[str]) -> Adapted:
    """With the names of columns in what was found, where there were numbers of features."""
    if adapted.trust is None or not columns:
        return adapted
    warnings = tuple(
        replace(one, values={**one.values, "feature": repr(columns[one.values["feature"]])})
        if one.code == WarningCode.FEATURE_SCALE
        else one
        for one in adapted.trust.warnings
    )
    return replace(adapted, trust=replace(adapted.trust, warnings=warnings))


def _label_words(labels: Any, count: int) -> list[str] | None:
    """Labels to compare columns with, if they are as many as the rows; whatever else is wrong is said later."""
    values = np.asarray(labels.detach().cpu() if isinstance(labels, torch.Tensor) else labels)
    return [str(label) for label in values] if values.shape == (count,) else None
