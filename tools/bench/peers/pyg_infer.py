#!/usr/bin/env python3
"""One turn of PyTorch Geometric in `rhizome bench infer`: inference over a whole graph, all in memory.

    pyg_infer.py FOLDER --mode layerwise|samplewise --fanout all --json

FOLDER has indptr.npy and indices.npy (in-edges by target) and features.npy, written by the bench. Layerwise computes
one layer over all vertices, then the next, as in PyG's own examples (examples/reddit.py); samplewise passes a batch
of vertices through all layers. NeighborLoader, which draws the neighbours, requires pyg-lib or torch-sparse. --kernel
spmm uses all neighbours without it, by products with a sparse matrix, which is not possible for attention. Prints one
JSON object; memory is in bytes, `base` after the imports.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as rhizome does for itself

import numpy
import torch
import torch_geometric
from torch_geometric.nn import GATConv, GINConv, SAGEConv

import peer_step


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mode", choices=["layerwise", "samplewise"], default="layerwise")
    parser.add_argument("--model", choices=["sage", "gin", "gat"], default="sage")
    parser.add_argument("--kernel", choices=["loader", "spmm"], default="loader")
    parser.add_argument("--fanout", default="all", help="all, or one number a layer")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=0,
                        help="of each layer at most, chosen at random; 0: all")
    return parser.parse_args()


def make_conv(model, inputs, outputs):
    if model == "gat":
        return GATConv(inputs, outputs // 4, 4)
    if model == "gin":
        return GINConv(peer_step.gin_mlp(inputs, outputs), train_eps=True)
    return SAGEConv(inputs, outputs, aggr="mean")


class Network(torch.nn.Module):
    def __init__(self, model, inputs, hidden, layers):
        super().__init__()
        widths = [inputs] + [hidden] * layers
        self.layers = torch.nn.ModuleList(
            make_conv(model, a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, edges):
        for layer in self.layers:
            x = layer(x, edges).relu()
        return x


def choose(count, batches):
    """Which batches are computed, in random order where not all are."""
    if batches == 0 or batches >= count:
        return list(range(count))
    return numpy.random.default_rng(1).choice(count, batches, replace=False).tolist()


class Contest:
    def __init__(self, args):
        self.args = args
        self.indptr = torch.from_numpy(numpy.load(args.folder / "indptr.npy").reshape(-1))
        self.indices = torch.from_numpy(numpy.load(args.folder / "indices.npy").reshape(-1))
        self.x = torch.from_numpy(numpy.load(args.folder / "features.npy")).float()
        self.vertices = len(self.indptr) - 1
        self.model = Network(args.model, self.x.shape[1], args.hidden, args.layers).eval()
        fanout = args.fanout.split(",")
        fanout = fanout * args.layers if len(fanout) == 1 else fanout
        self.fanout = [-1 if one == "all" else int(one) for one in fanout]
        self.done = 0  # vertices through one layer, or through all of samplewise

    def loader(self, fanout, seeds):
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.typing import SparseTensor  # noqa: F401  (says early what is missing)
        if self.graph is None:
            target = torch.repeat_interleave(torch.arange(self.vertices), self.indptr.diff())
            self.graph = Data(edge_index=torch.stack([self.indices, target]),
                              num_nodes=self.vertices)
        return NeighborLoader(self.graph, num_neighbors=fanout, input_nodes=seeds,
                              batch_size=self.args.batch_size, is_sorted=True, shuffle=False,
                              num_workers=0)

    graph = None

    def seeds(self):
        size = self.args.batch_size
        count = (self.vertices + size - 1) // size
        chosen = choose(count, self.args.batches)
        return torch.cat([torch.arange(b * size, min((b + 1) * size, self.vertices))
                          for b in chosen])

    def layerwise(self):
        x = self.x
        for k, layer in enumerate(self.model.layers):
            # Zeros that were written: where not all batches run, memory is that of all.
            out = torch.full((self.vertices, self.args.hidden), 0.0)
            start = time.perf_counter()
            if self.args.kernel == "spmm":
                self.slabs(layer, x, out)
            else:
                # The layer's fanout: given from the seeds outwards.
                for batch in self.ready[k]:
                    seeds = batch.n_id[:batch.batch_size]
                    h = layer(x[batch.n_id], batch.edge_index).relu()
                    out[seeds] = h[:batch.batch_size]
                    self.done += batch.batch_size
            self.seconds += time.perf_counter() - start
            x = out

    def slabs(self, layer, x, out):
        size = 16 * self.args.batch_size
        count = (self.vertices + size - 1) // size
        limit = max(self.args.batches // 16, 1) if self.args.batches else 0
        for b in choose(count, limit):
            first, last = b * size, min((b + 1) * size, self.vertices)
            rows = self.indptr[first:last + 1]
            columns = self.indices[rows[0]:rows[-1]]
            adjacency = torch.sparse_csr_tensor(rows - rows[0], columns, torch.ones(len(columns)),
                                                size=(last - first, self.vertices))
            out[first:last] = layer((x, x[first:last]), adjacency).relu()
            self.done += last - first

    def samplewise(self):
        start = time.perf_counter()
        for batch in self.ready[0]:
            h = self.model(self.x[batch.n_id], batch.edge_index)[:batch.batch_size]
            self.done += len(h)
        self.seconds += time.perf_counter() - start

    def run(self):
        args = self.args
        self.seconds = 0.0
        layerwise = args.mode == "layerwise"
        # Making the loaders sorts the edges: a price that is paid once, and not counted.
        if args.kernel == "loader":
            seeds = self.seeds()
            fanouts = [[one] for one in reversed(self.fanout)] if layerwise else [self.fanout]
            self.ready = [self.loader(fanout, seeds) for fanout in fanouts]
        if layerwise:
            self.layerwise()
            return self.done / args.layers
        self.samplewise()
        return self.done


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    base = peer_step.memory("VmRSS")
    contest = Contest(args)
    with torch.inference_mode():
        vertices = contest.run()
    print(json.dumps({
        "vertices": vertices, "seconds": contest.seconds,
        "vertices_per_second": vertices / contest.seconds, "all": args.batches == 0,
        "peak_memory_bytes": peer_step.memory("VmHWM"), "base_memory_bytes": base,
        "kernel": args.kernel, "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__}))


if __name__ == "__main__":
    main()
