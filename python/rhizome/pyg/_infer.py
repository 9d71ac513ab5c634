"""Computes the embeddings of all vertices with a PyG model, layer by layer."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn.models.basic_gnn import BasicGNN

from .. import _core
from .._graph import Graph
from .._stores import add_array
from .._types import AddReport, Direction, Progress, as_bytes
from ..errors import Busy, OutOfMemory, Unsupported
from ._engine import infer_natively
from ._leftovers import Leftovers
from ._networks import OtherModel
from ._pass import Layer, Pass, Reader, fingerprint

_LOG = logging.getLogger("rhizome")

#: Number of result rows that are read at once to check whether they are finite.
_CHECKED_ROWS = 1 << 14

#: Seconds between two looks for a writer.
_POLL = 0.1


def infer(model: BasicGNN | Sequence[Layer], graph: Graph, *, features: str, out: str, memory: int | str = "1G",
          direction: Direction = "in", edge_weight: bool = False, device: Any = "cpu", live: bool = False,
          engine: Literal["auto", "native", "torch"] = "auto", resume: bool = False,
          wait: float = 0, progress: Progress | None = None) -> AddReport:
    """Computes the output of ``model`` for every vertex from all its neighbours, and stores it as the array ``out``.

    ``model``: one of PyG's models (GraphSAGE, GIN, GAT, ...; without jumping knowledge), or the layers of any other
    model, in order: ``[lambda x, e: conv1(x, e).relu(), conv2]``. Each layer is computed for all vertices before the
    next one, so that no output is computed twice.
    ``engine``: "native", the engine's models, in a process of ``rhizome-store-gnn``; "torch", block by block in this process;
    "auto": native if that is installed, the model is GraphSAGE, GCN, GIN, GAT, or a list of their layers, its options
    are supported by the engine, and both compute the same output on a small graph. The choice is logged at level info.
    In torch, the output of a layer for a vertex must depend only on the edges into that vertex. GCN also depends on the
    degrees of the neighbours; this is detected and raises an error.
    ``graph``: both engines use its current state, whether it is a snapshot or an open graph (which advances to the last
    commit afterwards).
    ``features``: the input array of the first layer. ``out``: the name of the result, which becomes its next version;
    ``live``: let ``out@live`` refer to it. ``direction``: the neighbours of a vertex: "in", the sources of its
    in-edges; "out", the targets of its out-edges, as if all edges were reversed.
    ``edge_weight``: also pass edge weights to the layers. Of the native engine's models, only GCN uses them, as in PyG.
    ``memory``: maximum memory in bytes, or a text such as "2G". In torch it applies to a block of vertices with their
    neighbours; a vertex that needs more forms a separate block. Between layers, the rows are in files next to the
    store.
    ``resume``: continue the work of a killed or interrupted run of the same job; the result is the same. A different
    commit, features, memory or model make it another job. Without ``resume``, leftovers are removed. In torch they are
    in the folder ``.infer-STORE-OUT`` next to the store, with the rows of at most two layers.
    ``wait``: maximum number of seconds to wait for a process that has the store open for writing: before the work, and
    again at its end, when the result is stored.
    ``progress``: called with (layer, done, total). Rows that are NaN or infinite are logged as a warning of
    ``rhizome``.
    Errors: NotFound, no such array; TypeError, a model whose layers are unknown, or that does not support weights;
    ValueError, a layer that depends on more than the edges into its vertices, or a model that the native engine cannot
    compute although "native" was requested; Unsupported, no rhizome-store-gnn; Busy, a process (including
    this one) has the store open for writing, before any work or at its end, each after ``wait`` seconds, or computes
    this array: after the work, ``resume=True`` continues where it was; OutOfSpace; any error of the layers.
    After any exception there is no new version.
    """
    if engine not in ("auto", "native", "torch"):
        raise ValueError(f"engine is {engine!r}: it is 'auto', 'native' or 'torch'")
    layers = _layers_of(model, edge_weight)
    given = model if isinstance(model, BasicGNN) else layers
    graph[features]  # NotFound, naming it
    _waiting(wait, lambda _: _core.check_no_writer(graph.path))  # Busy, before any work
    with torch.no_grad(), _Evaluation(given):
        if engine != "torch":
            try:
                if torch.device(device).type != "cpu":
                    raise OtherModel("a device was asked for")
                report = _waiting(wait, lambda again: infer_natively(
                    given, layers, graph, features=features, out=out, memory=memory, direction=direction,
                    edge_weight=edge_weight, live=live, resume=resume or again, progress=progress))
                return _moved_on(graph, report)
            except OtherModel as other:
                if engine == "native":
                    raise ValueError(f"the native engine cannot compute this: {other}") from None
                _LOG.info("infer: %s is computed in torch: %s", out, other)
            except (OutOfMemory, Unsupported) as error:
                if engine == "native":
                    raise
                _LOG.info("infer: %s is computed in torch: %s", out, error)
        report = _infer_in_torch(layers, graph, features, out, Pass(graph.snapshot(), direction, edge_weight, device),
                                 memory, live, resume, wait, progress)
    return _moved_on(graph, report)


def _waiting(wait: float, work: Callable[[bool], Any]) -> Any:
    """Calls ``work`` until no writer is in its way, at most for ``wait`` seconds after the first attempt. Its argument:
    whether it was called before."""
    again, deadline = False, 0.0
    while True:
        try:
            return work(again)
        except Busy as busy:
            if not again:
                deadline = time.monotonic() + wait
                if wait > 0:
                    _LOG.warning("infer: waiting for a writer, at most %s s: %s", wait, busy)
            if time.monotonic() >= deadline:
                raise
            again = True
            time.sleep(min(_POLL, wait))


def _moved_on(graph: Graph, report: AddReport) -> AddReport:
    """Makes the result visible in a graph that is not a snapshot."""
    if not graph._core.fixed:
        graph.refresh()
    return report


def _infer_in_torch(layers: list[Layer], graph: Graph, features: str, out: str, work: Pass, memory: int | str, live: bool,
                    resume: bool, wait: float, progress: Progress | None) -> AddReport:
    snapshot = work.graph
    array = snapshot[features]
    rows: Reader = array.read
    job = {"commit": snapshot.sequence, "vertices": snapshot.num_vertices, "features": features,
           "versions": snapshot.arrays[features.partition("@")[0]].versions, "options": work.options,
           "memory": as_bytes(memory), "torch": torch.__version__,
           "layers": hashlib.sha256(fingerprint(work, layers, array.shape[1])).hexdigest()}
    left = Leftovers(graph.path, out, job, resume)
    done = False
    try:
        order = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in array.batches())])
        if not len(order):
            raise ValueError("the graph has no vertices")
        begin = work.resumable(left, order, len(layers))
        if left.shape(begin - 1) is not None:
            rows = work.rows_of(left, begin - 1, order, False).read
        for number in range(begin, len(layers)):
            name = f"layer {number + 1} of {len(layers)}"
            say = (lambda done, of, name=name: progress(name, done, of)) if progress else None
            made = work.run(layers[number], rows, order, left, number, number + 1 == len(layers), as_bytes(memory), say)
            rows = made.read
            left.drop(number - 1)
        _warn_of_non_finite(snapshot, features, out, order, made.read)
        report: AddReport = _waiting(wait, lambda _: add_array(graph.path, out, str(made.path), new_version=True, live=live,
                                                               memory=memory))
        done = True
        return report
    finally:
        left.close(done)


def _warn_of_non_finite(graph: Graph, features: str, out: str, order: np.ndarray, read: Reader) -> None:
    """Logs how many rows of a result, and of the features, are NaN or infinite, if any."""
    parts = (order[first:first + _CHECKED_ROWS] for first in range(0, len(order), _CHECKED_ROWS))
    bad = _non_finite((ids, read(ids)) for ids in parts)
    if not len(bad):
        return
    given = _non_finite(graph[features].batches())
    cause = f"all values of {features} are finite"
    if len(given):
        cause = (f"array {features} has such values for {len(given)} of the vertices, the first is "
                 f"{graph.external_ids(given[:1])[0]}: correct its rows and run this again")
    _LOG.warning("%d of %d rows of %s have NaN or an infinite value, the first is of vertex %s; %s", len(bad), len(order),
                 out, graph.external_ids(bad[:1])[0], cause)


def _non_finite(blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns the vertices whose rows contain NaN or infinite values, ascending."""
    found = [ids[~np.isfinite(np.asarray(rows)).all(axis=1)] for ids, rows in blocks]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


