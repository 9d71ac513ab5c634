"""One turn of PyTorch Geometric: training steps of a model on sampled blocks in memory. Prints one JSON object.

Run by step.py in its own virtual environment. FOLDER holds indptr.npy and indices.npy (in-edges, CSC). Minibatches
are drawn by this script, each vertex once, like NeighborLoader, which requires libraries that are not on PyPI. Each
layer has only the edges that it needs. Times forward, backward and Adam, without sampling and reading of features.
"""

import os

import numpy

import peer_step


def draw(indptr, vertices, fanout, random):
    """In-edges of vertices, at most `fanout` each, distinct: (numbers of edges, places in `vertices`)."""
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
    return edges[order], targets[order]


def sample(indptr, indices, seeds, fanouts, random, place):
    """Hops from the seeds outwards, each vertex once: all vertices, and for each layer (edges as
    places [2, m], numbers of these edges, number of targets, number of sources)."""
    rows = [seeds]
    place[seeds] = numpy.arange(len(seeds))
    count, frontier = len(seeds), seeds
    drawn, sources, targets, hops = [], [], [], []
    for fanout in fanouts:
        begin = count - len(frontier)
        edges, dst = draw(indptr, frontier, fanout, random)
        src = indices[edges]
        new = numpy.unique(src[place[src] < 0])
        place[new] = numpy.arange(count, count + len(new))
        drawn.append(edges)
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
        blocks.append((edges, numpy.concatenate(drawn[:k]), *hops[k - 1]))
    return vertices, blocks


def concatenate_products():
    """Without pyg-lib, HeteroLinear assigns each type's product to a slice of one tensor. The backward pass of an
    assignment copies the gradients of all rows, for each type. A concatenation computes the same in less time."""
    import torch
    import torch_geometric.typing
    from torch_geometric.nn.dense.linear import HeteroLinear

    if not torch_geometric.typing.WITH_SEGMM:
        HeteroLinear.forward_naive = lambda self, x, ptr: torch.cat(
            [part @ weight for part, weight in zip(torch.tensor_split(x, ptr[1:-1]), self.weight)])


def main():
    args = peer_step.parse_arguments(__doc__)
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    from torch_geometric.nn import FastRGCNConv, GATConv, GCNConv, GINConv, HGTConv, RGCNConv, SAGEConv

    concatenate_products()
    triples = [("v", str(r), "v") for r in range(args.relations)]

    def make_conv(inputs, outputs):
        if args.model == "gat":
            return GATConv(inputs, outputs // args.heads, args.heads)
        if args.model == "rgcn":
            layer = FastRGCNConv if args.fast else RGCNConv
            return layer(inputs, outputs, args.relations, num_bases=args.bases)
        if args.model == "hgt":
            return HGTConv(inputs, outputs, (["v"], triples), args.heads)
        if args.model == "gin":
            return GINConv(peer_step.gin_mlp(inputs, outputs), train_eps=True)
        if args.model == "gcn":
            return GCNConv(inputs, outputs)
        return SAGEConv(inputs, outputs, aggr="mean")

    def call(layer, block, x):
        edges, targets, sources, types = block
        x = x[:sources]
        if args.model == "rgcn":
            return layer((x, x[:targets]), edges, types)
        if args.model == "hgt":  # one set of vertices: of its rows those of the targets are kept
            return layer({"v": x}, types)["v"][:targets]
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
        blocks = [(torch.from_numpy(edges), t, s, torch.randint(args.relations, (edges.shape[1],)))
                  for edges, _, t, s in blocks]
        if args.model == "hgt":  # lists of edges by relation, prepared before the step
            blocks = [(edges, t, s, {triple: edges[:, of == r] for r, triple in enumerate(triples)})
                      for edges, t, s, of in blocks]
        batches.append((blocks, torch.rand(len(vertices), args.dim),
                        torch.randint(args.classes, (args.batch_size,))))
    peer_step.time_steps(args, peer_step.make_network(args, make_conv, call), batches,
                         lambda blocks: sum(edges.shape[1] for edges, *_ in blocks))


if __name__ == "__main__":
    main()
