"""Arrays, edges and neighbours as objects of other libraries. Each library is imported only on use."""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Direction, NeighborLists, Subgraph, as_array, as_count, as_path, as_vertex_ids, block_rows

if TYPE_CHECKING:
    from ._array import Array
    from ._graph import Graph


def library(name: str, use: str, extra: str) -> Any:
    """Imports a library. Errors: ImportError, naming the feature that needs it and how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{use} needs {package}: pip install {package}",
                          name=package) from error


def _block_rows(array: Array, rows: int | None) -> int:
    return block_rows(array) if rows is None else as_count(rows, "rows", least=1)


def _ahead(blocks: Iterator[Any]) -> Iterator[Any]:
    """Iterates over blocks; a thread prepares the next block while the current one is used."""
    with ThreadPoolExecutor(1, "rhizome-scan") as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block


def _arrow_schema(array: Array) -> Any:
    arrow = library("pyarrow", "an Arrow table", "arrow")
    value = arrow.from_numpy_dtype(array.dtype)
    rows = value if array.shape[1] == 1 else arrow.list_(value, array.shape[1])
    first = array.graph.external_ids(np.arange(min(1, array.graph.vertex_bound)))
    ids = arrow.string() if first and isinstance(first[0], str) else arrow.int64()
    return arrow.schema([("vertex", arrow.int64()), ("id", ids), (array.name, rows)])


def arrow_batches(array: Array, rows: int | None = None) -> Any:
    """Returns a pyarrow.RecordBatchReader over an array, which reads each block on demand."""
    schema = _arrow_schema(array)
    import pyarrow as arrow

    def blocks() -> Iterator[Any]:
        for vertices, values in array.batches(_block_rows(array, rows)):
            column = arrow.array(values.reshape(-1))  # without a copy
            if array.shape[1] != 1:
                column = arrow.FixedSizeListArray.from_arrays(column, array.shape[1])
            ids = arrow.array(array.graph.external_ids(vertices), type=schema.field("id").type)
            yield arrow.record_batch([arrow.array(vertices), ids, column], schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


def to_parquet(array: Array, path: str | os.PathLike[str], rows: int | None = None, **options: Any) -> int:
    """Writes an array to a Parquet file, block by block; the file appears at ``path`` only when it is complete."""
    reader = arrow_batches(array, rows)
    parquet = library("pyarrow.parquet", "a Parquet file", "arrow")
    target = as_path(path)
    partial = f"{target}.{os.getpid()}.partial"
    # Rows of floats neither repeat nor compress, so attempting either only costs time.
    options = {"compression": "none", "use_dictionary": ["id"], **options}
    count = 0
    try:
        with parquet.ParquetWriter(partial, reader.schema, **options) as writer:
            for batch in reader:
                writer.write_batch(batch)
                count += batch.num_rows
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
    return count


def to_zarr(array: Array) -> Any:
    """Opens the files of an array as a read-only zarr.Array."""
    zarr = library("zarr", "a Zarr array", "zarr")
    if array.changed_rows:
        warnings.warn(f"{array.changed_rows} rows of {array.name!r} were written since the last compaction, and "
                      "Zarr does not see them: compact() first", UserWarning, stacklevel=3)
    return zarr.open_array(array.folder, mode="r")


def _out_lists(graph: Graph) -> NeighborLists:
    return graph.neighbors(np.arange(graph.vertex_bound))


def to_scipy(graph: Graph, type: str | None = None) -> Any:
    """Returns the adjacency matrix."""
    sparse = library("scipy.sparse", "a SciPy matrix", "scipy")
    lists = _out_lists(graph)
    values = np.ones(len(lists.ids), np.float32) if lists.weights is None else lists.weights
    matrix = sparse.csr_array((values, lists.ids, lists.offsets), shape=(graph.vertex_bound, graph.vertex_bound))
    if type is None:
        return matrix
    if type not in graph.edge_types:
        raise ValueError(f"there is no edge type {type!r}: the types are {graph.edge_types}")
    if lists.types is None:
        return matrix
    kept = lists.types == graph.edge_types.index(type)
    before = np.concatenate([[0], np.cumsum(kept)])
    return sparse.csr_array((values[kept], lists.ids[kept], before[lists.offsets]), shape=matrix.shape)


def to_networkx(graph: Graph, subgraph: Subgraph | None = None) -> Any:
    """Returns a networkx.MultiDiGraph of the whole graph, or of a sampled subgraph."""
    networkx = library("networkx", "a NetworkX graph", "networkx")
    if subgraph is None:
        lists = _out_lists(graph)
        vertices = graph.vertices_of()
        src = np.repeat(np.arange(graph.vertex_bound), np.diff(lists.offsets))
        ends, types, weights = (src, lists.ids), lists.types, lists.weights
    else:
        vertices = np.unique(subgraph.vertices)
        ends, types, weights = subgraph.vertices[subgraph.edge_index], subgraph.types, subgraph.weights
    names = dict(zip(vertices.tolist(), graph.external_ids(vertices)))
    made = networkx.MultiDiGraph()
    made.add_nodes_from(names.values())
    columns = [] if types is None else [("type", [graph.edge_types[one] for one in types.tolist()])]
    columns += [] if weights is None else [("weight", weights.tolist())]
    keys = [name for name, _ in columns]
    attributes = zip(*(column for _, column in columns)) if columns else iter(lambda: (), None)
    made.add_edges_from((names[src], names[dst], dict(zip(keys, values)))
                        for src, dst, values in zip(ends[0].tolist(), ends[1].tolist(), attributes))
    return made


def neighbors_frame(graph: Graph, ids: Any, direction: Direction) -> Any:
    """Returns a pandas.DataFrame with one row per edge of the given vertices."""
    pandas = library("pandas", "a data frame", "pandas")
    one = isinstance(ids, (str, int))
    vertices = np.array([graph.find(ids)]) if one else as_vertex_ids(ids, graph.vertex_bound)
    lists = graph.neighbors(vertices, direction)
    columns = {} if one else {"of": np.repeat(as_array(graph.external_ids(vertices)), np.diff(lists.offsets))}
    columns["id"] = as_array(graph.external_ids(lists.ids))
    if lists.types is not None:
        columns["type"] = pandas.Categorical.from_codes(lists.types, graph.edge_types)
    if lists.weights is not None:
        columns["weight"] = lists.weights
    return pandas.DataFrame(columns)
