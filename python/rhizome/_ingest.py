"""Making a store: from arrays in memory, and from files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._graph import Progress, _threads
from ._types import IngestReport, as_array, as_bytes, as_count, as_matrix, as_path, as_vertex_ids

def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _edge_file(path: Any) -> tuple[str, bool]:
    """Returns the path, and whether it is a .npy file of shape [2, m], all sources before all targets."""
    name = as_path(path)
    if not name.endswith(".npy") or not os.path.exists(name):
        return name, False
    shape = np.load(name, mmap_mode="r").shape
    return name, len(shape) == 2 and shape[0] == 2 and shape[1] != 2


def _edge_pairs(edges: Any) -> np.ndarray:
    """Returns edges [2, n] or [n, 2] as int64 [2, n], C-contiguous: without a copy if they are that already."""
    array = as_array(edges)
    if array.dtype.kind not in "iu":
        raise TypeError(f"edges are integers, not {array.dtype}; edges between names come from files")
    if array.ndim != 2 or 2 not in array.shape:
        raise ValueError(f"edges have shape [2, n] or [n, 2], not {list(array.shape)}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"an edge has the id {array.max()}, beyond int64")
    # [2, 2] is as edge_index of PyG.
    return np.ascontiguousarray(array if array.shape[0] == 2 else array.T, dtype=np.int64)


def _split_of(split: Any, vertices: int) -> np.ndarray:
    """Returns uint8 [vertices]: 0 train, 1 valid, 2 test, 255 none."""
    if isinstance(split, (tuple, list)) and len(split) == 3:
        sets = np.full(vertices, 255, np.uint8)
        for number, ids in enumerate(split):
            members = as_vertex_ids(ids, vertices)
            if members.size and (members.min() < 0 or members.max() >= vertices):
                raise IndexError(f"split: an id is not in [0, {vertices})")
            if (sets[members] != 255).any():
                raise ValueError("split: a vertex is in two sets")
            sets[members] = number
        return sets
    sets = as_array(split)
    if sets.dtype.kind not in "iu" or not np.isin(sets, (0, 1, 2, 255)).all():
        raise ValueError("split: three arrays of vertex ids, or a number for each vertex: 0, 1, 2, or 255 for none")
    return sets.astype(np.uint8)


def _vertex_count(edges: Any, arrays: Mapping[str, Any], vertices: int | None) -> int:
    if vertices is not None:
        return vertices
    counts = [len(as_array(values)) for values in arrays.values() if not _is_path(values)]
    if not counts and not _is_path(edges) and as_array(edges).size:
        counts = [int(as_array(edges).max()) + 1]
    if not counts:
        raise ValueError("split: say how many vertices there are (vertices=)")
    return max(counts)


def ingest(path: str | os.PathLike[str], edges: Any, *, arrays: Mapping[str, Any] | None = None,
           edge_arrays: Mapping[str, Any] | None = None, split: Any = None, vertices: int | None = None,
           nodes: str | os.PathLike[str] | None = None, columns: Sequence[str] = ("src", "dst"),
           node_columns: Sequence[str] = ("id",), header: bool = False, undirected: bool = False,
           partitions: int | None = None, memory: int | str = 0, threads: int | None = None, seed: int = 1,
           progress: Progress | None = None) -> IngestReport:
    """Makes a new store at ``path``.

    ``edges``: an array of integers [2, n] or [n, 2] (an array [2, 2] is taken as the former), or a path or a
    list of paths: TSV, CSV or .npy, plain, .gz or .zst. An array that is int64 [2, n] and C-contiguous is read
    where it lies; another is copied first, 16 bytes an edge. Ids that are exactly 0, 1, 2, ... (``vertices``
    counts) become the vertex ids; any others are the user's own, and get vertex ids in order of first sight.
    ``arrays``: by name, a row for each vertex 0, 1, 2, ...: an array [n] or [n, dim] of float32, float16,
    int64, int32, uint32 or uint8 (float64 becomes float32), or a path (.npy, Zarr v3).
    ``edge_arrays``: by name, a row for each edge in the order of ``edges``: float32 or int64, [n] or [n, dim];
    the name ``weight`` makes the weights of edges.
    ``split``: three arrays of vertex ids (train, valid, test), or uint8 [n] (0, 1, 2, and 255 for none).
    ``vertices``: at least so many. ``nodes``: a file with a line for each vertex, whose ``node_columns`` become
    arrays. ``columns``: those of text files of edges (src, dst, type, weight, names of attributes, "-" to skip).
    ``header``: skip the first line of text files. ``undirected``: store each edge in both directions.
    ``partitions``: None, as many as memory requires. ``memory``: bound in bytes beyond the bare process, or a
    text such as "4G"; 0: none. ``progress``: called with (phase, done, total).
    Ctrl-C raises KeyboardInterrupt. Whatever is raised, no store is there then, unless the signal came when the
    store had just been published: then all of it is.
    Errors: AlreadyExists; InvalidArgument, naming file, line and reason; StoreNotFound, a file is not there;
    TypeError, ValueError: arrays of other types or shapes; OutOfMemory; OutOfSpace.
    """
    arguments = _core.IngestArguments()
    arguments.path = as_path(path)
    arguments.columns = list(columns)
    arguments.node_columns = list(node_columns)
    arguments.nodes = None if nodes is None else as_path(nodes)
    arguments.header = bool(header)
    arguments.undirected = bool(undirected)
    arguments.vertices = None if vertices is None else as_count(vertices, "vertices")
    arguments.partitions = 0 if partitions is None else as_count(partitions, "partitions", least=1)
    arguments.memory_bytes = as_bytes(memory)
    arguments.threads = _threads(threads)
    arguments.seed = as_count(seed, "seed")

    given = dict(arrays or {})
    if split is not None:
        given["split"] = _split_of(split, _vertex_count(edges, given, vertices))
    arguments.arrays = [_source(name, values) for name, values in given.items()]
    arguments.edge_arrays = [_edge_source(name, values) for name, values in (edge_arrays or {}).items()]

    if _is_path(edges):
        edges = [edges]
    if isinstance(edges, (list, tuple)) and edges and all(map(_is_path, edges)):
        arguments.edges = [_edge_file(file) for file in edges]
    else:
        arguments.edge_pairs = _edge_pairs(edges)
    return IngestReport(**_core.ingest(arguments, progress))


def _source(name: str, values: Any) -> tuple[str, Any, str]:
    if _is_path(values):
        return name, as_path(values), ""
    matrix = as_matrix(values, name)
    return name, matrix, matrix.dtype.name


def _edge_source(name: str, values: Any) -> tuple[str, Any, str]:
    matrix = as_matrix(values, name)
    kind = np.float32 if matrix.dtype.kind == "f" else np.int64
    return name, np.ascontiguousarray(matrix, dtype=kind), np.dtype(kind).name
