"""The data of an ingestion: arguments of ``ingest`` in any form, converted to what the engine reads."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from . import _core
from ._arrow_files import array_of_file, is_arrow_file, open_table
from ._data import is_data, of_data
from ._edges import Group, bounds_of, counts_of_matrices, groups_of, stored_column, stored_columns
from ._features import features_of
from ._index import note_index_of_rows
from ._roles import Choice
from ._typed import OfType, by_type
from ._types import as_array, as_count, as_ids, as_names, as_path, as_vertex_ids, is_path
from ._values import stored_array
from ._vertices import Vertices, check_ends, is_tables, vertices_of
from .errors import InvalidArgument

_LOG = logging.getLogger("rhizome")


class IngestInput:
    """Edges, vertices and arrays of one ingestion."""

    def __init__(self, edges: Any, *, arrays: Mapping[str, Any] | None, edge_arrays: Mapping[str, Any] | None, ids: Any,
                 split: Any, vertices: int | None, vertex_types: Mapping[str, int] | None, nodes: Any, columns: Choice,
                 end_types: Sequence[str] | None, folder: str) -> None:
        """``folder``: for temporary files. Errors: as for ``ingest``."""
        self.arrays, self.edge_arrays = dict(arrays or {}), dict(edge_arrays or {})
        as_names(self.arrays, "names of arrays")
        as_names(self.edge_arrays, "names of columns of edges")
        self.edges, self.ids, self.split = edges, None if ids is None else as_ids(ids, "ids"), split
        self.count = None if vertices is None else as_count(vertices, "vertices")
        self.vertex_types = None if vertex_types is None else {
            name: as_count(vertex_types[name], "vertex_types") for name in as_names(vertex_types, "vertex_types")}
        self.nodes_file = ""
        self.notes: list[str] = []  #: what was taken where the input leaves a choice
        self.vertices: Vertices | None = None
        self.end_types = end_types  #: as given, or as found; None: one kind of vertices
        self._columns, self._folder = columns, folder
        self._rows_are_ids = False  #: ``count`` is the number of rows of ``vertices``, not a number that was given
        if is_data(edges):
            self._take_data(of_data(edges))
        self._take_nodes(nodes)
        for name, values in list(self.arrays.items()):
            if isinstance(values, Mapping):
                del self.arrays[name]
                more = by_type(name, values, self.vertex_types)
                twice = sorted(set(more) & set(self.arrays))
                if twice:
                    raise ValueError(f"two arrays have the name {twice[0]!r}: rename one")
                self.arrays.update(more)

    def fill(self, arguments: _core.IngestArguments) -> None:
        """Sets the arguments that are data."""
        files = self._files()
        if files is not None and len(files) == 1 and os.path.isfile(os.path.join(as_path(files[0]), "rhizome.json")):
            self._fill_folder(as_path(files[0]), arguments)
            return
        groups: list[Group] = []
        arguments.columns = ["src", "dst"]
        if files is None:
            groups = [] if self.edges is None else groups_of(self._tables(), self.edge_arrays, self._columns)
            self._take_kinds(groups)
            self.vertex_types = counts_of_matrices(groups, self.vertex_types)
            if not groups and self.ids is None and self.vertex_types is None and self.vertices is not None:
                self.ids = np.arange(self.vertices.rows)  # there are vertices without edges
            if self.vertices is not None and self.vertices.counts is not None and self.ids is not None:
                check_ends(groups, self.vertices)
            arguments.edges = self._spans(groups)
            arguments.edge_arrays = [(name, *values) for name, values in stored_columns(groups).items()]
        else:
            arguments.edges = [as_path(file) for file in files]
            if isinstance(self._columns, Mapping):
                raise ValueError("columns= by role is for tables: of text files, give the names of all columns in their order")
            arguments.columns = as_names(self._columns or (), "columns")  # empty: found
            columns = {name: stored_column(name, values) for name, values in self.edge_arrays.items()}
            arguments.edge_arrays = [(name, *values) for name, values in columns.items()]
        bound = {name: values.type for name, values in self.arrays.items() if isinstance(values, OfType)}
        self.arrays = {name: values.rows if isinstance(values, OfType) else values for name, values in self.arrays.items()}
        for name, values in self.arrays.items():
            if self.ids is None and name not in bound:
                note_index_of_rows(name, values)
            if is_path(values) and is_arrow_file(values):
                self.arrays[name], own = array_of_file(name, values, self._folder, self.ids is not None)
                if own is not None:
                    raise ValueError(f"{os.fsdecode(values)!r} has a column 'id', and arrays= have a row for each vertex in "
                                     "order: give it as nodes=")
        stored = {name: stored_array(name, values) for name, values in self.arrays.items() if not is_path(values)}
        rows = max((len(matrix) for name, matrix, *_ in stored.values() if name not in bound), default=None)
        bounds = None if self.vertex_types is not None else bounds_of(groups)
        if self.vertex_types is not None:
            arguments.vertex_types = list(self.vertex_types.items())
            self.count = sum(self.vertex_types.values())
        elif self.count is None and self.ids is None and not self.nodes_file:
            self.count = _dense_count(groups, bounds, rows)
            if bounds is not None and self.count is not None and self.count == rows and bounds[1] + 1 < rows:
                self._note(f"arrays have {rows:,} rows, and edges name only vertices up to {bounds[1]:,}: there are {rows:,} "
                           f"vertices, the last {rows - bounds[1] - 1:,} without edges; give vertices={rows} if they should be")
        if self.split is not None:
            known = self.count if self.count is not None else rows if rows is not None else bounds[1] + 1 if bounds else None
            stored["split"] = stored_array("split", _split_of(self.split, known))
        arguments.nodes = self.nodes_file
        arguments.ids = self.ids
        arguments.node_columns = ["id"]
        if self.ids is not None and self.vertices is not None and self.vertices.types is not None:
            arguments.id_types, arguments.id_type_names = self.vertices.types, self.vertices.type_names
            arguments.node_columns = ["id", "type"]
        arguments.vertices = self.count
        arguments.arrays = [(*(stored[name] if name in stored else (name, as_path(self.arrays[name]), "", {}, None)),
                             bound.get(name, "")) for name in {**self.arrays, **stored}]

    def take_features(self, wanted: Sequence[str] | Literal["all"]) -> None:
        """Joins columns of tables of vertices to the array ``feat``. Errors: ValueError, as for ``features_of``."""
        if not wanted or self.nodes_file:
            return
        if self.vertices is None:
            raise ValueError("feature_columns= are columns of nodes=: give a table or a text file of vertices")
        features, names = features_of(self.vertices.arrays, wanted, self._folder)
        for name in names:
            del self.arrays[name]
        if "feat" in self.arrays:
            raise ValueError("feature_columns become the array 'feat', and there is another one of this name: rename it")
        self.arrays["feat"] = features
        self.notes.append(f"the array feat has the columns {', '.join(names)}")

    def explained(self, error: InvalidArgument) -> InvalidArgument:
        """Returns an error of the engine in terms of ``ingest``: what to do about ids that are not 0, 1, 2, ..."""
        said, advice, _ = error.message.partition("; list every vertex in a nodes file instead")
        if self._rows_are_ids and said.startswith(f"vertices={self.count}, but"):
            return InvalidArgument(f"nodes= has {self.count} rows and no column of ids, so that they are the vertices 0, 1, 2, ..., "
                                   "but edges or arrays have more: give it a row for each vertex, or a column 'id'")
        if not advice:
            return error
        if self.vertices is not None:
            which = "texts" if said.endswith("strings") else "other integers"
            return InvalidArgument(f"nodes= has no column of ids, so that its rows are the vertices 0, 1, 2, ..., but the ids in "
                                   f"edges are {which}: give nodes= a column 'id' with the ids of its rows")
        said = said.replace(" without a nodes file", " without ids=").replace("some are strings", "some are texts")
        return InvalidArgument(f"{said}; give ids=, the ids of the vertices in the order of the rows, or nodes=, a table with a "
                               "column 'id'")

    def _note(self, text: str) -> None:
        self.notes.append(text)
        _LOG.warning("%s", text)

    def _fill_folder(self, folder: str, arguments: _core.IngestArguments) -> None:
        """Sets the arguments for a folder of ``Graph.export``, which has all data."""
        given = {"arrays": self.arrays, "edge_arrays": self.edge_arrays, "ids": self.ids, "split": self.split,
                 "vertices": self.count, "vertex_types": self.vertex_types, "nodes": self.nodes_file or self.vertices,
                 "columns": self._columns}
        more = [name for name, value in given.items() if value is not None and not (hasattr(value, "__len__") and not len(value))]
        if more:
            raise ValueError(f"{folder!r} is an exported folder, which has all data: give no {more[0]}=")
        arguments.inputs = [folder]
        arguments.columns, arguments.node_columns = [], []

    def _take_data(self, data: dict[str, Any]) -> None:
        self.edges = data["edges"]
        self.arrays = {**data["arrays"], **self.arrays}
        self.edge_arrays = {**data["edge_arrays"], **self.edge_arrays}
        self.count = data.get("vertices") if self.count is None else self.count
        self.vertex_types = data.get("vertex_types") if self.vertex_types is None else self.vertex_types
        self.split = data["split"] if self.split is None else self.split

    def _take_nodes(self, nodes: Any) -> None:
        if is_path(nodes) and is_arrow_file(nodes):
            nodes = open_table(nodes, self._folder)
        if nodes is None:
            return
        if not is_tables(nodes):
            self.nodes_file = as_path(nodes)
            return
        if self.ids is not None or self.vertex_types is not None:
            raise ValueError("nodes= is a table, which has the ids and types of vertices: give no ids= or vertex_types=")
        if isinstance(nodes, Mapping):
            nodes = {kind: open_table(table, self._folder) if is_path(table) else table for kind, table in nodes.items()}
        self.vertices = vertices_of(nodes)
        twice = sorted(set(self.vertices.arrays) & {*self.arrays, *(() if self.split is None else ("split",))})
        if twice:
            raise ValueError(f"{', '.join(map(repr, twice))}: a column of nodes= and an array have this name")
        self.arrays = {**self.vertices.arrays, **self.arrays}
        self.ids = self.vertices.ids
        if self.vertices.counts is not None and self.ids is None:
            self.vertex_types = self.vertices.counts
        elif self.ids is None and self.vertices.types is not None:
            self.ids = np.arange(self.vertices.rows)
        elif self.ids is None:
            self._rows_are_ids = self.count is None
            self.count = max(self.vertices.rows, self.count or 0)

    def _take_kinds(self, groups: list[Group]) -> None:
        """Sets ``end_types`` by the names of the columns of the ends, such as userId and movieId.

        Errors: ValueError, tables of different kinds, or kinds next to ids or types of vertices.
        """
        kinds = {tuple(group.kinds) for group in groups if isinstance(group.type, str) or self._columns is None}
        if self.end_types is not None or not any(kinds):
            return
        two = " and ".join(next(filter(None, kinds)))
        if self._columns is not None:
            _LOG.warning("the ends are chosen by columns=, and their ids are those of one kind of vertices, although the names "
                         "of the columns are of two, %s: end_types= keeps them apart", two)
            return
        given = (self.ids, self.count, self.vertex_types, self.vertices, self.nodes_file or None)
        if len(kinds) > 1 or any(one is not None for one in given) or any(isinstance(group.type, tuple) for group in groups):
            raise ValueError(f"the ends of edges are ids of two kinds by their names, {two}, and vertices or other edges are "
                             "given, too: choose the ends, as columns=('source', 'target')")
        self.end_types = list(kinds.pop())

    def _files(self) -> list[Any] | None:
        """Returns the paths of text and .npy files of edges; None: edges in memory, or in files of Arrow."""
        edges = [self.edges] if is_path(self.edges) else self.edges
        if not isinstance(edges, (list, tuple)) or not edges or not all(map(is_path, edges)):
            return None
        arrow = [path for path in edges if is_arrow_file(path)]
        if not arrow:
            return list(edges)
        if len(arrow) < len(edges):
            raise ValueError(f"edges: {os.fsdecode(arrow[0])} is a file of Parquet or Arrow, and others are text or .npy: ingest "
                             "files of one kind")
        self.edges = list(edges)
        return None

    def _tables(self) -> Any:
        """Returns edges in memory: files of Arrow are opened."""
        if isinstance(self.edges, list) and self.edges and all(map(is_path, self.edges)):
            return [open_table(path, self._folder) for path in self.edges]
        if isinstance(self.edges, Mapping):
            return {kind: open_table(part, self._folder) if is_path(part) else part for kind, part in self.edges.items()}
        return self.edges

    def _spans(self, groups: list[Group]) -> list[tuple[Any, ...]]:
        """Returns each group as (sources, targets, type, range of the sources, range of the targets)."""
        ranges: dict[str, tuple[int, int]] = {}
        first = 0
        for name, count in (self.vertex_types or {}).items():
            ranges[name] = first, count
            first += count
        own = self.vertices.counts if self.vertices is not None and self.ids is not None else None
        types = ranges or own or {}
        # If a name is used between several pairs of types, each pair gets a separate edge type.
        names = Counter(kind for kind in {group.type for group in groups} if isinstance(kind, tuple))
        uses = Counter(kind[1] for kind in names)
        spans: list[tuple[Any, ...]] = []
        for group in groups:
            if isinstance(group.type, str):
                if types:
                    raise ValueError(f"edges {group.type!r}: name them (type of the sources, name, type of the targets), " +
                                     f"with the types {', '.join(types)}")
                spans.append((group.src, group.dst, group.type, None, None))
                continue
            if not types:
                raise ValueError(f"edges {group.type!r}: give the number of vertices of each type (vertex_types=), or a table "
                                 "of each (nodes=)")
            unknown = [kind for kind in (group.type[0], group.type[2]) if kind not in types]
            if unknown:
                raise ValueError(f"edges {group.type!r}: there is no vertex type {unknown[0]!r}, only {', '.join(types)}")
            name = group.type[1] if uses[group.type[1]] == 1 else "__".join(group.type)
            spans.append((group.src, group.dst, name, ranges.get(group.type[0]), ranges.get(group.type[2])))
        return spans


def _dense_count(groups: list[Group], bounds: tuple[int, int] | None, rows: int | None) -> int | None:
    """Returns the number of vertices if integers are vertex ids, which the rows or the shape of a matrix determine."""
    shapes = [max(group.shape) for group in groups if group.shape is not None]
    if shapes:
        return max(*shapes, rows or 0)
    if rows is not None and bounds is not None and bounds[0] >= 0 and bounds[1] < rows:
        return rows
    return None


def _split_of(split: Any, vertices: Union[int, None]) -> Any:
    """Returns uint8 [vertices]: 0 train, 1 valid, 2 test, 255 none."""
    if isinstance(split, (tuple, list)) and len(split) == 3 and all(np.ndim(part) == 1 for part in split):
        if vertices is None:
            raise ValueError("split: give the number of vertices (vertices=)")
        sets = np.full(vertices, 255, np.uint8)
        for number, ids in enumerate(split):
            members = as_vertex_ids(ids, vertices)
            if members.size and (members.min() < 0 or members.max() >= vertices):
                raise IndexError(f"split: an id is not in [0, {vertices})")
            if (sets[members] != 255).any():
                raise ValueError("split: a vertex is in more than one set")
            sets[members] = number
        return sets
    sets = np.ma.filled(split, 255) if isinstance(split, np.ma.MaskedArray) else as_array(split)
    if sets.dtype.kind not in "iu" or not np.isin(sets, (0, 1, 2, 255)).all():
        raise ValueError("split must be three arrays of vertex ids, or one number per vertex: 0, 1, 2, or 255 for none")
    return sets.astype(np.uint8)
