#!/usr/bin/env python3
"""rhizome.Loader: each minibatch agrees with NumPy and `g.sampler().sample`, for any memory, policy
and interruption."""
import gc
import itertools
import pickle
import signal
import sys
import threading

from package import PATIENCE, SEED, Example, folder, interrupted, np, raises, run, rz
from package_processes_test import in_child

RNG = np.random.default_rng(SEED)


def same(a, b):
    return all(np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in zip(a, b, strict=True))


def check(graph, example, batch, fanouts, **options):
    """What a minibatch has, against the arrays and the edges in NumPy, and against a sampler."""
    n, seeds = len(batch.vertices), batch.batch_size
    assert np.array_equal(np.asarray(batch.x), example.arrays["feat"][batch.vertices])
    assert batch.x.dtype == np.float32 and batch.vertices.dtype == batch.edge_index.dtype == np.int64
    assert batch.y.dtype == np.int64 and np.array_equal(batch.y, example.arrays["label"][batch.vertices[:seeds], 0])
    assert batch.hops[0] == seeds and batch.hops.sum() == n and len(batch.edge_hops) == len(batch.hops) - 1
    assert batch.edge_index.shape == (2, batch.edge_hops.sum())
    assert batch.edge_index.size == 0 or 0 <= batch.edge_index.min() <= batch.edge_index.max() < n
    one_each = batch.vertices if batch.seed_of is None else np.stack([batch.vertices, batch.seed_of])
    assert np.unique(one_each, axis=-1).shape == one_each.shape
    ends = batch.vertices[batch.edge_index]
    if options.get("direction") == "out":
        ends = ends[::-1]
    assert np.isin(ends[0] * example.vertices + ends[1],
                   example.edges[0] * example.vertices + example.edges[1]).all()
    sub = graph.sampler(fanouts, **options).sample(batch.vertices[:seeds], batch=batch.tag)
    for name in ("vertices", "edge_index", "hops", "edge_hops", "types", "weights", "edge_ids", "seed_of"):
        ours, theirs = getattr(batch, name), getattr(sub, name)
        assert (ours is None and theirs is None) or np.array_equal(ours, theirs), name


def test_epochs():
    """Two epochs give each seed once, in orders of their own, whatever the memory, the policy and the superbatch."""
    example = Example(RNG, vertices=2000, edges=30_000)
    seeds = RNG.permutation(2000)[:700]
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        for memory in ("1G", "9M"):
            with rz.open(path / "g.rz", memory=memory) as graph:
                given = []
                for limit, policy, superbatch in (("0", "belady", None), ("16M", "belady", 3), ("1G", "static", 2),
                                                  ("64M", "lru", None), ("64M", "none", 1)):
                    loader = rz.Loader(graph, [4, 3], features="feat", labels="label", seeds=seeds, batch_size=64,
                                       memory=limit, policy=policy, superbatch=superbatch, seed=7)
                    assert len(loader) == 11 and loader.num_seeds == 700
                    assert loader.num_classes == example.arrays["label"].max() + 1
                    epochs = [list(loader), list(loader)]
                    for number, epoch in enumerate(epochs):
                        assert [(b.epoch, b.number) for b in epoch] == [(number, i) for i in range(11)]
                        assert [b.batch_size for b in epoch] == [64] * 10 + [60]
                        order = np.concatenate([b.vertices[:b.batch_size] for b in epoch])
                        assert np.array_equal(np.sort(order), np.sort(seeds)) and not np.array_equal(order, seeds)
                    if given:
                        assert all(map(same, itertools.chain(*given), itertools.chain(*epochs))), policy
                    else:
                        given = epochs
                        assert not same(epochs[0][0], epochs[1][0])
                        for batch in itertools.chain(*epochs):
                            check(graph, example, batch, [4, 3], seed=7)
                    memory_of = loader.memory
                    assert memory_of.superbatch == superbatch or superbatch is None
                    assert memory_of.total >= memory_of.cache and (limit == "0" or memory_of.total <= 1 << 30)
                    report = loader.report()
                    assert (report.epoch, report.minibatches, report.seeds) == (1, 11, 700)
                    assert report.rows_requested == sum(len(b.vertices) for b in epochs[1])
                    assert report.rows_requested >= report.pool_hits and report.sample_seconds > 0


