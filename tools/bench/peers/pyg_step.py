"""One turn of PyTorch Geometric: training steps of a model on sampled blocks in memory. Prints one JSON object.

Run by step.py in its own virtual environment. FOLDER holds indptr.npy and indices.npy (in-edges, CSC). Minibatches
are drawn by this script, each vertex once, like NeighborLoader, which requires libraries that are not on PyPI. Each
layer has only the edges that it needs. Times forward, backward and Adam, without sampling and reading of features.
"""

import os

import numpy

import peer_step


def draw(indptr, indices, vertices, fanout, random):
    """In-edges of vertices, at most `fanout` each, distinct: (sources, places in `vertices`)."""
    first, degree = indptr[vertices], indptr[vertices + 1] - indptr[vertices]
    many = numpy.flatnonzero(degree > fanout)
    # Floyd's sampling without replacement, one column at a time.
    chosen = numpy.empty((len(many), fanout), dtype=numpy.int64)
    for k in range(fanout):
        last = degree[many] - fanout + k
        place = (random.random(len(many)) * (last + 1)).astype(numpy.int64)
        taken = (chosen[:, :k] == place[:, None]).any(axis=1)
        chosen[:, k] = numpy.where(taken, last, place)
    few = numpy.flatnonzero(degree <= fanout)
    targets = numpy.concatenate([numpy.repeat(few, degree[few]), numpy.repeat(many, fanout)])
    ends = numpy.cumsum(degree[few])
    within = numpy.arange(ends[-1] if len(few) else 0) - numpy.repeat(ends - degree[few],
                                                                       degree[few])
    edges = numpy.concatenate([numpy.repeat(first[few], degree[few]) + within,
                               (first[many][:, None] + chosen).reshape(-1)])
    order = numpy.argsort(targets, kind="stable")
    return indices[edges[order]], targets[order]


def sample(indptr, indices, seeds, fanouts, random, place):
    """Hops from the seeds outwards, each vertex once: all vertices, and for each layer (edges as
    places [2, m], number of targets, number of sources)."""
    rows = [seeds]
    place[seeds] = numpy.arange(len(seeds))
    count, frontier = len(seeds), seeds
    sources, targets, hops = [], [], []
    for fanout in fanouts:
        begin = count - len(frontier)
        src, dst = draw(indptr, indices, frontier, fanout, random)
        new = numpy.unique(src[place[src] < 0])
        place[new] = numpy.arange(count, count + len(new))
        sources.append(place[src])
        targets.append(dst + begin)
        hops.append((count, count + len(new)))
        rows.append(new)
        count, frontier = count + len(new), new
    vertices = numpy.concatenate(rows)
    place[vertices] = -1
    blocks = []
    for k in range(len(fanouts), 0, -1):
        edges = numpy.stack([numpy.concatenate(sources[:k]), numpy.concatenate(targets[:k])])
        blocks.append((edges, *hops[k - 1]))
    return vertices, blocks


def main():
    args = peer_step.parse_arguments(__doc__)
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

    def make_conv(inputs, outputs):
        if args.model == "gat":
            return GATConv(inputs, outputs // args.heads, args.heads)
        if args.model == "gin":
            return GINConv(peer_step.gin_mlp(inputs, outputs), train_eps=True)
        if args.model == "gcn":
            return GCNConv(inputs, outputs)
        return SAGEConv(inputs, outputs, aggr="mean")

    def call(layer, block, x):
        edges, targets, sources = block
        x = x[:sources]
        # GCNConv takes one set of vertices: of its rows those of the targets are kept.
        return layer(x, edges)[:targets] if args.model == "gcn" else layer((x, x[:targets]), edges)

    indptr = numpy.load(os.path.join(args.folder, "indptr.npy"))
    indices = numpy.load(os.path.join(args.folder, "indices.npy"))
    random = numpy.random.default_rng(args.seed)
    place = numpy.full(len(indptr) - 1, -1, dtype=numpy.int64)
    batches = []
    for _ in range(args.batches):
        seeds = random.choice(len(indptr) - 1, args.batch_size, replace=False)
        vertices, blocks = sample(indptr, indices, seeds, args.fanouts, random, place)
        blocks = [(torch.from_numpy(edges), t, s) for edges, t, s in blocks]
        batches.append((blocks, torch.rand(len(vertices), args.dim),
                        torch.randint(args.classes, (args.batch_size,))))
    peer_step.time_steps(args, peer_step.make_network(args, make_conv, call), batches,
                         lambda blocks: sum(edges.shape[1] for edges, _, _ in blocks))


if __name__ == "__main__":
    main()
