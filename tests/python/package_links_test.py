#!/usr/bin/env python3
"""rhizome.Loader with pairs: edges to learn, their negatives, and subgraphs without these edges."""
import sys

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def between(batch):
    """Numbers n * a + b of the ends of all pairs, in both orders."""
    n = len(batch.vertices)
    return np.concatenate([batch.pairs @ [n, 1], batch.pairs @ [1, n]])


def check(graph, batch, types):
    """What a minibatch has, without regard to the given pairs. `types`: vertex types by id."""
    m = len(batch.pairs)
    assert batch.pairs.dtype == np.int64 and batch.pairs.shape == (m, 2) and batch.pair_types.shape == (m,)
    assert batch.negatives.dtype == np.int64 and batch.negatives.shape[:2] == (2, m)
    # The seeds are the distinct ends and negatives, and nothing else.
    used = np.unique(np.concatenate([batch.pairs.reshape(-1), batch.negatives.reshape(-1)]))
    assert np.array_equal(used, np.arange(batch.batch_size))
    for side in (0, 1):
        replaced, negatives = batch.vertices[batch.pairs[:, side]], batch.vertices[batch.negatives[side]]
        assert (types[negatives] == types[replaced][:, None]).all()
        assert (negatives != replaced[:, None]).all()
    assert not np.isin(batch.edge_index.T @ [len(batch.vertices), 1], between(batch)).any()


def test_pairs():
    """Each epoch has each pair once; no edge of a pair is in its minibatch, but with keep_seed_edges."""
    example = Example(RNG, vertices=500, edges=3000)
    edges = example.edges.T[RNG.permutation(3000)[:300]]
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        with rz.open(path / "g.rz") as graph:
            types = np.zeros(500, np.int64)
            given = []
            for memory, superbatch, threads in (("1G", None, 1), ("16M", 2, 3)):
                loader = rz.Loader(graph, [-1, 3], pairs=edges, negatives=2, features="feat", batch_size=64, direction="both",
                                   memory=memory, superbatch=superbatch, threads=threads)
                assert loader.num_seeds == 300 and len(loader) == 5 and "300" in repr(loader)
                epochs = [list(loader), list(loader)]
                for batches in epochs:
                    ends = np.concatenate([batch.vertices[batch.pairs] for batch in batches])
                    assert not np.array_equal(ends, edges)
                    assert np.array_equal(np.sort(ends @ [500, 1]), np.sort(edges @ [500, 1]))
                    for batch in batches:
                        check(graph, batch, types)
                        assert np.array_equal(batch.x, example.arrays["feat"][batch.vertices])
                        assert (batch.pair_types == 0).all() and batch.y is None
                parts = [[b.vertices, b.edge_index, b.pairs, b.negatives] for batches in epochs for b in batches]
                assert not given or all(np.array_equal(a, b) for one, two in zip(given, parts) for a, b in zip(one, two))
                given = parts
            kept = rz.Loader(graph, [-1], pairs=edges, features="feat", direction="both", keep_seed_edges=True, batch_size=64)
            batch = next(iter(kept))
            assert np.isin(batch.edge_index.T @ [len(batch.vertices), 1], between(batch)).any()
            assert batch.negatives is None and batch.pairs is not None
            assert next(iter(rz.Loader(graph, [2], seeds=[1, 2], features="feat"))).pairs is None