def test_features_by_type():
    """Arrays by vertex type, of other widths and dtypes: x is a dict by type, whose rows are those of the arrays."""
    counts = {"paper": 300, "author": 200, "venue": 20}
    bound = sum(counts.values())
    edges = {("author", "writes", "paper"): np.stack([RNG.integers(0, 200, 2000), RNG.integers(0, 300, 2000)]),
             ("paper", "in", "venue"): np.stack([RNG.integers(0, 300, 600), RNG.integers(0, 20, 600)])}
    arrays = {"feat": RNG.random((bound, 48), np.float32), "narrow": RNG.random((bound, 3)).astype(np.float16),
              "counts": RNG.integers(0, 9, (bound, 5))}
    cases = [({"paper": "feat", "author": "narrow", "venue": None}, ["feat", "narrow", None]),
             ({"venue": "counts", "author": None}, ["feat", None, "counts"]),  # paper: the default
             ({"paper": "narrow", "author": "narrow", "venue": "counts"}, ["narrow", "narrow", "counts"]),
             ({"paper": "feat", "author": "feat", "venue": "feat"}, ["feat", "feat", "feat"])]
    with folder() as path:
        rz.ingest(path / "g.rz", edges, vertex_types=counts, arrays=arrays, directions="both")
        with rz.open(path / "g.rz") as graph:
            types = graph.types_of(np.arange(bound))
            for given, expected in cases:
                for zero_copy, disjoint in ((False, False), (True, False), (False, True)):
                    loader = rz.Loader(graph, [5, 4], features=given, seeds=np.arange(bound), batch_size=64, direction="both",
                                       memory="24M", zero_copy=zero_copy, disjoint=disjoint)
                    assert loader.features == dict(zip(counts, expected))
                    for batch in loader:
                        assert np.array_equal(batch.vertex_types, types[batch.vertices])
                        assert list(batch.x) != [] and set(batch.x) == {n for n, a in loader.features.items() if a}
                        for number, (name, array) in enumerate(loader.features.items()):
                            if array is None:
                                continue
                            rows = batch.x[name]
                            assert isinstance(rows, rz.LentRows if zero_copy else np.ndarray)
                            wanted = arrays[array][batch.vertices[batch.vertex_types == number]]
                            assert rows.shape == wanted.shape and np.array_equal(np.asarray(rows), wanted)
                            assert rows.dtype == (np.float16 if array == "narrow" else np.float32)
                        del batch, rows
                    several = len(set(expected)) > 1
                    assert set(loader.memory.caches) == ({a for a in expected if a} if several else set())
                    assert sum(loader.memory.caches.values()) <= loader.memory.cache
                    report = loader.report()
                    assert set(report.reads) == set(loader.memory.caches)
                    if several:
                        assert sum(one["rows_requested"] for one in report.reads.values()) == report.rows_requested
            assert "paper: feat, author: feat, venue: feat" in repr(loader)

            def bad(features):
                return lambda: rz.Loader(graph, [3], features=features, seeds=[0])

            for features, error, what in (({}, ValueError, "empty"), ({"book": "feat"}, ValueError, "paper, author, venue"),
                                          ({"paper": "nothing"}, rz.NotFound, "nothing"), ({"paper": 3}, TypeError, "features"),
                                          (dict.fromkeys(counts), ValueError, "no vertex type has features")):
                with raises(error, what):
                    bad(features)()


