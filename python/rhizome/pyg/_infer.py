"""The embeddings of all vertices by a model of PyG, layer by layer."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn.models.basic_gnn import BasicGNN

from .._graph import Graph, Sampler
from .._shared import tensor
from .._stores import add_array
from .._types import AddReport, Direction, Progress, Subgraph, as_bytes

#: Called with x [n, dim] and edge_index [2, edges] (and edge_weight [edges]), or, if that gives the same, with a pair
#: (x of all, x of those to compute) and a sparse adj_t; returns rows [n, dim of the next layer].
Layer = Callable[..., Tensor]

#: Vertices on which a layer is tried, and their neighbours at most.
_TRIED, _MOST_NEIGHBORS = 32, 1000

#: Copies of the features of a block's neighbours, and of messages, that a layer holds at once; round figures. Of a sparse
#: matrix there are no messages, and neighbours have no output.
_COPIES, _COPIES_SPARSE = 4, 1


def infer(model: BasicGNN | Sequence[Layer], graph: Graph, *, features: str, out: str, memory: int | str = "1G",
          direction: Direction = "in", edge_weight: bool = False, device: Any = "cpu", live: bool = False,
          progress: Progress | None = None) -> AddReport:
    """Computes the output of ``model`` for every vertex from all its neighbours, and stores it as the array ``out``.

    ``model``: one of PyG's (GraphSAGE, GIN, GAT, ...; without jumping knowledge), or the layers of any other, in
    order: ``[lambda x, e: conv1(x, e).relu(), conv2]``. Each layer is computed for all vertices before the next one, so
    that none is computed twice. What a layer computes for a vertex must depend on the edges into it alone. That of GCN
    depends on the degrees of its neighbours, too: this is found out, and an error.
    ``features``: the array that the first layer takes. ``out``: the name of the result, whose next version this is;
    ``live``: let ``out@live`` stand for it at once. ``direction``: the neighbours of a vertex: "in", those with
    edges to it; "out", those that it has edges to, as if all edges were reversed.
    ``edge_weight``: call layers with the weights of edges, too.
    ``memory``: of a block of vertices with their neighbours, bytes or a text such as "2G"; a vertex that needs more is a
    block of its own. Between layers the rows are in files beside the store. ``progress``: called with (layer, done, of).
    Errors: NotFound, no such array; TypeError, a model that says no layers; ValueError, a layer that depends on more
    than the edges into its vertices; Busy, somebody has the store open for
    writing; OutOfSpace; those of the layers. Whatever is raised, there is no new version then.
    """
    layers = _layers_of(model)
    bound = as_bytes(memory)
    with tempfile.TemporaryDirectory(prefix=".infer-", dir=os.path.dirname(graph.path) or ".") as folder, \
            torch.no_grad(), _Evaluation(model):
        snapshot = graph.snapshot()
        work = _Pass(snapshot, direction, edge_weight, device)
        order = np.concatenate([ids for ids, _ in snapshot[features].batches()])
        rows: Any = snapshot[features].read
        for number, layer in enumerate(layers):
            path = os.path.join(folder, f"{number}.npy")
            say = (lambda done, of, name=f"layer {number + 1} of {len(layers)}": progress(name, done, of)) \
                if progress else None
            rows = work.run(layer, rows, order, path, bound, say)
            if number:
                os.unlink(os.path.join(folder, f"{number - 1}.npy"))
        report = add_array(graph.path, out, path, new_version=True, live=live, memory=memory)
    if not graph._core.is_snapshot:
        graph.refresh()
    return report


class _Form(NamedTuple):
    """How a layer is given a block."""

    bipartite: bool  #: x as (of all vertices, of the block's), so that neighbours have no output
    sparse: bool  #: the edges as a sparse matrix, so that neighbours are added up by a product, with no row an edge


_PLAIN = _Form(False, False)


#: Vertices of the block that forms are tried on; as many lie outside.
_HARD = 8


def _hard_block(order: np.ndarray, weighted: bool) -> Subgraph:
    """Returns a block whose edges are made up: into each vertex but the last one a loop, an edge twice, one from outside."""
    src = np.array([[d, (d + 1) % _HARD, (d + 1) % _HARD, _HARD + d] for d in range(_HARD - 1)], np.int64).ravel()
    dst = np.repeat(np.arange(_HARD - 1), 4)
    counts = np.bincount(dst, minlength=2 * _HARD)
    weights = np.linspace(0.5, 2, len(src), dtype=np.float32) if weighted else None
    nothing = np.empty(0, np.int64)
    return Subgraph(order[np.arange(2 * _HARD) % len(order)], np.stack([src, dst]), nothing, nothing, nothing, None,
                    weights, None, None, np.concatenate([[0], np.cumsum(counts)]), nothing)


class _Pass:
    """Computes layers on a snapshot."""

    def __init__(self, graph: Graph, direction: Direction, edge_weight: bool, device: Any) -> None:
        self._graph, self._direction, self._device = graph, direction, device
        self._sampler = graph.sampler([-1], direction=direction)
        self._edge_weight = edge_weight
        self._form = _PLAIN

    def run(self, layer: Layer, rows: Callable[[np.ndarray], np.ndarray], order: np.ndarray, path: str, memory: int,
            say: Callable[[int, int], object] | None) -> Callable[[np.ndarray], np.ndarray]:
        """Computes a layer for the vertices ``order``, and returns a function that reads its rows.

        They are written to ``path``, .npy: row i belongs to the i-th of the vertices by id.
        """
        if not len(order):
            raise ValueError("the graph has no vertices")
        places = np.sort(order)
        dense = places[-1] == len(places) - 1  # then places are ids

        def place(ids: np.ndarray) -> np.ndarray:
            return ids if dense else np.searchsorted(places, ids)

        self._form = _PLAIN
        self._try(layer, rows, order)
        self._form = self._form_of(layer, rows, order)
        result: Any = None
        done = 0
        for block in self._blocks(order, rows(order[:1]).shape[1], memory):
            values = self._compute(layer, rows, block, self._sampler)
            if result is None:
                result = np.lib.format.open_memmap(path, "w+", np.float32, (len(order), values.shape[1]))
            result[place(block)] = values
            done += len(block)
            if say:
                say(done, len(order))
        result.flush()
        return lambda ids: result[place(ids)]

    def _blocks(self, order: np.ndarray, dim: int, memory: int) -> Iterator[np.ndarray]:
        """Divides vertices so that each block, with its neighbours, takes about ``memory`` bytes."""
        copies = _COPIES_SPARSE if self._form == _Form(True, True) else _COPIES
        costs = (self._graph.degrees(order, self._direction) + 1) * (copies * 4 * dim + 3 * 8)
        ends = np.cumsum(costs)
        first = 0
        while first < len(order):
            spent = ends[first - 1] if first else 0
            end = max(int(np.searchsorted(ends, spent + memory, side="right")), first + 1)
            yield order[first:end]
            first = end

    def _form_of(self, layer: Layer, rows: Callable[[np.ndarray], np.ndarray], order: np.ndarray) -> _Form:
        """Returns the cheapest form of arguments from which a layer makes the same as from x and edge_index.

        It is tried on a small block that has what layers may treat by the form: loops, parallel edges, edges within the
        block and into it, a vertex without any.
        """
        block = _hard_block(order, self._edge_weight)
        x = tensor(rows(block.vertices).astype(np.float32, copy=False)).to(self._device)
        self._form = _PLAIN
        expected = self._apply(layer, x, block, _HARD)
        for form in (_Form(True, True), _Form(True, False), _Form(False, True)):
            if form.sparse and self._edge_weight:
                continue
            self._form = form
            try:
                made = self._apply(layer, x, block, _HARD)
            except Exception:  # pylint: disable=broad-except  # whatever a layer says to what it does not take
                continue
            if made.shape == expected.shape and np.allclose(made, expected, rtol=1e-4, atol=1e-5):
                return form
        return _PLAIN

    def _try(self, layer: Layer, rows: Callable[[np.ndarray], np.ndarray], order: np.ndarray) -> None:
        """Raises ValueError if edges of the neighbours change what a layer computes for some vertices."""
        few = order[self._graph.degrees(order, self._direction) <= _MOST_NEIGHBORS]
        few = few[:: max(len(few) // _TRIED, 1)][:_TRIED]
        if not len(few):
            return
        further = self._graph.sampler([-1, 3], direction=self._direction)
        near, far = (self._compute(layer, rows, few, sampler) for sampler in (self._sampler, further))
        if not np.allclose(near, far, rtol=1e-3, atol=1e-4):
            raise ValueError("a layer depends on more than the edges into its vertices, as GCNConv does on the degrees of "
                             "their neighbours: it cannot be computed block by block. Let its edges have weights that "
                             "are normalised already (normalize=False, edge_weight=True)")

    def _compute(self, layer: Layer, rows: Callable[[np.ndarray], np.ndarray], block: np.ndarray,
                 sampler: Sampler) -> np.ndarray:
        sub = sampler.sample(block)
        x = tensor(rows(sub.vertices).astype(np.float32, copy=False)).to(self._device)
        return self._apply(layer, x, sub, len(block))

    def _apply(self, layer: Layer, x: Tensor, sub: Subgraph, count: int) -> np.ndarray:
        """Computes a layer for the first ``count`` vertices of a sample."""
        edges = self._matrix(sub, count) if self._form.sparse else tensor(sub.edge_index)
        given = [(x, x[:count]) if self._form.bipartite else x, edges.to(self._device)]
        if self._edge_weight:
            if sub.weights is None:
                raise ValueError("edge_weight: the store has no weights of edges")
            given.append(tensor(sub.weights).to(self._device))
        return layer(*given)[:count].cpu().numpy()

    def _matrix(self, sub: Subgraph, count: int) -> Tensor:
        """Returns the edges as PyG's adj_t: a row for each vertex, or for the first ``count``, with those it draws from."""
        rows = count if self._form.bipartite else len(sub.vertices)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls its sparse matrices a beta
            return torch.sparse_csr_tensor(tensor(sub.offsets[:rows + 1]), tensor(sub.edge_index[0]),
                                           torch.ones(sub.edge_index.shape[1]), (rows, len(sub.vertices)))


class _Evaluation:
    """Puts modules into evaluation mode, and back."""

    def __init__(self, model: Any) -> None:
        parts = [model] if isinstance(model, torch.nn.Module) else model
        self._were = [(part, part.training) for part in parts if isinstance(part, torch.nn.Module)]

    def __enter__(self) -> None:
        for module, _ in self._were:
            module.eval()

    def __exit__(self, *_: object) -> None:
        for module, was in self._were:
            module.train(was)


def _layers_of(model: Union[BasicGNN, Sequence[Layer]]) -> list[Layer]:
    if isinstance(model, BasicGNN):
        if getattr(model, "jk_mode", None) is not None:
            raise TypeError("a model with jumping knowledge joins its layers at the end: give its layers instead")
        return [lambda x, e, i=i: model.inference_per_layer(i, x, e, None) for i in range(model.num_layers)]
    try:
        layers = list(model)
    except TypeError:
        layers = []
    if not layers or not all(map(callable, layers)):
        raise TypeError(f"{type(model).__name__} does not say its layers: give them in a list, each called with x and "
                        f"edge_index")
    return layers
