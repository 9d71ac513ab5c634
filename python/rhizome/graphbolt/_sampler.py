"""The graph of a store and a sampler for it, as parts of GraphBolt's pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import dgl.graphbolt as gb
import numpy as np
import torch
from torch.utils.data import functional_datapipe

from .._graph import Direction, Graph, Sampler
from .._shared import EdgeType, Schema, SharedGraph, tensor
from .._types import Subgraph

try:
    from dgl.graphbolt.impl.sampled_subgraph_impl import SampledSubgraphImpl
except ImportError:  # other versions of DGL
    from dgl.graphbolt import SampledSubgraphImpl

Nodes = Union[torch.Tensor, dict[str, torch.Tensor]]


class SamplingGraph(gb.SamplingGraph):
    """The graph of a store for GraphBolt's pipelines. Its edges remain in the store.

    Pickled, as for worker processes, it consists of a path and options; a forked worker uses the edges in its parent's
    memory.
    """

    def __init__(self, graph: Graph | SharedGraph, *, memory: int | str = "1G",
                 edge_types: dict[str, EdgeType] | None = None) -> None:
        """``memory``: memory of a worker that opens the store itself. ``edge_types``: see ``rhizome.pyg.backend``."""
        super().__init__()
        self.shared = graph if isinstance(graph, SharedGraph) else SharedGraph(graph, memory, edge_types)

    @property
    def num_nodes(self) -> int | dict[str, int]:
        """The number of vertices, by node type in a typed graph."""
        schema = self.shared.schema
        return dict(schema.counts) if schema.typed else schema.bound

    @property
    def num_edges(self) -> int | dict[str, int]:
        """The number of edges, by edge type in a typed graph."""
        schema, graph = self.shared.schema, self.shared.topology
        if not schema.typed:
            return graph.num_edges
        counts = np.zeros(len(graph.edge_types), np.int64)
        for block in graph.scan_edges():
            kinds = np.zeros(len(block.src), np.uint16) if block.types is None else block.types
            counts += np.bincount(kinds, minlength=len(counts))
        return {_name(triple): int(counts[kind]) for triple, kind in schema.edge_numbers.items()}

    def copy_to_shared_memory(self, shared_memory_name: str) -> SamplingGraph:
        """Returns the graph itself, because processes share the store."""
        return self

    def to(self, device: torch.device) -> SamplingGraph:  # pylint: disable=invalid-name
        """Returns the graph itself. Errors: NotImplementedError, a device other than the CPU."""
        if torch.device(device).type != "cpu":
            raise NotImplementedError(f"the edges are in a store, and are not copied to {device}")
        return self

    def sample_negative_edges_uniform(self, edge_type: str | None, node_pairs: tuple[torch.Tensor, torch.Tensor],
                                      negative_ratio: int) -> tuple[None, torch.Tensor]:
        """Returns ``negative_ratio`` random targets for each pair; the sources are the pairs' sources."""
        return None, torch.randint(self._targets(edge_type), (len(node_pairs[0]) * negative_ratio,))

    def sample_negative_edges_uniform_2(self, edge_type: str | None, node_pairs: torch.Tensor,
                                        negative_ratio: int) -> torch.Tensor:
        """Returns the pairs, followed by ``negative_ratio`` pairs with random targets for each, [n, 2]."""
        sources = node_pairs[:, 0].repeat_interleave(negative_ratio)
        targets = torch.randint(self._targets(edge_type), (len(sources),))
        return torch.cat([node_pairs, torch.stack([sources, targets], 1)])

    def _targets(self, edge_type: str | None) -> int:
        schema = self.shared.schema
        return schema.counts[edge_type.split(":")[2]] if edge_type else schema.bound

    def __repr__(self) -> str:
        return f"rhizome.graphbolt.SamplingGraph({self.shared.path!r}, num_nodes={self.num_nodes})"


