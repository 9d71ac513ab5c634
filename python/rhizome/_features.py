"""Columns of tables of vertices that become one array of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._arrow_files import mapped
from ._columns import Column
from ._numbers import exactly
from ._types import as_names, dtype_name


def features_of(columns: Mapping[str, Column], wanted: Any, folder: str) -> tuple[Column, list[str]]:
    """Returns the array ``feat``, float32 [n, columns], NaN where a value is missing, and the names of its columns, in the
    order of the table, as from a text file.

    ``columns``: those of the table that become arrays; ``wanted``: names, or "all" for every column of numbers; ``folder``:
    for the rows, if the columns are in files.
    Errors: ValueError, there is no such column, it has no numbers, or a number that float32 does not have.
    """
    able = {name: column for name, column in columns.items() if name not in ("label", "split")}
    if wanted == "all":
        names = [name for name, column in able.items() if not _obstacle(column)]
        if not names:
            raise ValueError("feature_columns='all': nodes= has no column of numbers")
    else:
        given = as_names(wanted, "feature_columns")
        for name in given:
            if name not in able:
                raise ValueError(f"feature_columns: nodes= has no column {name!r} of values; it has {', '.join(map(repr, able))}")
            if _obstacle(able[name]):
                raise ValueError(f"feature_columns: the column {name!r} has {_obstacle(able[name])}, but features are numbers")
        names = [name for name in able if name in given]
    return _joined([able[name] for name in names], folder), names


def _obstacle(column: Column) -> str:
    """Returns why a column is none of numbers, or ""."""
    if isinstance(column.values, list):
        return "texts"
    if column.type:
        return "times"
    if column.values.ndim > 1:
        return "several values in a row"
    return "missing bools" if column.values.dtype == np.bool_ and column.first_missing is not None else ""


def _joined(columns: Sequence[Column], folder: str) -> Column:
    shape = len(columns[0]), len(columns)
    in_files = any(isinstance(column.values, np.memmap) for column in columns)
    rows = mapped(shape, np.dtype(np.float32), folder) if in_files else np.empty(shape, np.float32)
    for place, column in enumerate(columns):
        values = column.array
        if dtype_name(values.dtype) == "bfloat16":
            values = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        if column.missing is not None:
            values = np.where(column.missing, values.dtype.type(0), values)
        numbers = exactly(column.name, values.reshape(-1, 1), np.dtype(np.float64)).ravel()
        beyond = np.flatnonzero(np.isfinite(numbers) & (np.abs(numbers) > np.finfo(np.float32).max))
        if len(beyond):
            raise ValueError(f"feature_columns: row {beyond[0]} of {column.name!r} is {numbers[beyond[0]]}, beyond float32: scale "
                             "the column")
        rows[:, place] = numbers
        if column.missing is not None:
            rows[column.missing, place] = np.nan
    return Column("feat", rows)
