"""One turn of DGL: training steps of a model on sampled blocks in memory. Prints one JSON object.

Run by step.py in its own virtual environment. FOLDER holds indptr.npy and indices.npy (in-edges,
CSC). Times forward, backward and Adam, without sampling and reading of features.
"""

import os

import peer_step


def main():
    args = peer_step.parse_arguments(__doc__)
    import numpy
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    import dgl
    from dgl.nn import GATConv, GINConv, GraphConv, SAGEConv

    def make_conv(inputs, outputs):
        if args.model == "gat":
            return GATConv(inputs, outputs // args.heads, args.heads, allow_zero_in_degree=True)
        if args.model == "gin":
            return GINConv(peer_step.gin_mlp(inputs, outputs), "sum", learn_eps=True)
        if args.model == "gcn":
            return GraphConv(inputs, outputs, allow_zero_in_degree=True)
        return SAGEConv(inputs, outputs, "mean")

    def call(layer, block, x):
        out = layer(block, x)
        return out.flatten(1) if args.model == "gat" else out

    indptr = torch.from_numpy(numpy.load(os.path.join(args.folder, "indptr.npy")))
    indices = torch.from_numpy(numpy.load(os.path.join(args.folder, "indices.npy"))).long()
    graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
    # The seeds' own fanout comes last here.
    sampler = dgl.dataloading.NeighborSampler(args.fanouts[::-1])
    random = numpy.random.default_rng(args.seed)
    batches = []
    for _ in range(args.batches):
        seeds = torch.from_numpy(random.choice(graph.num_nodes(), args.batch_size, replace=False))
        inputs, _, blocks = sampler.sample(graph, seeds)
        for block in blocks:
            block.create_formats_()  # DGL's own sparse formats, outside of the clock
        batches.append((blocks, torch.rand(len(inputs), args.dim),
                        torch.randint(args.classes, (args.batch_size,))))
    peer_step.time_steps(args, peer_step.make_network(args, make_conv, call), batches,
                         lambda blocks: sum(b.num_edges() for b in blocks))


if __name__ == "__main__":
    main()
