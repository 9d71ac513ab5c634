"""Batches of writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _core
from ._columns import column_of
from ._edges import ids_of
from ._numbers import exactly
from ._roles import check_complete, edge_columns, is_table
from ._types import UserId, as_array, as_float32, as_ids, as_number, as_rows, as_text, lent
from .errors import InvalidArgument

if TYPE_CHECKING:
    from ._graph import Graph

#: Values of the attributes of one edge, by name. A store with a single value per edge also accepts a sequence of it.
Attributes = Union[Mapping[str, Any], Sequence[Any]]


class Batch:
    """Writes that become one commit when the ``with`` block ends; if the block raises, nothing is written.

    A batch is filled before the end of its block; afterwards all functions raise InvalidArgument. Dropping a batch that
    contains uncommitted operations issues a ResourceWarning, like an unclosed file. All ids are external ids, except
    for arrays of vertex ids in ``put_edges`` and ``put_rows``. The commit is checked as a whole: an error is raised at
    the end of the block, and nothing is written.
    Errors of the commit: InvalidArgument, it does not fit the store; NotFound, a vertex or type does not exist and must
    not be created; IoError and OutOfSpace, the store must be opened again.
    """

    __slots__ = ("_core", "_graph", "_lost", "_options", "_why", "commit", "vertices_added")

    def __init__(self, graph: Graph, create_types: bool, create_vertices: bool, sync: bool) -> None:
        self._lost = 0  # operations of blocks that raised
        self._why = "no `with` block committed the batch"  # reason that the operations were not written
        self._core = _core.Batch(graph._core)
        self._graph = graph
        self._options = (sync, create_types, create_vertices)
        self.commit: int | None = None  #: the number of the commit, once there is one
        self.vertices_added = 0  #: number of vertices that the commit added

    def __len__(self) -> int:
        """The number of pending operations."""
        return len(self._core)

    def __repr__(self) -> str:
        if self.commit is not None:
            return f"<rhizome.Batch, commit {self.commit}>"
        return f"<rhizome.Batch, {len(self)} operations{', ended' if self._core.ended else ''}>"

    def __enter__(self) -> Batch:
        self._core.check_filling()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._core.end()
        if kind is not None:
            self._why = "the block raised"
            self._lost += len(self._core)
            self._core.clear()
        elif len(self._core):
            self._why = "the commit raised"
            self.commit, self.vertices_added = self._core.write(*self._options)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        try:
            lost = self._lost + len(self._core)
        except AttributeError:  # __init__ raised
            return
        if lost:
            warn(f"{lost} operations of a batch were lost without a commit, because {self._why}: put them into a new "
                 f"one, `with graph.batch() as b:`", ResourceWarning, stacklevel=2, source=self)

    def put_vertex(self, id: UserId, type: str = "") -> None:
        """Adds a vertex of a type ("": the first); an existing vertex is not changed."""
        self._core.put_vertex(id, as_text(type, "type"))

    def delete_vertex(self, id: UserId) -> None:
        """Deletes a vertex and its edges, if the vertex exists."""
        self._core.delete_vertex(id)

    def put_edge(self, src: UserId, dst: UserId, type: str = "", weight: float = 1.0,
                 attributes: Attributes = ()) -> None:
        """Adds an edge, in addition to existing equal ones. Missing end vertices are added.

        ``type``: "" is the first. ``attributes``: values by name, ``{"amount": 300}``; the names are those of
        ``graph.edge_attributes``. An attribute with several values takes a sequence of them; an attribute of texts
        takes a str, which may be new to the store. Attributes that are not named are 0, or have no text.
        Errors: InvalidArgument, an unknown name, or values without names where the store has several; ValueError, the
        number of values.
        """
        self._core.put_edge(src, dst, as_text(type, "type"), as_number(weight, "weight"), self._values_of_one(attributes))

    def upsert_edge(self, src: UserId, dst: UserId, type: str = "", weight: float = 1.0,
                    attributes: Attributes = ()) -> None:
        """Replaces all edges of that source, type and target by this one; otherwise like ``put_edge``."""
        self._core.upsert_edge(src, dst, as_text(type, "type"), as_number(weight, "weight"), self._values_of_one(attributes))

    def put_edges(self, src: Any, dst: Any = None, type: str | Sequence[str] | np.ndarray = "", weights: Any = None,
                  attributes: Mapping[str, Any] | Sequence[Any] = ()) -> None:
        """Adds an edge for each pair of ``src`` and ``dst``, [n]: lists of external ids, or arrays of vertex ids.

        ``type``: the name of the type of all edges, or a name for each, [n]. ``weights``: floats [n]; None: 1.
        ``attributes``: by name, ints, floats or times (int64 microseconds since 1970 UTC in the store), [n] or [n, values
        per edge]; for an attribute of texts str, which may be new to the store, or None. Attributes that are not named
        are 0, or have no text.
        Instead of ``src`` and ``dst``, one table of pandas, pyarrow or polars, or a dict of columns:
        ``put_edges(frame)``. Its columns are the ends (named as for ``ingest``, such as ``src`` and ``dst``; external
        ids), and optionally ``type``, ``weight``, and attributes under their names.
        Errors: IndexError; TypeError; ValueError, the lengths differ; InvalidArgument, a column that is not an
        attribute, or values without names where the store has several.
        """
        self._put_edges(src, dst, type, weights, attributes, upsert=False)

    def upsert_edges(self, src: Any, dst: Any = None, type: str | Sequence[str] | np.ndarray = "", weights: Any = None,
                     attributes: Mapping[str, Any] | Sequence[Any] = ()) -> None:
        """Calls ``upsert_edge`` for each pair: it replaces all edges of that source, type and target.

        The same rows again leave the same edges, which ``changes`` and incremental inference count as written. Of several
        rows with the same ends and type the last one remains.

        Arguments and errors: as for ``put_edges``.
        """
        self._put_edges(src, dst, type, weights, attributes, upsert=True)

    def _put_edges(self, src: Any, dst: Any, type: Any, weights: Any, attributes: Any, *, upsert: bool) -> None:
        if dst is None:
            function = "upsert_edges" if upsert else "put_edges"
            if weights is not None or len(attributes):
                raise TypeError(f"{function}: a table has the weights and attributes as columns; give src and dst "
                                "otherwise")
            src, dst, type, weights, attributes = _of_table(function, src, type, self._graph.edge_attributes)
        sources, targets = _named(src, "src"), _named(dst, "dst")
        values = np.ones(len(sources), np.float32) if weights is None else as_float32(weights, "weights")
        names, codes = _types_of_rows(type)
        self._core.put_edges(sources, targets, names, codes, values, self._columns(attributes, len(sources)), upsert)

    def delete_edge(self, src: UserId, dst: UserId, type: str = "") -> None:
        """Deletes all edges with that source, type and target."""
        self._core.delete_edge(src, dst, as_text(type, "type"))

    def put_rows(self, array: str, ids: Any, rows: Any) -> None:
        """Replaces the rows of vertices in an array.

        ``ids``: a list of external ids, or an array of vertex ids, [n]; ``rows``: [n, dim]. Numbers are converted only
        within their kind (float64 to float32). An array of texts takes a list or column of str (None: no text), which
        may be new to the store, except in ``label``; or their codes.
        Errors: NotFound, no such array; IndexError; TypeError; ValueError, the shapes do not match.
        """
        target = self._graph[array]
        if target.attributes.get("type") == "text":
            texts = _texts(array, rows)
            if texts is not None:
                self._core.put_texts(array, _named(ids, "ids"), [[text] for text in texts])
                return
        matrix, _ = lent(as_rows(rows, target.dtype, target.shape[1], array))
        self._core.put_rows(array, _named(ids, "ids"), matrix)

    def put_row(self, array: str, id: UserId, row: Any) -> None:
        """Replaces the row, [dim], of one vertex in an array; one of texts takes a str. Errors: as for put_rows."""
        if isinstance(row, str) or row is None:
            self.put_rows(array, [id], [row])
            return
        self.put_rows(array, [id], as_array(row).reshape(1, -1))

    def _values_of_one(self, attributes: Attributes) -> Sequence[Any]:
        """Returns the values of one edge in the order of the store; empty: all 0."""
        if not isinstance(attributes, (Mapping, list, tuple, np.ndarray)):
            raise TypeError(f"attributes must be a dict of values by name, not {type(attributes).__name__}")
        if not len(attributes):
            return ()
        if isinstance(attributes, Mapping):
            by_name = self._by_name(attributes)
        else:
            by_name = self._by_name({self._only_attribute(): attributes})
        values: list[Any] = []
        for name, (_, dim) in self._graph.edge_attributes.items():
            given = by_name.get(name, [None] * dim)
            one = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
            if len(one) != dim:
                raise ValueError(f"{name!r} has {dim} value(s) per edge, but {len(one)} were given")
            values += one
        return values

    def _columns(self, attributes: Mapping[str, Any] | Sequence[Any], edges: int) -> list[np.ndarray | list[str] | None]:
        """Returns the values of many edges in the order of the store, an array or texts [edges] for each; None: not
        given; empty: none is given."""
        if not isinstance(attributes, (Mapping, list, tuple)):
            raise TypeError(f"attributes must be a dict of arrays by name, not {type(attributes).__name__}")
        if not len(attributes):
            return []
        if not isinstance(attributes, Mapping):
            if len(attributes) != 1:
                raise InvalidArgument(self._say_names(f"{len(attributes)} arrays without names"))
            attributes = {self._only_attribute(): attributes[0]}
        by_name = self._by_name(attributes)
        columns: list[np.ndarray | list[str] | None] = []
        for name, _, dim, meaning in self._graph._core.edge_attributes():
            if name not in by_name:
                columns += [None] * dim
                continue
            texts = _texts(name, by_name[name]) if meaning.get("type") == "text" else None
            if texts is not None:
                columns.append(texts)
                continue
            given = _values(name, by_name[name], meaning.get("type", ""))
            matrix = given.reshape(len(given), -1) if given.ndim <= 2 and len(given) else given
            if matrix.ndim > 2 or len(matrix) != edges or (edges and matrix.shape[1] != dim):
                raise ValueError(f"{name!r} must have shape ({edges}, {dim}), not {given.shape}")
            columns += [np.ascontiguousarray(matrix[:, at]) for at in range(dim)] if edges else []
        return columns

    def _by_name(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        unknown = next((name for name in attributes if name not in self._graph.edge_attributes), None)
        if unknown is not None:
            raise InvalidArgument(self._say_names(f"the edges have no attribute {unknown!r}"))
        return attributes

    def _only_attribute(self) -> str:
        """Returns the name of the attribute that values without a name belong to."""
        names = list(self._graph.edge_attributes)
        if len(names) != 1:
            raise InvalidArgument(self._say_names("values of attributes were given without names"))
        return names[0]

    def _say_names(self, problem: str) -> str:
        names = list(self._graph.edge_attributes)
        if not names:
            return f"{problem}; the edges of this store have no attributes"
        return f"{problem}; give them by name: attributes={{{', '.join(f'{name!r}: ...' for name in names)}}}"


def _types_of_rows(type: Any) -> tuple[list[str], np.ndarray | None]:
    """Returns names of types, and the index of each row's name; None: all rows have the first name."""
    if isinstance(type, str):
        return [as_text(type, "type")], None
    given = as_ids(type, "types")
    if not isinstance(given, list):
        raise TypeError("type must be a str, or a str for each edge")
    names = dict.fromkeys(given)
    number = {name: i for i, name in enumerate(names)}
    return list(names), np.fromiter((number[name] for name in given), np.int64, len(given))


