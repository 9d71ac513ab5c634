"""Creates stores from arrays in memory, from tables and graphs of other libraries, and from files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _core
from ._edges import Group, bounds_of, groups_of, is_data, of_data
from ._sniff import Delimiter, set_text_options
from ._types import (
    IngestReport, PathLike, Progress, as_array, as_bytes, as_count, as_ids, as_matrix, as_names, as_path, as_text,
    as_threads, as_vertex_ids, is_path,
)


def ingest(path: PathLike, edges: Any = None, *, arrays: Mapping[str, Any] | None = None,
           edge_arrays: Mapping[str, Any] | None = None, ids: Any = None, split: Any = None,
           vertices: int | None = None, vertex_types: Mapping[str, int] | None = None, nodes: PathLike | None = None,
           columns: Sequence[str] | None = None, node_columns: Sequence[str] | None = None, header: bool | None = None,
           delimiter: Delimiter | None = None, end_types: Sequence[str] | None = None, undirected: bool = False, directions: Literal["both", "out", "in"] = "both",
           layout: Literal["row", "chunk"] = "row", partitions: int | None = None, homes: Any = None,
           memory: int | str = 0, scratch: PathLike | None = None, threads: int | None = None, seed: int = 1,
           progress: Progress | None = None) -> IngestReport:
    """Creates a new store at ``path``.

    ``edges``, in memory: integers [2, n] or [n, 2] (an array [2, 2] is read as the former); a pair (sources, targets),
    each [n] of int or of str; a table of pandas or pyarrow with columns ``src`` and ``dst`` (or the first two), whose
    other columns are the ``type``, the ``weight`` and attributes of the edges; a sparse matrix of SciPy, from row to
    column; a dict of these by edge type; torch_geometric's Data or HeteroData. Or a path, or a list of paths: text,
    Matrix Market, or .npy ([2, n] or [n, 2]); plain or compressed by gzip or zstd. Contiguous int64 data is read in place; everything else is copied first.
    ``ids``: the external ids of the vertices, int or str, [n], in the order of the rows of ``arrays``; vertices that
    only edges name follow. Without ``ids``, integers that are exactly 0, 1, 2, ... (taking into account ``vertices``
    and the rows of ``arrays``) are the vertex ids; any others are external ids, and get vertex ids in order of first
    occurrence.
    ``arrays``: by name, a row for each vertex 0, 1, 2, ...: an array [n] or [n, dim] of float32, float16, int64, int32,
    uint32 or uint8 (float64 becomes float32), or a path (.npy, Zarr v3, text with one row a line).
    ``edge_arrays``: by name, a row for each edge in the order of ``edges``: float32 or int64, [n] or [n, dim]; the name
    ``weight`` denotes the edge weights.
    ``split``: three arrays of vertex ids, or bool masks (train, valid, test), or uint8 [n] (0, 1, 2, 255 for none).
    ``vertices``: minimum number of vertices. ``vertex_types``: number of vertices of each type; ``edges`` is then a
    dict by (type of the sources, name, type of the targets), with ids that count from 0 in each type. If several of
    them share a name, such as "to" in a__to__b and b__to__a, the names of their edge types are built like these
    examples instead.
    ``nodes``: a file with one line per vertex, whose ``node_columns`` become arrays.
    ``columns``: columns of text files of edges (src, dst, type, weight, names of attributes, "-" to skip); None, for
    ``node_columns`` too: found by the names in the header. ``header``: whether the first line of text files is a
    header; None: found. ``delimiter``: what separates fields; None: found. ``end_types``: the types of sources and of
    destinations, if these are two kinds of vertices with overlapping ids, so that 7 becomes "user:7"; None: found by
    names such as userId and movieId. `sniff` shows what is found. ``undirected``: store each edge in both directions.
    ``directions``: the neighbour lists to store. ``layout``: "row" for reading random rows of arrays, "chunk"
    (compressed) for scans. ``partitions``: None: as many as memory requires.
    ``homes``: store a home for each vertex, one of ``partitions``, in the array "home": "edgecut" (few edges between
    homes; rows and training vertices balanced within 1.05), "owner", or explicit homes: integers [n], or a path (.npy,
    Zarr v3, or a text file with one per line). ``memory``: maximum memory of the process beyond its size now, in
    bytes or as a text such as "4G"; 0: no limit. ``scratch``: a folder for temporary files; None: next to the store.
    ``progress``: called with (phase, done, total).
    Ctrl-C raises KeyboardInterrupt. After any exception there is no store, unless the signal arrived when the store had
    just been published: in that case it is complete.
    Errors: AlreadyExists; InvalidArgument, naming file, line and reason; StoreNotFound, a file does not exist;
    TypeError, ValueError: arrays of other types or shapes; OutOfMemory; OutOfSpace.
    """
    given = dict(arrays or {})
    further = dict(edge_arrays or {})
    if is_data(edges):
        data = of_data(edges)
        edges = data["edges"]
        given = {**data["arrays"], **given}
        further = {**data["edge_arrays"], **further}
        vertices = data.get("vertices") if vertices is None else vertices
        vertex_types = data.get("vertex_types") if vertex_types is None else vertex_types
        split = data["split"] if split is None else split

    arguments = _core.IngestArguments()
    arguments.path = as_path(path)
    set_text_options(arguments, columns, node_columns, header, delimiter, end_types)
    arguments.nodes = "" if nodes is None else as_path(nodes)
    arguments.undirected = bool(undirected)
    arguments.directions = as_text(directions, "directions")
    arguments.layout = as_text(layout, "layout")
    if isinstance(homes, str) and homes in ("edgecut", "owner"):
        arguments.homes = homes
    elif is_path(homes):
        arguments.homes_file = as_path(homes)
    elif homes is not None:
        own = as_matrix(homes, "homes")
        arguments.homes_file = (own, own.dtype.name)
    arguments.scratch = "" if scratch is None else as_path(scratch)
    arguments.partitions = 0 if partitions is None else as_count(partitions, "partitions", least=1)
    arguments.memory_bytes = as_bytes(memory)
    arguments.threads = as_threads(threads)
    arguments.seed = as_count(seed, "seed")
    arguments.ids = None if ids is None else as_ids(ids, "ids")

    as_names(given, "names of arrays")
    as_names(further, "names of columns of edges")
    count = None if vertices is None else as_count(vertices, "vertices")
    matrices = {name: as_matrix(values, name) for name, values in given.items() if not is_path(values)}
    rows = max((len(values) for values in matrices.values()), default=None)
    if is_path(edges):
        edges = [edges]
    if isinstance(edges, (list, tuple)) and edges and all(map(is_path, edges)):
        arguments.edges = [as_path(file) for file in edges]
        arguments.edge_arrays = [_edge_array(name, [as_matrix(values, name)]) for name, values in further.items()]
        bounds = None
    else:
        groups = [] if edges is None else groups_of(edges, further)
        arguments.edges = _edge_spans(groups, vertex_types)
        arguments.edge_arrays = _edge_columns(groups)
        bounds = None if vertex_types is not None else bounds_of(groups)
        if count is None and ids is None and nodes is None:
            count = _dense_count(edges, bounds, rows)
    if vertex_types is not None:
        as_names(vertex_types, "vertex_types")
        ranges = {name: as_count(number, "vertex_types") for name, number in vertex_types.items()}
        arguments.vertex_types = list(ranges.items())
        count = sum(ranges.values())
    arguments.vertices = count
    if split is not None:
        known = count if count is not None else rows if rows is not None else bounds[1] + 1 if bounds else None
        matrices["split"] = as_matrix(_split_of(split, known), "split")
    arguments.arrays = [(name, as_path(given[name]), "") if name not in matrices else
                        (name, matrices[name], matrices[name].dtype.name) for name in {**given, **matrices}]
    return IngestReport(**_core.ingest(arguments, progress))


def _edge_array(name: str, parts: list[np.ndarray | None]) -> tuple[str, list[np.ndarray | None], str]:
    floats = name == "weight" or any(part is not None and part.dtype.kind == "f" for part in parts)
    kind = np.dtype(np.float32 if floats else np.int64)
    return name, [None if part is None else np.ascontiguousarray(part, dtype=kind) for part in parts], kind.name


def _edge_columns(groups: list[Group]) -> list[tuple[str, list[np.ndarray | None], str]]:
    """Returns the columns of all groups, each with a part or None (zeros) for every group."""
    names = dict.fromkeys(name for group in groups for name in group.columns)
    return [_edge_array(name, [group.columns.get(name) for group in groups]) for name in names]


def _edge_spans(groups: list[Group], vertex_types: Mapping[str, int] | None) -> list[tuple[Any, ...]]:
    """Returns each group as (sources, targets, type, range of the sources, range of the targets)."""
    ranges = {}
    first = 0
    for name, count in (vertex_types or {}).items():
        ranges[name] = first, count
        first += count
    # If a name is used between several pairs of types, each pair gets a separate edge type.
    names = Counter(group.type[1] for group in groups if isinstance(group.type, tuple))
    spans: list[tuple[Any, ...]] = []
    for group in groups:
        if vertex_types is None:
            if isinstance(group.type, tuple):
                raise ValueError(f"edges {group.type!r}: give the number of vertices of each type (vertex_types=)")
            spans.append((group.src, group.dst, group.type, None, None))
            continue
        if not isinstance(group.type, tuple) or group.type[0] not in ranges or group.type[2] not in ranges:
            raise ValueError(f"edges {group.type!r}: name them (type of the sources, name, type of the targets), " +
                             f"with the types {', '.join(ranges)}")
        name = group.type[1] if names[group.type[1]] == 1 else "__".join(group.type)
        spans.append((group.src, group.dst, name, ranges[group.type[0]], ranges[group.type[2]]))
    return spans


def _dense_count(edges: Any, bounds: tuple[int, int] | None, rows: int | None) -> int | None:
    """Returns the number of vertices if integers are vertex ids, which the rows or the shape of a matrix determine."""
    if hasattr(edges, "tocoo"):
        return max(int(edges.shape[0]), int(edges.shape[1]), rows or 0)
    if rows is not None and bounds is not None and bounds[0] >= 0 and bounds[1] < rows:
        return rows
    return None


def _split_of(split: Any, vertices: int | None) -> np.ndarray:
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
    sets = as_array(split)
    if sets.dtype.kind not in "iu" or not np.isin(sets, (0, 1, 2, 255)).all():
        raise ValueError("split must be three arrays of vertex ids, or one number per vertex: 0, 1, 2, or 255 for none")
    return sets.astype(np.uint8)
