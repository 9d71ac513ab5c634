"""An open graph: lookups, rows, samples, changes, and batches of writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np

from . import _core
from ._array import Array
from ._batch import Batch
from ._log import to_logging
from ._repr import Box, as_html, boxed, listed
from ._sampler import Sampler, sampler_arguments
from ._stores import backup, verify
from ._types import (
    ArrayInfo, BackupReport, Change, CompactReport, Direction, EdgeBlock, ExportReport, Frames, LogLine, NeighborLists,
    Neighbors, PathLike, Point, Progress, Similar, SplitName, Subgraph, UserId, VerifyReport, VertexBlock, as_bytes,
    as_count, as_integers, as_path, as_seconds, as_split, as_text, as_threads,
)
from .errors import NotFound

LogLevel = Literal["debug", "info", "warning", "error", "off"]
Topology = Literal["auto", "memory", "disk", "lazy"]


class Graph:
    """A graph in a store, as ``rhizome.open`` returns it.

    Ids: a function that accepts *one* vertex expects its external id (a str or an int, as in the input), and so does
    ``id in graph``. *Arrays* of ids, both arguments and results, contain vertex ids: int64, dense from 0, never reused;
    so do the brackets of an array, ``graph["feat"][7]``, where a str is an external id. ``find`` converts external ids
    to vertex ids, and ``external_ids`` converts back. (In a store whose external ids are 0, 1, 2, ... both are the
    same.)

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

    __repr__ = boxed
    _repr_html_ = as_html

    def _box(self) -> Box:
        if self.closed:
            return Box("rhizome.Graph, closed", [])
        mode = "snapshot" if self._core.fixed else "w" if self._core.writable else "r"
        rows = [("vertices", f"{self.num_vertices:,}"), ("edges", f"{self.num_edges:,}"),
                ("vertex types", listed(self.vertex_types)), ("edge types", listed(self.edge_types)),
                ("edge attributes", listed(self.edge_attributes))]
        arrays = list(self.arrays.values())
        rows += [("arrays" if i == 0 else "", f"{one.name}: {self._kind_of(one)}") for i, one in enumerate(arrays[:12])]
        if len(arrays) > 12:
            rows.append(("", f"and {len(arrays) - 12} more"))
        return Box(f"rhizome.Graph {self.path!r}, {mode}", [(name, text) for name, text in rows if text])

    def _kind_of(self, array: ArrayInfo) -> str:
        """Describes what an array holds in a few words; texts are stored as codes."""
        meaning = self[array.name].attributes
        if meaning.get("type") != "text":
            return f"{meaning.get('type', array.dtype)} {list(array.shape)}"
        names = self.class_names if array.name == "label" else []
        return f"text {list(array.shape)}, " + (f"classes {listed(names)}" if names else f"{int(meaning['texts']):,} texts")

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
    def edge_ends(self) -> dict[str, tuple[str | None, str | None]]:
        """The vertex type of the sources and of the destinations of each edge type, by its name; None: several types, or
        unknown. Edges that were deleted count until the next compaction. Empty if there is one vertex type, or if an older
        version wrote the store."""
        types = self.vertex_types
        names = [tuple(None if end is None else types[end] for end in ends) for ends in self._core.edge_ends]
        return dict(zip(self.edge_types, names))  # type: ignore[arg-type]

    @property
    def edge_attributes(self) -> dict[str, tuple[np.dtype, int]]:
        """The attributes of edges other than type and weight, by name: dtype and number of values per edge."""
        return {name: (np.dtype(dtype), dim) for name, dtype, dim, _ in self._core.edge_attributes()}

    @property
    def arrays(self) -> dict[str, ArrayInfo]:
        """The arrays by name."""
        return {
            name: ArrayInfo(name, shape, np.dtype(dtype), layout, versions, aliases, vertex_type or None)
            for name, shape, dtype, layout, versions, aliases, vertex_type in self._core.arrays()
        }

    @property
    def class_names(self) -> list[str]:
        """The names of the classes of ``label``, by class; empty if the classes have no names."""
        return _core.class_names(self._core, "label")

    @property
    def topology_on_disk(self) -> bool:
        """Whether neighbour lists are read from disk, not from memory."""
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

    def at(self, ids: Any) -> np.ndarray:
        """Returns the vertex ids of external ids as an array, int64 [n], also of a single one: ``g["x"][g.at(ids)]``.

        Errors: as for ``find``.
        """
        one = isinstance(ids, (str, int, np.integer))
        found: np.ndarray = self._core.find([ids] if one else ids)
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
        Returns: ndarray [n, values of the attribute], a MaskedRows if integers of the attribute are missing; ``out`` if
        it was given, with the stored values.
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

    @overload
    def similar(self, to: UserId, array: str, k: int = 10, *, progress: Progress | None = None) -> list[Similar]: ...
    @overload
    def similar(self, to: Any, array: str, k: int = 10, *, progress: Progress | None = None) -> Any: ...
    def similar(self, to: Any, array: str, k: int = 10, *, progress: Progress | None = None) -> Any:
        """Returns the ``k`` vertices whose rows of ``array`` have the highest cosine similarity, in descending order.

        ``to``: a vertex (an external id), which is excluded from the result, or a row, floats [dim]; or several at once:
        a list of str (external ids), an array of vertex ids, int [n], or rows, floats [n, dim]. All rows are compared,
        once for all queries.
        Returns: list[Similar]; for several, a list of such lists.
        Errors: NotFound; InvalidArgument, a row of zeros or of another width; IndexError; KeyboardInterrupt.
        """
        from . import _similar
        return _similar.similar(self, to, as_text(array, "array"), as_count(k, "k", least=1), progress)

    def top_links(self, ids: Any, array: str, *, decoder: PathLike | None = None, scorer: str | None = None,
                  type: str | None = None, k: int = 10, known: Literal["keep", "drop"] = "keep",
                  threads: int | None = None, memory: int | str | None = None,
                  progress: Progress | None = None) -> Any:
        """Returns, for each vertex, the ``k`` destinations with the best scores, best first, as of the last commit.

            g.top_links("dog.n.01", array="ent", decoder="complex.safetensors", type="_hypernym", known="drop")

        ``ids``: a vertex (an external id); or several: a list of str (external ids), or an array of vertex ids, int [n].
        ``decoder``: file with the weights of a decoder; default: the dot product of the rows. ``scorer``: the decoder, if
        its file does not name it. ``type``: the edge type of the links; candidates have the vertex type that its
        destinations have. ``known="drop"`` leaves out destinations of edges of the store. The vertex itself is left out.
        Returns: list[Link] (id, score); for several, a list of such lists.
        Runs ``rhizome score`` and requires rhizome-store-gnn, as ``rhizome.evaluate`` does.
        Errors: NotFound; InvalidArgument; any error of ``rhizome score``.
        """
        from . import _links
        return _links.top_links(self, ids, as_text(array, "array"), decoder, scorer, type, as_count(k, "k", least=1), known,
                                threads, memory, progress)

    def __contains__(self, id: object) -> bool:
        """Returns whether the graph has a vertex with this external id. (``name in graph.arrays`` is about arrays.)"""
        if isinstance(id, bool) or not isinstance(id, (str, int, np.integer)):
            return False
        try:
            self._core.find(id)
        except (NotFound, OverflowError):
            return False
        return True

    def __iter__(self) -> Iterator[UserId]:
        """Iterates over the external ids of the vertices that are not deleted, ascending, at one commit."""
        for block in self.scan_vertices():
            yield from block.ids

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.arrays)

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
        arguments = sampler_arguments(
            self, fanouts, direction=direction, replace=replace, weighted=weighted, disjoint=disjoint, again=again,
            induced=induced, edge_ids=edge_ids, meta_path=meta_path, times=times, vertex_times=vertex_times, pick=pick,
            seed=seed, threads=threads)
        return Sampler(_core.Sampler(self._core, arguments), arguments)

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
        id of the neighbour; ``type``, a category, if the store has several; ``weight``, if it has weights; and the
        attributes of edges under their names (name_0, name_1, ... if an edge has several values), unless the graph was
        opened with topology="lazy".
        Errors: as for ``neighbors``; ImportError, pandas is not installed (or pyarrow, for times, texts and nulls).
        """
        from . import _tables
        return _tables.neighbors_frame(self, ids, direction)

    def vertices_to_arrow(self, arrays: Sequence[str] | None = None, rows: int | None = None) -> Any:
        """Returns a pyarrow.RecordBatchReader over the vertices that are not deleted, which reads each block on demand.

        Columns: ``vertex``, the vertex id; ``id``, the external id; ``type``, a dictionary, if the graph has several
        types; and ``arrays`` under their names, fixed-size lists unless a row has one value. None: the arrays with one
        value per row, such as ``label`` and ``split``. ``rows``: vertices per block.
        Errors: NotFound, no such array; ImportError, pyarrow is not installed.
        """
        from . import _to_arrow
        return _to_arrow.vertices_to_arrow(self, arrays, rows)

    def edges_to_arrow(self, *, pairs_once: bool = False, vertices: int = 4096) -> Any:
        """Returns a pyarrow.RecordBatchReader over all edges, by source, which reads each block on demand.

        Columns: ``src`` and ``dst``, external ids; ``type``, a dictionary, if the graph has several types; ``weight``,
        if it has weights; and the attributes of edges under their names, fixed-size lists unless an edge has one value.
        ``pairs_once``: as for ``scan_edges``. ``vertices``: sources per block.
        Errors: Corruption; IoError; ImportError, pyarrow is not installed.
        """
        from . import _to_arrow
        return _to_arrow.edges_to_arrow(self, bool(pairs_once), as_count(vertices, "vertices", least=1))

    def to_pandas(self) -> Frames:
        """Returns the vertices and the edges as pandas.DataFrames in memory: the columns of ``vertices_to_arrow`` and
        ``edges_to_arrow``. Errors: ImportError, pandas or pyarrow is not installed.
        """
        from . import _to_arrow
        return _to_arrow.to_pandas(self)

    # --- Commits ---

    def refresh(self) -> None:
        """Advances to the last commit of other processes; if it is open for writing, only checks that the store was not
        moved.

        Errors: ValueError, this graph is a snapshot or was opened at a point; IoError, the store was moved or replaced.
        """
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

    def export(self, folder: PathLike, *, memory: int | str = "256M", progress: Progress | None = None) -> ExportReport:
        """Writes the whole store at this state as a new folder of common files.

        The folder has ``vertices.csv``, ``edges.csv``, a ``.npy`` file for each array and each edge attribute, and
        ``rhizome.json``, which describes them; an ingestion of it creates the same store. It appears when it is
        complete. ``memory``: for rows and edges in memory at once.
        Errors: AlreadyExists, the folder exists; InvalidArgument, it is inside a store; OutOfSpace; IoError.
        """
        return ExportReport(**_core.export_folder(self._core, as_path(folder), as_bytes(memory), progress))

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Calls ``rhizome.verify`` for this store."""
        return verify(self.path, progress=progress)

    def backup(self, folder: PathLike, *, keep: int = 0, progress: Progress | None = None) -> BackupReport:
        """Calls ``rhizome.backup`` for this store."""
        return backup(self.path, folder, keep=keep, progress=progress)


