"""Columns as values of the engine's types: each number is stored exactly, or refused with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from ._columns import Column, column_of
from ._numbers import exactly
from ._types import DTYPES


class Values(NamedTuple):
    """Parts of one array, or of one attribute of edges, as the engine stores them."""

    parts: list[Optional[np.ndarray]]  #: each [rows, dim] of one dtype, C-contiguous; None: no values
    dtype: str


def matrix_of(name: str, values: Any, missing: int | None = None) -> np.ndarray:
    """Returns the rows of an array of vertices, [n, dim] of one of the engine's types, C-contiguous.

    ``missing``: what stands for a missing integer; None: integers must not be missing.
    Errors: TypeError, ValueError: values of another type, or that would change, naming the array and the row.
    """
    rows = stored(name, [column_of(name, values)], missing=missing).parts[0]
    assert rows is not None
    return rows


def stored(name: str, columns: Sequence[Column | None], dtypes: Sequence[str] = DTYPES,
           missing: int | None = None) -> Values:
    """Returns columns of one name in one type, of ``dtypes``. ``missing``: as for ``matrix_of``."""
    there = [column for column in columns if column is not None]
    texts = next((column for column in there if column.type == "text"), None)
    if texts is not None:
        raise TypeError(f"{name!r} has texts such as {texts.values[0] if len(texts.values) else ''!r}: give numbers")
    if any(column.array.ndim not in (1, 2) for column in there):
        raise ValueError(f"{name!r} has more than two dimensions: an array has one or two")
    widths = {_matrix(column.array).shape[1] for column in there if column.array.size}
    if len(widths) > 1:
        raise ValueError(f"{name!r} has rows of several widths: {', '.join(map(str, sorted(widths)))}")
    if len({column.type for column in there}) > 1:
        raise TypeError(f"{name!r} has times in one place, and other numbers in another")
    common = np.result_type(*(column.array.dtype for column in there))
    target = _target(name, common, dtypes)
    parts = [None if column is None else _converted(name, column, target, missing) for column in columns]
    return Values(parts, target.name)


def _matrix(array: np.ndarray) -> np.ndarray:
    """Returns an array [n] or [n, dim] as [n, dim]."""
    return array if array.ndim == 2 else array.reshape(len(array), 1)


def _target(name: str, dtype: np.dtype, dtypes: Sequence[str]) -> np.dtype:
    """Returns the narrowest of the engine's types that holds a type, else the widest of its kind."""
    if dtype.name in dtypes:
        return dtype
    kinds = {"b": ("uint8", "int64"), "i": ("int16", "int32", "int64"), "u": ("uint16", "int32", "uint32", "int64"),
             "f": ("float32", "float64")}
    if dtype.kind not in kinds:
        raise TypeError(f"{name!r} is of {dtype}: an array is of " + ", ".join(DTYPES))
    choices = [np.dtype(kind) for kind in kinds[dtype.kind] if kind in dtypes]
    if dtype.kind in "iu" and not choices:
        choices = [np.dtype("float32")]  # weights of edges
    return next((kind for kind in choices if np.can_cast(dtype, kind)), choices[-1])


def _converted(name: str, column: Column, target: np.dtype, missing: int | None) -> np.ndarray:
    values = _matrix(column.array)
    if column.missing is None or not column.missing.any():
        return exactly(name, values, target)
    if target.kind != "f" and missing is None:
        raise ValueError(f"{name!r}: row {column.first_missing} is missing, and {target} has no value for that: fill such "
                         "rows, or drop them")
    nothing = np.nan if target.kind == "f" or missing is None else missing
    result = np.where(_matrix(column.missing), nothing, exactly(name, _filled(values, column.missing), target))
    return np.ascontiguousarray(result, target)


def _filled(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.where(_matrix(missing), values.dtype.type(0), values)
