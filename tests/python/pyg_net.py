"""Loads a model file of Rhizome as a PyTorch Geometric model; docs/LIBRARY.md lists the names of
the weights.

Written from the documentation of the models, not from the engine's code.
"""
import json
import pathlib
import re
import struct

import numpy as np
import torch
from torch.nn import BatchNorm1d, LayerNorm, Linear, ModuleDict, ModuleList, ReLU, Sequential
from torch_geometric import nn as pyg

ACTIVATIONS = {"relu": torch.relu, "elu": torch.nn.functional.elu, "gelu": torch.nn.functional.gelu,
               "tanh": torch.tanh, "none": lambda x: x}


def read_safetensors(path):
    """Returns the tensors by name, and the description of the model."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    description = json.loads(header.pop("__metadata__")["rhizome"])
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + first:8 + length + last], "<f4")
        tensors[name] = torch.from_numpy(values.astype(np.float64).reshape(entry["shape"]))
    return tensors, description


def read_names(page):
    """Returns the documented names of weights: by model, ours to those of its layer in PyG."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (`.* → .*) \|$", pathlib.Path(page).read_text(), re.M)
    return {model: dict(re.findall(r"`(\S+)` → `(\S+)`", pairs)) for model, pairs in rows}


class Graph:
    """edges: [m, 2] of source and target. One that is there twice counts twice, in Rhizome as in PyG. types: None, or
    the relations of the edges [m] and the types of the vertices."""

    def __init__(self, vertices, edges, types=None):
        if types is not None:
            self.relations, self.vertex_types = (torch.as_tensor(of) for of in types)
            ends = self.vertex_types[torch.as_tensor(np.ascontiguousarray(edges.T))]
            # The triples of PyG (type of sources, relation, type of targets), and the triple of each edge.
            self.triples, self.triple_of = torch.unique(
                torch.stack([ends[0], self.relations, ends[1]]), dim=1, return_inverse=True)
        self.vertices = vertices
        self.edges = torch.as_tensor(np.ascontiguousarray(edges.T))
        own = torch.arange(vertices).repeat(2, 1)
        self.with_own = torch.cat([self.edges, own], 1)
        self.has_loops = bool((self.edges[0] == self.edges[1]).any())

    def mean_matrix(self):
        matrix = torch.zeros(self.vertices, self.vertices)
        matrix.index_put_((self.edges[1], self.edges[0]), torch.ones(self.edges.shape[1]), accumulate=True)
        return matrix / matrix.sum(1, keepdim=True).clamp(min=1)


class Conv(torch.nn.Module):
    """A layer of PyG on a graph.

    GCN and GAT count a vertex as one more neighbour of itself. PyG's GCNConv and GATConv do so too, but take away the
    self-loops that the graph has; Rhizome leaves them there. So `own` is False where PyG's way is the same (a graph
    without self-loops), and True where an edge of each vertex to itself is added here.
    """

    def __init__(self, layer, own=False):
        super().__init__()
        self.layer = layer
        self.own = own

    def forward(self, x, graph, first):
        return self.layer(x, graph.with_own if self.own else graph.edges)


def sage(width, out, options, graph, is_output):
    kind = options["aggregator"]
    # PyG has no aggregator gcn: it is the mean with the vertex's own row as one more. Of a maximum that several
    # neighbours have, PyG divides the gradient, and Rhizome gives it to the first; only zeros of a ReLU are such.
    return Conv(pyg.SAGEConv(width, out, aggr="max" if kind in ("max", "pool") else "mean", project=kind == "pool",
                             root_weight=kind != "gcn", normalize=options["l2-normalize"] == "true"),
                own=kind == "gcn")


def gcn(width, out, options, graph, is_output):
    # Degrees are those of targets, with parallel edges, self-loops and the vertex itself: so in both.
    return Conv(pyg.GCNConv(width, out, add_self_loops=not graph.has_loops), own=graph.has_loops)


def gin(width, out, options, graph, is_output):
    mlp = Sequential(Linear(width, out), BatchNorm1d(out), ReLU(), Linear(out, out))
    return Conv(pyg.GINConv(mlp, train_eps=options["fixed-eps"] == "false"))


def attention(layer):
    def make(width, out, options, graph, is_output):
        heads = int(options["out-heads" if is_output else "heads"])
        joins = options["no-self-loops"] == "false"
        return Conv(layer(width, out if is_output else out // heads, heads=heads, concat=not is_output,
                          negative_slope=float(options["negative-slope"]),
                          add_self_loops=joins and not graph.has_loops), own=joins and graph.has_loops)
    return make