def test_all_neighbors():
    """With all neighbours nothing is random: the edges are those that NumPy finds."""
    example = Example(RNG, vertices=500, edges=4000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for direction in ("in", "out"):
                loader = rz.Loader(graph, [-1, -1], features="feat", seeds=np.arange(500), batch_size=50, shuffle=False,
                                   direction=direction)
                for number, batch in enumerate(loader):
                    assert batch.y is None
                    want = wave = np.arange(50 * number, 50 * number + 50)
                    assert np.array_equal(batch.vertices[:50], want)
                    edges, (tail, head) = [], example.edges[::1 if direction == "in" else -1]
                    for _ in range(2):
                        found = np.isin(head, wave)
                        edges.append(np.stack([tail[found], head[found]]))
                        wave = np.setdiff1d(tail[found], want)
                        want = np.concatenate([want, wave])
                    assert np.array_equal(np.sort(batch.vertices), np.sort(want))
                    edges = np.concatenate(edges, axis=1)
                    got = batch.vertices[batch.edge_index]
                    order, order_got = np.lexsort(edges), np.lexsort(got)
                    assert np.array_equal(edges[:, order], got[:, order_got])


def test_options():
    example = Example(RNG, vertices=1000, edges=20_000)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(300), range(300, 400), range(400, 500)))
        with rz.open(path / "g.rz") as graph:
            for options in ({"direction": "out"}, {"replace": True}, {"weighted": True}, {"disjoint": True},
                            {"again": True}, {"again": True, "edge_ids": True}, {"edge_ids": True, "weighted": True},
                            {"edge_ids": True, "disjoint": True}, {"threads": 2, "seed": 99}):
                loader = rz.Loader(graph, [3, 2, 2], features="feat", labels="label", split="train", batch_size=70,
                                   **options)
                batches = list(loader)
                assert sum(b.batch_size for b in batches) == 300 and len(batches) == 5
                for batch in batches:
                    check(graph, example, batch, [3, 2, 2], **options)
                    assert (batch.edge_ids is not None) == ("edge_ids" in options)
            for name, members in (("train", range(300)), ("valid", range(300, 400)), ("val", range(300, 400)),
                                  ("test", range(400, 500))):
                loader = rz.Loader(graph, [1], features="feat", split=name, shuffle=False)
                assert np.array_equal(next(iter(loader)).vertices[:len(members)], members)
            mask = np.arange(1000) % 3 == 0
            loader = rz.Loader(graph, [1], features="feat", seeds=mask, shuffle=False, batch_size=100, drop_last=True)
            assert np.array_equal(np.concatenate([b.vertices[:100] for b in loader]), np.flatnonzero(mask)[:300])
            half = next(iter(rz.Loader(graph, [2], features="half", split="test")))
            assert half.x.dtype == np.float16 and np.array_equal(half.x, example.arrays["half"][half.vertices])
            even = next(iter(rz.Loader(graph, [2], features="feat", split="test", normalize=True)))
            assert np.allclose(np.abs(even.x).sum(1), 1, atol=1e-5)


