"""An open graph: lookups, rows, samples, changes, and batches of writes."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np

from . import _core
from ._array import Array
from ._log import to_logging
from ._stores import backup, verify
from ._types import (
    ArrayInfo, BackupReport, Change, CompactReport, Direction, EdgeBlock, LogLine, NeighborLists, Neighbors, PathLike,
    Point, Progress, Similar, SplitName, Subgraph, UserId, VerifyReport, VertexBlock, as_array, as_bytes, as_count,
    as_integers, as_names, as_path, as_rows, as_seconds, as_split, as_text, as_threads, check_nonzero,
)
from .errors import NotFound

LogLevel = Literal["debug", "info", "warning", "error", "off"]
Topology = Literal["auto", "memory", "disk"]


class Graph:
    """A graph in a store, as ``rhizome.open`` returns it.

    Ids: a function that accepts *one* vertex expects its external id (a str or an int, as in the input). *Arrays*, both
    arguments and results, contain vertex ids: int64, dense from 0, never reused. ``find`` converts external ids to
    vertex ids, and ``external_ids`` converts back. (In a store whose external ids are 0, 1, 2, ... both are the same.)

    Threads: all functions may be called from many threads; the GIL is released while the engine works.
    Processes: a child created by fork may use data in memory; operations that read files through an inherited graph
    raise InvalidArgument there. A pickled graph consists of its path and ``point``: the process that unpickles it opens
    exactly that state, even after later writes and compactions, as long as this graph holds it. It does so until it is
    closed or, unless it is a snapshot, refreshed.
    """

    __slots__ = ("_core", "_options")

    def __init__(self, core: _core.Graph, options: tuple[int | str, Topology]) -> None:
        self._core = core
        self._options = options  #: memory and topology arguments of open()

    def close(self) -> None:
        """Closes the store: its files and locks are free when this returns.

        All objects created from the graph (arrays, samplers, snapshots) then raise ValueError. Closing a snapshot
        closes only that snapshot and the objects created from it. Closing twice is allowed. It does not wait: calls of
        other threads that are in progress still complete.
        """
        self._core.close()

    @property
    def closed(self) -> bool:
        """Whether the graph is closed."""
        return self._core.closed

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<rhizome.Graph, closed>"
        mode = "snapshot" if self._core.fixed else "w" if self._core.writable else "r"
        return f"<rhizome.Graph {self.path!r}, {mode}: {self.num_vertices} vertices, {self.num_edges} edges>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _open_at, (os.path.abspath(self.path), *self._options, self.point)

    # --- Properties ---

    @property
    def path(self) -> str:
        """The folder of the store."""
        return self._core.path

    @property
    def num_vertices(self) -> int:
        """The number of vertices that are not deleted."""
        return self._core.num_vertices

    @property
    def num_nodes(self) -> int:
        """Same as num_vertices."""
        return self._core.num_vertices

    @property
    def vertex_bound(self) -> int:
        """Upper bound of vertex ids: all are below it, including ids of deleted vertices."""
        return self._core.vertex_bound

    @property
    def num_edges(self) -> int:
        """The number of directed edges; an undirected pair counts twice."""
        return self._core.num_edges

    @property
    def vertex_types(self) -> list[str]:
        """The names of the vertex types."""
        return self._core.vertex_types

    @property
    def edge_types(self) -> list[str]:
        """The names of the edge types; a type in an array is an index of this list."""
        return self._core.edge_types

    @property
    def edge_attributes(self) -> dict[str, tuple[np.dtype, int]]:
        """The attributes of edges other than type and weight, by name: dtype and number of values per edge."""
        return {name: (np.dtype(dtype), dim) for name, dtype, dim in self._core.edge_attributes()}

    @property
    def arrays(self) -> dict[str, ArrayInfo]:
        """The arrays by name."""
        return {
            name: ArrayInfo(name, shape, np.dtype(dtype), layout, versions, aliases)
            for name, shape, dtype, layout, versions, aliases in self._core.arrays()
        }

    @property
    def topology_on_disk(self) -> bool:
        """Whether neighbour lists are read from disk because they do not fit in ``memory``."""
        return self._core.topology_on_disk

    @property
    def sequence(self) -> int:
        """The number of the last commit that this graph includes."""
        return self._core.sequence

    @property
    def point(self) -> Point:
        """This state as numbers and hashes, for ``rhizome.open(path, at=point)`` in another process while this graph
        holds it."""
        return Point._make(self._core.point)

    def metrics(self) -> str:
        """Returns all metrics (counts, gauges, times, errors) in the Prometheus text format."""
        return self._core.metrics()

    # --- Lookups ---

    @overload
    def find(self, ids: UserId) -> int: ...
    @overload
    def find(self, ids: list[Any] | tuple[Any, ...] | np.ndarray) -> np.ndarray: ...
    def find(self, ids: Any) -> int | np.ndarray:
        """Returns the vertex id of an external id; for several of them, an int64 array [n].

        Errors: NotFound, naming the unknown id; TypeError, an id is neither str nor int.
        """
        found: int | np.ndarray = self._core.find(ids)
        return found

    def external_ids(self, ids: Any) -> list[UserId]:
        """Returns the external ids of vertices: ``ids`` is int64 [n], or anything that NumPy converts to integers.

        Errors: IndexError, an id of no vertex; TypeError.
        """
        return self._core.external_ids(ids)

    @overload
    def neighbors(self, ids: UserId, direction: Direction = "out") -> Neighbors: ...
    @overload
    def neighbors(self, ids: np.ndarray | Sequence[int], direction: Direction = "out") -> NeighborLists: ...
    def neighbors(self, ids: Any, direction: Direction = "out") -> Neighbors | NeighborLists:
        """Returns the neighbours of one vertex (an external id), or of many (vertex ids, [n]).

        ``direction``: "out", the targets of its out-edges; "in", the sources of its in-edges; "both".
        Parallel edges are repeated. For one vertex the order is by type and vertex id; for many the order within a list
        is unspecified.
        Errors: NotFound, no such id; IndexError; InvalidArgument, the store does not keep that direction.
        """
        found: Neighbors | NeighborLists = self._core.neighbors(ids, as_text(direction, "direction"))
        return found

    def degrees(self, ids: Any, direction: Direction = "in") -> np.ndarray:
        """Returns the numbers of neighbours of vertices, int64 [n]; parallel edges are counted separately.

        ``ids``: vertex ids int64 [n]. Errors: IndexError; TypeError; InvalidArgument, as for ``neighbors``.
        """
        return self._core.degrees(ids, as_text(direction, "direction"))

    def edge_rows(self, name: str, edges: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Reads an attribute of edges: one of ``edge_attributes``, or "weight" (float32), or "type" (int64, an index of
        ``edge_types``).

        ``edges``: edge numbers, int64 [n], such as ``Subgraph.edge_ids``; they may repeat. An edge keeps its number
        until the next compaction, regardless of other writes. ``out``: an array to read into, C-contiguous and of
        exactly this dtype and shape.
        Returns: ndarray [n, values of the attribute]; ``out`` if it was given.
        Errors: NotFound, listing the existing attributes; InvalidArgument, a number of no edge; TypeError; ValueError,
        the shape of ``out``; Corruption; IoError.
        """
        return _core.edge_rows(self._core, as_text(name, "name"), as_integers(edges, "numbers of edges"), out)

    def types_of(self, ids: Any) -> np.ndarray:
        """Returns the types of vertices as indices of ``vertex_types``, uint16 [n].

        ``ids``: vertex ids int64 [n]. Errors: IndexError; TypeError.
        """
        return self._core.types_of(ids)

    def vertices_of(self, type: str | None = None) -> np.ndarray:
        """Returns the vertex ids of a type, or of all types, int64 [n], ascending, without deleted vertices.

        Ids within a type are thus positions in this array: ``of_type[local]``, and back with ``numpy.searchsorted``.
        Errors: NotFound, listing the existing types.
        """
        types = self.vertex_types
        if type is None:
            return self._core.vertices_of(None)
        if type not in types:
            raise NotFound(f"no vertex type {type!r}; there are {', '.join(types)}")
        return self._core.vertices_of(types.index(type))

    def split(self, name: SplitName, array: str = "split") -> np.ndarray:
        """Returns the vertex ids of a set, int64 [n], ascending, without deleted vertices.

        ``array``: the array with the values 0 (train), 1 (valid) and 2 (test). Errors: NotFound, no such array;
        ValueError.
        """
        number = as_split(name)
        found = [ids[rows[:, 0] == number] for ids, rows in self[array].batches()]
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)

    def similar(self, to: Any, array: str, k: int = 10, *, progress: Progress | None = None) -> list[Similar]:
        """Returns the ``k`` vertices whose rows of ``array`` have the highest cosine similarity, in descending order.

        ``to``: a vertex (an external id), which is excluded from the result, or a row, floats [dim]. All rows are
        compared.
        Errors: NotFound; InvalidArgument, a row of zeros or of another width; KeyboardInterrupt.
        """
        query = to
        if not isinstance(to, (str, int, np.integer)):
            row = as_array(to)
            if row.ndim != 1 or row.dtype.kind not in "iuf":
                raise TypeError("give a vertex (str or int) or a row (an array of floats with one dimension)")
            query = np.ascontiguousarray(row, dtype=np.float32)
        vertices, scores = self._core.similar(query, as_text(array, "array"), as_count(k, "k", least=1), progress)
        labels = self._labels(vertices)
        return [Similar(*found) for found in zip(self.external_ids(vertices), labels, scores)]

    def _labels(self, vertices: np.ndarray) -> list[Any]:
        """Returns the labels of vertices, as names if the classes have names."""
        if "label" not in self.arrays or self["label"].shape[1] != 1:
            return [None] * len(vertices)
        import json  # pylint: disable=import-outside-toplevel

        labels = self["label"]
        names = json.loads(labels.attributes.get("label_names", "[]"))
        return [names[label] if isinstance(label, int) and 0 <= label < len(names) else label
                for label in labels[vertices][:, 0].tolist()]

    def __contains__(self, name: object) -> bool:
        """Returns whether there is an array with that name."""
        return isinstance(name, str) and name in self.arrays

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the arrays."""
        return iter(self.arrays)

    def __getitem__(self, name: str) -> Array:
        """Returns an array by name ("feat"), version ("emb@3") or alias ("emb@live"). Errors: NotFound."""
        array = Array(self._core, as_text(name, "the name of an array"))
        array.graph = self
        return array

    def sampler(self, fanouts: Sequence[int] | Mapping[str, Sequence[int]], *, direction: Direction = "in",
                replace: bool = False, weighted: bool = False, disjoint: bool = False, again: bool = False,
                induced: bool = False, edge_ids: bool = False, meta_path: Sequence[str] = (), times: str | None = None,
                vertex_times: str | None = None, pick: Literal["uniform", "last"] = "uniform", seed: int = 1,
                threads: int = 1) -> Sampler:
        """Returns a sampler of neighbours for the graph in its current state.

        ``fanouts``: number of neighbours to sample in each hop, the seeds' hop first, -1 for all: ``[10, 10]``; ``[]``
        returns only the seeds. Or by edge type, ``{"cites": [10, 5], "writes": [3, 0]}``; types that are not named are
        not used.
        ``meta_path``: the edge type of each hop. ``direction``: the lists to use.
        ``replace``: sample with replacement. ``weighted``: sample in proportion to the edge weights.
        ``disjoint``: each seed gets a separate subgraph. ``again``: every hop samples for all vertices found so far (as
        in DGL) instead of only the previous hop's (as in PyG). ``induced``: return all edges between the found
        vertices instead of the sampled ones; they count as edges of the first hop.
        ``edge_ids``: return the numbers of sampled edges (``Subgraph.edge_ids``). A store keeps the numbers of its
        in-edges only if it has weights or attributes of edges, or no out-lists. ``Graph.edge_rows`` reads attributes by
        number.
        ``times``: an int64 attribute of edges: do not sample an edge that is later than its seed (``Sampler.sample``);
        requires ``disjoint``. ``vertex_times``: instead, an array with one column, int64 or int32: do not sample a
        neighbour that is later than its seed. ``pick``: sample uniformly from these, or take the "last" ones.
        ``threads``: number of threads per call; the samples do not depend on it.
        Errors: InvalidArgument, options out of range or in conflict; NotFound, no such type or attribute.
        """
        return Sampler(_core.Sampler(self._core, _sampler_arguments(
            self, fanouts, direction=direction, replace=replace, weighted=weighted, disjoint=disjoint, again=again,
            induced=induced, edge_ids=edge_ids, meta_path=meta_path, times=times, vertex_times=vertex_times, pick=pick,
            seed=seed, threads=threads)))

    # --- Other libraries ---

    def to_scipy(self, type: str | None = None) -> Any:
        """Returns the adjacency matrix as a scipy.sparse.csr_array [vertex_bound, vertex_bound] in memory.

        Entry (i, j) is the weight of the edge from vertex i to vertex j, or 1 in a store without weights; parallel
        edges are separate entries. ``type``: use only edges of this type.
        Errors: ValueError, no such type; ImportError, SciPy is not installed.
        """
        from . import _tables
        return _tables.to_scipy(self, type)

    def to_networkx(self, subgraph: Subgraph | None = None) -> Any:
        """Returns a networkx.MultiDiGraph of a sampled subgraph, or of the whole graph, in memory.

        Nodes are external ids. Edges have ``type`` if the store has several types, and ``weight`` if it has weights.
        The edges of a subgraph point from the sampled neighbour to the vertex for which it was sampled.
        Errors: ImportError, NetworkX is not installed.
        """
        from . import _tables
        return _tables.to_networkx(self, subgraph)

    def neighbors_frame(self, ids: Any, direction: Direction = "out") -> Any:
        """Returns the neighbours of one vertex (an external id) or of many (vertex ids, [n]) as a pandas.DataFrame.

        Columns, with one row per edge: ``of``, the external id of the vertex, if there are many; ``id``, the external
        id of the neighbour; ``type``, a category, if the store has several; ``weight``, if it has weights.
        Errors: as for ``neighbors``; ImportError, pandas is not installed.
        """
        from . import _tables
        return _tables.neighbors_frame(self, ids, direction)

    # --- Commits ---

    def refresh(self) -> None:
        """Advances to the last commit of other processes. Errors: ValueError, this graph is a snapshot or was opened at
        a point."""
        self._core.refresh()

    def snapshot(self) -> Graph:
        """Returns an immutable snapshot. It can be closed separately, and is closed with this graph."""
        return Graph(self._core.snapshot(), self._options)

    def scan_vertices(self, rows: int = 65536) -> Iterator[VertexBlock]:
        """Iterates over the vertices that are not deleted, in ascending order of external ids, at one commit.

        ``rows``: vertices per block. Errors: ValueError, the graph was closed during the iteration.
        """
        return map(VertexBlock._make, _core.VertexScan(self._core, as_count(rows, "rows", least=1)))

    def scan_edges(self, rows: int = 65536, *, pairs_once: bool = False) -> Iterator[EdgeBlock]:
        """Iterates over all edges, each once, from source to target, in disk order, at one commit.

        ``rows``: edges per block. ``pairs_once``: in an undirected graph, return each pair once instead of in both
        directions.
        Errors: Corruption; IoError; ValueError, the graph was closed during the iteration.
        """
        scan = _core.EdgeScan(self._core, as_count(rows, "rows", least=1), bool(pairs_once))
        return map(EdgeBlock._make, scan)

    def changes(self, after: int | Point, last: int = 0) -> Iterator[Change]:
        """Iterates over the changes of the commits (after, last]; 0 for ``last`` means the last commit.

        ``after``: a commit number, or the ``point`` of the graph at that commit. With a point, a store that was
        restored from a backup and written to since is rejected, because its commits do not follow the point.
        Errors: NotFound, commits after ``after`` have been compacted: the message names the first that exists;
        InvalidArgument, the point is of a copy of the store that has diverged.
        """
        commit, state = (after.sequence, after.state) if isinstance(after, Point) else (after, "")
        feed = _core.Changes(self._core, as_count(commit, "after"), as_count(last, "last"), state)

        def follow() -> Iterator[Change]:
            while block := feed.next(1024):
                yield from (Change(*change) for change in block)

        return follow()

    def batch(self, *, create_types: bool = False, create_vertices: bool = True, sync: bool = True) -> Batch:
        """Starts a batch of writes: ``with graph.batch() as b: b.put_edge(...)``.

        ``create_types``: add types that the store does not have; ``create_vertices``: add vertices named by edges and
        rows; otherwise both are errors. ``sync``: the commit is durable when the block ends.
        Errors: InvalidArgument, the store is not open with mode "w".
        """
        return Batch(self, bool(create_types), bool(create_vertices), bool(sync))

    # --- Jobs ---

    def compact(self, *, repartition: bool = False, keep_generations: int | None = None,
                threads: int | None = None, progress: Progress | None = None) -> CompactReport:
        """Merges the writes since the last compaction into the next generation, while reads and writes continue.

        ``repartition``: partition the edges again. ``keep_generations``: number of older generations to keep on disk.
        Ctrl-C raises KeyboardInterrupt and leaves the store unchanged, unless the signal arrives while the new
        generation is being published: in that case the generation exists and is complete.
        Errors: Busy, another compaction is running; InvalidArgument, not open for writing; OutOfSpace; IoError.
        """
        keep = None if keep_generations is None else as_count(keep_generations, "keep_generations")
        return CompactReport(**_core.compact(self._core, bool(repartition), as_threads(threads), keep, progress))

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the store, from which ``rhizome.create(path, schema=...)`` makes an empty store like it.

        Its members are those that ``rhizome info --schema`` prints. Computed arrays are not part of it.
        """
        schema: dict[str, Any] = json.loads(self._core.schema)
        return schema

    def alter(self, *, weighted: bool = False, edge_attributes: Mapping[str, Any] | None = None,
              threads: int | None = None, progress: Progress | None = None) -> CompactReport:
        """Adds weights or attributes to the edges of the store, by a compaction, in one commit.

        ``weighted``: existing edges get the weight 1. ``edge_attributes``: as for ``rhizome.create``; existing edges
        get zeros. Writers wait until it is done. (Arrays: ``rhizome.add_array``; types: ``batch(create_types=True)``.)
        Errors: as for ``compact``; AlreadyExists, edges have weights, or that attribute.
        """
        from ._schema import attribute_columns

        added = attribute_columns(edge_attributes)
        return CompactReport(**_core.alter(self._core, bool(weighted), added, as_threads(threads), progress))

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Calls ``rhizome.verify`` for this store."""
        return verify(self.path, progress=progress)

    def backup(self, folder: PathLike, *, keep: int = 0, progress: Progress | None = None) -> BackupReport:
        """Calls ``rhizome.backup`` for this store."""
        return backup(self.path, folder, keep=keep, progress=progress)


class Sampler:
    """Samples neighbourhoods; created by ``Graph.sampler``. Threads: may be used concurrently."""

    __slots__ = ("_core",)

    def __init__(self, core: _core.Sampler) -> None:
        self._core = core

    def sample(self, seeds: Any, batch: int = 0, times: Any = None) -> Subgraph:
        """Samples the subgraph of ``seeds``, vertex ids int64 [n]; a repeated seed occurs once, unless disjoint.

        ``batch`` selects the random numbers: the same seed, batch and graph give the same subgraph, for any number of
        threads. ``times``: times of the seeds, int64 [n]; required if the sampler has times, else not allowed.
        Errors: IndexError, a seed of no vertex; TypeError; InvalidArgument, the number of times differs from the number
        of seeds.
        """
        given = None if times is None else as_integers(times, "times")
        return Subgraph(*self._core.sample(seeds, as_count(batch, "batch"), given))


def _sampler_arguments(graph: Graph, fanouts: Sequence[int] | Mapping[str, Sequence[int]], *, direction: Direction,
                       replace: bool, weighted: bool, disjoint: bool, again: bool, edge_ids: bool,
                       meta_path: Sequence[str], seed: int, threads: int, induced: bool = False,
                       times: str | None = None, vertex_times: str | None = None,
                       pick: Literal["uniform", "last"] = "uniform") -> _core.SamplerArguments:
    """Checks the arguments of ``Graph.sampler`` and converts them for the engine."""
    if pick not in ("uniform", "last"):
        raise ValueError(f"pick must be 'uniform' or 'last', not {pick!r}")
    arguments = _core.SamplerArguments()
    if isinstance(fanouts, Mapping):
        arguments.typed_fanouts = _typed_fanouts(fanouts, graph.edge_types)
    else:
        arguments.fanouts = _fanouts(fanouts)
    arguments.meta_path = as_names(meta_path, "meta_path")
    arguments.direction = as_text(direction, "direction")
    arguments.replace = bool(replace)
    arguments.weighted = bool(weighted)
    arguments.disjoint = bool(disjoint)
    arguments.again = bool(again)
    arguments.edge_ids = bool(edge_ids)
    arguments.induced = bool(induced)
    arguments.times = "" if times is None else as_text(times, "times")
    arguments.vertex_times = "" if vertex_times is None else as_text(vertex_times, "vertex_times")
    arguments.last = pick == "last"
    arguments.seed = as_count(seed, "seed")
    arguments.threads = as_threads(threads)
    return arguments


def _fanouts(fanouts: Sequence[int]) -> list[int]:
    return [as_count(fanout, "a fanout", least=-1) for fanout in fanouts]


def _typed_fanouts(fanouts: Mapping[str, Sequence[int]], types: list[str]) -> list[list[int]]:
    """Returns fanouts by hop and type, [hops, types]."""
    unknown = [name for name in fanouts if name not in types]
    if unknown:
        raise NotFound(f"no edge type {unknown[0]!r}; there are {', '.join(types)}")
    by_type = {name: _fanouts(of_hops) for name, of_hops in fanouts.items()}
    hops = {len(of_hops) for of_hops in by_type.values()}
    if len(hops) != 1:
        raise ValueError("fanouts by edge type must have the same number of hops")
    return [[by_type[name][hop] if name in by_type else 0 for name in types] for hop in range(hops.pop())]


class Batch:
    """Writes that become one commit when the ``with`` block ends; if the block raises, nothing is written.

    Dropping a batch that contains uncommitted operations issues a ResourceWarning, like an unclosed file. All ids are
    external ids, except for arrays of vertex ids in ``put_rows``. The commit is checked as a whole: an error is raised
    at the end of the block, and nothing is written.
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

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
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
                 attributes: Sequence[float] = ()) -> None:
        """Adds an edge, in addition to existing equal ones. Missing end vertices are added.

        ``type``: "" is the first. ``attributes``: a value for each edge attribute of the store
        (``graph.edge_attributes``), in their order; if empty, zeros.
        """
        self._core.put_edge(src, dst, as_text(type, "type"), weight, attributes)

    def upsert_edge(self, src: UserId, dst: UserId, type: str = "", weight: float = 1.0,
                    attributes: Sequence[float] = ()) -> None:
        """Replaces all edges of that source, type and target by this one; otherwise like ``put_edge``."""
        self._core.upsert_edge(src, dst, as_text(type, "type"), weight, attributes)

    def put_edges(self, src: Any, dst: Any, type: str = "", weights: Any = None,
                  attributes: Sequence[Any] = ()) -> None:
        """Adds an edge for each pair of ``src`` and ``dst``, [n]: lists of external ids, or arrays of vertex ids.

        ``weights``: floats [n]; None: 1. ``attributes``: an array [n] of int or float for each attribute of edges.
        Errors: IndexError; TypeError; ValueError, the lengths differ.
        """
        sources, targets = _named(src), _named(dst)
        values = np.ones(len(sources), np.float32) if weights is None else np.ascontiguousarray(weights, np.float32)
        if weights is not None:
            check_nonzero(weights, values, "weights")
        self._core.put_edges(sources, targets, as_text(type, "type"), values, [_values(one) for one in attributes])

    def delete_edge(self, src: UserId, dst: UserId, type: str = "") -> None:
        """Deletes all edges with that source, type and target."""
        self._core.delete_edge(src, dst, as_text(type, "type"))

    def put_rows(self, array: str, ids: Any, rows: Any) -> None:
        """Replaces the rows of vertices in an array.

        ``ids``: a list of external ids, or an array of vertex ids, [n]; ``rows``: [n, dim]. Numbers are converted only
        within their kind (float64 to float32).
        Errors: NotFound, no such array; IndexError; TypeError; ValueError, the shapes do not match.
        """
        target = self._graph[array]
        matrix = as_rows(rows, target.dtype, target.shape[1], array)
        self._core.put_rows(array, _named(ids), matrix)

    def put_row(self, array: str, id: UserId, row: Any) -> None:
        """Replaces the row, [dim], of one vertex in an array. Errors: as for put_rows."""
        self.put_rows(array, [id], as_array(row).reshape(1, -1))


