"""Inference with the engine's models, if a PyG model is equivalent to one of them."""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .. import _verbs
from .._graph import Graph, open as open_store
from .._ingest import ingest
from .._types import AddReport, Direction, Progress
from ._networks import Network, OtherModel, network_of

_LOG = logging.getLogger("rhizome")

#: Size of the graph on which a model is tried.
_TRIED, _TRIED_EDGES = 40, 240


def infer_natively(model: Any, layers: Sequence[Callable[..., torch.Tensor]], graph: Graph, *, features: str, out: str,
                   memory: int | str, direction: Direction, edge_weight: bool, live: bool, resume: bool,
                   progress: Progress | None) -> AddReport:
    """Computes the output of a model with ``rhizome infer``, a child process, and stores it; see ``rhizome.pyg.infer``.

    Errors: OtherModel, the engine cannot compute this, with the reason; any error of ``rhizome.infer``, such as
    Unsupported, no rhizome-store-gnn.
    """
    if graph.arrays[features.partition("@")[0]].dtype not in (np.float32, np.float16):
        raise OtherModel("the features are no floats")
    network = network_of(model)
    if graph[features].shape[1] != network.widths[0]:
        raise OtherModel(f"the features have {graph[features].shape[1]} columns, and it takes {network.widths[0]}")
    if edge_weight:
        if network.kind != "gcn":  # of PyG's layers that the engine supports, only GCNConv uses edge weights
            raise OtherModel("its layers take no weights of edges")
        if all(block.weights is None for block in itertools.islice(graph.scan_edges(), 1)):
            raise OtherModel("the store has no weights of edges")
    if network.without_loops and _has_loops(graph):
        raise OtherModel("vertices have edges to themselves, which PyG's layers take away before they add one")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.safetensors")
        network.write(file)
        _try(network, layers, file, folder, edge_weight)
        said = _verbs.infer(graph.path, at=graph.point, model_file=file, features=features, out=out, new_version=True,
                            live=live, memory=memory, direction=direction, resume=resume, progress=progress,
                            edge_weights="use" if edge_weight else "ignore")
    _LOG.info("infer: %s was computed by the native engine, in %.1f s and %.0f MB", said["array"], said["seconds"],
              said["peak_memory_bytes"] / 2**20)
    return AddReport(said["array"], said["vertices"], said["vertices"], [], said["seconds"])


def _has_loops(graph: Graph) -> bool:
    return any(bool((block.src == block.dst).any()) for block in graph.scan_edges())


def _try(network: Network, layers: Sequence[Callable[..., torch.Tensor]], file: str, folder: str, edge_weight: bool) -> None:
    """Runs a model with the engine on a small graph with parallel edges. Errors: OtherModel, PyG's output differs."""
    rng = np.random.default_rng(1)
    edges = rng.integers(0, _TRIED - 2, (2, _TRIED_EDGES))  # two vertices have no edges
    edges[:, :20] = edges[:, 20:40]
    if network.without_loops:
        edges = edges[:, edges[0] != edges[1]]
    else:
        edges[1, 40:50] = edges[0, 40:50]
    x = rng.normal(size=(_TRIED, network.widths[0])).astype(np.float32)
    store = os.path.join(folder, "tried.rz")
    weights = rng.random(edges.shape[1], dtype=np.float32)
    ingest(store, edges, vertices=_TRIED, arrays={"x": x}, edge_arrays={"weight": weights} if edge_weight else {})
    _verbs.infer(store, model_file=file, features="x", out="made", memory="256M", threads=1)
    expected = torch.from_numpy(x)
    given = [torch.from_numpy(edges), *([torch.from_numpy(weights)] if edge_weight else [])]
    for layer in layers:
        expected = layer(expected, *given)
    with open_store(store) as tried:
        made = np.asarray(tried["made"])
    if made.shape != expected.shape or not np.allclose(made, expected, rtol=1e-4, atol=1e-5):
        raise OtherModel("the engine computes something else on a small graph")
