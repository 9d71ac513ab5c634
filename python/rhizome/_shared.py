"""A graph that is shared with worker processes, and its types in PyG's naming."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np
import torch

from . import _graph
from ._graph import Graph
from ._types import Point, dtype_name

EdgeType = tuple[str, str, str]

#: The graphs that each process has opened, by process, path, memory, point and topology. A forked child inherits the
#: entries of its parent, and neither uses nor drops them.
_opened: dict[tuple[int, str, Union[int, str], Point, str], Graph] = {}


class SharedGraph:
    """A fixed state of a graph that can be passed to worker processes, forked or spawned. Workers open the store at
    exactly this state, which this object holds.

    A forked child continues to use edges in the memory of its parent. Pickled data consists of the path, the point and
    the options.
    """

    def __init__(self, graph: Graph, memory: int | str, edge_types: Mapping[str, EdgeType] | None) -> None:
        self.path = os.path.abspath(graph.path)
        self.memory = memory
        self._named = edge_types
        self._live: Graph | None = graph
        self._pid = os.getpid()
        self._schema: Schema | None = None
        self.renew()

    def renew(self) -> None:
        """Advances to the current state of the graph, after the process that shares it has written."""
        assert self._live is not None
        self._held: Graph | None = self._live.snapshot()
        self._point = self._held.point

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None, "_held": None, "_schema": None}

    @property
    def live(self) -> Graph:
        """The shared graph, for writing. Errors: ValueError, in another process."""
        if self._live is None or self._pid != os.getpid():
            raise ValueError("a worker process can only read the graph")
        return self._live

    @property
    def graph(self) -> Graph:
        """The graph to read from in this process."""
        if self._held is not None and self._pid == os.getpid():
            return self._held
        # If the parent's edges can be used, the graph opened for its rows leaves its edges on disk.
        topology: Literal["auto", "disk"] = "disk" if self._inherits else "auto"
        key = (os.getpid(), self.path, self.memory, self._point, topology)
        if key not in _opened:
            _opened[key] = _graph.open(self.path, memory=self.memory, topology=topology, at=self._point)
        return _opened[key]

    @property
    def rows(self) -> Graph:
        """The graph to read array rows from. Uses the caches of the shared graph while that is at the same state."""
        live = self._live
        unmoved = live is not None and self._pid == os.getpid() and live.point == self._point
        return live if unmoved else self.graph  # type: ignore[return-value]

    @property
    def topology(self) -> Graph:
        """The graph to read edges from: in a forked child the parent's graph, if its edges are in memory."""
        return self._held if self._held is not None and self._inherits else self.graph

    @property
    def _inherits(self) -> bool:
        return self._held is not None and not self._held.topology_on_disk

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = Schema(self.topology, self._named)
        return self._schema


class Schema:
    """The node and edge types of a graph in PyG's naming, and the numbers of vertices within their node type.

    PyG's edge types are triples: the node types of the ends (``Graph.edge_ends``) and the relation, which of a type
    named "a__rel__b" between a and b is "rel". Where the ends are several types or unknown, such a name gives the triple
    if a and b are node types, else the first edge of the type does. ``named`` replaces triples.
    """

    def __init__(self, graph: Graph, named: Mapping[str, EdgeType] | None) -> None:
        self.bound = graph.vertex_bound
        self.node_types = graph.vertex_types
        names = graph.edge_types
        self.typed = named is not None or len(self.node_types) > 1 or len(names) > 1
        self.counts: dict[str, int] = {}
        self._ids: dict[str, np.ndarray | range] = {}  # vertices of each type
        if self.typed:
            self._number(graph)
        triples: dict[str, EdgeType | None] = {}
        if self.typed:
            ends = graph.edge_ends
            triples.update({name: _triple_between(name, *ends.get(name, (None, None))) or _triple_of(name, self.node_types)
                            for name in names})
        triples.update({name: tuple(triple) for name, triple in (named or {}).items()})
        triples.update(self._discover(graph, [name for name, triple in triples.items() if triple is None], names))
        same = [name for name, triple in triples.items() if triple and list(triples.values()).count(triple) > 1]
        if same:
            raise ValueError(f"edge types {', '.join(map(repr, same))} are the same to PyG, {triples[same[0]]}: give "
                             f"another triple to one of them by edge_types=")
        #: Numbers and names of edge types in the store. Types without edges and without a known triple are omitted.
        self.edge_numbers = {triple: names.index(name) for name, triple in triples.items() if triple is not None}
        self.edge_names = {triple: names[number] for triple, number in self.edge_numbers.items()}
        self.edge_types = list(self.edge_numbers)
        for triple in self.edge_types:
            for end in (triple[0], triple[2]):
                if end not in self.node_types:
                    raise ValueError(f"edge type {triple}: there is no node type {end!r}")

    def _number(self, graph: Graph) -> None:
        """Numbers the vertices of each type: by ranges if their ids are consecutive, else by tables."""
        for name in self.node_types:
            ids = graph.vertices_of(name)
            self.counts[name] = len(ids)
            consecutive = len(ids) == 0 or ids[-1] - ids[0] + 1 == len(ids)
            self._ids[name] = range(int(ids[0]) if len(ids) else 0, int(ids[-1]) + 1 if len(ids) else 0) \
                if consecutive else ids
        self._ranges = all(isinstance(ids, range) for ids in self._ids.values())
        if self._ranges:
            self._firsts = np.array([ids.start for ids in self._ids.values()], np.int64)
            filled = [number for number, ids in enumerate(self._ids.values()) if len(ids)]
            self._order = np.array(sorted(filled, key=lambda number: self._firsts[number]), np.int64)
            return
        self._type_table = graph.types_of(np.arange(self.bound))
        self._number_table = np.zeros(self.bound, np.int64)
        for members in self._ids.values():
            self._number_table[members] = np.arange(len(members))

    def vertices(self, node_type: str | None, numbers: Any = None) -> np.ndarray:
        """Returns the vertex ids of numbers within a node type (None: the only one), int64 [n]; without numbers, of
        all.

        Errors: KeyError, no such type; IndexError, a number of no vertex.
        """
        if node_type is None or not self.typed:
            return np.arange(self.bound) if numbers is None else as_ids(numbers, self.bound)
        if node_type not in self.counts:
            raise KeyError(f"there is no node type {node_type!r}; there are {', '.join(self.node_types)}")
        count, ids = self.counts[node_type], self._ids[node_type]
        wanted = np.arange(count) if numbers is None else as_ids(numbers, count)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < count:
            raise IndexError(f"a number of a {node_type} is not in [0, {count})")
        return wanted + ids.start if isinstance(ids, range) else ids[wanted]

    def types_of(self, vertices: np.ndarray) -> np.ndarray:
        """Returns the indices of the node types of vertices, [n]."""
        if not self._ranges:
            return self._type_table[vertices]
        return self._order[np.searchsorted(self._firsts[self._order], vertices, side="right") - 1]

    def numbers(self, vertices: np.ndarray, types: np.ndarray) -> np.ndarray:
        """Returns the numbers of vertices within their node types, int64 [n]."""
        return vertices - self._firsts[types] if self._ranges else self._number_table[vertices]

    def _discover(self, graph: Graph, missing: list[str], names: list[str]) -> dict[str, EdgeType]:
        """Returns the triples of edge types, derived from the first edge of each."""
        found: dict[str, EdgeType] = {}
        wanted = {names.index(name) for name in missing}
        for block in graph.scan_edges() if wanted else ():
            types = np.zeros(len(block.src), np.uint16) if block.types is None else block.types
            for kind in wanted & set(np.unique(types).tolist()):
                at = int(np.argmax(types == kind))
                src, dst = (self.node_types[kind] for kind in graph.types_of([block.src[at], block.dst[at]]).tolist())
                found[names[kind]] = (src, names[kind], dst)
                wanted.discard(kind)
            if not wanted:
                break
        return found


