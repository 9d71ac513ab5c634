"""Converts edges in memory, in any form that ``ingest`` accepts, to one form. Only NumPy is imported: tables and sparse
matrices are recognised by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from ._columns import Column, column_of
from ._index import note_index_of_edges
from ._roles import Choice, check_complete, edge_columns, is_table, texts_of
from ._types import as_array, as_ids, as_integers, as_names
from ._values import ATTRIBUTES, WEIGHTS, Values, filled, stored_parts

#: The name of an edge type, or (type of the sources, name, type of the targets).
EdgeType = Union[str, tuple[str, str, str]]


class Group(NamedTuple):
    """Edges of one type. Ids are int64 [n], or lists of str."""

    type: EdgeType  #: "": untyped
    src: Any
    dst: Any
    columns: dict[str, Column]  #: weights and attributes by name
    shape: tuple[int, int] | None = None  #: of a sparse matrix: numbers of sources and targets
    kinds: Sequence[str] = ()  #: of the sources and targets, if the names of their columns say that they are two

    def part(self, chosen: np.ndarray, type: str) -> Group:
        """Returns some of the edges, with another type."""
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return Group(type, _take(self.src, chosen), _take(self.dst, chosen), columns, kinds=self.kinds)


def groups_of(edges: Any, edge_arrays: Mapping[str, Any], columns: Choice = None) -> list[Group]:
    """Returns the edges by type. ``edge_arrays``: further columns, with one row per edge over all types, in order.
    ``columns``: of tables, the columns that are the ends, or columns by role.

    Errors: TypeError, ValueError: an unsupported form, or different lengths.
    """
    if isinstance(edges, Mapping):
        parts = list(edges.items())
    else:
        tables = isinstance(edges, list) and len(edges) > 0 and all(map(is_table, edges))
        parts = [("", part) for part in (edges if tables else [edges])]
    groups = [_group_of(type, part, columns) for type, part in parts]
    total = sum(len(group.src) for group in groups)
    begin = 0
    result = []
    further = {name: column_of(name, values) for name, values in edge_arrays.items()}
    for name, column in further.items():
        if len(column.values) != total:
            raise ValueError(f"{name!r} has {len(column.values)} rows, but there are {total} edges")
    for group in groups:
        end = begin + len(group.src)
        own = {name: column.take(slice(begin, end)) for name, column in further.items()}
        result += _by_type_column(group._replace(columns={**group.columns, **own}))
        begin = end
    return result


def stored_columns(groups: list[Group]) -> dict[str, Values]:
    """Returns the weights and attributes of all groups, each with a part for every group. Edges of a group without them
    have the weight 1, and no value.

    Errors: TypeError, ValueError: values that would change, naming the column.
    """
    result = {}
    for name in dict.fromkeys(name for group in groups for name in group.columns):
        columns = [group.columns.get(name) for group in groups]
        if name == "weight":
            columns = [Column(name, np.ones(len(group.src), np.float32)) if column is None else column
                       for column, group in zip(columns, groups)]
        values = stored_parts(name, columns, WEIGHTS if name == "weight" else ATTRIBUTES)
        result[name] = filled(values, [len(group.src) for group in groups])
    return result


def stored_column(name: str, values: Any) -> Values:
    """Returns weights, or an attribute, of all edges."""
    return stored_parts(name, [column_of(name, values)], WEIGHTS if name == "weight" else ATTRIBUTES)


def _group_of(type: Any, edges: Any, chosen: Choice) -> Group:
    if not isinstance(type, str) and not (isinstance(type, tuple) and len(type) == 3):
        raise TypeError(f"an edge type must be a str or (type of the sources, name, type of the targets), not {type!r}")
    as_names([type] if isinstance(type, str) else type, "an edge type")
    src, dst, columns, shape, kinds = _ends(edges, chosen)
    sources, targets = ids_of("sources", src), ids_of("targets", dst)
    if isinstance(sources, list) != isinstance(targets, list) and len(sources) and len(targets):
        raise TypeError("sources and targets must be both int or both str")
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets")
    found = {name: column_of(name, values) for name, values in columns.items()}
    for name, column in found.items():
        if len(column.values) != len(sources):
            raise ValueError(f"{name!r} has {len(column.values)} rows, but there are {len(sources)} edges")
    return Group(type, sources, targets, found, shape, kinds)


def ids_of(what: str, ids: Any) -> Any:
    """Returns ids as int64 [n] or a list of str. Errors: TypeError, other types; ValueError, an id is missing."""
    if isinstance(ids, (list, tuple)):
        return as_ids(ids, what)
    column = column_of(what, ids)
    check_complete(column, what)
    return column.values if isinstance(column.values, list) else as_integers(column.values, what)


def _by_type_column(group: Group) -> list[Group]:
    """Divides edges by their column ``type``, in the order in which the types first appear."""
    if "type" not in group.columns:
        return [group]
    if group.type:
        raise ValueError("edges by type cannot also have a column 'type'")
    column = group.columns["type"]
    rest = group._replace(columns={name: other for name, other in group.columns.items() if name != "type"})
    types = column.values if isinstance(column.values, list) else column.values.tolist()
    check_complete(column, "an edge type")
    names, first, codes = np.unique(np.asarray(types), return_index=True, return_inverse=True)
    found = as_names(texts_of("type", names, "an edge type"), "an edge type")
    return [rest.part(np.flatnonzero(codes.ravel() == code), found[code]) for code in np.argsort(first)]


def _ends(edges: Any, chosen: Choice) -> tuple[Any, Any, dict[str, Any], tuple[int, int] | None, Sequence[str]]:
    """Returns the sources, targets, further columns, the shape of a sparse matrix, and two kinds of ends."""
    if hasattr(edges, "tocoo"):  # SciPy: one edge per stored entry, from row to column
        coo = edges.tocoo()
        return coo.row, coo.col, {} if (coo.data == 1).all() else {"weight": coo.data}, (int(coo.shape[0]), int(coo.shape[1])), ()
    if is_table(edges):
        note_index_of_edges(edges)
        columns, kinds = edge_columns(edges, chosen)
        return columns.pop("src"), columns.pop("dst"), columns, None, kinds
    if isinstance(edges, (list, tuple)) and len(edges) == 2 and not any(map(_is_scalar, edges)):
        return edges[0], edges[1], {}, None, ()
    array = edges if isinstance(edges, np.ma.MaskedArray) else as_array(edges)
    if array.ndim != 2 or 2 not in array.shape:
        raise ValueError(f"edges must have shape [2, n] or [n, 2], not {list(array.shape)}")
    if array.shape == (2, 2):
        raise ValueError("edges of shape [2, 2] could be [2, n] or [n, 2]: give a pair, as (edges[0], edges[1]) or "
                         "(edges[:, 0], edges[:, 1])")
    pairs = array if array.shape[0] == 2 else array.T
    return pairs[0], pairs[1], {}, None, ()


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str) or not hasattr(value, "__len__")


def _take(ids: Any, chosen: np.ndarray) -> Any:
    return [ids[i] for i in chosen] if isinstance(ids, list) else ids[chosen]


def bounds_of(groups: list[Group]) -> tuple[int, int] | None:
    """Returns the minimum and maximum id of edges between integers; None if there are no edges or ids are strings."""
    ends = [end for group in groups for end in (group.src, group.dst) if not isinstance(end, list) and len(end)]
    if not ends:
        return None
    return min(int(end.min()) for end in ends), max(int(end.max()) for end in ends)


def counts_of_matrices(groups: list[Group], vertex_types: Mapping[str, int] | None) -> dict[str, int] | None:
    """Returns the number of vertices of each type as sparse matrices give it, together with ``vertex_types``.

    Errors: ValueError, a matrix that is not square and has no vertex types, or one of another shape than its types.
    """
    counts = dict(vertex_types or {})
    given = set(counts)
    for group in groups:
        if group.shape is None:
            continue
        if not isinstance(group.type, tuple):
            if group.shape[0] != group.shape[1]:
                raise ValueError(f"a matrix of shape {list(group.shape)} has rows and columns of different kinds: name the types "
                                 "of both, as {('user', 'buys', 'item'): matrix}")
            continue
        for kind, count in ((group.type[0], group.shape[0]), (group.type[2], group.shape[1])):
            if kind in given and count > counts[kind]:
                raise ValueError(f"edges {group.type!r}: a matrix of shape {list(group.shape)}, but there are {counts[kind]} "
                                 f"vertices of type {kind!r}")
            counts[kind] = max(counts.get(kind, 0), count)
    return counts or None