def test_types():
    """Pairs with edge types, as numbers and names; negatives of the type of the end that they replace."""
    counts = {"user": 60, "item": 90, "shop": 3}
    edges = {("user", "buys", "item"): np.stack([RNG.integers(0, 60, 400), RNG.integers(0, 90, 400)]),
             ("item", "sold_by", "shop"): np.stack([RNG.integers(0, 90, 200), RNG.integers(0, 3, 200)])}
    with folder() as path:
        rz.ingest(path / "g.rz", edges, vertex_types=counts, arrays={"feat": RNG.random((153, 4), np.float32)})
        with rz.open(path / "g.rz") as graph:
            types = graph.types_of(np.arange(153))
            buys, sold = (graph.edge_types.index(name) for name in ("buys", "sold_by"))
            of_user, of_item, of_shop = (graph.vertices_of(name) for name in counts)
            ends = [(of_user[a], of_item[b], buys) for a, b in edges["user", "buys", "item"].T[:50]]
            ends += [(of_item[a], of_shop[b], sold) for a, b in edges["item", "sold_by", "shop"].T[:30]]
            pairs = np.array(ends)[RNG.permutation(80)]
            named = [(int(a), int(b), graph.edge_types[t]) for a, b, t in pairs]
            batches = [list(rz.Loader(graph, [4, 4], pairs=given, negatives=3, features="feat", batch_size=30,
                                      negative_sources=["uniform:.7", "degree^.75"])) for given in (pairs, named)]
            for one, other in zip(*batches, strict=True):
                check(graph, one, types)
                assert np.array_equal(one.pairs, other.pairs) and np.array_equal(one.negatives, other.negatives)
            seen = np.concatenate([np.column_stack([b.vertices[b.pairs], b.pair_types]) for b in batches[1]])
            assert sorted(map(tuple, seen)) == sorted(map(tuple, pairs))


def test_state():
    """A loader continues from the state of another one; ranks divide the pairs."""
    example = Example(RNG, vertices=200, edges=900)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            def loader(**options):
                return rz.Loader(graph, [3], pairs=example.edges.T, negatives=1, features="feat", batch_size=100, **options)

            def parts(batches):
                return [(b.vertices.tolist(), b.pairs.tolist(), b.negatives.tolist()) for b in batches]

            whole = parts(loader())
            first = loader()
            for batch, _ in zip(first, range(4)):
                last = batch
            assert parts([last]) == whole[3:4]
            second = loader()
            second.load_state_dict({"position": 4, "minibatches_of_epoch": 9, "world_size": 1})
            assert parts(second) == whole[4:]
            ranks = [parts(loader(rank=rank, world_size=3)) for rank in range(3)]
            assert [ranks[i % 3][i // 3] for i in range(9)] == whole


def test_bad_pairs():
    example = Example(RNG, vertices=50, edges=200)
    edges = example.edges.T
    cases = [
        (ValueError, "one of seeds, split and pairs", {"seeds": [1]}),
        (ValueError, "one of seeds, split and pairs", {"pairs": None}),
        (ValueError, "there are no pairs", {"pairs": np.empty((0, 2), np.int64)}),
        (TypeError, "[m, 2] or [m, 3]", {"pairs": edges.T}),
        (TypeError, "integers", {"pairs": edges.astype(np.float32)}),
        (IndexError, "pair 2 is [50, 1]", {"pairs": [(0, 1), (1, 2), (50, 1)]}),
        (IndexError, "pair 0 is [-1, 1]", {"pairs": [(-1, 1)]}),
        (ValueError, "edge type 1", {"pairs": [(0, 1, 1)]}),
        (ValueError, "no edge type 'likes'", {"pairs": [(0, 1, "likes")]}),
        (rz.InvalidArgument, "labels=", {"labels": "label"}),
        (ValueError, "negatives is -1", {"negatives": -1}),
        (rz.InvalidArgument, "negative_sources=", {"negatives": 1, "negative_sources": "unifrom"}),
        (rz.InvalidArgument, "one partition", {"negatives": 1, "negative_sources": ["resident"]}),
        (rz.InvalidArgument, "pairs=", {"pairs": None, "seeds": [1], "negatives": 1}),
    ]
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for kind, text, options in cases:
                with raises(kind, text):
                    rz.Loader(graph, [2], **({"pairs": edges, "features": "feat"} | options))


if __name__ == "__main__":
    run(sys.modules[__name__])
