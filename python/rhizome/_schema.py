"""Creating empty stores, and the schema of a store as a dict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _core
from ._graph import Graph, open
from ._types import PathLike, as_count, as_names, as_path, as_text

#: The dtype of one value, or "timestamp", or a pair of this and a number of values.
Columns = Any


def create(path: PathLike, *, ids: Literal["integer", "text"] = "integer", vertex_types: Sequence[str] = (),
           edge_types: Sequence[str] = (), weighted: bool = False, undirected: bool = False,
           directions: Literal["both", "out", "in"] = "both", edge_attributes: Mapping[str, Columns] | None = None,
           arrays: Mapping[str, Columns] | None = None, schema: Mapping[str, Any] | None = None, exist_ok: bool = False,
           memory: int | str = "1G") -> Graph:
    """Creates a store without vertices and edges, and opens it for writing.

    ``ids``: the kind of external ids. ``vertex_types``, ``edge_types``: names; the first is the default; if empty,
    there is one, "vertex" or "edge". ``edge_attributes``: {"time": "timestamp", "vector": ("float32", 8)}: a dtype, int64,
    float32 or float64, or "timestamp" (int64 microseconds since 1970 UTC), or a pair of a dtype and a number of values.
    ``arrays``: the same for arrays of vertices, of any dtype that ``ingest`` accepts. ``schema``: all of the above instead, as ``Graph.schema`` returns it.
    ``exist_ok``: if there is a store, open it as it is. ``memory``: as for ``open``.
    Errors: AlreadyExists; InvalidArgument, a name, dtype or size is not possible; OutOfSpace. After an error there is
    no store.
    """
    if schema is None:
        for name, value, values in (("ids", ids, ("integer", "text")), ("directions", directions, ("both", "out", "in"))):
            if value not in values:
                raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(values)}")
        schema = {
            "ids": ids, "weighted": bool(weighted), "undirected": bool(undirected), "directions": directions,
            "edge_attributes": _columns_of(edge_attributes, "edge_attributes"), "arrays": _columns_of(arrays, "arrays"),
        }
        for name, types in (("vertex_types", vertex_types), ("edge_types", edge_types)):
            if len(types):
                schema[name] = as_names(types, name)
    elif not isinstance(schema, Mapping):
        raise TypeError(f"schema must be a dict, not {type(schema).__name__}")
    store = as_path(path)
    if not (exist_ok and _core.is_store(store)):
        _core.create_store(store, json.dumps(dict(schema)))
    return open(path, mode="w", memory=memory)


def attribute_columns(attributes: Mapping[str, Columns] | None) -> list[tuple[str, str, int, list[tuple[str, str]]]]:
    """Returns names, dtypes, numbers of values, and meanings of edge attributes."""
    return [(one["name"], one["dtype"], one["dim"], list(one.get("attributes", {}).items()))
            for one in _columns_of(attributes, "edge_attributes")]


def _columns_of(columns: Mapping[str, Columns] | None, what: str) -> list[dict[str, Any]]:
    """Returns the members of a schema that describe attributes or arrays."""
    if columns is None:
        return []
    if not isinstance(columns, Mapping):
        raise TypeError(f"{what} must be a dict of dtypes, not {type(columns).__name__}")
    members: list[dict[str, Any]] = []
    for name, column in columns.items():
        where = f"{what}[{name!r}]"
        dtype, dim = column if isinstance(column, tuple) else (column, 1)
        members.append({"name": as_text(name, what), "dim": as_count(dim, f"the number of values of {where}", least=1)})
        if isinstance(dtype, str) and dtype == "timestamp":
            members[-1].update(dtype="int64", attributes={"type": "timestamp"})
        else:
            members[-1]["dtype"] = _dtype_name(dtype, where)
    return members


def _dtype_name(dtype: Any, what: str) -> str:
    if isinstance(dtype, str):
        try:
            return str(np.dtype(dtype).name)
        except TypeError:
            return dtype  # a dtype of the engine that NumPy does not have
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        raise TypeError(f"{what} must be a dtype, or a pair of a dtype and a number, not {dtype!r}") from None
