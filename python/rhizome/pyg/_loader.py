"""Minibatches of rhizome.Loader as PyG's Data and HeteroData."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from .._graph import Graph
from .._loader import Loader as CoreLoader
from .._loader import LoaderMemory, LoaderReport, Minibatch
from .._shared import EdgeType, SharedGraph, arrays_by_type, as_ids, tensor
from ._ahead import DeviceFeed
from ._edges import EdgeAttributes, ServedEdges
from ._sampler import Fanouts, TypedSubgraph, as_fanouts, as_num_neighbors


class Loader:
    """Minibatches for PyG models, prefetched from a store whose features exceed memory.

        loader = rzpyg.Loader(g, [10, 10], x="feat", y="label", input_nodes="train", batch_size=1000, memory="1536M")
        for batch in loader:
            loss = F.cross_entropy(model(batch.x, batch.edge_index)[:batch.batch_size], batch.y)

    A minibatch is a Data (in a typed graph, a HeteroData) with ``x`` of all its vertices, ``y`` of the seeds,
    ``edge_index``, ``n_id``, ``e_id``, ``edge_weight`` in a weighted graph, ``batch`` if disjoint, ``seed_time`` if
    samples are temporal, ``batch_size``, ``num_sampled_nodes``, ``num_sampled_edges``, and the requested attributes of
    edges. Otherwise it behaves like ``rhizome.Loader``, on which it is based: a loop is an epoch, no worker processes
    are needed, and each row is copied once.
    """

    def __init__(self, graph: Graph, fanouts: Fanouts, *, x: str | Mapping[str, str | None], y: str | None = None,
                 input_nodes: Any = "train", edge_attr: EdgeAttributes = None, edge_types: Mapping[str, EdgeType] | None = None,
                 transform: Callable[[Any], Any] | None = None, device: torch.device | str | None = None,
                 **options: Any) -> None:
        """Creates a loader. ``x``, ``y``: the arrays of features and labels. ``x`` may name an array for each node type,
        of any width, such as ``{"paper": "feat", "author": "author_feat"}``: node types that are not named have no x, but
        ``num_nodes``. So have the other types of an array that is bound to one.

        ``input_nodes``: "train", "valid" (or "val") or "test", or vertex ids or a mask; in a typed graph (node type,
        numbers within it or None for all). ``edge_attr``: attributes of edges, as for NeighborLoader. ``edge_types``:
        as for ``backend``. ``transform``: called with each minibatch. ``device``: the device of minibatches, such as
        "cuda": each is copied there while the previous one is in use; two wait there.
        ``options``: options of ``rhizome.Loader``, such as batch_size, shuffle, drop_last, rank and world_size, memory,
        epochs, seed, weighted, disjoint, times or vertex_times and seed_times, edge_ids. Temporal samples are disjoint.
        """
        shared = SharedGraph(graph, "1G", edge_types)
        schema = shared.schema
        self._schema, self._transform, self._options = schema, transform, options
        self._feed = None if device is None else DeviceFeed(torch.device(device))
        if options.get("times") is not None or options.get("vertex_times") is not None:
            options["disjoint"] = True
        self._served = ServedEdges(graph, edge_attr)
        if self._served.names:
            options["edge_ids"] = True
        if isinstance(input_nodes, str):
            options["split"] = input_nodes
        elif isinstance(input_nodes, tuple) and isinstance(input_nodes[0], str):
            options["seeds"] = schema.vertices(*input_nodes)
        else:
            options["seeds"] = as_ids(input_nodes, schema.bound)
        self._loader = CoreLoader(graph, as_fanouts(as_num_neighbors(fanouts), schema), features=_features(x, shared), labels=y,
                                  zero_copy=schema.typed or self._feed is not None, **options)

    def __len__(self) -> int:
        """The number of minibatches per epoch."""
        return len(self._loader)

    @property
    def memory(self) -> LoaderMemory:
        """How the loader divides its memory."""
        return self._loader.memory

    def report(self) -> LoaderReport:
        """Returns the counts and times of the current epoch, or of the last one if none is in progress."""
        return self._loader.report()

    def state_dict(self) -> dict[str, int]:
        """As ``rhizome.Loader.state_dict``."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """As ``rhizome.Loader.load_state_dict``."""
        self._loader.load_state_dict(state)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._loader)  # errors at the start of an epoch are raised here
        data = self._data_of_each(batches)
        if self._feed is not None:
            data = self._feed.moved(data)
        return data if self._transform is None else map(self._transform, data)

    def _data_of_each(self, batches: Iterator[Minibatch]) -> Iterator[Any]:
        make = self._hetero if self._schema.typed else self._data
        for batch in batches:
            data = make(batch)
            del batch  # returns its rows to the loader
            yield data
            del data

    def _ends(self, batch: Minibatch) -> np.ndarray:
        return batch.edge_index[::-1] if self._options.get("direction") == "out" else batch.edge_index

    def _edge_values(self, batch: Minibatch) -> dict[str, np.ndarray]:
        return self._served.read(self._loader.graph, batch.edge_ids) if batch.edge_ids is not None else {}

    def _data(self, batch: Minibatch) -> Data:
        rows = tensor(batch.x) if self._feed is None else self._feed.rows(batch.x)
        data = Data(x=rows, edge_index=_stack(self._ends(batch)), n_id=tensor(batch.vertices))
        for name, values in (("y", batch.y), ("e_id", batch.edge_ids), ("edge_weight", batch.weights),
                             ("batch", batch.seed_of), ("seed_time", batch.seed_times)):
            if values is not None:
                data[name] = tensor(values)
        data.update({name: tensor(rows) for name, rows in self._edge_values(batch).items()})
        data.num_sampled_nodes, data.num_sampled_edges = batch.hops.tolist(), batch.edge_hops.tolist()
        data.batch_size = batch.batch_size
        return data

    def _hetero(self, batch: Minibatch) -> HeteroData:
        split = TypedSubgraph(batch.vertices, self._ends(batch), batch.types, batch.hops, batch.edge_hops, self._schema)
        data = HeteroData()
        for name, places in split.members().items():
            store = data[name]
            store.n_id = split.nodes[name]
            if not isinstance(batch.x, dict):
                store.x = tensor(batch.x[places])
            elif name in batch.x:
                store.x = tensor(batch.x[name][:])
            else:
                store.num_nodes = len(places)
            seeds = int(np.searchsorted(places, batch.batch_size))
            store.num_sampled_nodes = split.nodes_of_hops[name]
            if batch.seed_of is not None:
                store.batch = tensor(batch.seed_of[places])
            if seeds:
                store.batch_size = seeds
                for what, values in (("y", batch.y), ("seed_time", batch.seed_times)):
                    if values is not None:
                        store[what] = tensor(values[places[:seeds]])
        of_edges = {"e_id": split.of_edges(batch.edge_ids), "edge_weight": split.of_edges(batch.weights)}
        of_edges.update({name: split.of_edges(rows) for name, rows in self._edge_values(batch).items()})
        for kind, row in split.rows.items():
            data[kind].edge_index = torch.stack([row, split.cols[kind]])
            data[kind].num_sampled_edges = split.edges_of_hops[kind]
            for name, values in of_edges.items():
                if values is not None:
                    data[kind][name] = values[kind]
        return data


def _features(x: str | Mapping[str, str | None], shared: SharedGraph) -> str | dict[str, str | None]:
    """Returns ``x`` for rhizome.Loader, with None for node types that have no array."""
    schema = shared.schema
    arrays = arrays_by_type(shared, x)
    if not schema.typed and arrays:
        return arrays[None]  # a minibatch is a Data
    if isinstance(x, str) and len(arrays) == len(schema.node_types):
        return x
    return {name: arrays.get(name) for name in schema.node_types}


def _stack(ends: np.ndarray) -> Tensor:
    return tensor(np.ascontiguousarray(ends))