def arrays_by_type(shared: SharedGraph, arrays: str | Mapping[str, str | None]) -> dict[str | None, str]:
    """Returns the array of each node type that has one (None: the only type). An array that is bound to a type has rows
    of that type alone.

    Errors: NotFound, no such array; ValueError, no such node type, or an array that is bound to another.
    """
    schema = shared.schema
    if isinstance(arrays, str):
        bound = shared.rows[arrays].attributes.get("vertex_type")
        return {kind: arrays for kind in (schema.node_types if schema.typed else [None]) if not schema.typed or bound in (None, kind)}
    found: dict[str | None, str] = {}
    for kind, array in arrays.items():
        if kind not in schema.node_types and (kind is not None or schema.typed):
            raise ValueError(f"there is no node type {kind!r}; there are {', '.join(schema.node_types)}")
        if array is None:
            continue
        bound = shared.rows[array].attributes.get("vertex_type")
        if bound is not None and schema.typed and bound != kind:
            raise ValueError(f"the array {array!r} has rows of the node type {bound!r} alone, not of {kind!r}")
        found[kind if schema.typed else None] = array
    return found


def as_ids(index: Any, count: int) -> np.ndarray:
    """Converts an index in any form that PyG accepts (tensor of integers or bools, slice, array) to int64 [n]."""
    if isinstance(index, slice):
        return np.arange(*index.indices(count))
    ids = index.numpy() if isinstance(index, torch.Tensor) else np.asarray(index)
    if ids.dtype == np.bool_:
        return np.flatnonzero(ids)
    return np.ascontiguousarray(ids, np.int64)


def tensor(array: np.ndarray) -> torch.Tensor:
    """Returns a NumPy array as a tensor that shares its memory, with the stored values of MaskedRows."""
    array = np.asarray(array)
    if dtype_name(array.dtype) == "bfloat16":  # torch does not read the type of ml_dtypes
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


#: What joins a relation and its ends in the name of an edge type; older imports by the command line wrote the first.
_JOINTS = ("___", "__")


def _triple_between(name: str, src: str | None, dst: str | None) -> EdgeType | None:
    """Returns the triple of an edge type whose ends are known; None if one is not."""
    if src is None or dst is None:
        return None
    return src, _relation_of(name, src, dst) or name, dst


def _triple_of(name: str, node_types: Sequence[str]) -> EdgeType | None:
    """Returns the triple in the name of an edge type that joins three names; None if it does not.

    Each of the names may contain underscores, so both ends are compared with the node types; the longest ones count.
    """
    longest = sorted(node_types, key=len, reverse=True)
    found = ((src, _relation_of(name, src, dst), dst) for src in longest for dst in longest)
    return next(((src, relation, dst) for src, relation, dst in found if relation), None)


def _relation_of(name: str, src: str, dst: str) -> str | None:
    """Returns the relation in the name of an edge type that joins three names, of which two are known."""
    for joint in _JOINTS:
        relation = name[len(src) + len(joint):-len(dst) - len(joint)]
        if relation and joint.join((src, relation, dst)) == name:
            return relation
    return None
