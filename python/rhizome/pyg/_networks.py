"""Converts PyG models to model files of the engine, if the engine has an equivalent model.

A model is converted only if each of its parts and options is known. A class derived from a PyG class, a hook, or an
unknown option makes it a different model. docs/LIBRARY.md lists the names of the weights.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn.models.basic_gnn import BasicGNN

Weights = dict[str, np.ndarray]

#: Epsilon that the engine adds to a variance; batch norms with another epsilon are rescaled to it.
_NORM_EPS = 1e-5

#: Names of the sum aggregation.
_SUMS = ("add", "sum")


class OtherModel(Exception):
    """The engine has no equivalent of a model; the message gives the reason."""


class Network(NamedTuple):
    """A model in the engine's terms."""

    kind: str
    widths: list[int]  #: width of the features, and output width of each layer
    options: dict[str, str]
    weights: Weights  #: by their names in model files
    without_loops: bool  #: PyG computes the same only if no vertex has an edge to itself

    def write(self, path: str) -> None:
        """Writes the model file (safetensors)."""
        layers = [{"kind": self.kind, "in": a, "out": b} for a, b in zip(self.widths, self.widths[1:])]
        said = {"format": 2, "kind": self.kind, "layers": layers, "inputs": self.widths[0], "hidden": self._hidden(),
                "classes": self.widths[-1], "dropout": 0.0, "normalize_features": False, "no_edges": False,
                "options": {**self.options, "head": "none"}}
        # With the task "regression" the engine computes no accuracy, so it does not read the store's labels.
        header: dict[str, Any] = {"__metadata__": {"rhizome": json.dumps(said), "task": "regression"}}
        end = 0
        for name, values in self.weights.items():
            header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [end, end + 4 * values.size]}
            end += 4 * values.size
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for values in self.weights.values():
                file.write(np.ascontiguousarray(values, "<f4").tobytes())

    def _hidden(self) -> int:
        return self.widths[1] if len(self.widths) > 2 else 1


def network_of(model: BasicGNN | Sequence[Any]) -> Network:
    """Converts a PyG model, or a list of its layers, to a model of the engine. Errors: OtherModel."""
    if isinstance(model, BasicGNN):
        _check(type(model) in (pyg.GraphSAGE, pyg.GCN, pyg.GIN, pyg.GAT), f"it is a {type(model).__name__}")
        _check(model.jk_mode is None, "it has jumping knowledge")
        convs, norms = list(model.convs), list(model.norms)[:-1]
        activation = _activation_of(model.act)
        _check(not (model.act_first and norms and not isinstance(norms[0], nn.Identity)),
               "its activation comes before its norm")
        modules = list(model.modules())
    else:
        convs, norms, activation = list(model), [], "none"
        _check(all(isinstance(conv, nn.Module) for conv in convs), "some of its layers are functions")
        modules = [part for conv in convs for part in conv.modules()]
    for module in modules:
        _check_untouched(module)
    kind, read = _KINDS.get(type(convs[0]), ("", None))
    _check(read is not None, f"there is no such kind of layer: {type(convs[0]).__name__}")
    _check(all(type(conv) is type(convs[0]) for conv in convs), "its layers are of several kinds")
    return _stack(kind, read, convs, norms, activation)


def _stack(kind: str, read: Any, convs: list[Any], norms: list[Any], activation: str) -> Network:
    options: dict[str, str] = {"activation": activation}
    weights: Weights = {}
    widths: list[int] = []
    for k, conv in enumerate(convs):
        is_last = k + 1 == len(convs)
        layer = read(conv, is_last)
        _check(not widths or widths[-1] == layer.inputs, "its widths do not fit")
        widths += [layer.outputs] if widths else [layer.inputs, layer.outputs]
        for name, value in layer.options.items():
            _check(options.setdefault(name, value) == value, f"its layers differ in {name}")
        weights.update({f"layers.{k}.{name}": values for name, values in layer.weights.items()})
        if norms and not is_last:
            name, values = _norm_of(norms[k])
            _check(options.setdefault("norm", name) == name, "its norms differ")
            weights.update({f"layers.{k}.norm.{part}": value for part, value in values.items()})
    _check(len(set(widths[1:-1])) <= 1, "its hidden widths differ")
    if kind in ("gat", "gatv2"):
        options.setdefault("heads", "1")  # of a single layer
    without_loops = kind == "gcn" or (kind in ("gat", "gatv2") and options["no-self-loops"] == "false")
    return Network(kind, widths, options, weights, without_loops)


