"""Computes one layer of a model for all vertices in torch, block by block."""

from __future__ import annotations

import bisect
import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._graph import Graph, Sampler
from .._shared import tensor
from .._types import Direction, Subgraph
from ._leftovers import Block, Leftovers, RowFile, checksum

#: Called with x [n, dim] and edge_index [2, edges] (and edge_weight [edges]) or, if the result is the same, with a pair
#: (x of all vertices, x of the vertices to compute) and a sparse adj_t. Returns rows [n, dim of the next layer].
Layer = Callable[..., Tensor]

#: Reads rows of the previous layer, or features, by vertex id.
Reader = Callable[[np.ndarray], np.ndarray]

#: Number of vertices on which a layer is tried, and the maximum number of their neighbours.
_TRIED, _MOST_NEIGHBORS = 32, 1000

#: Number of vertices in the block on which the forms are tried. There are as many vertices outside of it.
_HARD = 8

#: Approximate memory: bytes per edge in samples and matrices, number of copies of an output row, and number of copies
#: of a message, if messages exist.
_EDGE_BYTES, _OUTPUTS, _MESSAGES = 32, 3, 2

#: If a block exceeds the memory, its length is divided by this factor.
_GROWTH = 2


class _Form(NamedTuple):
    """The form of the arguments in which a layer receives a block."""

    bipartite: bool  #: x is a pair (all vertices, vertices of the block), so that no output is computed for neighbours
    sparse: bool  #: edges are a sparse matrix; aggregation is a matrix product, without a row per edge


_PLAIN = _Form(False, False)


