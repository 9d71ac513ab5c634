"""Attributes of edges in minibatches, and PyG's loaders with such attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from torch import Tensor
from torch_geometric.data import Data, HeteroData
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

    def __init__(self, data: tuple[FeatureStore, GraphStore], num_neighbors: Fanouts, *arguments: Any,
                 edge_attr: EdgeAttributes = None, neighbor_sampler: NeighborSampler | None = None,
                 transform: Callable[[Any], Any] | None = None, **options: Any) -> None:
        shared = data[1].shared
        self._served = ServedEdges(shared.graph, edge_attr)
        if neighbor_sampler is None:
            given = {name: options[name] for name in ("replace", "disjoint", "subgraph_type") if name in options}
            neighbor_sampler = NeighborSampler(data[1], num_neighbors, edge_ids=bool(self._served.names) or None, **given)
        self._store, self._after = data[1], transform
        if "input_nodes" in options:
            options["input_nodes"] = _seeds(options["input_nodes"])
        super().__init__(data, num_neighbors, *map(_seeds, arguments[:1]), *arguments[1:],
                         neighbor_sampler=neighbor_sampler, **options)

    def filter_fn(self, out: Any) -> Any:
        data = super().filter_fn(out)
        if self._served.names:
            self._served.add_to(data, self._store.shared.graph, out.store_edge)
        return data if self._after is None else self._after(data)


def _seeds(given: Any) -> Any:
    """Converts (node type, None) to the equivalent node type; PyG's loaders do not handle the former with stores."""
    all_of_type = isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str) and given[1] is None
    return given[0] if all_of_type else given


class NeighborLoader(_WithEdges, PygNeighborLoader):
    """PyG's NeighborLoader with our sampler and with attributes of edges, selected by ``edge_attr=``.

        fs, gs = rzpyg.backend(g, x="feat")
        loader = rzpyg.NeighborLoader((fs, gs), [10, 10], edge_attr="time", input_nodes=ids, batch_size=1000)

    ``edge_attr``: the attribute of edges (including "weight" and "type") that becomes ``edge_attr``, [edges, dim], or
    attributes by their names in minibatches, ``{"edge_attr": "vector", "edge_time": "time"}``: under names other than
    ``edge_attr``, one value per edge is [edges]. ``neighbor_sampler``: a NeighborSampler with other options.
    All other arguments are PyG's. Errors: NotFound, no such attribute; InvalidArgument, the store has no edge numbers.
    """


class LinkNeighborLoader(_WithEdges, PygLinkNeighborLoader):
    """PyG's LinkNeighborLoader with the same extensions."""
