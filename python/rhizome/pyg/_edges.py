"""Attributes of edges in minibatches, and PyG's loaders with such attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, EdgeAttr, HeteroData
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.loader import LinkNeighborLoader as PygLinkNeighborLoader
from torch_geometric.loader import NeighborLoader as PygNeighborLoader

from .._graph import Graph
from .._shared import EdgeType, tensor
from ._sampler import Fanouts, NeighborSampler
from ._stores import FeatureStore, GraphStore

#: The attribute for ``edge_attr`` of minibatches, or attributes by their names in minibatches.
EdgeAttributes = Union[str, Mapping[str, str], None]


class ServedEdges:
    """Attributes of edges, by their names in minibatches.

    ``edge_attr`` is [edges, values of the attribute], as in PyG; under another name, an attribute with one value per
    edge is [edges].
    """

    def __init__(self, graph: Graph, served: EdgeAttributes) -> None:
        """Errors: NotFound, no such attribute."""
        self.names = {"edge_attr": served} if isinstance(served, str) else dict(served or {})
        for attribute in self.names.values():
            graph.edge_rows(attribute, [])

    def read(self, graph: Graph, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the values of edges by their numbers in the store."""
        values = {}
        for name, attribute in self.names.items():
            rows = graph.edge_rows(attribute, numbers)
            values[name] = rows[:, 0] if rows.shape[1] == 1 and name != "edge_attr" else rows
        return values

    def add_to(self, data: Data | HeteroData, graph: Graph, numbers: Tensor | dict[EdgeType, Tensor] | None) -> None:
        """Adds the values of its edges to a minibatch. Errors: ValueError, the edges have no numbers."""
        parts = [(data[kind], of) for kind, of in numbers.items()] if isinstance(numbers, dict) else [(data, numbers)]
        for part, of_part in parts:
            if of_part is None:
                raise ValueError("edge_attr: the sampler gives no numbers of edges; make it with edge_ids=True, and not "
                                 "bidirectional where edges have types")
            part.update({name: tensor(rows) for name, rows in self.read(graph, of_part.numpy()).items()})


if TYPE_CHECKING:
    _Loader = PygNeighborLoader
else:
    _Loader = object


class _WithEdges(_Loader):
    """Common extension of both PyG loaders: our sampler, and attributes of edges."""

    #: The argument that names the inputs, the one with their times, and the function that reads the former.
    _INPUT: tuple[str, str, Callable[[GraphStore, Any], Any]]

    def __init__(self, data: tuple[FeatureStore, GraphStore], num_neighbors: Fanouts, *arguments: Any,
                 edge_attr: EdgeAttributes = None, neighbor_sampler: NeighborSampler | None = None,
                 transform: Callable[[Any], Any] | None = None, **options: Any) -> None:
        store = data[1]
        self._served = ServedEdges(store.shared.graph, edge_attr)
        options.update(zip(list(inspect.signature(super().__init__).parameters)[2:], arguments))
        if neighbor_sampler is None:
            neighbor_sampler = _sampler_of(store, num_neighbors, bool(self._served.names), options)
        self._store, self._after = store, transform
        inputs, times, read = self._INPUT
        options[inputs] = read(store, options.get(inputs))
        if options.get(times) is not None:
            if not neighbor_sampler.is_temporal:
                raise ValueError(f"{times}: the sampler samples without times: give time_attr=, an attribute of edges or an array "
                                 "of vertices, or a NeighborSampler with times= or vertex_times=")
            options[times] = torch.as_tensor(options[times])
        # PyG makes a sampler of the attribute unless it has one, and wants it with times and only then.
        options["time_attr"] = None if options.get(times) is None else "time"
        super().__init__(data, num_neighbors, neighbor_sampler=neighbor_sampler, **options)

    def filter_fn(self, out: Any) -> Any:
        data = super().filter_fn(out)
        if self._served.names:
            self._served.add_to(data, self._store.shared.graph, out.store_edge)
        return data if self._after is None else self._after(data)


