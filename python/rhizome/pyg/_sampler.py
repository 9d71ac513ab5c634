"""A sampler for PyG's loaders that samples from a Rhizome store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.sampler import (
    BaseSampler, EdgeSamplerInput, HeteroSamplerOutput, NegativeSampling, NodeSamplerInput, SamplerOutput,
)
from torch_geometric.sampler.base import NumNeighbors, SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from .._graph import Sampler
from .._shared import EdgeType, Schema, tensor
from .._types import Direction, Subgraph
from ..errors import InvalidArgument
from ._stores import GraphStore

Fanouts = Union[Sequence[int], Mapping[EdgeType, Sequence[int]], NumNeighbors]
Output = Union[SamplerOutput, HeteroSamplerOutput]


class NeighborSampler(BaseSampler):
    """Samples neighbours for PyG's NeighborLoader and LinkNeighborLoader: ``neighbor_sampler=NeighborSampler(gs,
    [10])``.

    The edges remain in the store; a pickled sampler consists of a path and options. Batches take their random numbers
    from torch's generator, so that ``torch.manual_seed`` determines them, also in worker processes.

    Seeds come first. Without ``disjoint`` they must be distinct: ValueError, naming a duplicate.
    """

    def __init__(self, store: GraphStore, fanouts: Fanouts, *, replace: bool = False, weighted: bool = False,
                 disjoint: bool = False, times: str | None = None, vertex_times: str | None = None,
                 seed_times: str | None = None,
                 pick: Literal["uniform", "last"] = "uniform", direction: Direction = "in",
                 subgraph_type: SubgraphType | str = "directional", edge_ids: bool | None = None, seed: int = 1, threads: int = 1) -> None:
        """Creates a sampler of ``store``, as returned by ``backend``.

        ``fanouts``: for each hop, in a typed graph for each edge type; or by edge type, a triple.
        ``times``: an int64 attribute of edges: no edge is sampled that is later than its seed; implies disjoint.
        ``vertex_times``: instead, an array with one column: no neighbour is sampled that is later than its seed.
        ``seed_times``: an array with one column, the time of each vertex as a seed, used if the loader's input has no
        times; None: ``vertex_times``.
        ``subgraph_type``: "directional", "bidirectional" or "induced", as in PyG.
        ``edge_ids``: return edge numbers (``e_id``); None: if the store has them.
        All other arguments and errors are as for ``Graph.sampler``.
        """
        self._store = store
        self._fanouts = as_num_neighbors(fanouts)
        self._options: dict[str, Any] = {
            "replace": replace, "weighted": weighted, "times": times, "vertex_times": vertex_times, "pick": pick,
            "disjoint": disjoint or times is not None or vertex_times is not None, "direction": direction, "seed": seed,
            "threads": threads, "induced": SubgraphType(subgraph_type) == SubgraphType.induced,
        }
        self.subgraph_type = SubgraphType(subgraph_type)
        self._edge_ids = True if store.e_id is not None else edge_ids
        self._seed_times = vertex_times if seed_times is None else seed_times
        self._temporal = times is not None or vertex_times is not None
        self._ours: Sampler | None = None
        self._sampler()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ours": None}

    @property
    def disjoint(self) -> bool:
        return bool(self._options["disjoint"])

    @property
    def is_temporal(self) -> bool:
        return self._temporal

    @property
    def num_neighbors(self) -> NumNeighbors:
        return self._fanouts

    @property
    def edge_permutation(self) -> None:
        """None: ``edge`` of a sample already contains the values for ``e_id``."""
        return None

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> Output:
        return self._finish(node_sample(index, self._sample))

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> Output:
        schema = self._store.shared.schema
        if index.time is not None and not self.is_temporal:
            raise ValueError("edge_label_time: this sampler samples without times: make it with times= or vertex_times=")
        counts = schema.counts if index.input_type is not None else schema.bound
        times = None if index.time is None else self._node_times(index.input_type)
        return self._finish(edge_sample(index, self._sample, counts, self.disjoint, times, neg_sampling))

    def _finish(self, output: Output) -> Output:
        """Adds ``store_edge`` to the output: the store's numbers of the remaining edges, next to ``edge``."""
        if self.subgraph_type != SubgraphType.bidirectional:
            return output
        output.edge = output.store_edge
        output = output.to_bidirectional()
        output.store_edge = output.edge
        return self._with_e_ids(output)

    def _with_e_ids(self, output: Output) -> Output:
        """Replaces the store's edge numbers by the values for ``e_id`` of minibatches."""
        if self._store.e_id is not None:
            e_ids = lambda numbers: None if numbers is None else tensor(self._store.e_ids(numbers.numpy()))  # noqa: E731
            edge = output.store_edge
            output.edge = {kind: e_ids(of) for kind, of in edge.items()} if isinstance(edge, dict) else e_ids(edge)
        return output

    def _sample(self, seed: Tensor | dict[str, Tensor], seed_time: Any = None, **kwargs: Any) -> Output:
        """Samples for seeds, or seeds by node type; called by PyG's node_sample and edge_sample."""
        schema = self._store.shared.schema
        seeds = seed if isinstance(seed, dict) else {None: seed}
        given = seed_time if isinstance(seed_time, dict) else {None: seed_time}
        vertices = np.concatenate([schema.vertices(kind, numbers) for kind, numbers in seeds.items()])
        times = None
        if self._temporal:
            if seed_time is not None:
                times = np.concatenate([_ids(given[kind]) for kind in seeds])
            elif self._seed_times is not None:
                times = self._times_of(vertices)
        sub = self._draw(vertices, times)
        output = self._typed_output(sub, schema) if isinstance(seed, dict) else self._output(sub)
        output.store_edge = output.edge
        return self._with_e_ids(output)

    def _times_of(self, vertices: np.ndarray) -> np.ndarray:
        return np.asarray(self._store.shared.rows[self._seed_times].read(vertices))[:, 0].astype(np.int64)

    def _node_times(self, link: EdgeType | None) -> Any:
        """Returns the times of all nodes of the link's end types, from which PyG selects negative ones; None: no times.
        """
        if self._seed_times is None:
            return None
        vertices = self._store.shared.schema.vertices
        if link is None:
            return tensor(self._times_of(vertices(None)))
        return {kind: tensor(self._times_of(vertices(kind))) for kind in {link[0], link[2]}}

    def _draw(self, seeds: np.ndarray, times: np.ndarray | None) -> Subgraph:
        if not self.disjoint:
            values, counts = np.unique(seeds, return_counts=True)
            if len(values) < len(seeds):
                raise ValueError(f"vertex {values[counts > 1][0]} is a seed twice in one minibatch: give distinct input "
                                 f"nodes, or sample with disjoint=True")
        batch = int(torch.randint(1 << 62, ()))
        return self._sampler().sample(seeds, batch, times)

    def _sampler(self) -> Sampler:
        if self._ours is None:
            shared = self._store.shared
            fanouts = as_fanouts(self._fanouts, shared.schema)
            make = shared.topology.sampler
            if self._edge_ids is None:
                try:
                    self._ours = make(fanouts, edge_ids=True, **self._options)
                    return self._ours
                except InvalidArgument as error:
                    if "edge ids" not in str(error):
                        raise
            self._ours = make(fanouts, edge_ids=bool(self._edge_ids), **self._options)
        return self._ours

    def _ends(self, sub: Subgraph) -> np.ndarray:
        """Returns [2, edges]: the numbers of sources and targets, for either direction of the lists."""
        return sub.edge_index[::-1] if self._options["direction"] == "out" else sub.edge_index

    def _output(self, sub: Subgraph) -> SamplerOutput:
        row, col = self._ends(sub)
        return SamplerOutput(
            node=tensor(sub.vertices), row=tensor(row), col=tensor(col),
            edge=None if sub.edge_ids is None else tensor(sub.edge_ids),
            batch=None if sub.seed_of is None else tensor(sub.seed_of),
            num_sampled_nodes=sub.hops.tolist(), num_sampled_edges=sub.edge_hops.tolist())

    def _typed_output(self, sub: Subgraph, schema: Schema) -> HeteroSamplerOutput:
        split = TypedSubgraph(sub.vertices, self._ends(sub), sub.types, sub.hops, sub.edge_hops, schema)
        return HeteroSamplerOutput(
            node=split.nodes, row=split.rows, col=split.cols, edge=split.of_edges(sub.edge_ids),
            batch=None if sub.seed_of is None else split.of_nodes(sub.seed_of),
            num_sampled_nodes=split.nodes_of_hops, num_sampled_edges=split.edges_of_hops)