@functional_datapipe("sample_rhizome")
class NeighborSampler(gb.SubgraphSampler):
    """Samples neighbours layer by layer: ``datapipe.sample_rhizome(graph, fanouts)``.

    As in GraphBolt's sampler, each layer samples for all vertices of the layers after it. Random numbers are taken from
    torch's generator, so that ``torch.manual_seed`` determines the samples, also in worker processes.
    """

    def __init__(self, datapipe: Any, graph: SamplingGraph | Graph, fanouts: Sequence[Any], *, replace: bool = False,
                 weighted: bool = False, times: str | None = None, deduplicate: bool = True, direction: Direction = "in",
                 edge_ids: bool = False, seed: int = 1, threads: int = 1) -> None:
        """``fanouts``: of each layer, the seeds' layer last, as in GraphBolt; -1 for all neighbours. In a typed graph
        each may be a tensor with a fanout for each edge type, in the order of ``rhizome.Graph.edge_types``.
        ``times``: an int64 attribute of edges: only edges earlier than their seed's ``timestamp`` are sampled.
        ``deduplicate``: False: each sampled edge leads to a separate vertex that samples independently, so that a
        vertex may have several rows, and seeds may repeat. ``times`` implies this, as in GraphBolt.
        ``edge_ids``: fill ``original_edge_ids`` with the edge numbers.
        All other arguments and errors are as for ``rhizome.Graph.sampler``.
        """
        super().__init__(datapipe)
        self._graph = graph if isinstance(graph, SamplingGraph) else SamplingGraph(graph)
        self._apart = times is not None or not deduplicate
        whole = _fanouts(fanouts, self._graph.shared.topology.edge_types)
        self._fanouts = _each_hop(whole) if self._apart else [whole]
        self._options = {"replace": replace, "weighted": weighted, "times": times, "disjoint": self._apart,
                         "direction": direction, "edge_ids": edge_ids, "seed": seed, "threads": threads, "again": True}
        self._samplers: list[Sampler] = []
        self._use()

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {**state, "_samplers": []} if isinstance(state, dict) else state

    def _use(self) -> list[Sampler]:
        """Returns one sampler for all hops or, if vertices sample independently, one for each hop."""
        if not self._samplers:
            topology = self._graph.shared.topology
            self._samplers = [topology.sampler(fanouts, **self._options) for fanouts in self._fanouts]
        return self._samplers

    def sample_subgraphs(self, seeds: Nodes, seeds_timestamp: Any = None) -> tuple[Nodes, list[Any]]:
        """Returns the vertices whose features are needed, and a subgraph for each layer, the outermost first."""
        schema = self._graph.shared.schema
        by_type = seeds if isinstance(seeds, dict) else {None: seeds}
        vertices = np.concatenate([schema.vertices(kind, numbers) for kind, numbers in by_type.items()])
        times = None
        if self._options["times"] is not None:
            if seeds_timestamp is None:
                raise ValueError("a sampler with times needs minibatches with a timestamp for each seed")
            given = seeds_timestamp if isinstance(seeds_timestamp, dict) else {None: seeds_timestamp}
            # The engine samples edges that are not later than a time; GraphBolt requires earlier ones.
            times = np.concatenate([given[kind].numpy() for kind in by_type]).astype(np.int64) - 1
        sub = _draw_apart(self._use(), vertices, times) if self._apart else _draw(self._use()[0], vertices)
        return _typed_layers(sub, schema) if isinstance(seeds, dict) else _layers(sub)


def _random() -> int:
    """Returns a minibatch number from torch's generator."""
    return int(torch.randint(1 << 62, ()))


def _draw(sampler: Sampler, vertices: np.ndarray) -> Subgraph:
    sub = sampler.sample(vertices, _random())
    if len(sub.vertices) and sub.hops[0] != len(vertices):
        raise ValueError("a vertex is a seed twice in one minibatch: give distinct seeds, or deduplicate=False")
    return sub


def _draw_apart(samplers: list[Sampler], vertices: np.ndarray, times: np.ndarray | None) -> Subgraph:
    """Samples hop by hop: all vertices found so far sample again, each independently, at the time of its seed."""
    if not samplers:
        raise ValueError("there are no fanouts: give one for each layer")
    hops, subs = [vertices], []
    for sampler in samplers:
        columns = np.concatenate(hops)
        sub = sampler.sample(columns, _random(), times)
        first, last = sub.offsets[sub.hop_lists[[0, 1]]]
        hops.append(sub.vertices[sub.edge_index[0, first:last]])
        counts = np.diff(sub.offsets[sub.hop_lists[0]:sub.hop_lists[1] + 1])
        subs.append((counts, sub))
        times = None if times is None else np.concatenate([times, np.repeat(times, counts)])
    return _together(hops, subs)


def _together(hops: list[np.ndarray], subs: list[tuple[np.ndarray, Subgraph]]) -> Subgraph:
    """Joins samples of one hop each: the edges of a hop lead to its vertices, in their order."""
    found = np.cumsum([len(hop) for hop in hops])
    join = lambda column: None if column[0] is None else np.concatenate(column)
    return Subgraph(
        vertices=np.concatenate(hops),
        edge_index=np.stack([np.arange(found[0], found[-1]),
                             np.concatenate([np.repeat(np.arange(len(counts)), counts) for counts, _ in subs])]),
        seeds=np.arange(found[0]), hops=np.array([len(hop) for hop in hops]),
        edge_hops=np.array([len(hop) for hop in hops[1:]]), types=join([sub.types for _, sub in subs]),
        weights=join([sub.weights for _, sub in subs]), edge_ids=join([sub.edge_ids for _, sub in subs]), seed_of=None,
        offsets=np.concatenate([[0], np.cumsum(np.concatenate([counts for counts, _ in subs]))]),
        hop_lists=np.concatenate([[0], np.cumsum([len(counts) for counts, _ in subs])]))