def test_ranks():
    """The loaders of all ranks are one loader, dealt out; a state of any rank is that of all."""
    example = Example(RNG, vertices=900, edges=9000)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(500), range(500, 700), range(700, 900)))
        with rz.open(path / "g.rz") as graph:

            def make(rank=0, world_size=1, **options):
                return rz.Loader(graph, [3, 2], **{"features": "feat", "labels": "label", "split": "train",
                                                   "batch_size": 16, "rank": rank, "world_size": world_size, **options})

            for world_size in (1, 2, 3, 5):
                for options in ({}, {"drop_last": True}, {"seeds": RNG.permutation(900)[:481], "split": None},
                                {"split": "val", "shuffle": False}):
                    alone = make(**options)
                    ranks = [make(rank, world_size, **options) for rank in range(world_size)]
                    size, rounds = 16 * world_size, len(ranks[0])
                    whole = alone.num_seeds // size
                    assert rounds == whole + (alone.num_seeds % size > 0 and "drop_last" not in options)
                    for _ in range(2):
                        one = list(alone)
                        given = list(zip(*ranks, strict=True))
                        assert len(given) == rounds
                        left = alone.num_seeds % size
                        alike = whole - (0 < left < world_size and "drop_last" not in options)
                        for number, batches in enumerate(given):
                            assert {batch.number for batch in batches} == {number}
                            sizes = [batch.batch_size for batch in batches]
                            assert max(sizes) <= 16 and max(sizes) - min(sizes) <= 1 and min(sizes) > 0
                            if number < alike:
                                want = one[number * world_size:(number + 1) * world_size]
                                assert all(same(batch._replace(number=0), other._replace(number=0))
                                           for batch, other in zip(batches, want, strict=True))
                        seeds = np.concatenate([b.vertices[:b.batch_size] for batches in given for b in batches])
                        assert len(np.unique(seeds)) == len(seeds)
                        if "drop_last" in options:
                            assert len(seeds) == whole * size
                        else:
                            assert np.array_equal(np.sort(seeds),
                                                  np.sort(np.concatenate([b.vertices[:b.batch_size] for b in one])))
            loader = make(2, 3)
            want = [list(loader), list(loader)]
            first = make(0, 3)
            for _ in zip(range(4), first):
                state = first.state_dict()
            other = make(2, 3)
            other.load_state_dict(state)
            position = state["position"]
            assert all(map(same, list(other), want[0][position:])) and all(map(same, list(other), want[1]))
            with raises(ValueError, "world_size"):
                make(1, 2).load_state_dict(state)
            for kind, text, options in ((ValueError, "rank", {"rank": 2, "world_size": 2}), (ValueError, "rank", {"rank": -1}),
                                        (ValueError, "world_size", {"world_size": 0}), (ValueError, "rank", {"world_size": 1 << 40}),
                                        (TypeError, "world_size", {"world_size": 1.5}),
                                        (ValueError, "ranks", {"world_size": 7, "split": None, "seeds": [1, 2]})):
                with raises(kind, text):
                    make(**options)


def test_times():
    """With all neighbours, each seed has the edges that NumPy finds at its time, given or in an array."""
    src, dst = RNG.integers(0, 300, (2, 4000))
    stamps, born = RNG.integers(0, 100, 4000), RNG.integers(0, 100, 300)
    feat = RNG.normal(size=(300, 3)).astype(np.float32)
    with folder() as path:
        rz.ingest(path / "g.rz", np.stack([src, dst]), edge_arrays={"stamp": stamps}, vertices=300,
                  arrays={"feat": feat, "born": born})
        with rz.open(path / "g.rz") as graph:
            seeds, given = RNG.permutation(300)[:100], RNG.integers(-10, 110, 100)
            time_of = dict(zip(seeds.tolist(), given.tolist()))
            options = {"features": "feat", "seeds": seeds, "batch_size": 30, "disjoint": True, "times": "stamp"}
            for seed_times in (given, "born"):
                loader = rz.Loader(graph, [-1], seed_times=seed_times, **options)
                for batch in loader:
                    of_batch = batch.vertices[:batch.batch_size]
                    want = born[of_batch] if isinstance(seed_times, str) else [time_of[v] for v in of_batch.tolist()]
                    assert np.array_equal(batch.seed_times, want) and batch.seed_times.dtype == np.int64
                    assert np.array_equal(batch.x, feat[batch.vertices])
                    for seed, (vertex, limit) in enumerate(zip(of_batch, batch.seed_times)):
                        got = batch.vertices[batch.edge_index[0][batch.edge_index[1] == seed]]
                        assert np.array_equal(np.sort(got), np.sort(src[(dst == vertex) & (stamps <= limit)]))
            for pick in ("uniform", "last"):
                loader = rz.Loader(graph, [2, 2], seed_times="born", pick=pick, seed=5, rank=1, world_size=2, **options)
                sampler = graph.sampler([2, 2], disjoint=True, times="stamp", pick=pick, seed=5)
                for batch in loader:
                    sub = sampler.sample(batch.vertices[:batch.batch_size], batch.tag, batch.seed_times)
                    assert np.array_equal(sub.vertices, batch.vertices) and np.array_equal(sub.edge_index, batch.edge_index)
            plain = next(iter(rz.Loader(graph, [2], features="feat", seeds=seeds)))
            assert plain.seed_times is None
            for kind, text, change in (
                    (ValueError, "time for each seed", {}), (ValueError, "times", {"seed_times": given[:7]}),
                    (TypeError, "seed_times", {"seed_times": [1.5] * 100}), (rz.NotFound, "none", {"seed_times": "none"}),
                    (ValueError, "feat", {"seed_times": "feat"}), (ValueError, "disjoint", {"seed_times": given, "disjoint": False}),
                    (ValueError, "times of edges", {"seed_times": given, "times": None}),
                    (ValueError, "pick", {"seed_times": given, "pick": "first"}),
                    (rz.NotFound, "none", {"seed_times": given, "times": "none"})):
                with raises(kind, text):
                    rz.Loader(graph, [2], **{**options, **change})