class TypedSubgraph:
    """A subgraph divided by node and edge types: tensors by type, with numbers within node types."""

    def __init__(self, vertices: np.ndarray, ends: np.ndarray, types: np.ndarray | None, hops: np.ndarray,
                 edge_hops: np.ndarray, schema: Schema) -> None:
        """``ends``: sources and targets, [2, edges]; ``types``: edge types; ``hops``: number of vertices found in each
        hop."""
        kinds = schema.types_of(vertices)
        numbers = schema.numbers(vertices, kinds)
        self._of_nodes = [np.flatnonzero(kinds == kind) for kind in range(len(schema.node_types))]
        self._node_types, self._edge_types = schema.node_types, schema.edge_types
        local = np.empty(len(vertices), np.int64)
        for members in self._of_nodes:
            local[members] = np.arange(len(members))
        if types is None:
            types = np.zeros(ends.shape[1], np.uint16)
        self._local = local
        self._of_edges = [np.flatnonzero(types == number) for number in schema.edge_numbers.values()]
        self._check(kinds, ends, schema)
        self.nodes = self.of_nodes(numbers)
        self.rows, self.cols = (self.of_edges(local[end]) or {} for end in ends)
        self.nodes_of_hops = _hops(self._of_nodes, hops, self._node_types)
        self.edges_of_hops = _hops(self._of_edges, edge_hops, self._edge_types)

    def _check(self, kinds: np.ndarray, ends: np.ndarray, schema: Schema) -> None:
        """Raises ValueError for an edge whose end vertices do not have the node types of its triple."""
        if sum(map(len, self._of_edges)) < ends.shape[1]:
            raise ValueError("the store has new edge types: make its PyG backend again")
        for triple, members in zip(self._edge_types, self._of_edges):
            for end, name in ((0, triple[0]), (1, triple[2])):
                if (kinds[ends[end, members]] != schema.node_types.index(name)).any():
                    raise ValueError(f"an edge of type {schema.edge_names[triple]!r} is not of {triple}: give each triple "
                                     f"an edge type of its own when it is ingested, such as {'__'.join(triple)!r}, or "
                                     f"name the triples (edge_types=)")

    def of_nodes(self, values: np.ndarray) -> dict[str, Tensor]:
        """Divides values of vertices, [n, ...], by node type."""
        return {name: tensor(values[members]) for name, members in zip(self._node_types, self._of_nodes)}

    def of_edges(self, values: np.ndarray | None) -> dict[EdgeType, Tensor] | None:
        """Divides values of edges, [edges], by edge type."""
        if values is None:
            return None
        return {name: tensor(values[members]) for name, members in zip(self._edge_types, self._of_edges)}

    def local(self, vertices: Tensor) -> Tensor:
        """Returns the numbers within their node types of vertices, given by their numbers in the subgraph."""
        return tensor(self._local)[vertices]

    def members(self) -> dict[str, np.ndarray]:
        """Returns the positions of each node type among the vertices."""
        return dict(zip(self._node_types, self._of_nodes))


