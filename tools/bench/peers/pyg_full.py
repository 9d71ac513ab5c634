#!/usr/bin/env python3
"""One turn of PyTorch Geometric in full_graph.py: epochs of a GCN on a whole graph, in memory.

The folder has edges.npy, features.npy, label.npy. --kernel: scatter (messages are tensors, one row per edge) or
sparse (a product with a SparseTensor of torch_sparse or, if that is missing, with a sparse CSR tensor of torch, whose
transpose is computed once). --checkpoint recomputes each layer in the backward pass (torch.utils.checkpoint), so that
only the tensors between layers are kept.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy
import torch
import torch_geometric
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import peer_step


class Product(torch.autograd.Function):
    """matrix @ x, with the transpose at hand for the way back."""

    @staticmethod
    def forward(context, matrix, transpose, x):
        context.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(context, gradient):
        return None, None, context.transpose @ gradient


class SparseConv(torch.nn.Module):
    """GCNConv over a sparse CSR tensor of torch."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x, matrices):
        return Product.apply(*matrices, self.linear(x)) + self.bias


def csr(rows, columns, values, size):
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (size, size)).coalesce().to_sparse_csr()


def sparse_graph(edge_index, vertices):
    """What the layers multiply with, and the layer that does."""
    index, weight = gcn_norm(edge_index, None, vertices, dtype=torch.float32)
    try:
        from torch_sparse import SparseTensor
        matrix = SparseTensor(row=index[1], col=index[0], value=weight, sparse_sizes=(vertices, vertices))
        matrix.fill_cache_()
        return matrix, lambda a, b: GCNConv(a, b, normalize=False), "torch_sparse"
    except ImportError:
        return ((csr(index[1], index[0], weight, vertices), csr(index[0], index[1], weight, vertices)),
                SparseConv, "torch.sparse")


class Network(torch.nn.Module):
    def __init__(self, make, widths, classes, checkpoint):
        super().__init__()
        self.layers = torch.nn.ModuleList(make(a, b) for a, b in zip(widths, widths[1:]))
        self.head = torch.nn.Linear(widths[-1], classes)
        self.checkpoint = checkpoint

    def forward(self, x, graph):
        for layer in self.layers:
            run = lambda h, layer=layer: layer(h, graph).relu()
            x = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False) if self.checkpoint else run(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kernel", choices=["scatter", "sparse"], default="sparse")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    edge_index = torch.from_numpy(numpy.load(args.folder / "edges.npy").astype(numpy.int64).T.copy())
    x = torch.from_numpy(numpy.load(args.folder / "features.npy")).float()
    labels = torch.from_numpy(numpy.load(args.folder / "label.npy").astype(numpy.int64)).reshape(-1)
    if args.kernel == "sparse":
        graph, make, kernel = sparse_graph(edge_index, len(x))
        del edge_index
    else:
        graph, make, kernel = edge_index, lambda a, b: GCNConv(a, b, cached=True), "scatter"
    network = Network(make, [x.shape[1]] + [args.hidden] * args.layers, int(labels.max()) + 1, args.checkpoint)
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    seconds, cpu_seconds, losses = [], [], []
    for epoch in range(args.epochs + 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        loss = torch.nn.functional.cross_entropy(network(x, graph), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if epoch > 0:  # the first one warms caches and allocator
            seconds.append(time.perf_counter() - start)
            cpu_seconds.append(time.process_time() - cpu_start)
    print(json.dumps({
        "epoch_seconds": statistics.median(seconds), "cpu_seconds": statistics.median(cpu_seconds),
        "peak_memory_bytes": peer_step.memory("VmHWM"), "kernel": kernel, "losses": losses,
        "torch": torch.__version__, "torch_geometric": torch_geometric.__version__}))


if __name__ == "__main__":
    main()