def _named(ids: Any, what: str) -> Any:
    """Returns a list of external ids, or an array of vertex ids, depending on the argument."""
    if isinstance(ids, (list, tuple)):
        return list(ids)
    array = as_array(ids)
    if array.ndim != 1:
        raise TypeError(f"{what} must be a list of external ids, or an array of vertex ids with one dimension")
    return array


def _texts(name: str, values: Any) -> list[str] | None:
    """Returns texts, [n], "" where nothing is; None if the values are numbers."""
    column = column_of(name, list(values) if isinstance(values, tuple) else values)
    if isinstance(column.values, list):
        return column.values
    return None


def _values(name: str, values: Any, type: str) -> np.ndarray:
    """Returns the values of an edge attribute, int64 or float64; times, if the attribute is of that ``type``, as int64
    microseconds since 1970 UTC."""
    array = as_array(values)
    if array.dtype.kind == "O" and array.ndim == 1 and isinstance(next(iter(array), None), (list, tuple, np.ndarray)):
        array = np.array(array.tolist())  # a column of lists
    elif array.dtype.kind in "MO":
        times = column_of(name, values)
        check_complete(times, "the value of an attribute")
        if times.type == "timestamp" and type != "timestamp":
            raise TypeError(f"the attribute {name!r} has plain numbers, not times: give int or float, or make the attribute of "
                            "the type 'timestamp'")
        array = array if times.type == "text" else times.array
    if array.dtype.kind not in "biuf":
        raise TypeError(f"values of the attribute {name!r} must be int or float, not {array.dtype}")
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64)
    return exactly(name, array, np.dtype(np.int64))


def _of_table(function: str, table: Any, type: Any,
              attributes: Collection[str]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Returns the ends, types, weights and attributes of a table of edges. ``type``: of tables without such a column;
    ``attributes``: those of the store.
    """
    if not isinstance(table, Mapping) and not is_table(table):
        raise TypeError(f"{function}: give src and dst, or a table (of pandas, pyarrow or polars, or a dict of columns)")
    try:
        columns, _ = edge_columns(table, None, attributes)
    except ValueError as error:
        raise InvalidArgument(f"{function}: {error}") from None
    if "type" in columns and (not isinstance(type, str) or type):
        raise InvalidArgument(f"{function}: type= is given, and the table has a column of types: give one")
    type = columns.pop("type", type)
    ends = []
    for end in ("src", "dst"):
        ids = ids_of(end, columns.pop(end))
        ends.append(ids if isinstance(ids, list) else ids.tolist())
    return ends[0], ends[1], type, columns.pop("weight", None), columns
