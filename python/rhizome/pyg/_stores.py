"""PyG's FeatureStore and GraphStore on a Rhizome store."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, TensorAttr
from torch_geometric.data import FeatureStore as PygFeatureStore
from torch_geometric.data import GraphStore as PygGraphStore
from torch_geometric.data.graph_store import EdgeLayout

from .. import _core
from .._graph import Graph
from .._shared import EdgeType, SharedGraph, arrays_by_type, tensor
from .._types import as_bytes, as_text
from ..errors import OutOfMemory

#: An array for all node types, or arrays by node type (None: none).
Served = Union[str, Mapping[str, Optional[str]], None]


def backend(graph: Graph, x: Served = None, y: Served = None, *, memory: int | str = "1G",
            e_id: str | None = None, edge_types: Mapping[str, EdgeType] | None = None,
            **more: Served) -> tuple[FeatureStore, GraphStore]:
    """Returns PyG's two stores of a graph, for its loaders: ``NeighborLoader((fs, gs), ...)``.

    ``x``, ``y`` and ``more``: the array that PyG sees under that name, or arrays by node type, of any widths, such as
    ``{"paper": "feat", "author": "author_feat", "venue": None}``. Only these are read for
    every minibatch. An array with one column becomes a vector, and integers become int64. Without ``x`` it is the only
    array of floats, which a warning names; ``x={}``: none.
    ``e_id``: an int64 attribute of edges: the position of each edge in the edge_index (of its type) that PyG sees, such
    as the one that was ingested. It is held in memory, 8 bytes per edge. Without it, edges have the store's numbers.
    ``edge_types``: PyG's triple for each edge type of the store, if the names do not contain it
    ("author__writes__paper") and the first edge of the type is not representative.
    ``memory``: maximum memory of a worker process that opens the store itself, and of all edges in the GraphStore.
    Pickled, as for spawned workers, the stores consist of a path and these options.
    """
    shared = SharedGraph(graph, memory, edge_types)
    if x is None:
        x = _only_floats(graph)
    served = {name: array for name, array in {"x": x, "y": y, **more}.items() if array is not None}
    return FeatureStore(shared, served), GraphStore(shared, None if e_id is None else as_text(e_id, "e_id"))


def _only_floats(graph: Graph) -> Served:
    """Returns the only array of floats, or arrays that are bound to different node types, with a warning; None: there is
    none, or there are several."""
    floats = [name for name, array in graph.arrays.items() if array.dtype.kind == "f"]
    bound = {graph[name].vertex_type: name for name in floats}
    if len(floats) > 1 and len(bound) == len(floats) and None not in bound:
        warnings.warn(f"backend() serves the arrays {', '.join(map(repr, floats))} as x, the only one of floats of each node type: "
                      f"give x={bound}, or x={{}} for no features", UserWarning, stacklevel=3)
        return bound  # type: ignore[return-value]
    if len(floats) == 1:
        warnings.warn(f"backend() serves the array {floats[0]!r} as x, the only one of floats: give x={floats[0]!r}, or x={{}} for "
                      "no features", UserWarning, stacklevel=3)
        return floats[0]
    if floats:
        warnings.warn(f"backend() serves no x: give x= one of the arrays {', '.join(map(repr, floats))}, or x={{}} for no features",
                      UserWarning, stacklevel=3)
    return None


class FeatureStore(PygFeatureStore):
    """The arrays of a store's vertices for PyG; created by ``backend``.

    Tensors that are put are written to an existing array, in a store that is open with mode "w".
    """

    def __init__(self, shared: SharedGraph, served: Mapping[str, Served]) -> None:
        super().__init__()
        self.__dict__["shared"] = shared
        self.__dict__["_served"] = {
            (group, name): array
            for name, arrays in served.items()
            for group, array in arrays_by_type(shared, arrays).items()
        }

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [self._tensor_attr_cls(group, name) for group, name in self._served]

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        array = self.shared.rows[self._array(attr)]
        rows = array.read(self.shared.schema.vertices(attr.group_name, attr.index))
        if rows.shape[1] == 1:
            rows = rows[:, 0]
        if rows.dtype.kind in "iu":
            rows = rows.astype(np.int64, copy=False)
        return tensor(rows)

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        width = self.shared.rows[self._array(attr)].shape[1]
        schema = self.shared.schema
        count = schema.counts[attr.group_name] if schema.typed else schema.bound
        return (count,) if width == 1 else (count, width)

    def _put_tensor(self, rows: Tensor | np.ndarray, attr: TensorAttr) -> bool:
        values = rows.detach().cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
        ids = self.shared.schema.vertices(attr.group_name, attr.index)
        with self.shared.live.batch(create_vertices=False) as batch:
            batch.put_rows(self._array(attr), ids, values.reshape(len(values), -1))
        self.shared.renew()
        return True

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        """Stops serving the array. It remains in the store, where others may use it."""
        return self._served.pop((attr.group_name, attr.attr_name), None) is not None

    def _array(self, attr: TensorAttr) -> str:
        try:
            return self._served[attr.group_name, attr.attr_name]
        except KeyError:
            raise KeyError(f"no array is served as {attr.attr_name!r} of {attr.group_name!r}: backend() names those "
                           f"that are") from None


class GraphStore(PygGraphStore):
    """The edges of a store for PyG; created by ``backend``.

    Our NeighborSampler uses it without reading all edges. PyG's sampler, and any other request for an edge_index, loads
    them into memory, with a warning that reports the size. Edges are read-only here: ``Graph.batch`` writes.
    """

    def __init__(self, shared: SharedGraph, e_id: str | None = None) -> None:
        super().__init__()
        self.__dict__["shared"] = shared
        self.__dict__["e_id"] = e_id
        self.__dict__["_e_id_of"] = None  # by the store's edge number, for edges of the generation

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_e_id_of": None}

    def e_ids(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the attribute ``e_id`` of edges by the store's numbers, int64 [edges]."""
        graph = self.shared.topology
        if self._e_id_of is None:
            self.__dict__["_e_id_of"] = _core.edge_values(graph._core, self.e_id)
        known = self._e_id_of
        written = numbers >= len(known)
        if not written.any():
            return known[numbers]
        found = np.empty(len(numbers), np.int64)
        found[~written] = known[numbers[~written]]
        found[written] = graph.edge_rows(self.e_id, numbers[written])[:, 0]
        return found

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        schema = self.shared.schema
        if not schema.typed:
            return [EdgeAttr(None, EdgeLayout.CSC, size=(schema.bound, schema.bound))]
        return [EdgeAttr(kind, EdgeLayout.CSC, size=(schema.counts[kind[0]], schema.counts[kind[2]]))
                for kind in schema.edge_types]

    def _get_edge_index(self, attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        schema, kind = self.shared.schema, attr.edge_type
        if (kind not in schema.edge_types) if schema.typed else (kind is not None):
            return None
        self._warn_of_size()
        if attr.layout == EdgeLayout.COO and not attr.is_sorted:
            return self._coo(kind)
        walks_out = attr.layout == EdgeLayout.CSR
        ids = schema.vertices(kind and kind[0 if walks_out else 2])
        offsets, ends, kinds, _ = self.shared.topology.neighbors(ids, "out" if walks_out else "in")
        if kind is not None:
            wanted = self._of_type(kind, kinds, len(ends))
            offsets = np.concatenate([[0], np.cumsum(wanted)])[offsets]
            ends = self._numbers(ends[wanted])
        pointers, neighbors = tensor(offsets), tensor(ends)
        if attr.layout == EdgeLayout.COO:
            pointers = torch.repeat_interleave(torch.arange(len(ids)), pointers.diff())
        return (pointers, neighbors) if walks_out else (neighbors, pointers)

    def _coo(self, kind: EdgeType | None) -> tuple[Tensor, Tensor]:
        """Returns the edges of a type in the order of ``e_id``, if there is one, else by their targets."""
        sampler = self.shared.topology.sampler([-1], edge_ids=self.e_id is not None)
        sub = sampler.sample(np.arange(self.shared.schema.bound))  # so that numbers equal vertex ids
        row, col = sub.edge_index
        e_ids = None if self.e_id is None else self.e_ids(sub.edge_ids)
        if kind is not None:
            wanted = self._of_type(kind, sub.types, len(row))
            row, col = self._numbers(row[wanted]), self._numbers(col[wanted])
            e_ids = None if e_ids is None else e_ids[wanted]
        order = slice(None) if e_ids is None else np.argsort(e_ids, kind="stable")
        return tensor(row[order]), tensor(col[order])

    def _of_type(self, kind: EdgeType, kinds: np.ndarray | None, count: int) -> np.ndarray:
        return np.ones(count, bool) if kinds is None else kinds == self.shared.schema.edge_numbers[kind]

    def _numbers(self, vertices: np.ndarray) -> np.ndarray:
        schema = self.shared.schema
        return schema.numbers(vertices, schema.types_of(vertices))

    def _put_edge_index(self, edge_index: Any, attr: EdgeAttr) -> bool:
        raise NotImplementedError("edges are written by Graph.batch(), and whole graphs by rhizome.ingest()")

    def _remove_edge_index(self, attr: EdgeAttr) -> bool:
        raise NotImplementedError("edges are deleted by Graph.batch()")

    def _warn_of_size(self) -> None:
        size = 16 * self.shared.topology.num_edges + 8 * self.shared.schema.bound
        if size > as_bytes(self.shared.memory):
            raise OutOfMemory(f"all edges as tensors take {size} bytes, and memory is {self.shared.memory}: sample with "
                              f"rhizome.pyg.NeighborSampler, or give backend() more")
        warnings.warn(f"all edges are read into memory, {size} bytes; rhizome.pyg.NeighborSampler does without",
                      stacklevel=4)
