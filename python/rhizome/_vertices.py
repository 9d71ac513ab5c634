"""Tables of vertices as arguments of ``ingest``: one table, or one for each vertex type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._columns import Column, column_of, joined
from ._edges import Group
from ._roles import check_complete, is_table, texts_of, vertex_columns
from ._types import as_integers, as_names

#: Words for sets of a split, and their values.
_SETS = {"train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2, "": 255, "none": 255}


class Vertices(NamedTuple):
    """Vertices from tables, in their order."""

    ids: np.ndarray | list[str] | None  #: None: ids are row numbers, in each type if there are ``counts``
    types: np.ndarray | None  #: the type of each vertex, an index of ``type_names``, uint16 [n]
    type_names: list[str]
    counts: dict[str, int] | None  #: number of vertices by type, if there is a table for each
    rows: int  #: number of vertices
    arrays: dict[str, Column]  #: label and properties


def is_tables(nodes: Any) -> bool:
    """Returns whether ``nodes`` is a table of vertices, or a dict of them by type."""
    return isinstance(nodes, Mapping) or is_table(nodes)


def vertices_of(nodes: Any) -> Vertices:
    """Reads tables of vertices: columns id, type, label, split, and properties.

    Errors: TypeError, ValueError, naming table and column.
    """
    if not isinstance(nodes, Mapping):
        return _of_table(nodes)
    if not nodes:
        raise ValueError("nodes={}: give a table for each vertex type")
    tables = {}
    for kind, table in nodes.items():
        (name,) = as_names([kind], "a vertex type")
        try:
            tables[name] = _of_table(table, typed=True)
        except (TypeError, ValueError) as error:
            raise type(error)(f"vertices of type {name!r}: {error}") from None
    without = [name for name, table in tables.items() if table.ids is None]
    if without and len(without) < len(tables):
        raise ValueError(f"vertices of type {', '.join(map(repr, without))} have no column 'id', and the others have one: give "
                         "ids to all, or to none (the ids are then row numbers in each type)")
    counts = {name: table.rows for name, table in tables.items()}
    names = dict.fromkeys(name for table in tables.values() for name in table.arrays)
    arrays = {name: joined(name, [table.arrays.get(name) for table in tables.values()], list(counts.values()))
              for name in names}
    ids = None if without else _all_ids(tables)
    types = np.repeat(np.arange(len(counts), dtype=np.uint16), list(counts.values()))
    return Vertices(ids, types, list(counts), counts, sum(counts.values()), arrays)


def _of_table(table: Any, typed: bool = False) -> Vertices:
    if not is_table(table):
        raise TypeError(f"nodes must be a path, a table or a dict of tables by vertex type, not {type(table).__name__}")
    columns = vertex_columns(table)
    rows = {len(values) for values in columns.values()}
    if len(rows) != 1:
        raise ValueError("a table of vertices must have columns of one length" if rows else
                         "a table of vertices has no columns: give ids, or vertices= for their number")
    (count,) = rows
    ids = _ids_of(columns.pop("id")) if "id" in columns else None
    types, names = None, []
    if "type" in columns:
        if typed:
            raise ValueError("a table of one vertex type has a column 'type': rename it, or give one table of all vertices")
        found, codes = np.unique(texts_of("type", columns.pop("type"), "a vertex type"), return_inverse=True)
        types, names = codes.reshape(-1).astype(np.uint16), as_names(map(str, found), "a vertex type")
        if len(names) > np.iinfo(np.uint16).max:
            raise ValueError(f"there are {len(names)} vertex types: at most {np.iinfo(np.uint16).max} are possible")
    arrays = {name: column_of(name, values) for name, values in columns.items()}
    if "split" in arrays:
        arrays["split"] = _split_of(arrays["split"])
    return Vertices(ids, types, names, None, count, arrays)


def _ids_of(values: Any) -> Any:
    column = column_of("id", values)
    check_complete(column, "the id of a vertex")
    ids = column.values if isinstance(column.values, list) else as_integers(column.values, "ids")
    _check_distinct(ids, "")
    return ids


def _all_ids(tables: Mapping[str, Vertices]) -> Any:
    parts: list[Any] = [table.ids for table in tables.values()]
    if len({isinstance(part, list) for part in parts}) > 1:
        raise TypeError("ids must be all int or all str: " + ", ".join(
            f"{name!r} has {'str' if isinstance(table.ids, list) else 'int'}" for name, table in tables.items()))
    ids: Any = [one for part in parts for one in part] if isinstance(parts[0], list) else np.concatenate(parts)
    _check_distinct(ids, " in several vertex types: a store has one id for each vertex, so that prefix them, such as "
                         "'paper:7', or drop the column, and ids are row numbers in each type")
    return ids


def _check_distinct(ids: Any, where: str) -> None:
    if isinstance(ids, list):
        if len(set(ids)) == len(ids):
            return
        (twice, count), = Counter(ids).most_common(1)
    else:
        values, counts = np.unique(ids, return_counts=True)
        if len(values) == len(ids):
            return
        twice, count = values[np.argmax(counts)], counts.max()
    raise ValueError(f"id {twice!s} occurs {count} times{where}")


def _split_of(column: Column) -> Column:
    """Returns a split as uint8: of words, or of the numbers 0, 1, 2 and 255."""
    if isinstance(column.values, list):
        words = [word.strip().lower() for word in column.values]
        wrong = next((row for row, word in enumerate(words) if word not in _SETS), None)
        if wrong is not None:
            raise ValueError(f"split: row {wrong} is {column.values[wrong]!r}: it is train, valid, test or empty")
        return Column("split", np.array([_SETS[word] for word in words], np.uint8))
    values = column.values if column.missing is None else np.where(column.missing, 255, column.values)
    bad = np.flatnonzero(~np.isin(values, (0, 1, 2, 255)) & (values == values))
    if len(bad) or column.array.dtype.kind == "b":
        row = int(bad[0]) if len(bad) else 0
        raise ValueError(f"split: row {row} is {column.values[row]}: give train, valid, test or nothing, or 0, 1, 2, or 255 for none")
    return Column("split", np.where(values == values, values, 255).astype(np.uint8))


def check_ends(groups: list[Group], vertices: Vertices) -> None:
    """Checks that edges by (type, name, type) are between vertices of these types.

    Errors: ValueError, naming the edge type and the id.
    """
    assert vertices.counts is not None and vertices.ids is not None
    bounds = np.concatenate([[0], np.cumsum(list(vertices.counts.values()))])
    ids = {kind: vertices.ids[bounds[i]:bounds[i + 1]] for i, kind in enumerate(vertices.counts)}
    for group in groups:
        if not isinstance(group.type, tuple):
            continue
        for kind, end, what in ((group.type[0], group.src, "source"), (group.type[2], group.dst, "target")):
            if kind not in ids:
                raise ValueError(f"edges {group.type!r}: there are no vertices of type {kind!r}, only of {', '.join(ids)}")
            if isinstance(end, list) != isinstance(ids[kind], list) and len(end):
                raise TypeError(f"edges {group.type!r}: the ids of edges and those of vertices must be both int or both str")
            if isinstance(end, list):
                members = set(ids[kind])
                known = np.fromiter((one in members for one in end), bool, len(end))
            else:
                known = np.isin(end, ids[kind])
            if not known.all():
                row = int(np.argmin(known))
                raise ValueError(f"edges {group.type!r}: row {row}: the {what} {end[row]!r} is no vertex of type {kind!r}")