class _Evaluation:
    """Context manager that sets modules to evaluation mode and restores them."""

    def __init__(self, model: BasicGNN | list[Layer]) -> None:
        parts = [model] if isinstance(model, BasicGNN) else model
        self._were = [(module, module.training) for part in parts if isinstance(part, torch.nn.Module)
                      for module in part.modules()]

    def __enter__(self) -> None:
        for module, _ in self._were:
            module.training = False

    def __exit__(self, *_: object) -> None:
        for module, was in self._were:
            module.training = was


class _LayerOf:
    """A layer of one of PyG's models, including the norm and the activation after it."""

    def __init__(self, model: BasicGNN, number: int) -> None:
        self._model, self._number = model, number

    def __call__(self, x: Any, edges: Any, *weights: Tensor) -> Tensor:
        if not weights:
            return self._model.inference_per_layer(self._number, x, edges, None)
        conv = self._model.convs[self._number]
        with_weights = conv.register_forward_pre_hook(lambda _, given: (*given, *weights))
        try:
            return self._model.inference_per_layer(self._number, x, edges, None)
        finally:
            with_weights.remove()


def _layers_of(model: Union[BasicGNN, Sequence[Layer]], edge_weight: bool) -> list[Layer]:
    if isinstance(model, BasicGNN):
        if edge_weight and not model.supports_edge_weight:
            raise TypeError(f"edge_weight: the layers of {type(model).__name__} take no weights of edges")
        if getattr(model, "jk_mode", None) is not None:
            raise TypeError("a model with jumping knowledge joins its layers at the end: give its layers instead")
        return [_LayerOf(model, i) for i in range(model.num_layers)]
    try:
        layers = list(model)
    except TypeError:
        layers = []
    if not layers or not all(map(callable, layers)):
        raise TypeError(f"{type(model).__name__} does not say its layers: give them in a list, each called with x and "
                        f"edge_index")
    return layers
