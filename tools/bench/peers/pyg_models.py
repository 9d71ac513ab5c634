"""Trains a model on a data set with types in PyTorch Geometric. Prints one JSON object.

Run by models.py. DATA is a folder with edges.tsv.zst (source, destination, type), nodes.tsv.zst (id, label, split,
type) and features.npy.zst. Minibatches are drawn as by pyg_step.py. The validation set is sampled like training; the
test set is measured once, on the whole graph.
"""

import argparse
import io
import json
import pathlib
import subprocess
import sys
import time

import numpy

import pyg_step


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--model", required=True, choices=["sage", "rgcn", "hgt"])
    parser.add_argument("--both", action="store_true", help="sage follows edges both ways, as rgcn and hgt always do")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4, help="of hgt")
    parser.add_argument("--dropout", type=float, default=.5)
    parser.add_argument("--fanout", default="10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=.01)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def unpack(path):
    return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout


def number(names):
    """Numbers names in order of first occurrence."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return numpy.array([numbers[name] for name in names]), len(numbers)


class Graph:
    """In-edges by destination with their types; with `both`, opposite edges have types of their own."""

    def __init__(self, folder, both):
        nodes = [line.split("\t") for line in unpack(folder / "nodes.tsv.zst").decode().splitlines()]
        at = {node[0]: i for i, node in enumerate(nodes)}
        lines = [line.split("\t") for line in unpack(folder / "edges.tsv.zst").decode().splitlines()]
        ends = numpy.array([[at[line[0]], at[line[1]]] for line in lines])
        types, self.relations = number([line[2] for line in lines])
        if both:
            ends = numpy.concatenate([ends, ends[:, ::-1]])
            types = numpy.concatenate([types, types + self.relations])
            self.relations *= 2
        order = numpy.argsort(ends[:, 1], kind="stable")
        self.sources, self.targets, self.types = ends[order, 0], ends[order, 1], types[order]
        self.indptr = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(self.targets, minlength=len(nodes)))])
        self.vertex_types, self.vertex_type_count = number([node[3] for node in nodes])
        self.labels = numpy.array([int(node[1]) for node in nodes])
        self.split = numpy.array([node[2] for node in nodes])
        self.features = numpy.load(io.BytesIO(unpack(folder / "features.npy.zst"))).astype(numpy.float32)

    def triples(self):
        """Returns all combinations of the types of source, edge and destination."""
        found = numpy.unique(numpy.stack([self.vertex_types[self.sources], self.types,
                                          self.vertex_types[self.targets]]), axis=1)
        return [tuple(triple) for triple in found.T.tolist()]


def make_network(args, graph):
    import torch
    from torch import nn
    from torch_geometric.nn import HGTConv, RGCNConv, SAGEConv

    class Hgt(nn.Module):
        """HGTConv on rows of all types together."""

        def __init__(self, inputs, outputs):
            super().__init__()
            self.triples = graph.triples()
            self.names = [(str(s), str(r), str(d)) for s, r, d in self.triples]
            types = [str(t) for t in range(graph.vertex_type_count)]
            self.conv = HGTConv(dict.fromkeys(types, inputs), outputs, (types, self.names), args.heads)
            self.outputs = outputs

        def forward(self, x, block):
            local = torch.empty_like(block.vertex_types)
            rows = {}
            for t in range(graph.vertex_type_count):
                mine = torch.where(block.vertex_types == t)[0]
                local[mine] = torch.arange(len(mine))
                rows[str(t)] = mine
            key = (block.vertex_types[block.edges[0]] * graph.relations + block.types) * graph.vertex_type_count
            key += block.vertex_types[block.edges[1]]
            edges = {}
            for name, (s, r, d) in zip(self.names, self.triples):  # in the order of the metadata
                mine = block.edges[:, key == (s * graph.relations + r) * graph.vertex_type_count + d]
                if mine.shape[1]:
                    edges[name] = local[mine]
            made = self.conv({t: x[mine] for t, mine in rows.items()}, edges)
            out = x.new_zeros(len(x), self.outputs)
            for t, mine in rows.items():
                if made.get(t) is not None:
                    out = out.index_put((mine,), made[t])
            return out[:block.targets]

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [graph.features.shape[1]] + [args.hidden] * len(args.fanouts)
            self.layers = nn.ModuleList(map(self.make_layer, widths, widths[1:]))
            self.head = nn.Linear(args.hidden, int(graph.labels.max()) + 1)
            self.dropout = nn.Dropout(args.dropout)

        @staticmethod
        def make_layer(inputs, outputs):
            if args.model == "hgt":
                return Hgt(inputs, outputs)
            if args.model == "rgcn":  # as Rhizome's default
                return RGCNConv(inputs, outputs, graph.relations, num_bases=16 if graph.relations > 32 else None)
            return SAGEConv(inputs, outputs, aggr="mean")

        def forward(self, x, blocks):
            for layer, block in zip(self.layers, blocks):
                if args.model == "hgt":
                    x = layer(x, block)
                else:
                    more = [block.types] if args.model == "rgcn" else []
                    x = torch.relu(layer((x, x[:block.targets]), block.edges, *more))
                x = self.dropout(x)
            return self.head(x)

    return Network()


class Block:
    """Edges of a layer, as numbers of its sources, whose first rows are its targets."""

    def __init__(self, torch, edges, types, vertex_types, targets):
        self.edges, self.types = torch.from_numpy(edges), torch.from_numpy(types)
        self.vertex_types, self.targets = torch.from_numpy(vertex_types), targets


class Training:
    def __init__(self, args, graph, torch):
        self.args, self.graph, self.torch = args, graph, torch
        self.random = numpy.random.default_rng(args.seed)
        self.place = numpy.full(len(graph.labels), -1, dtype=numpy.int64)
        self.network = make_network(args, graph)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=args.rate)

    def scores(self, seeds):
        graph = self.graph
        vertices, blocks = pyg_step.sample(graph.indptr, graph.sources, seeds, self.args.fanouts, self.random, self.place)
        of_rows = graph.vertex_types[vertices]
        blocks = [Block(self.torch, edges, graph.types[numbers], of_rows[:sources], targets)
                  for edges, numbers, targets, sources in blocks]
        x = self.torch.from_numpy(graph.features[vertices])
        return self.network(x[:len(blocks[0].vertex_types)], blocks)

    def batches(self, vertices):
        return numpy.array_split(vertices, -(-len(vertices) // self.args.batch_size))

    def train_epoch(self):
        self.network.train()
        for seeds in self.batches(self.random.permutation(numpy.flatnonzero(self.graph.split == "train"))):
            labels = self.torch.from_numpy(self.graph.labels[seeds])
            loss = self.torch.nn.functional.cross_entropy(self.scores(seeds), labels)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()

    def valid_accuracy(self):
        self.network.eval()
        valid = numpy.flatnonzero(self.graph.split == "valid")
        with self.torch.no_grad():
            right = sum((self.scores(seeds).argmax(1).numpy() == self.graph.labels[seeds]).sum()
                        for seeds in self.batches(valid))
        return right / len(valid)

    def test_accuracy(self):
        self.network.eval()
        graph = self.graph
        block = Block(self.torch, numpy.stack([graph.sources, graph.targets]), graph.types, graph.vertex_types,
                      len(graph.labels))
        test = graph.split == "test"
        with self.torch.no_grad():
            scores = self.network(self.torch.from_numpy(graph.features), [block] * len(self.args.fanouts))
        return (scores.argmax(1).numpy()[test] == graph.labels[test]).mean()

    def run(self):
        best, weights = -1, None
        for _ in range(self.args.epochs):
            self.train_epoch()
            valid = self.valid_accuracy()
            if valid > best:
                best = valid
                weights = {name: values.clone() for name, values in self.network.state_dict().items()}
        self.network.load_state_dict(weights)
        return {"valid_accuracy": float(best), "test_accuracy": float(self.test_accuracy())}


def main():
    args = parse_arguments()
    args.fanouts = [int(fanout) for fanout in args.fanout.split(",")]
    import torch

    pyg_step.concatenate_products()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    start = time.perf_counter()
    report = Training(args, Graph(args.data, args.both or args.model != "sage"), torch).run()
    print(json.dumps({**report, "seconds": time.perf_counter() - start, "torch": torch.__version__}))


if __name__ == "__main__":
    sys.exit(main())
