"""Arrays, edges and neighbours as objects of other libraries (_to_arrow.py: as tables). Each library is imported only on
use."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Direction, NeighborLists, Subgraph, as_array, as_vertex_ids

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
    with graph.snapshot() as fixed:
        vertices = np.array([fixed.find(ids)]) if one else as_vertex_ids(ids, fixed.vertex_bound)
        near, far, types, weights, numbers = _edges_of(fixed, vertices, direction)
        columns = {} if one else {"of": as_array(fixed.external_ids(near))}
        columns["id"] = as_array(fixed.external_ids(far))
        if types is not None:
            columns["type"] = pandas.Categorical.from_codes(types, fixed.edge_types)
        if weights is not None:
            columns["weight"] = weights
        if numbers is not None:
            columns.update(_attributes(fixed, numbers, set(columns)))
    return pandas.DataFrame(columns)


def _edges_of(graph: Graph, vertices: np.ndarray, direction: Direction) -> tuple[Any, ...]:
    """Returns the edges of vertices: these, their neighbours, types, weights and numbers, each [n]; the last three None
    if there are none."""
    if not graph.edge_attributes or graph._options[1] == "lazy":
        lists = graph.neighbors(vertices, direction)
        near = np.repeat(vertices, np.diff(lists.offsets))
        return near, lists.ids, lists.types, lists.weights, None
    sub = graph.sampler([-1], direction=direction, disjoint=True, edge_ids=True).sample(vertices)
    far, near = sub.edge_index
    order = np.argsort(near, kind="stable")
    far, near = sub.vertices[far[order]], sub.vertices[near[order]]
    parts = (None if part is None else part[order] for part in (sub.types, sub.weights, sub.edge_ids))
    return near, far, *parts


def _attributes(graph: Graph, numbers: np.ndarray, taken: set[str]) -> dict[str, Any]:
    """Returns the attributes of edges as columns: an attribute of several values as name_0, name_1, ..."""
    columns = {}
    for name, _, dim, meaning in graph._core.edge_attributes():
        if name in taken:
            raise ValueError(f"an attribute of edges has the name of a column, {name!r}")
        rows = graph.edge_rows(name, numbers)
        names = [name] if dim == 1 else [f"{name}_{i}" for i in range(dim)]
        if {"null", "type"} & set(meaning):
            from ._to_arrow import forms_of_edges
            form = forms_of_edges(graph)[name]
            columns.update({one: form.values(rows[:, i]).to_pandas().array for i, one in enumerate(names)})
        else:
            columns.update({one: rows[:, i] for i, one in enumerate(names)})
    return columns