def open(path: PathLike, mode: Literal["r", "w"] = "r", memory: int | str = "1G", *, topology: Topology = "auto",
         at: Point | None = None, wait: float = 0, log: Callable[[LogLine], object] | None = None,
         log_level: LogLevel = "warning") -> Graph:
    """Opens the graph in a store.

    ``mode``: "r" to read, concurrently with any number of other processes; "w" to write as well, one process at a time.
    ``memory``: maximum memory for topology and caches, in bytes or as a text such as "2G".
    ``topology``: neighbour lists in "memory" or on "disk"; "auto": on disk if they need more than half of ``memory``;
    "lazy": offsets, order and ids on disk, too, for look-ups of a few vertices: opening is instant, each look-up reads
    the blocks that it needs, and samplers, loaders, scans of edges and writes raise InvalidArgument.
    ``at``: the ``point`` of a graph that is held in some process at least until this one is open. The graph is then
    fixed at exactly that state, and holds it, too. None: the last commit.
    ``wait``: with mode "w", the seconds to wait while another process writes.
    ``log``: called with each event of at least ``log_level``, by the main thread or by the thread that closes the
    graph; None: events go to ``logging.getLogger("rhizome")``. ``log_level``: "off" for no events.
    Errors: StoreNotFound; Busy, another process writes; NotFound, ``at`` no longer exists; OutOfMemory, reporting the
    required size; Corruption; Unsupported, a newer format.
    """
    for name, value, values in (("mode", mode, ("r", "w")), ("topology", topology, ("auto", "memory", "disk", "lazy")),
                                ("log_level", log_level, ("debug", "info", "warning", "error", "off"))):
        if value not in values:
            raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(values)}")
    if log is not None and not callable(log):
        raise TypeError(f"log must be a function or None, not {type(log).__name__}")
    if at is not None and not isinstance(at, tuple):
        raise TypeError(f"at must be the point of a graph, not {type(at).__name__}")
    receiver = None if log_level == "off" else to_logging if log is None else log
    core = _core.Graph.open(as_path(path), mode == "w", as_bytes(memory), topology, receiver, log_level,
                            None if at is None else (*Point(*at),), as_seconds(wait, "wait"))
    return Graph(core, (memory, topology))


def _open_at(path: str, memory: int | str, topology: Topology, at: Point) -> Graph:
    """Opens an unpickled graph."""
    return open(path, memory=memory, topology=topology, at=at)
