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
    vertices = np.array([graph.find(ids)]) if one else as_vertex_ids(ids, graph.vertex_bound)
    lists = graph.neighbors(vertices, direction)
    columns = {} if one else {"of": np.repeat(as_array(graph.external_ids(vertices)), np.diff(lists.offsets))}
    columns["id"] = as_array(graph.external_ids(lists.ids))
    if lists.types is not None:
        columns["type"] = pandas.Categorical.from_codes(lists.types, graph.edge_types)
    if lists.weights is not None:
        columns["weight"] = lists.weights
    return pandas.DataFrame(columns)
