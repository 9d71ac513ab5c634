"""Arrays of a store as features of GraphBolt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Union

import dgl.graphbolt as gb
import numpy as np
import torch

from .._graph import Graph
from .._shared import SharedGraph, as_ids, tensor

#: Names of arrays; or for each feature's name the array, or arrays by node type.
Features = Union[Iterable[str], Mapping[str, Union[str, Mapping[str, str]]]]


class Feature(gb.Feature):
    """An array of the vertices, or of those of one type, as a feature: rows are read when they are asked for.

    A row has the shape [dim], or that which is given, or which the array's attribute ``shape`` says, such as "[4, 32]".
    """

    def __init__(self, graph: Graph | SharedGraph, array: str, node_type: str | None = None, *,
                 shape: Sequence[int] | None = None) -> None:
        """``array``: a name, a version or an alias. ``node_type``: ids are then numbers within this type.

        Errors: NotFound, no such array; ValueError, a shape that does not fit.
        """
        super().__init__()
        self._shared = graph if isinstance(graph, SharedGraph) else SharedGraph(graph, "1G", None)
        self._array = array
        self._type = node_type
        rows = self._shared.graph[array]
        self._metadata = dict(rows.attributes)
        said = json.loads(self._metadata.get("shape", "[]")) if shape is None else shape
        self._shape = tuple(said) or (rows.shape[1],)
        if int(np.prod(self._shape)) != rows.shape[1]:
            raise ValueError(f"array {array!r} has rows of {rows.shape[1]} values, and their shape is said to be "
                             f"{list(self._shape)}")

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the rows of ``ids``, a tensor [n] (None: of all), as a tensor [n, *size()]."""
        vertices = self._shared.schema.vertices(self._type, ids)
        return tensor(self._shared.graph[self._array].read(vertices)).reshape(len(vertices), *self._shape)

    def read_async(self, ids: torch.Tensor) -> Iterator[_Reading]:
        """Yields an object whose ``wait()`` returns the rows, which a thread reads meanwhile."""
        with ThreadPoolExecutor(1, "rhizome-feature") as thread:
            yield _Reading(thread.submit(self.read, ids))

    def read_async_num_stages(self, ids_device: torch.device) -> int:
        """Returns how many objects ``read_async`` yields."""
        return 1

    def size(self) -> torch.Size:
        """Returns the shape of a row."""
        return torch.Size(self._shape)

    def count(self) -> int:
        """Returns how many rows there are."""
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
        with self._shared.graph.batch(create_vertices=False) as batch:
            batch.put_rows(self._array, vertices, rows.reshape(len(rows), -1))

    def metadata(self) -> dict[str, str]:
        """Returns the attributes of the array."""
        return dict(self._metadata)

    def __repr__(self) -> str:
        return f"rhizome.graphbolt.Feature({self._array!r}, size={list(self._shape)}, count={self.count()})"


class _Reading:
    """Rows that a thread reads."""

    def __init__(self, future: Future[torch.Tensor]) -> None:
        self._future = future

    def wait(self) -> torch.Tensor:
        return self._future.result()


def feature_store(graph: Graph | SharedGraph, features: Features) -> gb.BasicFeatureStore:
    """Returns arrays as node features for ``fetch_feature``.

    ``features``: names of arrays; or for the name of each feature its array, or arrays by node type. In a typed graph an
    array that is named without types is a feature of all of them.
    Errors: NotFound, no such array.
    """
    shared = graph if isinstance(graph, SharedGraph) else SharedGraph(graph, "1G", None)
    named = features if isinstance(features, Mapping) else {name: name for name in features}
    types: list[Any] = shared.schema.node_types if shared.schema.typed else [None]
    made = {}
    for name, array in named.items():
        by_type = {kind: array for kind in types} if isinstance(array, str) else array
        for kind, its in by_type.items():
            made["node", kind, name] = Feature(shared, its, kind)
    return gb.BasicFeatureStore(made)
