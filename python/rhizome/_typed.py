"""Arrays by vertex type: rows for the vertices of one type, which an ingestion binds to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._types import is_path

#: Arrays that always have a row for each vertex, and the value of vertices without one.
_WHOLE = {"label": -1, "split": 255}


class OfType(NamedTuple):
    """An array that is bound to a vertex type."""

    type: str
    rows: Any  #: of the vertices of the type, in the order of their numbers


def by_type(name: str, given: Mapping[str, Any], counts: Mapping[str, int] | None, missing: Any = None) -> dict[str, Any]:
    """Returns the arrays that rows by vertex type become: one that is bound to a type, if only that type has rows; one of
    all vertices, if several types have rows of the same width and dtype; else one for each type, ``name.type``.

    ``counts``: the number of vertices of each type, in the order of their ids; None: the ids have another order.
    ``missing``: as for ``joined``. Errors: ValueError, no rows, or another number than the type has vertices.
    """
    if not given:
        raise ValueError(f"{name!r} has no rows: give them for at least one vertex type")
    alike = len({(_width(rows), str(getattr(rows, "dtype", ""))) for rows in given.values()}) == 1 and not any(
        map(is_path, given.values()))
    if name in _WHOLE or alike and (len(given) > 1 or counts is not None and len(counts) == 1):
        if counts is None:
            raise ValueError(f"{name!r} has rows by vertex type, but the ids of the types are mixed: give one array with a row for "
                             "each vertex")
        return {name: joined(name, {of: np.asarray(rows) for of, rows in given.items()}, counts, _WHOLE.get(name, missing))}
    if counts is not None:
        for of, rows in given.items():
            if not is_path(rows):  # the engine checks a file
                _check_rows(name, of, rows, counts)
    return {name if len(given) == 1 else f"{name}.{_as_name(of)}": OfType(of, rows) for of, rows in given.items()}


def joined(name: str, given: Mapping[Any, np.ndarray], counts: Mapping[Any, int], missing: Any) -> np.ndarray:
    """Concatenates the rows of all types, in their order; types without rows get the missing value, None: a null."""
    given = {of: rows.reshape(len(rows), -1) for of, rows in given.items()}
    if len({(rows.shape[1], rows.dtype) for rows in given.values()}) != 1:
        raise ValueError(f"{name!r} has another width or dtype in each type: add arrays under different names")
    for of, rows in given.items():
        _check_rows(name, of, rows, counts)
    some = next(iter(given.values()))
    blank = some.dtype.type(0 if missing is None else missing)
    whole = np.concatenate([given[of] if of in given else np.full((count, some.shape[1]), blank, some.dtype)
                            for of, count in counts.items()])
    if missing is not None or len(given) == len(counts):
        return whole
    absent = np.repeat([of not in given for of in counts], list(counts.values()))
    return np.ma.MaskedArray(whole, np.repeat(absent[:, None], some.shape[1], axis=1))


def _check_rows(name: str, of: Any, rows: Any, counts: Mapping[Any, int]) -> None:
    if of not in counts:
        raise ValueError(f"{name!r}: there is no vertex type {of!r}, only {', '.join(map(str, counts))}")
    if len(rows) != counts[of]:
        raise ValueError(f"{name!r} of {of!r} has {len(rows)} rows, but there are {counts[of]}")


def _width(rows: Any) -> int:
    shape = np.shape(rows)
    return int(np.prod(shape[1:], dtype=np.int64)) if len(shape) > 1 else 1


def _as_name(type: str) -> str:
    """Returns a type as part of the name of an array, as imports by the command line write it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", type)
