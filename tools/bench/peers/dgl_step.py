"""One turn of DGL: steps of GraphSAGE on sampled blocks in memory; prints one JSON object.

Run by step.py in a virtual environment of its own. FOLDER holds indptr.npy and indices.npy (in-edges,
CSC). What is timed is forward, backward and Adam; sampling and gathering are not.
"""

import argparse
import json
import os
import statistics
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_arguments()
    import numpy
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    import dgl
    from torch import nn

    fanouts = [int(f) for f in args.fanout.split(",")]

    class Network(nn.Module):
        """As Rhizome's: each layer with ReLU, dropout between them, a linear head."""

        def __init__(self):
            super().__init__()
            widths = [args.dim] + [args.hidden] * len(fanouts)
            self.layers = nn.ModuleList(
                dgl.nn.SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:]))
            self.head = nn.Linear(args.hidden, args.classes)
            self.dropout = nn.Dropout(args.dropout)

        def forward(self, blocks, x):
            for layer, block in zip(self.layers, blocks):
                x = self.dropout(torch.relu(layer(block, x)))
            return self.head(x)

    indptr = torch.from_numpy(numpy.load(os.path.join(args.folder, "indptr.npy")))
    indices = torch.from_numpy(numpy.load(os.path.join(args.folder, "indices.npy"))).long()
    graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
    # The seeds' own fanout comes last here.
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1])
    random = numpy.random.default_rng(args.seed)
    batches = []
    for _ in range(args.batches):
        seeds = torch.from_numpy(random.choice(graph.num_nodes(), args.batch_size, replace=False))
        inputs, _, blocks = sampler.sample(graph, seeds)
        for block in blocks:
            block.create_formats_()  # DGL's own sparse formats, outside of the clock
        batches.append((blocks, torch.rand(len(inputs), args.dim),
                        torch.randint(args.classes, (args.batch_size,))))
    network = Network()
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    seconds, cpu_seconds = [], []
    for number in range(args.rounds + 1):
        for blocks, x, labels in batches:
            start, cpu_start = time.perf_counter(), time.process_time()
            loss = nn.functional.cross_entropy(network(blocks, x), labels)
            adam.zero_grad()
            loss.backward()
            adam.step()
            loss.item()
            if number > 0:  # the first round warms caches and allocator
                seconds.append(time.perf_counter() - start)
                cpu_seconds.append(time.process_time() - cpu_start)
    print(json.dumps({
        "step_seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(cpu_seconds),
        "rows_per_batch": statistics.mean(len(x) for _, x, _ in batches),
        "edges_per_batch": statistics.mean(sum(b.num_edges() for b in blocks)
                                           for blocks, _, _ in batches),
    }))


if __name__ == "__main__":
    main()