def _named(ids: Any) -> Any:
    """Returns a list of external ids, or an array of vertex ids, depending on the argument."""
    return list(ids) if isinstance(ids, (list, tuple)) else as_array(ids)


def _values(values: Any) -> np.ndarray:
    """Returns the values of an edge attribute, int64 or float64 [n]."""
    array = as_array(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"values of an attribute must be int or float, not {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float64 if array.dtype.kind == "f" else np.int64)


def open(path: PathLike, mode: Literal["r", "w"] = "r", memory: int | str = "1G", *, topology: Topology = "auto",
         at: Point | None = None, wait: float = 0, log: Callable[[LogLine], object] | None = None,
         log_level: LogLevel = "warning") -> Graph:
    """Opens the graph in a store.

    ``mode``: "r" to read, concurrently with any number of other processes; "w" to write as well, one process at a time.
    ``memory``: maximum memory for topology and caches, in bytes or as a text such as "2G".
    ``topology``: neighbour lists in "memory" or on "disk"; "auto": on disk if they need more than half of ``memory``.
    ``at``: the ``point`` of a graph that is held in some process at least until this one is open. The graph is then
    fixed at exactly that state, and holds it, too. None: the last commit.
    ``wait``: with mode "w", the seconds to wait while another process writes.
    ``log``: called with each event of at least ``log_level``, by the main thread or by the thread that closes the
    graph; None: events go to ``logging.getLogger("rhizome")``. ``log_level``: "off" for no events.
    Errors: StoreNotFound; Busy, another process writes; NotFound, ``at`` no longer exists; OutOfMemory, reporting the
    required size; Corruption; Unsupported, a newer format.
    """
    for name, value, values in (("mode", mode, ("r", "w")), ("topology", topology, ("auto", "memory", "disk")),
                                ("log_level", log_level, ("debug", "info", "warning", "error", "off"))):
        if value not in values:
            raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(values)}")
    if log is not None and not callable(log):
        raise TypeError(f"log must be a function or None, not {type(log).__name__}")
    receiver = None if log_level == "off" else to_logging if log is None else log
    core = _core.Graph.open(as_path(path), mode == "w", as_bytes(memory), topology, receiver, log_level,
                            None if at is None else (*Point(*at),), as_seconds(wait, "wait"))
    return Graph(core, (memory, topology))


def _open_at(path: str, memory: int | str, topology: Topology, at: Point) -> Graph:
    """Opens an unpickled graph."""
    return open(path, memory=memory, topology=topology, at=at)