class Pass:
    """Computes layers on a snapshot."""

    def __init__(self, graph: Graph, direction: Direction, edge_weight: bool, device: Any) -> None:
        self.graph = graph
        self.options = [direction, bool(edge_weight), str(device)]
        self._direction, self._device = direction, device
        self._sampler = graph.sampler([-1], direction=direction)
        self._edge_weight = edge_weight
        self._form = _PLAIN

    def run(self, layer: Layer, rows: Reader, order: np.ndarray, left: Leftovers, number: int, is_last: bool, memory: int,
            say: Callable[[int, int], object] | None) -> RowFile:
        """Computes a layer for the vertices in ``order``, except for finished blocks. Returns its rows."""
        shape = left.shape(number)
        if shape is None:
            shape = self._shape_of(layer, rows, order)
        self._form = _Form(*shape["form"])
        left.begin(number, shape)
        file = self.rows_of(left, number, order, is_last)
        first, share = self._done(left, number, file, order)
        left.keep(first)
        edges = np.concatenate([[0], np.cumsum(self.graph.degrees(order, self._direction))]) if first < len(order) else None
        while first < len(order):
            sub, end = self._next(order, first, edges, share, shape, memory)
            share = (len(sub.vertices) - (end - first)) / max(sub.edge_index.shape[1], 1)
            values = self._compute(layer, rows, sub, end - first)
            file.write(order[first:end], values)
            left.add(Block(first, end, share, checksum(values)))
            first = end
            if say:
                say(first, len(order))
        return file

    def resumable(self, left: Leftovers, order: np.ndarray, layers: int) -> int:
        """Returns the layer to continue with: the layer in progress if all its inputs are intact, else the first."""
        number = left.layer
        needed = number if left.shape(number - 1) is None else number - 1
        if left.shape(needed) is not None and (needed < number or number > 0):
            file = self.rows_of(left, needed, order, needed + 1 == layers)
            if self._done(left, needed, file, order)[0] < len(order):
                left.clear()
        return left.layer

    def _done(self, left: Leftovers, number: int, file: RowFile, order: np.ndarray) -> tuple[int, float]:
        """Returns the number of finished vertices of a layer, and the share of its last block."""
        first, share = 0, 1.0
        for block in left.blocks(number):
            if checksum(file.read(order[block.first:block.end])) != block.checksum:
                break  # the machine stopped before the block was on disk
            first, share = block.end, block.share
        return first, share

    def rows_of(self, left: Leftovers, number: int, order: np.ndarray, is_last: bool) -> RowFile:
        """Opens the row file of a layer. Rows are in the given order, which the next layer uses; in the last layer, by
        id."""
        bound = self.graph.vertex_bound
        row_of = None
        if not is_last or len(order) < bound:
            row_of = np.zeros(bound, np.int32 if bound < 1 << 31 else np.int64)
            row_of[np.sort(order) if is_last else order] = np.arange(len(order))
        return left.rows(number, len(order), row_of)

    def _next(self, order: np.ndarray, first: int, edges: np.ndarray, share: float, shape: dict[str, Any],
              memory: int) -> tuple[Subgraph, int]:
        """Samples the block that starts at ``first`` and needs about ``memory`` bytes.

        The number of vertices reached by its edges is predicted from ``share``. If the prediction was too low, the
        block is halved.
        """
        def bytes_of(end: int) -> float:
            count, among = end - first, edges[end] - edges[first]
            return self._bytes(count, count + share * among, among, shape)

        end = bisect.bisect_right(range(first + 1, len(order) + 1), memory, key=bytes_of) + first
        end = max(end, first + 1)
        while True:
            sub = self._sampler.sample(order[first:end])
            taken = self._bytes(end - first, len(sub.vertices), sub.edge_index.shape[1], shape)
            if taken <= memory or end == first + 1:
                return sub, end
            end = first + max((end - first) // _GROWTH, 1)

    def _bytes(self, count: int, vertices: float, edges: int, shape: dict[str, Any]) -> float:
        """Returns the memory of a block: its vertices with their neighbours, edges, and outputs."""
        dim, width = shape["dim"], shape["width"]
        outputs = count if self._form.bipartite else vertices
        messages = 0 if self._form.sparse else _MESSAGES * 4 * max(dim, width)
        return vertices * 4 * dim + edges * (_EDGE_BYTES + messages) + outputs * 4 * (dim + _OUTPUTS * width)

    def _shape_of(self, layer: Layer, rows: Reader, order: np.ndarray) -> dict[str, Any]:
        """Tries a layer. Returns the values that its blocks depend on."""
        self._form = _PLAIN
        self._try(layer, rows, order)
        block = _hard_block(self._edge_weight)
        x = tensor(rows(order[block.vertices % len(order)]).astype(np.float32, copy=False)).to(self._device)
        expected = self._apply(layer, x, block, _HARD)
        return {"form": list(self._form_of(layer, x, block, expected)), "dim": x.shape[1], "width": expected.shape[1]}

    def _form_of(self, layer: Layer, x: Tensor, block: Subgraph, expected: np.ndarray) -> _Form:
        """Returns the form with the lowest cost in which a layer returns the same as for x and edge_index.

        Forms are tried on a small block with the cases that layers may treat differently: loops, parallel edges, edges
        within the block and into it, a vertex without edges.
        """
        for form in (_Form(True, True), _Form(True, False), _Form(False, True)):
            if form.sparse and self._edge_weight:
                continue
            self._form = form
            try:
                made = self._apply(layer, x, block, _HARD)
            except Exception:  # the layer may raise anything for unsupported arguments
                continue
            if made.shape == expected.shape and np.allclose(made, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
                return form
        return _PLAIN

    def _try(self, layer: Layer, rows: Reader, order: np.ndarray) -> None:
        """Raises ValueError if edges of the neighbours change the output of a layer for some vertices."""
        few = order[self.graph.degrees(order, self._direction) <= _MOST_NEIGHBORS]
        few = few[:: max(len(few) // _TRIED, 1)][:_TRIED]
        if not len(few):
            return
        further = self.graph.sampler([-1, 3], direction=self._direction)
        near, far = (self._compute(layer, rows, sampler.sample(few), len(few)) for sampler in (self._sampler, further))
        if not np.allclose(near, far, rtol=1e-3, atol=1e-4, equal_nan=True):
            raise ValueError("a layer depends on more than the edges into its vertices, as GCNConv does on the degrees of "
                             "their neighbours: it cannot be computed block by block. Let its edges have weights that "
                             "are normalised already (normalize=False, edge_weight=True), or give a model that the "
                             "native engine has")

    def _compute(self, layer: Layer, rows: Reader, sub: Subgraph, count: int) -> np.ndarray:
        x = tensor(rows(sub.vertices).astype(np.float32, copy=False)).to(self._device)
        return self._apply(layer, x, sub, count)

    def _apply(self, layer: Layer, x: Tensor, sub: Subgraph, count: int) -> np.ndarray:
        """Computes a layer for the first ``count`` vertices of a sample; rows are float32 and contiguous."""
        edges = self._matrix(sub, count) if self._form.sparse else tensor(sub.edge_index)
        given = [(x, x[:count]) if self._form.bipartite else x, edges.to(self._device)]
        if self._edge_weight:
            if sub.weights is None:
                raise ValueError("edge_weight: the store has no weights of edges")
            given.append(tensor(sub.weights).to(self._device))
        return np.ascontiguousarray(layer(*given)[:count].cpu().numpy(), np.float32)

    def _matrix(self, sub: Subgraph, count: int) -> Tensor:
        """Returns the edges as PyG's adj_t: one row for each vertex, or for the first ``count``, with its neighbours as
        columns."""
        rows = count if self._form.bipartite else len(sub.vertices)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that its sparse matrices are in beta
            return torch.sparse_csr_tensor(tensor(sub.offsets[:rows + 1]), tensor(sub.edge_index[0]),
                                           torch.ones(sub.edge_index.shape[1]), (rows, len(sub.vertices)))


def fingerprint(work: Pass, layers: Sequence[Layer], dim: int) -> bytes:
    """Returns a hash of the layers' outputs on a small block of random rows, to recognise the layers of an earlier run.
    """
    block = _hard_block(work.options[1])
    x = np.random.default_rng(0).normal(size=(2 * _HARD, dim)).astype(np.float32)
    made = hashlib.sha256()
    for layer in layers:
        rows = work._apply(layer, tensor(x).to(work._device), block, _HARD)
        made.update(rows)
        x = np.concatenate([rows, rows])
    return made.digest()


def _hard_block(weighted: bool) -> Subgraph:
    """Returns a synthetic block: each vertex except the last has a loop, a doubled edge, and an edge from outside."""
    src = np.array([[d, (d + 1) % _HARD, (d + 1) % _HARD, _HARD + d] for d in range(_HARD - 1)], np.int64).ravel()
    dst = np.repeat(np.arange(_HARD - 1), 4)
    counts = np.bincount(dst, minlength=2 * _HARD)
    weights = np.linspace(0.5, 2, len(src), dtype=np.float32) if weighted else None
    nothing = np.empty(0, np.int64)
    return Subgraph(np.arange(2 * _HARD), np.stack([src, dst]), nothing, nothing, nothing, None, weights, None, None,
                    np.concatenate([[0], np.cumsum(counts)]), nothing)