class CommNet(torch.nn.Module):
    """PyG has none: H x + C mean(x_j) + F h0 + b, by a dense matrix."""

    def __init__(self, width, out, options, graph, is_output):
        super().__init__()
        self.layer = ModuleDict({"hidden": Linear(width, out), "communication": Linear(width, out, bias=False)})
        if options["skip"] == "true":
            self.layer["skip"] = Linear(width, out, bias=False)

    def forward(self, x, graph, first):
        total = self.layer["hidden"](x) + self.layer["communication"](graph.mean_matrix() @ x)
        return total + self.layer["skip"](first) if "skip" in self.layer else total


class Rgcn(torch.nn.Module):
    def __init__(self, width, out, options, graph, is_output):
        super().__init__()
        relations = int(graph.relations.max()) + 1
        bases, blocks = int(options["bases"]), int(options["blocks"])
        if bases < 0:
            bases = 16 if relations > 32 and blocks == 1 else 0
        self.layer = pyg.RGCNConv(width, out, relations, num_bases=bases or None,
                                  num_blocks=blocks if blocks > 1 else None)

    def forward(self, x, graph, first):
        return self.layer(x, graph.edges, graph.relations)


class Hgt(torch.nn.Module):
    """HGTConv with the weights of the model file, one tensor for all types. A relation is one triple of PyG for each
    pair of vertex types of its ends; these triples share matrices."""

    def __init__(self, width, out, options, graph, is_output):
        super().__init__()
        types, relations = int(graph.vertex_types.max()) + 1, int(graph.relations.max()) + 1
        heads = int(options["heads"])
        shapes = {"key_value_weight": (types, 2 * out, width), "key_value_bias": (types, 2 * out),
                  "query_weight": (types, out, width), "query_bias": (types, out),
                  "relation_attention": (relations, heads, out // heads, out // heads),
                  "relation_message": (relations, heads, out // heads, out // heads),
                  "relation_prior": (relations, heads), "output_weight": (types, out, out), "output_bias": (types, out)}
        if width == out:
            shapes["skip"] = (types,)
        self.layer = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.empty(shape))
                                             for name, shape in shapes.items()})
        # PyG 2.8 computes something else if the triples are not in the order of the metadata.
        self.triples = [(str(s), f"r{r}", str(d)) for s, r, d in graph.triples.T.tolist()]
        self.numbers = graph.triples[1].tolist()
        # In a list, so that its own weights are not weights of this module.
        self.conv = [pyg.HGTConv(width, out, ([str(t) for t in range(types)], self.triples), heads)]
        self.out = out

    def theirs(self):
        """Returns the weights by HGTConv's names."""
        mine, given = self.layer, {}
        for t in range(mine["query_bias"].shape[0]):
            for form in ("weight", "bias"):
                key, value = mine[f"key_value_{form}"][t].chunk(2)
                given[f"kqv_lin.lins.{t}.{form}"] = torch.cat([key, mine[f"query_{form}"][t], value])
                given[f"out_lin.lins.{t}.{form}"] = mine[f"output_{form}"][t]
            if "skip" in mine:
                given[f"skip.{t}"] = mine["skip"][t:t + 1]
        given["k_rel.weight"] = mine["relation_attention"][self.numbers].transpose(0, 1).flatten(0, 1)
        given["v_rel.weight"] = mine["relation_message"][self.numbers].transpose(0, 1).flatten(0, 1).transpose(1, 2)
        for triple, r in zip(self.triples, self.numbers):
            given["p_rel." + "__".join(triple)] = mine["relation_prior"][r:r + 1]
        return given

    def forward(self, x, graph, first):
        types = graph.vertex_types
        local = torch.empty_like(types)
        count = int(types.max()) + 1
        for t in range(count):
            local[types == t] = torch.arange(int((types == t).sum()))
        rows = {str(t): x[types == t] for t in range(count)}
        edges = {name: local[graph.edges[:, graph.triple_of == i]] for i, name in enumerate(self.triples)}
        made = torch.func.functional_call(self.conv[0], self.theirs(), (rows, edges))
        out = x.new_empty(len(x), self.out)
        for t in range(count):
            if made.get(str(t)) is None:  # no edge ends at the type: the sum over no edges is zero
                bias = self.layer["output_bias"][t].expand(len(rows[str(t)]), -1)
                gate = torch.sigmoid(self.layer["skip"][t]) if "skip" in self.layer else 1
                made[str(t)] = gate * bias + ((1 - gate) * rows[str(t)] if "skip" in self.layer else 0)
            out = out.index_put((torch.where(types == t)[0],), made[str(t)])
        return out


COUNTERPARTS = {"hgt": Hgt, "rgcn": Rgcn, "sage": sage, "gcn": gcn, "gin": gin, "gat": attention(pyg.GATConv),
                "gatv2": attention(pyg.GATv2Conv), "commnet": CommNet}


