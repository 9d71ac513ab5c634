"""Arrays, edges and neighbours as objects of other libraries. Each library is imported only on use."""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import (
    Direction, Frames, NeighborLists, Subgraph, as_array, as_count, as_path, as_text, as_vertex_ids, block_rows,
)
from .errors import InvalidArgument

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


def _row_type(dtype: np.dtype, dim: int) -> Any:
    """Returns Arrow's type of a row: a value, or a list of ``dim`` values."""
    arrow = library("pyarrow", "an Arrow table", "arrow")
    value = arrow.from_numpy_dtype(dtype)
    return value if dim == 1 else arrow.list_(value, dim)


def _id_type(graph: Graph) -> Any:
    arrow = library("pyarrow", "an Arrow table", "arrow")
    first = graph.external_ids(np.arange(min(1, graph.vertex_bound)))
    return arrow.string() if first and isinstance(first[0], str) else arrow.int64()


def _as_rows(values: np.ndarray) -> Any:
    """Returns rows, [n, dim], as an Arrow array without a copy."""
    import pyarrow as arrow

    column = arrow.array(values.reshape(-1))
    return column if values.shape[1] == 1 else arrow.FixedSizeListArray.from_arrays(column, values.shape[1])


def _as_names(numbers: np.ndarray, names: list[str]) -> Any:
    """Returns types as a dictionary array."""
    import pyarrow as arrow

    return arrow.DictionaryArray.from_arrays(arrow.array(numbers.astype(np.int32)), arrow.array(names, arrow.string()))


def arrow_batches(array: Array, rows: int | None = None) -> Any:
    """Returns a pyarrow.RecordBatchReader over an array, which reads each block on demand."""
    row_type, id_type = _row_type(array.dtype, array.dim), _id_type(array.graph)
    import pyarrow as arrow

    schema = arrow.schema([("vertex", arrow.int64()), ("id", id_type), (array.name, row_type)])

    def blocks() -> Iterator[Any]:
        for vertices, values in array.batches(_block_rows(array, rows)):
            ids = arrow.array(array.graph.external_ids(vertices), type=id_type)
            yield arrow.record_batch([arrow.array(vertices), ids, _as_rows(values)], schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


def array_frame(array: Array) -> Any:
    """Returns the rows of an array as a pandas.DataFrame with the external ids as its index."""
    pandas = library("pandas", "a data frame", "pandas")
    blocks = list(array.batches())
    vertices = np.concatenate([ids for ids, _ in blocks]) if blocks else np.empty(0, np.int64)
    rows = np.concatenate([values for _, values in blocks]) if blocks else np.empty((0, array.dim), array.dtype)
    names = [array.name] if array.dim == 1 else [f"{array.name}_{i}" for i in range(array.dim)]
    return pandas.DataFrame(rows, columns=names, index=pandas.Index(array.graph.external_ids(vertices), name="id"))


def vertices_to_arrow(graph: Graph, names: Sequence[str] | None, rows: int | None) -> Any:
    """Returns a pyarrow.RecordBatchReader over the vertices of a graph."""
    id_type = _id_type(graph)
    import pyarrow as arrow

    fixed = graph.snapshot()
    if names is None:
        names = [name for name, info in fixed.arrays.items() if info.shape[1] == 1]
    arrays = [fixed[as_text(name, "arrays")] for name in names]
    taken = {"vertex", "id", "type"} & {array.name for array in arrays}
    if taken:
        raise ValueError(f"an array has the name of a column of vertices, {sorted(taken)[0]!r}: choose others by arrays=")
    typed = len(fixed.vertex_types) > 1
    names_type = arrow.dictionary(arrow.int32(), arrow.string())
    schema = arrow.schema([("vertex", arrow.int64()), ("id", id_type), *([("type", names_type)] if typed else []),
                           *((array.name, _row_type(array.dtype, array.dim)) for array in arrays)])

    def blocks() -> Iterator[Any]:
        with fixed:
            for block in fixed.scan_vertices(as_count(65_536 if rows is None else rows, "rows", least=1)):
                columns = [arrow.array(block.vertices), arrow.array(block.ids, type=id_type)]
                columns += [_as_names(block.types, fixed.vertex_types)] if typed else []
                columns += [_as_rows(array[block.vertices]) for array in arrays]
                yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


def edges_to_arrow(graph: Graph, pairs_once: bool, vertices: int) -> Any:
    """Returns a pyarrow.RecordBatchReader over the edges of a graph."""
    id_type = _id_type(graph)
    import pyarrow as arrow

    fixed = graph.snapshot()
    attributes = fixed.edge_attributes
    taken = {"src", "dst", "type", "weight"} & set(attributes)
    if taken:
        raise ValueError(f"an attribute of edges has the name of a column, {sorted(taken)[0]!r}")
    scan = EdgeBlocks(fixed, pairs_once, bool(attributes))
    fields = [("src", id_type), ("dst", id_type)]
    if scan.typed:
        fields.append(("type", arrow.dictionary(arrow.int32(), arrow.string())))
    if scan.weighted:
        fields.append(("weight", arrow.float32()))
    fields += [(name, _row_type(dtype, dim)) for name, (dtype, dim) in attributes.items()]
    schema = arrow.schema(fields)

    def blocks() -> Iterator[Any]:
        with fixed:
            for src, dst, types, weights, numbers in scan.blocks(vertices):
                columns = [arrow.array(fixed.external_ids(ids), type=id_type) for ids in (src, dst)]
                columns += [_as_names(types, fixed.edge_types)] if types is not None else []
                columns += [arrow.array(weights)] if weights is not None else []
                columns += [_as_rows(fixed.edge_rows(name, numbers)) for name in attributes]
                yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


class EdgeBlocks:
    """The edges of a snapshot with their numbers, by source (or by target, in a store without out-lists)."""

    def __init__(self, graph: Graph, pairs_once: bool, numbered: bool) -> None:
        self._graph, self._pairs_once = graph, pairs_once and graph._core.symmetric
        directions: tuple[Direction, ...] = ("out", "in")
        for direction in directions:
            try:
                self._sampler = graph.sampler([-1], direction=direction, edge_ids=numbered)
            except InvalidArgument:
                if direction == "in":
                    raise
                continue
            break
        self._outward = direction == "out"
        probe = self._sampler.sample([])
        self.typed, self.weighted = probe.types is not None, probe.weights is not None

    def blocks(self, vertices: int) -> Iterator[tuple[Any, ...]]:
        """Returns sources, targets, types, weights and numbers, each [n]; the last three None if there are none."""
        for first in range(0, self._graph.vertex_bound, vertices):
            sub = self._sampler.sample(np.arange(first, min(first + vertices, self._graph.vertex_bound)))
            far, near = sub.vertices[sub.edge_index]
            src, dst = (near, far) if self._outward else (far, near)
            block: tuple[Any, ...] = (src, dst, sub.types, sub.weights, sub.edge_ids)
            if self._pairs_once:
                once = near <= far
                block = tuple(None if column is None else column[once] for column in block)
            if len(block[0]):
                yield block


def to_pandas(graph: Graph) -> Frames:
    """Returns the vertices and edges of a graph as data frames."""
    library("pandas", "a data frame", "pandas")
    return Frames(vertices_to_arrow(graph, None, None).read_all().to_pandas(),
                  edges_to_arrow(graph, False, 4096).read_all().to_pandas())


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