def _each_hop(fanouts: Any) -> list[Any]:
    """Returns separate fanouts for each hop."""
    if isinstance(fanouts, dict):
        return [{name: [fanout] for name, fanout in zip(fanouts, hop)} for hop in zip(*fanouts.values())]
    return [[fanout] for fanout in fanouts]


def _fanouts(fanouts: Sequence[Any], types: list[str]) -> Any:
    """Converts fanouts for Graph.sampler, with the seeds' hop first."""
    hops = [torch.as_tensor(fanout).reshape(-1).tolist() for fanout in reversed(fanouts)]
    if all(len(hop) == 1 for hop in hops):
        return [hop[0] for hop in hops]
    for hop in hops:
        if len(hop) not in (1, len(types)):
            raise ValueError(f"a layer has {len(hop)} fanouts: give one, or one for each of the edge types {types}")
    each = [hop * len(types) if len(hop) == 1 else hop for hop in hops]
    return {name: [hop[number] for hop in each] for number, name in enumerate(types)}


def _name(kind: EdgeType) -> str:
    return ":".join(kind)


def _layers(sub: Subgraph) -> tuple[torch.Tensor, list[Any]]:
    """Returns the layers of a sample as views; only the pointers are copied."""
    vertices, found, lists = tensor(sub.vertices), np.cumsum(sub.hops), sub.hop_lists
    made = []
    for hop in range(len(sub.edge_hops)):
        pointers = sub.offsets[lists[hop]:lists[hop + 1] + 1]
        edges = slice(pointers[0], pointers[-1])
        made.insert(0, SampledSubgraphImpl(
            sampled_csc=gb.CSCFormatBase(indptr=tensor(pointers - pointers[0]), indices=tensor(sub.edge_index[0, edges])),
            original_column_node_ids=vertices[:found[hop]], original_row_node_ids=vertices[:found[hop + 1]],
            original_edge_ids=None if sub.edge_ids is None else tensor(sub.edge_ids[edges])))
    return vertices, made


class _Numbered:
    """The vertices of a sample, numbered within their types, in order of discovery."""

    def __init__(self, sub: Subgraph, schema: Schema) -> None:
        self.types = schema.types_of(sub.vertices)
        self.local = np.empty(len(sub.vertices), np.int64)
        self._numbers = schema.numbers(sub.vertices, self.types)
        for kind in range(len(schema.node_types)):
            of_kind = self.types == kind
            self.local[of_kind] = np.arange(of_kind.sum())
        self._names = schema.node_types

    def first(self, count: int) -> dict[str, torch.Tensor]:
        """Returns the first vertices of the sample, by type."""
        types = self.types[:count]
        return {name: tensor(self._numbers[:count][types == kind]) for kind, name in enumerate(self._names)}


def _typed_layers(sub: Subgraph, schema: Schema) -> tuple[dict[str, torch.Tensor], list[Any]]:
    vertices, found = _Numbered(sub, schema), np.cumsum(sub.hops)
    kinds = np.zeros(sub.edge_index.shape[1], np.uint16) if sub.types is None else sub.types
    made = []
    for hop in range(len(sub.edge_hops)):
        columns = vertices.first(found[hop])
        end = int(sub.edge_hops[:hop + 1].sum())
        begin = end - int(sub.edge_hops[hop])
        csc, ids = {}, {}
        for triple, kind in schema.edge_numbers.items():
            edges = begin + np.flatnonzero(kinds[begin:end] == kind)
            src, dst = sub.edge_index[:, edges]
            counts = np.bincount(vertices.local[dst], minlength=len(columns[triple[2]]))
            csc[_name(triple)] = gb.CSCFormatBase(indptr=tensor(np.concatenate([[0], np.cumsum(counts)])),
                                                  indices=tensor(vertices.local[src]))
            if sub.edge_ids is not None:
                ids[_name(triple)] = tensor(sub.edge_ids[edges])
        made.insert(0, SampledSubgraphImpl(
            sampled_csc=csc, original_column_node_ids=columns, original_row_node_ids=vertices.first(found[hop + 1]),
            original_edge_ids=ids or None))
    return vertices.first(len(sub.vertices)), made