class Net(torch.nn.Module):
    def __init__(self, description, graph):
        super().__init__()
        self.options = options = description["options"]
        self.kind, self.layers = description["kind"], len(description["layers"])
        inputs, hidden, classes = (description[name] for name in ("inputs", "hidden", "classes"))
        flag = {name: value == "true" for name, value in options.items()}
        self.feeds, self.residual = flag["feed-forward"], flag["residual"]
        self.has_head = options["head"] != "none"
        self.activation = ACTIVATIONS[options["activation"]]
        self.parts = ModuleDict()  # what is not of a layer
        if self.feeds or flag.get("skip"):
            self.parts["stem"] = Linear(inputs, hidden)
        norm = {"layer": LayerNorm, "batch": BatchNorm1d}.get(options["norm"])
        self.convs, self.around = ModuleList(), ModuleList()
        for k in range(self.layers):
            width = hidden if k > 0 or "stem" in self.parts else inputs
            is_output = k + 1 == self.layers and not self.has_head
            out = classes if is_output else hidden
            self.convs.append(COUNTERPARTS[self.kind](width, out, options, graph, is_output))
            around = ModuleDict()
            if norm and not is_output:
                around["norm"] = norm(out)
            if self.feeds:
                around["feed"] = Linear(out, out)
            elif self.residual and width != out and not is_output:
                around["skip"] = Linear(width, out, bias=False)
            self.around.append(around)
        if self.feeds:
            self.parts["last_norm"] = LayerNorm(hidden)
        embedding = hidden * (self.layers if options["jump"] == "concat" else 1)
        if options["head"] == "mlp":
            self.parts["head_hidden"] = Linear(embedding, embedding)
        if self.has_head:
            self.parts["head"] = Linear(embedding, classes)

    def block(self, k, x, graph, first):
        around, conv = self.around[k], self.convs[k]
        if self.feeds:
            normed = around["norm"](x) if "norm" in around else x
            return x + around["feed"](self.activation(conv(normed, graph, first)))
        out = conv(x, graph, first)
        if k + 1 == self.layers and not self.has_head:
            return out
        out = self.activation(around["norm"](out) if "norm" in around else out)
        if not self.residual:
            return out
        return out + (around["skip"](x) if "skip" in around else x)

    def forward(self, x, graph):
        if "stem" in self.parts:
            x = self.activation(self.parts["stem"](x))
        outputs, first = [], x
        for k in range(self.layers):
            x = self.block(k, x, graph, first)
            outputs.append(x)
        if self.feeds:
            x = self.parts["last_norm"](x)
        if self.options["jump"] != "none":
            x = pyg.JumpingKnowledge(self.options["jump"].replace("concat", "cat"))(outputs)
        if "head_hidden" in self.parts:
            x = torch.relu(self.parts["head_hidden"](x))
        return self.parts["head"](x) if self.has_head else x

    def name_of(self, ours, names):
        """Returns the name here of a tensor of the model file."""
        norm = {"norm.mean": "norm.running_mean", "norm.variance": "norm.running_var"}
        if not ours.startswith("layers."):
            return f"parts.{ours.replace('head.hidden', 'head_hidden')}"
        _, k, name = ours.split(".", 2)
        if self.kind == "hgt" and name.replace(".", "_") in self.convs[int(k)].layer:
            return f"convs.{k}.layer.{name.replace('.', '_')}"
        if name in names[self.kind]:
            return f"convs.{k}.layer.{names[self.kind][name]}"
        return f"around.{k}.{norm.get(name, name)}"

    def form_of(self, ours, values):
        """Returns the values of a tensor of the model file as PyG's layer has them."""
        turned = self.kind == "rgcn" and ours.split(".", 2)[-1] in ("self.weight", "relation.weight", "bases.weight")
        return values.transpose(-1, -2) if turned and ours.startswith("layers.") else values

    def load(self, tensors, names):
        """Takes over the weights of a model file; every one must find its place, and every place its weight."""
        mine = self.state_dict()
        given = {}
        for ours, values in tensors.items():
            theirs = self.name_of(ours, names)
            assert theirs in mine, f"{ours}: there is no {theirs}"
            given[theirs] = self.form_of(ours, values).reshape(mine[theirs].shape)
            if theirs.endswith(".eps"):  # PyG's has the start in it, ours is beside it
                given[theirs] = values + float(self.options["eps"])
        left = {name for name in mine if name not in given and not name.endswith("num_batches_tracked")}
        assert not left, f"the model file has no weight for {sorted(left)}"
        self.load_state_dict(given, strict=False)
        return self
