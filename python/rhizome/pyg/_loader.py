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
from .._shared import EdgeType, Schema, SharedGraph, arrays_by_type, as_ids, tensor
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
                 input_nodes: Any = "train", edge_label_index: Any = None, edge_attr: EdgeAttributes = None, edge_types: Mapping[str, EdgeType] | None = None,
                 transform: Callable[[Any], Any] | None = None, device: torch.device | str | None = None,
                 **options: Any) -> None:
        """Creates a loader. ``x``, ``y``: the arrays of features and labels. ``x`` may name an array for each node type,
        of any width, such as ``{"paper": "feat", "author": "author_feat"}``: node types that are not named have no x, but
        ``num_nodes``. So have the other types of an array that is bound to one.

        ``input_nodes``: "train", "valid" (or "val") or "test", or vertex ids or a mask; in a typed graph (node type,
        numbers within it or None for all). ``edge_label_index``: instead, links [2, n] to learn; in a typed graph (edge
        type, a triple; links). Minibatches then have ``edge_label_index``, numbers of nodes of the minibatch: first its
        links, with ``edge_label`` 1, then the negatives, 0: for each link ``negatives`` that replace its source, then
        ``negatives`` that replace its destination. The links themselves are left out of ``edge_index``, in both
        directions, and ``batch_size`` counts them. ``edge_attr``: attributes of edges, as for NeighborLoader. ``edge_types``:
        as for ``backend``. ``transform``: called with each minibatch. ``device``: the device of minibatches, such as
        "cuda": each is copied there while the previous one is in use; two wait there.
        ``options``: options of ``rhizome.Loader``, such as negatives, batch_size, shuffle, drop_last, rank and world_size, memory,
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
        self._links: EdgeType | None = None
        if edge_label_index is not None:
            self._links, options["pairs"] = _pairs(edge_label_index, schema)
        elif isinstance(input_nodes, str):
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
        if batch.pairs is not None:
            data.edge_label_index, data.edge_label = _labelled(batch)
            data.batch_size = len(batch.pairs)
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
            if seeds and batch.pairs is None:
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
        if batch.pairs is not None:
            links, labels = _labelled(batch)
            of_ends = [split.local(links[side]) for side in (0, 1)]
            data[self._links].edge_label_index, data[self._links].edge_label = torch.stack(of_ends), labels
            data[self._links].batch_size = len(batch.pairs)
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


def _pairs(given: Any, schema: Schema) -> tuple[EdgeType | None, np.ndarray]:
    """Returns the edge type of links (None in a graph without types), and the links as pairs of vertex ids."""
    kind, links = (tuple(given[0]), given[1]) if schema.typed else (None, given)
    if schema.typed and kind not in schema.edge_types:
        raise ValueError(f"edge_label_index: there is no edge type {kind}; the edge types are "
                         f"{', '.join(map(str, schema.edge_types))}")
    ends = torch.as_tensor(links)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise ValueError(f"edge_label_index: links must have shape [2, n], not {list(ends.shape)}")
    if kind is None:
        return None, ends.numpy().T
    pairs = np.empty((ends.shape[1], 3), np.int64)
    pairs[:, 0], pairs[:, 1] = schema.vertices(kind[0], ends[0]), schema.vertices(kind[2], ends[1])
    pairs[:, 2] = schema.edge_numbers[kind]
    return kind, pairs


def _labelled(batch: Minibatch) -> tuple[Tensor, Tensor]:
    """Returns the links of a minibatch and its negatives, [2, m + 2 m K] numbers, and their labels, 1 and 0."""
    assert batch.pairs is not None
    links = [batch.pairs.T]
    if batch.negatives is not None:
        for side in (0, 1):
            negatives = np.repeat(batch.pairs.T, batch.negatives.shape[2], axis=1)
            negatives[side] = batch.negatives[side].reshape(-1)
            links.append(negatives)
    index = tensor(np.concatenate(links, axis=1))
    labels = torch.zeros(index.shape[1])
    labels[:len(batch.pairs)] = 1
    return index, labels


def _stack(ends: np.ndarray) -> Tensor:
    return tensor(np.ascontiguousarray(ends))