class _Layer(NamedTuple):
    inputs: int
    outputs: int
    options: dict[str, str]
    weights: Weights


def _sage(conv: Any, is_last: bool) -> _Layer:
    _check(isinstance(conv.in_channels, int), "a layer has two inputs")
    _check(conv.aggr in ("mean", "max"), f"it aggregates by {conv.aggr}")
    _check(not conv.project or conv.aggr == "max", "it projects what it takes the mean of")
    inputs, outputs = conv.in_channels, conv.out_channels
    own = conv.lin_r.weight if conv.root_weight else torch.zeros(outputs, inputs)
    weights = {"neighbor.weight": _values(conv.lin_l.weight), "self.weight": _values(own),
               "bias": _bias(conv.lin_l.bias, outputs)}
    if conv.project:
        weights |= {"pool.weight": _values(conv.lin.weight), "pool.bias": _bias(conv.lin.bias, inputs)}
    aggregator = "pool" if conv.project else conv.aggr
    return _Layer(inputs, outputs, {"aggregator": aggregator, "l2-normalize": _flag(conv.normalize)}, weights)


def _gcn(conv: Any, is_last: bool) -> _Layer:
    _check(conv.aggr in _SUMS and conv.normalize and conv.add_self_loops and not conv.improved and not conv.cached,
           "its GCNConv has options")
    return _Layer(conv.in_channels, conv.out_channels, {},
                  {"neighbor.weight": _values(conv.lin.weight), "bias": _bias(conv.bias, conv.out_channels)})


def _gin(conv: Any, is_last: bool) -> _Layer:
    _check(conv.aggr in _SUMS, f"it aggregates by {conv.aggr}")
    first, norm, second = _mlp_of(conv.nn)
    outputs = second.out_features if hasattr(second, "out_features") else second.out_channels
    _check(first.weight.shape[0] == outputs, "its MLP has another hidden width")
    weights = {"eps": _values(torch.as_tensor(conv.eps, dtype=torch.float64).reshape(1)),
               "mlp.0.weight": _values(first.weight), "mlp.0.bias": _bias(first.bias, outputs),
               "mlp.1.weight": _values(second.weight), "mlp.1.bias": _bias(second.bias, outputs)}
    _, normed = _batch_norm_of(norm, outputs)
    weights |= {f"mlp.norm.{name}": values for name, values in normed.items()}
    return _Layer(first.weight.shape[1], outputs, {"eps": "0"}, weights)


def _mlp_of(mlp: Any) -> tuple[Any, Any, Any]:
    """Returns the two linear layers of an MLP with a ReLU, and the batch norm between them (or Identity)."""
    if type(mlp) is pyg.MLP:
        _check(len(mlp.lins) == 2 and mlp.plain_last and _activation_of(mlp.act) == "relu", "its MLP is another")
        _check(not mlp.act_first or isinstance(mlp.norms[0], nn.Identity), "its activation comes before its norm")
        return mlp.lins[0], mlp.norms[0], mlp.lins[1]
    _check(type(mlp) is nn.Sequential, f"its MLP is a {type(mlp).__name__}")
    parts = list(mlp)
    if len(parts) == 3:
        parts.insert(1, nn.Identity())
    linear = (nn.Linear, pyg.Linear)
    _check(len(parts) == 4 and type(parts[0]) in linear and type(parts[3]) in linear
           and _activation_of(parts[2]) == "relu", "its MLP is another")
    return parts[0], parts[1], parts[3]


def _gat(conv: Any, is_last: bool) -> _Layer:
    attention = {"attention.source": _values(conv.att_src)[0], "attention.target": _values(conv.att_dst)[0]}
    _check(conv.lin is not None, "a layer has two inputs")
    return _attention(conv, is_last, {"source.weight": _values(conv.lin.weight), **attention})


def _gatv2(conv: Any, is_last: bool) -> _Layer:
    width = conv.heads * conv.out_channels
    weights = {"attention": _values(conv.att)[0]}
    for name, linear in (("source", conv.lin_l), ("target", conv.lin_r)):
        weights |= {f"{name}.weight": _values(linear.weight), f"{name}.bias": _bias(linear.bias, width)}
    return _attention(conv, is_last, weights)