def test_vertex_times():
    """No neighbour is later than its seed, whose time is its vertex's unless another is given; deltas have times, too."""
    edges, born = RNG.integers(0, 300, (2, 3000)), RNG.integers(0, 100, 301)
    feat = RNG.normal(size=(300, 3)).astype(np.float32)
    with folder() as path:
        rz.ingest(path / "g.rz", edges, vertices=300, arrays={"feat": feat, "born": born[:300]})
        with rz.open(path / "g.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_edges([300] * 5, [1, 2, 3, 4, 5])
                batch.put_row("born", 300, born[300])
            edges = np.concatenate([edges, [[300] * 5, [1, 2, 3, 4, 5]]], axis=1)
            seeds = np.append(np.setdiff1d(RNG.permutation(300)[:90], [1, 2, 3]), [1, 2, 3])
            given = RNG.integers(-10, 110, len(seeds))
            options = {"features": "feat", "seeds": seeds, "batch_size": 30, "disjoint": True, "vertex_times": "born"}
            for direction, (drawn, of) in (("in", edges), ("out", edges[::-1])):
                for seed_times in (None, given, "born"):
                    time_of = dict(zip(seeds.tolist(), (born[seeds] if seed_times is None or isinstance(seed_times, str)
                                                        else given).tolist()))
                    for batch in rz.Loader(graph, [-1], seed_times=seed_times, direction=direction, **options):
                        assert batch.seed_times.tolist() == [time_of[v] for v in batch.vertices[:batch.batch_size].tolist()]
                        for seed, (vertex, limit) in enumerate(zip(batch.vertices, batch.seed_times)):
                            got = batch.vertices[batch.edge_index[0][batch.edge_index[1] == seed]]
                            assert sorted(got.tolist()) == sorted(drawn[(of == vertex) & (born[drawn] <= limit)].tolist())
            sampler = graph.sampler([2, 2], disjoint=True, vertex_times="born", pick="last", seed=5)
            for batch in rz.Loader(graph, [2, 2], pick="last", seed=5, **options):
                sub = sampler.sample(batch.vertices[:batch.batch_size], batch.tag, batch.seed_times)
                assert np.array_equal(sub.vertices, batch.vertices) and np.array_equal(sub.edge_index, batch.edge_index)
            for kind, text, change in ((rz.NotFound, "none", {"vertex_times": "none"}),
                                       (ValueError, "feat", {"vertex_times": "feat"}),
                                       (ValueError, "not of both", {"times": "born", "seed_times": "born"}),
                                       (ValueError, "disjoint", {"disjoint": False})):
                with raises(kind, text):
                    rz.Loader(graph, [2], **{**options, **change})


def test_types():
    with folder() as path:
        src, dst = RNG.integers(0, 300, (2, 5000))
        kinds = np.array(["cites", "likes", "knows"])[RNG.integers(0, 3, 5000)]
        lines = [f"{a}\t{b}\t{kind}\n" for a, b, kind in zip(src, dst, kinds)]
        (path / "edges.tsv").write_text("".join(lines))
        feat = RNG.normal(size=(300, 5)).astype(np.float32)
        rz.ingest(path / "g.rz", path / "edges.tsv", columns=["src", "dst", "type"], vertices=300,
                  arrays={"feat": feat})
        known = set(zip(src.tolist(), dst.tolist(), kinds.tolist()))
        with rz.open(path / "g.rz") as graph:
            fanouts = {"cites": [3, 0], "knows": [2, 4]}
            loader = rz.Loader(graph, fanouts, features="feat", seeds=range(300), batch_size=100)
            for batch in loader:
                assert np.array_equal(batch.x, feat[batch.vertices])
                names = np.array(graph.edge_types)[batch.types]
                pairs = batch.vertices[batch.edge_index].T.tolist()
                assert all((a, b, name) in known for (a, b), name in zip(pairs, names))
                assert set(names[:batch.edge_hops[0]]) == {"cites", "knows"}
                assert set(names[batch.edge_hops[0]:]) == {"knows"}
            path_of_types = rz.Loader(graph, [2, 2], features="feat", seeds=[5], meta_path=["likes", "cites"])
            batch = next(iter(path_of_types))
            first = min(2, ((dst == 5) & (kinds == "likes")).sum())
            assert batch.edge_hops[0] == first
            assert np.array(graph.edge_types)[batch.types].tolist() == ["likes"] * first + ["cites"] * batch.edge_hops[1]


def test_zero_copy():
    """Rows lie in the cache while arrays refer to them, whatever becomes of loader and graph."""
    example = Example(RNG, vertices=3000, edges=40_000)
    feat = example.arrays["feat"]
    with folder() as path:
        example.ingest(path / "g.rz")
        graph = rz.open(path / "g.rz")
        options = {"features": "feat", "seeds": range(3000), "batch_size": 200, "memory": "16M"}
        loader = rz.Loader(graph, [3, 3], zero_copy=True, **options)
        copies = list(rz.Loader(graph, [3, 3], **options))
        kept = []
        for batch, copy in zip(loader, copies, strict=True):
            assert batch.x.shape == copy.x.shape and batch.x.dtype == copy.x.dtype and len(batch.x) == len(copy.x)
            assert np.array_equal(np.asarray(batch.x), copy.x) and np.array_equal(batch.x[3:7], copy.x[3:7])
            assert np.array_equal(batch.x[5], copy.x[5]) and not batch.x.table.flags.writeable
            assert np.array_equal(np.asarray(batch.x, np.float64), copy.x.astype(np.float64))
            kept = [*kept[-1:], batch]
        last = kept[-1]
        table, place, want = last.x.table, last.x.place, feat[last.vertices]
        del loader, kept, last, batch
        graph.close()
        gc.collect()
        assert np.array_equal(table[place], want)
        del table, place
        gc.collect()


def test_keeping_too_much():
    """Minibatches that are kept take the loader's room; what is given back is room again, and none was lost."""
    feat = RNG.random((200_000, 64), dtype=np.float32)  # 51 MB
    with folder() as path:
        rz.ingest(path / "g.rz", RNG.integers(0, 200_000, (2, 200_000)), arrays={"feat": feat})
        with rz.open(path / "g.rz") as graph:
            loader = rz.Loader(graph, [1], features="feat", seeds=range(200_000), batch_size=500, memory="12M",
                               zero_copy=True)
            kept = []
            with raises(rz.OutOfMemory):
                for batch in loader:
                    kept.append(batch)
            at = loader.state_dict()["position"]
            assert at == len(kept) > 1
            assert all(np.array_equal(np.asarray(batch.x), feat[batch.vertices]) for batch in kept)
            del batch
            kept.clear()
            again = [batch.number for batch in itertools.islice(loader, 20)]
            assert again == list(range(at, at + 20)), (at, again)
            print("kept", at, "minibatches of", loader.memory.total, "bytes")


def test_resume():
    """A loop that is left, an interruption, and another loader: positions say what comes next."""
    example = Example(RNG, vertices=1000, edges=10_000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:

            def make(**options):
                return rz.Loader(graph, [3, 2], features="feat", labels="label", seeds=range(640), batch_size=64,
                                 **options)

            whole = make()
            want = [list(whole) for _ in range(3)]
            loader = make(superbatch=4)
            for stop in (0, 3, 9):  # of three epochs
                for number, batch in enumerate(loader):
                    epoch = loader.state_dict()["position"] // 10.5
                    assert same(batch, want[int(epoch)][number])
                    if number == stop:
                        break
            for position in (0, 1, 9, 10, 15, 29):
                other = make()
                other.load_state_dict({"position": position, "minibatches_of_epoch": 10})
                assert other.report().minibatches == 0
                got = list(other)
                assert all(map(same, got, want[position // 10][position % 10:]))
                assert len(got) == 10 - position % 10 and other.state_dict()["position"] == position // 10 * 10 + 10
            with raises(ValueError, "minibatches"):
                make(drop_last=True).load_state_dict({"position": 0, "minibatches_of_epoch": 11})
            limited = make(epochs=2)
            assert len(list(limited)) == len(list(limited)) == 10
            with raises(ValueError, "2 epochs"):
                iter(limited)
            first, second = iter(loader), iter(loader)
            next(second)
            with raises(ValueError, "another loop"):
                next(first)
            with raises(TypeError, "pickle"):
                pickle.dumps(loader)
            # What is written meanwhile is not in it, not even when the loader is made anew inside.
        with rz.open(path / "g.rz", mode="w") as graph:
            loader = rz.Loader(graph, [3, 2], features="feat", labels="label", seeds=range(640), batch_size=64)
            assert same(next(iter(loader)), want[0][0])
            with graph.batch() as batch:
                for vertex in range(640):
                    batch.put_row("feat", vertex, np.zeros(12))
            graph.compact()
            assert all(map(same, loader, want[1]))
            fresh = rz.Loader(graph, [3, 2], features="feat", seeds=range(640), batch_size=64)
            assert not any(b.x[:b.batch_size].any() for b in fresh)


def test_errors():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(100), [], []))
        with rz.open(path / "g.rz") as graph:

            def make(fanouts=(2, 2), **options):
                return rz.Loader(graph, fanouts, **{"features": "feat", "seeds": range(100), **options})

            for kind, text, options in (
                    (ValueError, "seed 7 is repeated", {"seeds": [3, 7, 9, 7]}),
                    (rz.InvalidArgument, "seed 7 is repeated", {"seeds": [3, 7, 9, 7]}),
                    (IndexError, "300", {"seeds": [1, 300]}), (IndexError, "-1", {"seeds": [-1]}),
                    (TypeError, "integers", {"seeds": [1.5]}), (ValueError, "no seeds", {"seeds": []}),
                    (ValueError, "one of", {"split": "train"}), (ValueError, "one of", {"seeds": None}),
                    (ValueError, "'dev'", {"seeds": None, "split": "dev"}),
                    (ValueError, "no vertex", {"seeds": None, "split": "valid"}),
                    (rz.NotFound, "nothing", {"seeds": None, "split": "train", "split_array": "nothing"}),
                    (rz.NotFound, "gone", {"features": "gone"}), (rz.NotFound, "gone", {"labels": "gone"}),
                    (ValueError, "small", {"labels": "small"}),
                    (ValueError, "batch_size", {"batch_size": 0}), (TypeError, "batch_size", {"batch_size": 1.5}),
                    (ValueError, "epochs", {"epochs": 0}), (ValueError, "policy", {"policy": "best"}),
                    (ValueError, "one hop at least", {"fanouts": []}), (ValueError, "direction", {"direction": "up"}),
                    (rz.NotFound, "sees", {"fanouts": {"sees": [1]}}),
                    (ValueError, "drop_last", {"batch_size": 101, "drop_last": True}),
                    (rz.OutOfMemory, "memory", {"memory": "10K"}), (ValueError, "memory", {"memory": "much"}),
                    (TypeError, "", {"features": None})):
                with raises(kind, text):
                    make(**options)
            loader = make()
            batches = iter(loader)
            next(batches)
        for call in (lambda: next(batches), loader.report, lambda: iter(loader), make):
            with raises(ValueError, "closed"):
                call()
        assert loader.memory.total and len(loader) == 1 and loader.state_dict()["position"] == 1


def test_processes_and_threads():
    example = Example(RNG, vertices=1000, edges=10_000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            loader = rz.Loader(graph, [3, 2], features="feat", seeds=range(1000), batch_size=50, zero_copy=True)
            batches = iter(loader)
            view = next(batches)

            def child():
                for call in (loader.report, lambda: next(batches), lambda: iter(loader)):
                    with raises(rz.InvalidArgument, "fork"):
                        call()
                assert len(loader) == 20 and np.array_equal(np.asarray(view.x), example.arrays["feat"][view.vertices])
                with rz.open(path / "g.rz") as own:
                    assert len(list(rz.Loader(own, [3, 2], features="feat", seeds=range(1000), batch_size=50))) == 20

            in_child(child)
            in_child(lambda: globals().update(batches=None))
            assert len(list(batches)) == 19
            del view
            # Many threads take minibatches of one loader: none is lost or given twice, whoever is told to wait.
            got, told = [], []

            def take(turns):
                for _ in range(turns):
                    try:
                        got.append(loader._core.next(False))
                    except RuntimeError as error:
                        told.append(str(error))

            threads = [threading.Thread(target=take, args=(20,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            numbers = [batch[-3:-1] for batch in got if batch is not None]
            assert len(set(numbers)) == len(numbers) and len(got) + len(told) == 80
            assert all("another thread" in text for text in told)


LOADING = """
import signal, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, rhizome as rz
graph = rz.open(sys.argv[2])
make = lambda: rz.Loader(graph, [25, 25], features="x", seeds=range(graph.num_vertices), batch_size=500, superbatch=100,
                         memory=0)
if sys.argv[3] == "end":
    loader = make()
    print("begun", flush=True)
    threads = iter(loader)  # the process ends while they work
    sys.exit(0)
try:
    if sys.argv[3] == "next":
        loader = make()
    print("begun", flush=True)
    batch = next(iter(loader if sys.argv[3] == "next" else make()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # too late for it
    print("done")
except KeyboardInterrupt:
    print("interrupted", time.monotonic())
if sys.argv[3] == "next":
    position = loader.state_dict()["position"]  # 1: it was handed over, and a loop that was left early is over
    batch = next(iter(loader))
    assert (batch.epoch, batch.number) == (position, 0), (batch.epoch, batch.number, position)
"""


def loading(store, job, after):
    """Starts a process that loads, sends SIGINT; returns whether it raised KeyboardInterrupt, and how late."""
    words, status, sent = interrupted(LOADING, store, job, after=after, signalled=job != "end")
    if words == ["done"] and status in (0, -signal.SIGINT):  # the signal came when all was done
        return False, 0.0
    assert status == 0, (status, words)
    return words[:1] == ["interrupted"], float(words[1]) - sent if len(words) > 1 else 0.0


def test_interrupts():
    late = []
    with folder() as path:
        edges = RNG.integers(0, 100_000, (2, 800_000))
        rz.ingest(path / "g.rz", edges, arrays={"x": np.ones((100_000, 16), np.float32)})
        for job in ("next", "next", "open", "next", "open"):
            if len(late) == 3:
                break
            stopped, seconds = loading(path / "g.rz", job, RNG.uniform(0, 0.15))
            late += [seconds] * stopped
        loading(path / "g.rz", "end", 0)
        with rz.open(path / "g.rz", mode="w") as graph:
            assert graph.verify().ok
    print(f"{len(late)} were interrupted, the slowest {max(late, default=0):.2f} s after the signal")
    assert late and max(late) < 5 * PATIENCE, late  # 0.5 s on a machine that does nothing else


if __name__ == "__main__":
    run(sys.modules[__name__])
