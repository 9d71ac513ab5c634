"""The roles of columns in tables of edges and vertices: by their names, as in text files, or as the caller chooses."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _core
from ._columns import Column, column_of
from ._index import UNNAMED, Index, index_of
from ._types import as_names

_LOG = logging.getLogger("rhizome")

_EDGE_ROLES = ("src", "dst", "type", "weight", "time")
_VERTEX_ROLES = ("id", "type", "label", "split")

#: The caller's choice: names of the columns of the ends, or columns by role.
Choice = Union[Sequence[str], Mapping[str, str], None]


def is_table(values: Any) -> bool:
    """Returns whether ``values`` is a table of pandas, pyarrow, or any library that exports Arrow's C stream."""
    return _is_frame(values) or hasattr(values, "column_names") or \
        (hasattr(values, "__arrow_c_stream__") and (hasattr(values, "columns") or not hasattr(values, "null_count")))


def _is_frame(values: Any) -> bool:
    return hasattr(values, "iloc") and hasattr(values, "columns")


def columns_of(table: Any) -> dict[str, Any]:
    """Returns the columns of a table by name, in the library's form. Errors: ValueError, a name that occurs twice."""
    if isinstance(table, Mapping):
        names, columns = [str(name) for name in table], list(table.values())
    elif _is_frame(table):
        names = [str(name) for name in table.columns]
        columns = [table.iloc[:, place] for place in range(len(names))]
    else:
        table = _opened(table)
        names = list(table.column_names)
        columns = [table.column(place) for place in range(len(names))] if hasattr(table, "schema") else \
            [table.column(name) for name in names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"a table has several columns {', '.join(map(repr, twice))}: give each a name of its own")
    return dict(zip(as_names(names, "names of columns"), columns))


def _opened(table: Any) -> Any:
    """Returns a table that only exports Arrow's C stream, which can be read once, as a table of pyarrow; others as they are."""
    if isinstance(table, Mapping) or _is_frame(table) or (hasattr(table, "column_names") and hasattr(table, "column")):
        return table
    from ._tables import library
    return library("pyarrow", "a table of Arrow's C stream", "arrow").table(table)