def _attention(conv: Any, is_last: bool, weights: Weights) -> _Layer:
    _check(conv.aggr in _SUMS and conv.edge_dim is None and not conv.residual and isinstance(conv.in_channels, int),
           f"its {type(conv).__name__} has options")
    _check(conv.heads == 1 or conv.concat != is_last, "heads are joined in the last layer, or averaged before")
    outputs = conv.out_channels if is_last else conv.heads * conv.out_channels
    options = {"out-heads" if is_last else "heads": str(conv.heads), "negative-slope": repr(float(conv.negative_slope)),
               "no-self-loops": _flag(not conv.add_self_loops)}
    return _Layer(conv.in_channels, outputs, options, {**weights, "bias": _bias(conv.bias, outputs)})


_KINDS: dict[type, tuple[str, Callable[[Any, bool], _Layer]]] = {
    pyg.SAGEConv: ("sage", _sage), pyg.GCNConv: ("gcn", _gcn), pyg.GINConv: ("gin", _gin), pyg.GATConv: ("gat", _gat),
    pyg.GATv2Conv: ("gatv2", _gatv2),
}


def _activation_of(act: Any) -> str:
    known = {nn.ReLU: "relu", nn.ELU: "elu", nn.GELU: "gelu", nn.Tanh: "tanh", nn.Identity: "none", type(None): "none"}
    functions = {torch.relu: "relu", nn.functional.relu: "relu", torch.tanh: "tanh", nn.functional.gelu: "gelu"}
    name = functions.get(act) if not isinstance(act, nn.Module) and callable(act) else known.get(type(act))
    _check(name is not None and getattr(act, "alpha", 1) == 1 and getattr(act, "approximate", "none") == "none",
           f"there is no such activation: {act}")
    return str(name)


def _norm_of(norm: Any) -> tuple[str, Weights]:
    if isinstance(norm, (nn.LayerNorm, pyg.LayerNorm)):
        _check(type(norm) in (nn.LayerNorm, pyg.LayerNorm) and norm.eps == _NORM_EPS
               and getattr(norm, "mode", "node") == "node" and norm.weight is not None and norm.bias is not None,
               "its layer norm is another")
        return "layer", {"weight": _values(norm.weight), "bias": _values(norm.bias)}
    return _batch_norm_of(norm, 0)


def _batch_norm_of(norm: Any, width: int) -> tuple[str, Weights]:
    """Returns a batch norm with variance 1, whose scale includes the actual variance. ``width``: if not 0, an Identity
    is converted to a neutral norm of that width."""
    if type(norm) is nn.Identity:
        if not width:
            return "none", {}
        ones, zeros = np.ones(width), np.zeros(width)
        return "batch", {"weight": ones * math.sqrt(1 + _NORM_EPS), "bias": zeros, "mean": zeros, "variance": ones}
    inner = norm.module if type(norm) is pyg.BatchNorm else norm
    _check(type(inner) is nn.BatchNorm1d and inner.track_running_stats and inner.running_mean is not None,
           f"there is no such norm: {type(norm).__name__}")
    mean, variance = _values(inner.running_mean), _values(inner.running_var)
    scale = np.ones(len(mean)) if inner.weight is None else _values(inner.weight)
    return "batch", {"weight": scale / np.sqrt(variance + inner.eps) * math.sqrt(1 + _NORM_EPS),
                     "bias": _bias(inner.bias, len(mean)), "mean": mean, "variance": np.ones(len(mean))}


def _check_untouched(module: nn.Module) -> None:
    """Raises OtherModel if a module has hooks or one of its methods was replaced."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_propagate_forward_hooks", "_propagate_forward_pre_hooks",
             "_message_forward_hooks", "_message_forward_pre_hooks", "_aggregate_forward_hooks",
             "_aggregate_forward_pre_hooks", "_edge_update_forward_hooks", "_edge_update_forward_pre_hooks")
    _check(not any(getattr(module, name, None) for name in hooks), f"{type(module).__name__} has hooks")
    own = ("forward", "propagate", "message", "message_and_aggregate", "aggregate", "update")
    _check(not any(name in vars(module) for name in own), f"{type(module).__name__} has a function of its own")
    _check(getattr(module, "flow", "source_to_target") == "source_to_target", "it sends against the edges")


def _check(holds: bool, why: str) -> None:
    if not holds:
        raise OtherModel(why)


def _values(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().to(torch.float64).numpy()


def _bias(bias: torch.Tensor | None, width: int) -> np.ndarray:
    return np.zeros(width) if bias is None else _values(bias)


def _flag(value: Any) -> str:
    return "true" if value else "false"
