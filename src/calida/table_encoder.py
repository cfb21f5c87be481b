"""The encoders of a table as a scikit-learn transformer, to put before any classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from calida.data import ColumnChoice, TablePreparation, as_frame, is_frame, named_frame

Columns = str | Sequence[str]


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of any kind as numbers, decided and fitted on the rows of `fit`, as `calida.adapt` does for frames.

    `table_` says what was made of which column, and why others were left out. With `y`, columns that give the labels
    away are left out too. Without `leave_out`, every column that has values becomes a feature. Arrays are tables whose
    columns have no names.
    """

    def __init__(self, columns: Columns = (), drop: Columns = (), leave_out: bool = True) -> None:
        self.columns = columns
        self.drop = drop
        self.leave_out = leave_out

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Decide the kind of every column and fit its encoder."""
        frame = self._frame(X, reset=True)
        only = _several(self.columns) or (() if self.leave_out else self._with_values(frame))
        choice = ColumnChoice(only, _several(self.drop))
        labels = None if y is None else [str(label) for label in np.asarray(y).ravel()]
        self.table_ = TablePreparation.fit(frame, labels, choice, "X")
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """[N, D] in float32; columns of frames are found by name."""
        check_is_fitted(self)
        encoded: NDArray[np.float32] = self.table_.apply(self._frame(X, reset=False), "X").numpy()
        return encoded

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """A name for every feature."""
        check_is_fitted(self)
        return np.array(self.table_.features, dtype=object)

    def _with_values(self, frame: pl.DataFrame) -> tuple[str, ...]:
        drop = _several(self.drop)
        return tuple(one for one in frame.columns if one not in drop and frame[one].null_count() < len(frame))

    def _frame(self, X: Any, reset: bool) -> pl.DataFrame:
        if is_frame(X):
            frame = as_frame(X, "X")  # which tells what others stumble over, a column named twice
            validate_data(self, X, reset=reset, skip_check_array=True)
            return frame
        least = 2 if reset else 1  # of one row every column is constant
        rows = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=least)
        return named_frame(rows, getattr(self, "feature_names_in_", [f"x{place}" for place in range(rows.shape[1])]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _several(columns: Columns) -> tuple[str, ...]:
    """Names of columns; one of them may come by itself."""
    return (columns,) if isinstance(columns, str) else tuple(columns)