def _sampler_of(store: GraphStore, fanouts: Fanouts, edge_ids: bool, options: dict[str, Any]) -> NeighborSampler:
    """Makes the sampler that PyG's arguments describe. Errors: NotFound, no such attribute or array."""
    given = {name: options[name] for name in ("replace", "disjoint", "subgraph_type") if name in options}
    time, weight = options.get("time_attr"), options.get("weight_attr")
    if time is not None:
        arrays = store.shared.graph.arrays
        given["vertex_times" if time in arrays and time not in store.shared.graph.edge_attributes else "times"] = time
    if weight is not None:
        if weight != "weight":
            raise ValueError(f"weight_attr={weight!r}: neighbours are sampled by the weights of edges, weight_attr='weight'")
        given["weighted"] = True
    return NeighborSampler(store, fanouts, pick=options.get("temporal_strategy", "uniform"), edge_ids=edge_ids or None, **given)


def _nodes_of(store: GraphStore, given: Any) -> Any:
    """Converts input nodes to the forms that PyG's loaders handle with stores: a tensor, a type, or (type, tensor)."""
    schema = store.shared.schema
    if isinstance(given, str):
        return given
    typed = isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str)
    if typed:
        return given[0] if given[1] is None else (given[0], torch.as_tensor(given[1]))
    if schema.typed:
        raise ValueError("input_nodes: the graph has types: give a node type, or (type, ids), with ids that count from 0 in the "
                         f"type; the types are {', '.join(schema.node_types)}")
    return torch.arange(schema.bound) if given is None else torch.as_tensor(given)


def _links_of(store: GraphStore, given: Any) -> Any:
    """Converts links to the forms that PyG's loaders handle with stores: (None or a triple, a tensor), or a triple."""
    schema = store.shared.schema
    pair = isinstance(given, (tuple, list)) and len(given) == 2 and (given[0] is None or isinstance(given[0], (tuple, list)) and
                                                                    all(isinstance(name, str) for name in given[0]))
    if isinstance(given, (tuple, list)) and len(given) == 3 and all(isinstance(name, str) for name in given):
        kind, links = tuple(given), None
    else:
        kind, links = (given[0] and tuple(given[0]), given[1]) if pair else (None, given)
    if schema.typed and kind not in schema.edge_types:
        raise ValueError("edge_label_index: the graph has types: give an edge type, or (type, links), where the type is one of "
                         f"{', '.join(map(str, schema.edge_types))}" + ("" if kind is None else f", not {kind}"))
    if not schema.typed and kind is not None:
        raise ValueError(f"edge_label_index: the graph has no types: give the links [2, n] alone, without {kind}")
    if links is None:
        return kind, torch.stack(store.get_edge_index(EdgeAttr(kind, EdgeLayout.COO)))
    if isinstance(links, (tuple, list)):
        if any(isinstance(end, str) for end in links):
            raise ValueError(f"edge_label_index={given!r}: give links [2, n], an edge type (a triple), or a pair of both")
        links = torch.stack([torch.as_tensor(end) for end in links])
    links = torch.as_tensor(links)
    if links.ndim != 2 or links.shape[0] != 2:
        raise ValueError(f"edge_label_index: links must have shape [2, n], not {list(links.shape)}")
    return kind, links


class NeighborLoader(_WithEdges, PygNeighborLoader):
    """PyG's NeighborLoader with our sampler and with attributes of edges, selected by ``edge_attr=``.

        fs, gs = rzpyg.backend(g, x="feat")
        loader = rzpyg.NeighborLoader((fs, gs), [10, 10], edge_attr="time", input_nodes=ids, batch_size=1000)

    ``edge_attr``: the attribute of edges (including "weight" and "type") that becomes ``edge_attr``, [edges, dim], or
    attributes by their names in minibatches, ``{"edge_attr": "vector", "edge_time": "time"}``: under names other than
    ``edge_attr``, one value per edge is [edges]. ``neighbor_sampler``: a NeighborSampler with other options.
    ``input_nodes``: ids or a mask, None for all; in a typed graph a node type, or (type, ids, a mask or None for all).
    ``time_attr``: an attribute of edges or an array of vertices; ``weight_attr``: "weight". All other arguments are
    PyG's. Errors: NotFound, no such attribute; InvalidArgument, the store has no edge numbers; ValueError.
    """

    _INPUT = ("input_nodes", "input_time", _nodes_of)


class LinkNeighborLoader(_WithEdges, PygLinkNeighborLoader):
    """PyG's LinkNeighborLoader with the same extensions.

    ``edge_label_index``: links [2, n], None for all edges; in a typed graph an edge type, a triple, or (type, links or
    None for all of the type). ``edge_label_time``: times of the links; the sampler has times, or ``time_attr`` names
    them.
    """

    _INPUT = ("edge_label_index", "edge_label_time", _links_of)
