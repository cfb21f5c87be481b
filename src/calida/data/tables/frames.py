"""A data frame of pandas, polars or Arrow -> one of polars, whatever its columns hold."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import polars as pl

from calida.data.tables.values import as_words
from calida.errors import InputError

_NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
_LONGEST = 2**63 - 1  # beyond which a whole number has no type of its own


def is_frame(x: object) -> bool:
    """Whether this is a table with named columns, of any library that has one."""
    if isinstance(x, pl.LazyFrame):
        raise InputError("a LazyFrame has not read its rows yet: give frame.collect()")
    columnar = hasattr(x, "columns") or hasattr(x, "column_names")
    return columnar and hasattr(x, "__len__") and (hasattr(x, "__arrow_c_stream__") or _is_pandas(x))


def as_frame(x: Any, name: str, index: Container[str | None] = ()) -> pl.DataFrame:
    """The same rows and columns as a polars frame; names are words without spaces around, and each is there once.

    The index of pandas is no column, but for those of its levels that `index` names.
    """
    if _is_pandas(x):
        asked = [level for level in x.index.names if str(level).strip() in index and level not in x.columns]
        x = x.reset_index(level=asked) if asked else x
    titles = [str(column).strip() for column in (x.column_names if hasattr(x, "column_names") else x.columns)]
    twice = sorted({title for title in titles if titles.count(title) > 1})
    if twice:
        raise InputError(f"{name} has more than one column named {', '.join(map(repr, twice))}")
    if not _is_pandas(x):
        frame = x if isinstance(x, pl.DataFrame) else pl.DataFrame(x)
        return frame.rename(dict(zip(frame.columns, titles, strict=True)))
    return pl.DataFrame([_from_pandas(title, x.iloc[:, place]) for place, title in enumerate(titles)])


def named_frame(rows: np.ndarray, names: Sequence[str]) -> pl.DataFrame:
    """An array [N, D] of anything as a frame whose columns have these names."""
    columns = zip(names, rows.T, strict=True)
    if rows.dtype != object:
        return pl.DataFrame({str(name): np.ascontiguousarray(values) for name, values in columns})
    return pl.DataFrame([_of_objects(str(name), values, _missing(values)) for name, values in columns])


def _missing(values: np.ndarray) -> np.ndarray:
    """None, and what is not equal to itself, as NaN is."""
    return np.array([one is None or (isinstance(one, float) and one != one) for one in values], dtype=bool)


def _is_pandas(x: object) -> bool:
    return type(x).__module__.split(".")[0] == "pandas" and hasattr(x, "iloc")


def _from_pandas(title: str, column: Any) -> pl.Series:
    """Through NumPy, so that pyarrow is not needed; what pandas calls missing is null."""
    missing = np.asarray(column.isna(), dtype=bool)
    if str(column.dtype) == "category":
        own = column.cat.categories.dtype
        if getattr(own, "kind", "O") in "mM":  # moments, as categories to save memory
            return _from_pandas(title, column.astype(own))
        names = as_words(_of_objects("", column.cat.categories.to_numpy(object), np.zeros(0, dtype=bool)))
        places = column.cat.codes.to_numpy()
        return pl.Series(title, [None if place < 0 else names[int(place)] for place in places], dtype=pl.Categorical)
    kind = getattr(column.dtype, "kind", "O")
    if kind == "f":
        return pl.Series(title, column.to_numpy("float64", na_value=np.nan)).fill_nan(None)
    if kind in "biu":  # not as floats where some are missing: true is no number, and long ones would be cut off
        filled = column.fillna(False if kind == "b" else 0) if missing.any() else column
        values = pl.Series(title, filled.to_numpy({"b": "bool", "i": "int64", "u": "uint64"}[kind]))
        return values.set(pl.Series(missing), None)
    if kind in "mM":
        moments = pl.Series(title, column.to_numpy("datetime64[us]" if kind == "M" else "timedelta64[us]"))
        return moments if getattr(column.dt, "tz", None) is None else moments.dt.replace_time_zone("UTC")
    return _of_objects(title, column.to_numpy(object), missing)


def _of_objects(title: str, column: np.ndarray, missing: np.ndarray) -> pl.Series:
    """Truth values, numbers, moments or lists where all objects are such, and else words."""
    missing = missing if len(missing) else np.zeros(len(column), dtype=bool)
    present = column[~missing]
    if all(isinstance(one, bool | np.bool_) for one in present):
        return pl.Series(title, [None if gone else bool(one) for one, gone in zip(column, missing, strict=True)])
    if any(isinstance(one, _NESTED) for one in present):
        lists = [None if word is None else [word] for word in _words(column, missing)]
        # A type that is refused, unless the column is left out.
        return pl.Series(title, lists, dtype=pl.List(pl.String))
    if all(isinstance(one, int | np.integer) for one in present):
        digits = pl.Series(title, _words(column, missing), dtype=pl.String)
        return digits if present.size and max(map(abs, present.tolist())) > _LONGEST else digits.cast(pl.Int64)
    if all(isinstance(one, int | float | np.number) for one in present):
        return pl.Series(title, [None if gone else float(one) for one, gone in zip(column, missing, strict=True)])
    if all(hasattr(one, "isoformat") for one in present):
        words = [None if gone else one.isoformat() for one, gone in zip(column, missing, strict=True)]
        return pl.Series(title, words, dtype=pl.String)
    return pl.Series(title, _words(column, missing), dtype=pl.String)


def _words(column: Any, missing: np.ndarray) -> list[str | None]:
    return [None if gone else _word(one) for one, gone in zip(column, missing, strict=True)]


def _word(value: Any) -> str:
    """As a column of such values is written: true, and 1 for 1.0."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
