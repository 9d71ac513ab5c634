"""Columns as values of the engine's types: each number is stored exactly, or refused with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from ._columns import Column, column_of
from ._numbers import exactly
from ._types import DTYPES, dtype_name, lent

#: The types of weights and of attributes of edges; a bfloat16 is the upper half of a float32.
WEIGHTS, ATTRIBUTES = ("float32",), ("int64", "float32", "float64")

#: What stands for a missing value in the arrays that have a value for it.
_MISSING = {"label": -1, "split": 255}

#: Types in the order in which one that holds another type is chosen, by kind of the other.
_HOLDERS = {"b": ("bool", "int64"), "i": ("int8", "int16", "int32", "int64"), "u": ("uint8", "int32", "uint32", "int64"),
            "f": ("float16", "float32", "float64")}


class Values(NamedTuple):
    """Parts of one array, or of one attribute of edges, as the engine stores them."""

    parts: list[Optional[np.ndarray]]  #: each [rows, dim] of one type, C-contiguous and lent; None: no values
    dtype: str
    attributes: dict[str, str]  #: ``null``: the integer that stands for a missing value; ``type``: what the values mean
    texts: list[str] | None = None  #: the texts whose codes the values are


def stored_array(name: str, values: Any) -> tuple[str, np.ndarray, str, dict[str, str], list[str] | None]:
    """Returns an array of vertices: name, rows [n, dim], type, attributes, and texts whose codes the rows are.

    Errors: TypeError, ValueError: values of another type, or that would change, naming the array and the row.
    """
    stored = stored_parts(name, [column_of(name, values)])
    rows = stored.parts[0]
    assert rows is not None
    attributes = dict(stored.attributes)
    if attributes and rows.shape[1] == 1 and name not in _MISSING:
        # As of every new array: what vertices have that are added later.
        if rows.dtype.kind == "i":
            attributes["missing"] = "-1"
        elif stored.dtype == "uint8":
            attributes["missing"] = "255"
    return name, rows, stored.dtype, attributes, stored.texts


def matrix_of(name: str, values: Any) -> np.ndarray:
    """Returns the rows of an array that cannot have attributes. Errors: as ``stored_array``; ValueError, one is missing."""
    column = column_of(name, values)
    if column.type == "text":
        raise TypeError(f"{name!r} has texts such as {next(iter(column.values), '')!r}: ingest such an array, or give numbers")
    if column.first_missing is not None and column.array.dtype.kind != "f" and name not in _MISSING:
        raise ValueError(f"{name!r}: row {column.first_missing} is missing: ingest such an array, or fill its rows")
    matrix = stored_parts(name, [column]).parts[0]
    assert matrix is not None
    return matrix.view("V2") if dtype_name(column.array.dtype) == "bfloat16" else matrix


def stored_parts(name: str, columns: Sequence[Column | None], dtypes: Sequence[str] = DTYPES) -> Values:
    """Returns columns of one name in one type, of ``dtypes``; for None there are no values. Errors: as ``stored_array``."""
    there = [column for column in columns if column is not None]
    if any(column.type == "text" for column in there):
        return _coded(name, columns, dtypes)
    if any(column.array.ndim not in (1, 2) for column in there):
        raise ValueError(f"{name!r} has more than two dimensions: an array has one or two")
    widths = {_matrix(column.array).shape[1] for column in there if column.array.size}
    if len(widths) > 1:
        raise ValueError(f"{name!r} has rows of several widths: {', '.join(map(str, sorted(widths)))}")
    if len({column.type for column in there}) > 1:
        raise TypeError(f"{name!r} has times in one place, and other numbers in another")
    absent = any(column is None for column in columns) and name != "weight"
    gaps = absent or any(column.first_missing is not None for column in there)
    target = _target(name, there, dtypes, gaps)
    attributes = {"type": there[0].type} if there[0].type else {}
    if target.kind != "b" and all(column.array.dtype == np.bool_ for column in there) and target.name != "uint8":
        attributes["type"] = "bool"
    null = _MISSING.get(name)
    if gaps and null is None and target.kind in "iu":
        null = _unused(name, there, target)
        attributes["null"] = str(null)
    parts = [None if column is None else _converted(name, column, target, null) for column in columns]
    return Values(parts, dtype_name(target), attributes)


def _coded(name: str, columns: Sequence[Column | None], dtypes: Sequence[str]) -> Values:
    """Returns texts as codes, int64 [n, 1]: their places among all texts in ascending order; -1 for none."""
    there = [column for column in columns if column is not None]
    if any(column.type != "text" for column in there):
        raise TypeError(f"{name!r} has texts in one place, and numbers in another")
    if "int64" not in dtypes:
        raise TypeError(f"{name!r} has texts such as {next(iter(there[0].values), '')!r}: give numbers")
    texts = sorted({text for column in there for text in column.values} - {""})  # in the order of their UTF-8
    codes = {text: code for code, text in enumerate(texts)} | {"": -1}
    parts: list[Optional[np.ndarray]] = []
    for column in columns:
        parts.append(None if column is None else
                     np.fromiter((codes[text] for text in column.values), np.int64, len(column)).reshape(-1, 1))
    return Values(parts, "int64", {"type": "text"}, texts)


def filled(values: Values, counts: Sequence[int]) -> Values:
    """Returns parts without None: rows of the value that stands for a missing one. ``counts``: the rows of each part."""
    some = next(part for part in values.parts if part is not None)
    nothing = np.nan if some.dtype.kind == "f" else -1 if values.texts is not None else int(values.attributes.get("null", 0))
    parts: list[Optional[np.ndarray]] = [np.full((count, some.shape[1]), nothing, some.dtype) if part is None else part
                                         for part, count in zip(values.parts, counts)]
    return values._replace(parts=parts)


def _matrix(array: np.ndarray) -> np.ndarray:
    """Returns an array [n] or [n, dim] as [n, dim]."""
    return array if array.ndim == 2 else array.reshape(len(array), 1)


def _target(name: str, columns: Sequence[Column], dtypes: Sequence[str], gaps: bool) -> np.dtype:
    """Returns the type in which columns are stored: their own, or one of ``dtypes`` that holds it."""
    own = [column.array.dtype for column in columns]
    if any(dtype_name(dtype) == "bfloat16" for dtype in own):
        whole = len({dtype_name(dtype) for dtype in own}) == 1 and "bfloat16" in dtypes and not gaps
        return own[0] if whole else np.dtype("float32")
    common = np.result_type(*own)
    if gaps and common.kind == "b":
        common = np.dtype("int8")
    if common.name in dtypes:
        return common
    if common.kind not in _HOLDERS:
        raise TypeError(f"{name!r} is of {common}: an array is of " + ", ".join(DTYPES))
    choices = [np.dtype(holder) for holder in _HOLDERS[common.kind] if holder in dtypes]
    if not choices:
        return np.dtype("float32")  # integers as weights
    return next((holder for holder in choices if np.can_cast(common, holder)), choices[-1])


def _unused(name: str, columns: Sequence[Column], target: np.dtype) -> int:
    """Returns an integer that no value is, to stand for a missing one."""
    bounds = np.iinfo(target)
    for null in (-1 if bounds.min < 0 else bounds.max, bounds.min, bounds.max, *range(bounds.min + 1, min(bounds.min + 256, bounds.max))):
        if not any(_has(column, null) for column in columns):
            return int(null)
    raise ValueError(f"{name!r} has all values that {target} can have, and some are missing: give it as a wider type")


def _has(column: Column, value: int) -> bool:
    found = column.array == value
    return bool((found if column.missing is None else found & ~column.missing).any())


def _converted(name: str, column: Column, target: np.dtype, null: int | None) -> np.ndarray:
    values, missing = _matrix(column.array), column.missing
    if dtype_name(values.dtype) == "bfloat16" and target.name == "float32":
        values = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if missing is None or not missing.any():
        return lent(exactly(name, values, target))[0]
    holes = np.broadcast_to(_matrix(missing), values.shape)
    result = exactly(name, np.where(holes, values.dtype.type(0), values), target)
    return np.where(holes, target.type(np.nan if target.kind == "f" or null is None else null), result)
