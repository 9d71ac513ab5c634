"""Arrays, vertices and edges as tables of Arrow, and of pandas by way of Arrow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._tables import library
from ._types import Direction, Frames, as_count, as_path, as_text, block_rows, dtype_name
from .errors import InvalidArgument

if TYPE_CHECKING:
    from ._array import Array
    from ._graph import Graph


class Form:
    """How the rows of an array, or of an attribute of edges, become a column: values of integers that mean "none" are
    nulls, and codes of texts, times and bools are what they stand for."""

    def __init__(self, dtype: np.dtype, dim: int, meaning: Mapping[str, str], texts_of: Callable[[np.ndarray], Any]) -> None:
        """``meaning``: the attributes ``null`` and ``type`` of the array; ``texts_of``: the texts of codes."""
        arrow = library("pyarrow", "an Arrow table", "arrow")
        self._dim, self._texts_of = dim, texts_of
        self._null = int(meaning["null"]) if "null" in meaning and dtype.kind != "f" else None
        self._kind = meaning.get("type", "")
        if self._kind == "text":
            value = arrow.string()
        elif self._kind == "timestamp":
            value = arrow.timestamp("us", "UTC")
        elif self._kind == "bool":
            value = arrow.bool_()
        elif dtype_name(dtype) == "bfloat16":
            self._kind, value = "bfloat16", arrow.float32()
        else:
            value = arrow.from_numpy_dtype(dtype)
        self._value = value
        self.type = value if dim == 1 else arrow.list_(value, dim)

    def column(self, rows: np.ndarray) -> Any:
        """Returns rows, [n, dim], as an Arrow array; numbers are not copied."""
        import pyarrow as arrow

        values = self.values(rows.reshape(-1))
        return values if self._dim == 1 else arrow.FixedSizeListArray.from_arrays(values, self._dim)

    def values(self, flat: np.ndarray) -> Any:
        """Returns values, [n], as an Arrow array."""
        import pyarrow as arrow

        flat = np.ascontiguousarray(np.asarray(flat))  # without the mask of MaskedRows
        mask = None if self._null is None else flat == self._null
        if self._kind == "text":
            return arrow.array(self._texts_of(flat.astype(np.int64)), self._value)
        if self._kind == "timestamp":
            return arrow.array(flat, arrow.int64(), mask=mask).cast(self._value)
        if self._kind == "bool":
            return arrow.array(flat != 0, self._value, mask=mask)
        if self._kind == "bfloat16":
            return arrow.array((flat.view(np.uint16).astype(np.uint32) << 16).view(np.float32))
        return arrow.array(flat, self._value, mask=mask)


def form_of_array(array: Array) -> Form:
    return Form(array.dtype, array.dim, array.attributes, array.text_of)


def forms_of_edges(graph: Graph) -> dict[str, Form]:
    """Returns the forms of the attributes of edges by name."""
    def texts_of(name: str) -> Callable[[np.ndarray], Any]:
        return lambda codes: _core.texts_of_codes(graph._core, name, codes)

    return {name: Form(np.dtype(dtype), dim, meaning, texts_of(name))
            for name, dtype, dim, meaning in graph._core.edge_attributes()}


def _block_rows(array: Array, rows: int | None) -> int:
    return block_rows(array) if rows is None else as_count(rows, "rows", least=1)


def _ahead(blocks: Iterator[Any]) -> Iterator[Any]:
    """Iterates over blocks; a thread prepares the next block while the current one is used."""
    with ThreadPoolExecutor(1, "rhizome-scan") as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block


def _id_type(graph: Graph) -> Any:
    arrow = library("pyarrow", "an Arrow table", "arrow")
    first = graph.external_ids(np.arange(min(1, graph.vertex_bound)))
    return arrow.string() if first and isinstance(first[0], str) else arrow.int64()


def _as_names(numbers: np.ndarray, names: list[str]) -> Any:
    """Returns types as a dictionary array."""
    import pyarrow as arrow

    return arrow.DictionaryArray.from_arrays(arrow.array(numbers.astype(np.int32)), arrow.array(names, arrow.string()))


def arrow_batches(array: Array, rows: int | None = None) -> Any:
    """Returns a pyarrow.RecordBatchReader over an array, which reads each block on demand."""
    form, id_type = form_of_array(array), _id_type(array.graph)
    import pyarrow as arrow

    schema = arrow.schema([("vertex", arrow.int64()), ("id", id_type), (array.name, form.type)])

    def blocks() -> Iterator[Any]:
        for vertices, values in array.batches(_block_rows(array, rows)):
            ids = arrow.array(array.graph.external_ids(vertices), type=id_type)
            yield arrow.record_batch([arrow.array(vertices), ids, form.column(values)], schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


def array_frame(array: Array) -> Any:
    """Returns the rows of an array as a pandas.DataFrame with the external ids as its index."""
    pandas = library("pandas", "a data frame", "pandas")
    blocks = list(array.batches())
    vertices = np.concatenate([ids for ids, _ in blocks]) if blocks else np.empty(0, np.int64)
    rows = np.concatenate([values for _, values in blocks]) if blocks else np.empty((0, array.dim), array.dtype)
    index = pandas.Index(array.graph.external_ids(vertices), name="id")
    names = [array.name] if array.dim == 1 else [f"{array.name}_{i}" for i in range(array.dim)]
    if {"null", "type"} & set(array.attributes) or dtype_name(array.dtype) == "bfloat16":
        form = form_of_array(array)
        columns = [form.values(rows[:, i]).to_pandas().array for i in range(array.dim)]
        return pandas.DataFrame(dict(zip(names, columns)), index=index)
    return pandas.DataFrame(rows, columns=names, index=index)


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
    forms = [form_of_array(array) for array in arrays]
    typed = len(fixed.vertex_types) > 1
    names_type = arrow.dictionary(arrow.int32(), arrow.string())
    schema = arrow.schema([("vertex", arrow.int64()), ("id", id_type), *([("type", names_type)] if typed else []),
                           *((array.name, form.type) for array, form in zip(arrays, forms))])

    def blocks() -> Iterator[Any]:
        with fixed:
            for block in fixed.scan_vertices(as_count(65_536 if rows is None else rows, "rows", least=1)):
                columns = [arrow.array(block.vertices), arrow.array(block.ids, type=id_type)]
                columns += [_as_names(block.types, fixed.vertex_types)] if typed else []
                columns += [form.column(array[block.vertices]) for array, form in zip(arrays, forms)]
                yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, _ahead(blocks()))


def edges_to_arrow(graph: Graph, pairs_once: bool, vertices: int) -> Any:
    """Returns a pyarrow.RecordBatchReader over the edges of a graph."""
    id_type = _id_type(graph)
    import pyarrow as arrow

    fixed = graph.snapshot()
    attributes = forms_of_edges(fixed)
    taken = {"src", "dst", "type", "weight"} & set(attributes)
    if taken:
        raise ValueError(f"an attribute of edges has the name of a column, {sorted(taken)[0]!r}")
    scan = EdgeBlocks(fixed, pairs_once, bool(attributes))
    fields = [("src", id_type), ("dst", id_type)]
    if scan.typed:
        fields.append(("type", arrow.dictionary(arrow.int32(), arrow.string())))
    if scan.weighted:
        fields.append(("weight", arrow.float32()))
    fields += [(name, form.type) for name, form in attributes.items()]
    schema = arrow.schema(fields)

    def blocks() -> Iterator[Any]:
        with fixed:
            for src, dst, types, weights, numbers in scan.blocks(vertices):
                columns = [arrow.array(fixed.external_ids(ids), type=id_type) for ids in (src, dst)]
                columns += [_as_names(types, fixed.edge_types)] if types is not None else []
                columns += [arrow.array(weights)] if weights is not None else []
                columns += [form.column(fixed.edge_rows(name, numbers)) for name, form in attributes.items()]
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
