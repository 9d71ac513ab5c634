"""Arrays and edge attributes of a store as GraphBolt features."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional, Union

import dgl.graphbolt as gb
import numpy as np
import torch

from .._graph import Graph
from .._shared import SharedGraph, arrays_by_type, tensor

#: Names of arrays, or a mapping from each feature's name to an array, or to arrays by node type (None: none).
Features = Union[Iterable[str], Mapping[str, Union[str, Mapping[str, Optional[str]]]]]


def _shared(graph: Graph | SharedGraph) -> SharedGraph:
    return graph if isinstance(graph, SharedGraph) else SharedGraph(graph, "1G", None)


class _Stored(gb.Feature):
    """Rows of a given shape that are read from a store on request."""

    def __init__(self, shared: SharedGraph, name: str, width: int, shape: Sequence[int] | None,
                 metadata: Mapping[str, str]) -> None:
        super().__init__()
        self._shared = shared
        self._name = name
        self._metadata = dict(metadata)
        said = json.loads(self._metadata.get("shape", "[]")) if shape is None else shape
        self._shape = tuple(said) or (width,)
        if int(np.prod(self._shape)) != width:
            raise ValueError(f"{name!r} has rows of {width} values, and their shape is said to be {list(self._shape)}")

    def read_async(self, ids: torch.Tensor) -> Iterator[_Reading]:
        """Yields an object whose ``wait()`` returns the rows, which a thread reads concurrently."""
        with ThreadPoolExecutor(1, "rhizome-feature") as thread:
            yield _Reading(thread.submit(self.read, ids))

    def read_async_num_stages(self, ids_device: torch.device) -> int:
        """Returns the number of objects that ``read_async`` yields."""
        return 1

    def size(self) -> torch.Size:
        """Returns the shape of a row."""
        return torch.Size(self._shape)

    def metadata(self) -> dict[str, str]:
        """Returns the attributes of the array; empty for edge attributes."""
        return dict(self._metadata)

    def __repr__(self) -> str:
        return f"rhizome.graphbolt.{type(self).__name__}({self._name!r}, size={list(self._shape)}, count={self.count()})"


class Feature(_Stored):
    """An array of all vertices, or of the vertices of one type, as a feature. Rows are read on request.

    A row has the shape [dim], unless a shape is given or the array has an attribute ``shape``, such as "[4, 32]".
    """

    def __init__(self, graph: Graph | SharedGraph, array: str, node_type: str | None = None, *,
                 shape: Sequence[int] | None = None) -> None:
        """``array``: a name, a version or an alias. ``node_type``: ids are numbers within this type.

        Errors: NotFound, no such array; ValueError, a shape that does not match.
        """
        shared = _shared(graph)
        rows = shared.rows[array]
        super().__init__(shared, array, rows.shape[1], shape, rows.attributes)
        self._type = node_type

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the rows of ``ids``, a tensor [n] (None: all), as a tensor [n, *size()]."""
        vertices = self._shared.schema.vertices(self._type, ids)
        return tensor(self._shared.rows[self._name].read(vertices)).reshape(len(vertices), *self._shape)

    def count(self) -> int:
        """Returns the number of rows."""
        schema = self._shared.schema
        return schema.counts[self._type] if self._type is not None and schema.typed else schema.bound

    def update(self, value: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Replaces the rows of ``ids`` (None: all rows) by ``value``, [n, *size()], in one durable commit.

        Errors: InvalidArgument, the graph is not open with mode "w"; ValueError, another shape.
        """
        vertices = self._shared.schema.vertices(self._type, ids)
        rows = value.detach().cpu().numpy()
        if rows.shape != (len(vertices), *self._shape):
            raise ValueError(f"the rows have shape {list(rows.shape)}, and there are {len(vertices)} ids of "
                             f"{list(self._shape)}")
        with self._shared.live.batch(create_vertices=False) as batch:
            batch.put_rows(self._name, vertices, rows.reshape(len(rows), -1))
        self._shared.renew()


class EdgeFeature(_Stored):
    """An edge attribute as a feature, addressed by the edge numbers that the sampler returns with ``edge_ids=True``.

    An edge keeps its number until the next compaction, regardless of other writes. In a typed graph the numbers count
    all edges, so a feature covers the edges of each type that has it.
    """

    def __init__(self, graph: Graph | SharedGraph, attribute: str, *, shape: Sequence[int] | None = None) -> None:
        """``attribute``: one of ``rhizome.Graph.edge_attributes``, or "weight" or "type".

        ``shape``: shape of a row; None: [values]. Errors: NotFound, no such attribute; ValueError, a shape that does
        not match.
        """
        shared = _shared(graph)
        super().__init__(shared, attribute, shared.graph.edge_rows(attribute, []).shape[1], shape, {})

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the values of ``ids``, edge numbers [n], as a tensor [n, *size()]. None: of all edges, which works
        only until edges are written.
        """
        numbers = np.arange(self.count()) if ids is None else ids.numpy()
        return tensor(self._shared.graph.edge_rows(self._name, numbers)).reshape(len(numbers), *self._shape)

    def count(self) -> int:
        """Returns the number of edges of all types."""
        return self._shared.graph.num_edges

    def update(self, value: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Errors: NotImplementedError: attributes are written with their edges."""
        raise NotImplementedError(f"{self._name!r} is an attribute of edges, and is written with them: "
                                  "rhizome.Batch.put_edges")


class _Reading:
    """Rows that a thread is reading."""

    def __init__(self, future: Future[torch.Tensor]) -> None:
        self._future = future

    def wait(self) -> torch.Tensor:
        return self._future.result()


def feature_store(graph: Graph | SharedGraph, features: Features, edge_features: Features = ()) -> gb.BasicFeatureStore:
    """Returns arrays as node features, and attributes of edges as edge features, for ``fetch_feature``.

    ``features``: names of arrays, or a mapping from each feature's name to an array, or to arrays by node type. In a
    typed graph an array named without types is a feature of all types, or of the type that it is bound to.
    ``edge_features``: attributes of edges in the same form; types are "src:name:dst".
    Errors: NotFound, no such array or attribute; ValueError, no such node type, or an array of another.
    """
    shared = _shared(graph)
    schema = shared.schema
    edge_types: list[Any] = [":".join(triple) for triple in schema.edge_types] if schema.typed else [None]
    made: dict[Any, gb.Feature] = {}
    for name, arrays in _named(features).items():
        for kind, array in arrays_by_type(shared, arrays).items():
            made["node", kind, name] = Feature(shared, array, kind)
    for kind, name, attribute in _by_type(edge_features, edge_types):
        made["edge", kind, name] = EdgeFeature(shared, attribute)
    return gb.BasicFeatureStore(made)


def _named(features: Features) -> Mapping[str, Any]:
    return features if isinstance(features, Mapping) else {name: name for name in features}


def _by_type(features: Features, types: list[Any]) -> Iterator[tuple[Any, str, str]]:
    """Yields the type, the feature's name and its name in the store."""
    for name, stored in _named(features).items():
        for kind, its in ({kind: stored for kind in types} if isinstance(stored, str) else stored).items():
            yield kind, name, its