def edge_columns(table: Any, chosen: Choice, attributes: Collection[str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """Returns the columns of a table of edges, with the names of their roles: src, dst, type, weight, time; others
    keep their names, and so do those that are ``attributes`` of the store to which edges are added.

    The second result is the kinds of sources and targets, if the names of their columns say that they are two kinds, such
    as userId and movieId; empty: one kind. Without a store, such columns are found, too.
    Errors: ValueError, no two columns are the ends, or several have one role, naming the columns.
    """
    columns = columns_of(table)
    named = dict(chosen) if isinstance(chosen, Mapping) else {}
    if chosen is not None and not named:
        pair = as_names(chosen, "columns")
        if len(pair) != 2:
            raise ValueError(f"columns={pair!r}: name the columns of sources and targets, or columns by role, such as "
                             "{'src': 'source', 'dst': 'target', 'weight': 'amount'}")
        named = dict(zip(("src", "dst"), pair))
    others = [name for name in columns if name not in (attributes or ())]
    by_name = dict(zip(others, _core.edge_roles(others)))
    roles = _assigned(columns, by_name, _EDGE_ROLES, named, "edges")
    if attributes is None and not {"src", "dst"} & set(roles):
        roles.update(zip(("src", "dst"), _kinds_of(list(columns))))
    for role in ("src", "dst"):
        if role not in roles:
            how = "name the ends, as columns=('source', 'target')" if attributes is None else \
                "rename those of the ends to 'src' and 'dst'"
            raise ValueError(f"a table of edges has no column that is the {role}: its columns are {_list(columns)}; {how}")
    return _renamed(columns, roles), list(_kinds_of([roles["src"], roles["dst"]]).values())


def vertex_columns(table: Any) -> dict[str, Any]:
    """Returns the columns of a table of vertices, with the names of their roles: id, type, label, split.

    An index of pandas with a name for ids is the column of ids. Errors: ValueError, several columns have one role; there
    is no column of ids, and an index says that row i is not vertex i.
    """
    table = _opened(table)
    columns = columns_of(table)
    index = index_of(table, columns)
    if index is not None and index.values is not None:
        known = _core.vertex_roles([index.name, *columns])
        if known[0] == "id" and "id" not in known[1:]:
            columns, index = {index.name: index.values, **columns}, None
    by_name = {name: "type" if role == "ntype" else role
               for name, role in zip(columns, _core.vertex_roles(list(columns)))}
    roles = _assigned(columns, by_name, _VERTEX_ROLES, {}, "vertices")
    if index is not None and not index.counts:
        _leave_out(index, "id" in roles, columns)
    return _renamed(columns, roles)


def _leave_out(index: Index, has_ids: bool, columns: Collection[str]) -> None:
    """Checks that a table of vertices is complete without its index. Errors: ValueError, rows belong to unknown vertices."""
    if not has_ids:
        raise ValueError(f"a table of vertices has no column of ids, and {index.what} is not 0, 1, 2, ...: if it has the ids, "
                         "name it 'id' (table.rename_axis('id')); if row i is vertex i, drop it (table.reset_index(drop=True))")
    if index.name and index.name not in columns:  # a column is in use
        _LOG.warning("a table of vertices has a column of ids, and %s is left out; reset_index() makes it a column", index.what)


def _kinds_of(names: Sequence[str]) -> dict[str, str]:
    """Returns the only two columns of ids of two kinds of vertices, with the kinds: {"userId": "user", "movie_id": "movie"};
    empty if there are no such columns."""
    return {name: kind for name, kind in zip(names, _core.kinds_of_ends(names)) if kind}


def _assigned(columns: Collection[str], by_name: Mapping[str, str], known: Sequence[str], named: Mapping[str, str],
              what: str) -> dict[str, str]:
    """Returns the column of each role: the ``named`` ones, and columns that have a role ``by_name``."""
    for role, name in named.items():
        if role not in known:
            raise ValueError(f"columns=: there is no role {role!r}; the roles are {', '.join(known)}")
        if name not in columns:
            raise ValueError(f"a table of {what} has no column {name!r}: its columns are {_list(columns)}")
    if len(set(named.values())) < len(named):
        raise ValueError(f"columns={dict(named)!r}: one column cannot have two roles")
    roles = dict(named)
    for role in known:
        found = [name for name, given in by_name.items() if given == role and name not in named.values()]
        if role in roles:
            continue
        if len(found) > 1:
            raise ValueError(f"a table of {what} has several columns that could be the {role}: {_list(found)}; rename the "
                             "others" + (", or choose by columns={...}" if what == "edges" else ""))
        if found:
            roles[role] = found[0]
    return roles


def _renamed(columns: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Any]:
    names = {name: role for role, name in roles.items()}
    result: dict[str, Any] = {}
    for name, values in columns.items():
        if name not in names and UNNAMED.fullmatch(name):
            _LOG.warning("column %r is the index of a pandas table: it is left out", name)
            continue
        if names.get(name, name) in result:
            raise ValueError(f"columns {_list(n for n in columns if names.get(n, n) == names.get(name, name))} would have one "
                             "name: rename one of them")
        result[names.get(name, name)] = values
    return result


def _list(names: Any) -> str:
    return ", ".join(map(repr, names))


def texts_of(name: str, values: Any, what: str) -> list[str]:
    """Returns names, such as types, from a column of texts or integers. Errors: TypeError; ValueError, one is missing.
    """
    column = column_of(name, values)
    check_complete(column, what)
    if isinstance(column.values, list):
        return column.values
    if column.values.dtype.kind not in "iu" or column.type:
        raise TypeError(f"{what} must be texts or integers: the column {name!r} is of {column.type or column.values.dtype}")
    return [str(value) for value in column.values.tolist()]


def check_complete(column: Column, what: str) -> None:
    """Errors: ValueError, a value is missing, naming the row. NaN is so among floats, where pandas has made it of None."""
    row = column.first_missing
    if row is None and not isinstance(column.values, list) and column.values.dtype.kind == "f" and np.isnan(column.values).any():
        row = int(np.argmax(np.isnan(column.values).reshape(len(column), -1).any(axis=1)))
    if row is not None:
        raise ValueError(f"{what} must not be missing: row {row} of {column.name!r} is")