def _hops(members: list[np.ndarray], counts: np.ndarray, names: list[Any]) -> dict[Any, list[int]]:
    """Returns the number of members of each type in each hop; ``counts`` are the lengths of the hops."""
    bounds = np.concatenate([[0], np.cumsum(counts)])
    return {name: np.diff(np.searchsorted(places, bounds)).tolist() for name, places in zip(names, members)}


def _ids(values: Tensor) -> np.ndarray:
    return values.to(torch.int64).contiguous().numpy()


def as_num_neighbors(fanouts: Fanouts) -> NumNeighbors:
    """Converts fanouts to PyG's class."""
    if isinstance(fanouts, NumNeighbors):
        return fanouts
    return NumNeighbors({tuple(kind): list(hops) for kind, hops in fanouts.items()} if isinstance(fanouts, Mapping)
                        else list(fanouts))


def as_fanouts(fanouts: NumNeighbors, schema: Schema) -> list[int] | dict[str, list[int]]:
    """Converts fanouts for ``Graph.sampler``; in a graph with edge types, a list applies to each of them."""
    values = fanouts.get_values(schema.edge_types or None)
    if not schema.edge_types:
        return [] if isinstance(values, dict) else list(values)
    if not isinstance(values, dict):
        values = dict.fromkeys(schema.edge_types, values)
    return {schema.edge_names[tuple(kind)]: list(hops) for kind, hops in values.items()}
