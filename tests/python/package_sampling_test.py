#!/usr/bin/env python3
"""Samplers of the package `rhizome`: every sampled edge is in the graph, and each option agrees
with NumPy."""
import concurrent.futures
import sys

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_sampling():
    example = Example(RNG, edges=200_000)
    pairs = set(map(tuple, example.edges.T.tolist()))
    with folder() as path:
        example.ingest(path / "g.rz")
        for memory in ("1G", "12M"):
            with rz.open(path / "g.rz", memory=memory) as graph:
                assert graph.topology_on_disk == (memory == "12M")
                sampler = graph.sampler([4, 3], seed=5)
                seeds = RNG.integers(0, example.vertices, 20)
                sub = sampler.sample(seeds, batch=3)
                again = sampler.sample(seeds.tolist(), batch=3)
                assert all(np.array_equal(a, b) for a, b in zip(sub, again) if a is not None)
                assert not np.array_equal(sub.vertices, sampler.sample(seeds, batch=4).vertices)
                assert np.array_equal(sub.vertices[sub.seeds], seeds)
                assert len(set(sub.vertices.tolist())) == len(sub.vertices) == sub.hops.sum()
                assert sub.edge_index.dtype == np.int64 and sub.edge_index.shape == (2, sub.edge_hops.sum())
                ends = sub.vertices[sub.edge_index]  # a neighbour of in-lists is the source of its edge
                assert all(tuple(pair) in pairs for pair in ends.T.tolist())
                for vertex in sub.vertices[:sub.hops[0]]:
                    degree = (example.edges[1] == vertex).sum()
                    drawn = (ends[1] == vertex).sum()
                    assert drawn == min(degree, 4), (vertex, drawn, degree)
                everything = graph.sampler([-1]).sample(np.arange(example.vertices))
                assert everything.edge_index.shape[1] == example.edges.shape[1]
                assert graph.sampler([2]).sample([]).vertices.size == 0
                for bad in ([-7], [1 << 40], [1.5]):
                    with raises((ValueError, TypeError), "fanout"):
                        graph.sampler(bad)


def test_directions_and_frontiers():
    """Row 1 of edge_index is the vertex that a neighbour was drawn for; `again` draws for all that are known."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=2)
        with rz.open(path / "g.rz") as graph:
            seeds = RNG.permutation(example.vertices)[:12]
            for direction in ("in", "out", "both"):
                pairs = set(map(tuple, example.edges.T.tolist())) if direction != "in" else set()
                pairs |= set(map(tuple, example.edges[::-1].T.tolist())) if direction != "out" else set()
                for again in (False, True):
                    sub = graph.sampler([4, 3], direction=direction, again=again).sample(seeds)
                    drawn, of = sub.vertices[sub.edge_index]
                    assert all(pair in pairs for pair in zip(of.tolist(), drawn.tolist())), (direction, again)
                    first = sub.edge_hops[0]
                    known = np.cumsum(sub.hops)
                    assert (sub.edge_index[1, :first] < known[0]).all()
                    later = sub.edge_index[1, first:]
                    assert (later < known[1]).all() and (again or (later >= known[0]).all())
                    for hop in range(2):  # the lists of a hop, in CSR form, are its part of edge_index
                        lists = sub.offsets[sub.hop_lists[hop]:sub.hop_lists[hop + 1] + 1]
                        part = slice(lists[0], lists[-1])
                        vertices = np.arange(len(lists) - 1) + (0 if again or hop == 0 else known[hop - 1])
                        assert np.array_equal(np.repeat(vertices, np.diff(lists)), sub.edge_index[1, part])


def test_no_hops():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for fanouts in ([], {"edge": []}):
                sub = graph.sampler(fanouts).sample([7, 3, 7])
                assert sub.vertices.tolist() == [7, 3] and sub.seeds.tolist() == [0, 1, 0]
                assert sub.edge_index.shape == (2, 0) and sub.hops.tolist() == [2] and sub.edge_hops.size == 0
                assert sub.offsets.tolist() == [0, 0, 0] and sub.hop_lists.tolist() == [0]


def test_replace_and_weighted():
    """With replacement all of a fanout is drawn; what has no weight is never drawn, and the rest by its share."""
    example = Example(RNG, vertices=40, edges=400)
    example.weights[::2] = 0
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            sub = graph.sampler([50], replace=True).sample(range(40))
            degrees = np.bincount(example.edges[1], minlength=40)
            assert np.array_equal(np.bincount(sub.edge_index[1], minlength=40), np.where(degrees > 0, 50, 0))
            heavy = graph.sampler([-1], weighted=True).sample(range(40))
            assert len(heavy.weights) == (example.weights > 0).sum() and heavy.weights.min() > 0
            vertex = int(np.argmax(degrees))
            counts = np.zeros(40)
            for batch in range(40):
                sub = graph.sampler([500], weighted=True, replace=True).sample([vertex], batch=batch)
                np.add.at(counts, sub.vertices[sub.edge_index[0]], 1)
            of = example.edges[1] == vertex
            share = np.bincount(example.edges[0][of], example.weights[of], 40)
            assert np.abs(counts / counts.sum() - share / share.sum()).max() < 0.02  # 5 deviations of 20,000 draws


def test_types():
    with folder() as path:
        lines = [(int(a), int(b), "xyz"[t]) for a, b, t in zip(*RNG.integers(0, 30, (2, 300)), RNG.integers(0, 3, 300))]
        (path / "e.tsv").write_text("".join(f"{a}\t{b}\t{t}\n" for a, b, t in lines))
        rz.ingest(path / "g.rz", path / "e.tsv", columns=["src", "dst", "type"])
        with rz.open(path / "g.rz") as graph:
            names = graph.edge_types
            assert sorted(names) == ["x", "y", "z"]
            everyone = graph.find(sorted({end for a, b, _ in lines for end in (a, b)}))

            def edges_of(sub):
                ends = np.reshape(graph.external_ids(sub.vertices[sub.edge_index].ravel()), (2, -1))
                return sorted(zip(*ends.tolist(), [names[t] for t in sub.types]))

            for chosen in ("x", "xz", "xyz"):
                sub = graph.sampler({name: [-1] for name in chosen}).sample(everyone)
                assert edges_of(sub) == sorted(line for line in lines if line[2] in chosen)
            assert edges_of(graph.sampler([-1]).sample(everyone)) == sorted(lines)
            few = graph.sampler({"x": [2], "y": [1]}).sample(everyone)
            for position, name in enumerate(names):
                degrees = np.bincount([everyone.tolist().index(graph.find(b)) for _, b, t in lines if t == name],
                                      minlength=len(everyone))
                drawn = np.bincount(few.edge_index[1][few.types == position], minlength=len(everyone))
                assert np.array_equal(drawn, np.minimum(degrees, {"x": 2, "y": 1, "z": 0}[name])), name
            path_sub = graph.sampler([-1, -1], meta_path=["x", "y"]).sample(everyone[:3])
            first = path_sub.edge_hops[0]
            assert (path_sub.types[:first] == names.index("x")).all()
            assert (path_sub.types[first:] == names.index("y")).all()
            for wrong, kind in (({"no": [1]}, rz.NotFound), ({"x": [1], "y": [1, 2]}, ValueError), ({}, ValueError),
                                ({"x": [1.5]}, TypeError), ({"x": ["1"]}, TypeError)):
                with raises(kind):
                    graph.sampler(wrong)
            with raises(rz.NotFound, "no"):
                graph.sampler([1], meta_path=["no"])
            for wrong in ("x", [1], ["x", "y"]):
                with raises((TypeError, ValueError)):
                    graph.sampler([1], meta_path=wrong)


def test_disjoint_and_times():
    """Each seed has its own subgraph, without edges that are later than its time."""
    example = Example(RNG, edges=3000)
    stamps = RNG.integers(0, 100, 3000)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=300, edge_arrays={"stamp": stamps}, partitions=3)
        with rz.open(path / "g.rz") as graph:
            seeds = RNG.integers(0, 300, 10)
            sub = graph.sampler([5, 5], disjoint=True).sample(seeds)
            assert np.array_equal(sub.seed_of[:10], np.arange(10)) and np.array_equal(sub.vertices[:10], seeds)
            assert np.array_equal(sub.seed_of[sub.edge_index[0]], sub.seed_of[sub.edge_index[1]])
            assert len(set(zip(sub.seed_of.tolist(), sub.vertices.tolist()))) == len(sub.vertices)
            sampler = graph.sampler([-1], disjoint=True, times="stamp")
            limits = RNG.integers(-10, 110, 10)
            early = sampler.sample(seeds, times=limits)
            for seed in range(10):
                got = early.vertices[early.edge_index[0][early.edge_index[1] == seed]]
                want = example.edges[0][(example.edges[1] == seeds[seed]) & (stamps <= limits[seed])]
                assert sorted(got.tolist()) == sorted(want.tolist())
            latest = graph.sampler([1], disjoint=True, times="stamp", pick="last", edge_ids=True)
            for seed, limit in zip(seeds.tolist(), limits.tolist()):
                some = latest.sample([seed], times=[limit])
                of = (example.edges[1] == seed) & (stamps <= limit)
                assert len(some.edge_ids) == of.any()
                if of.any():
                    best = example.edges[0][of & (stamps == stamps[of].max())]
                    assert some.vertices[some.edge_index[0, 0]] in best
            for wrong, kind in ((None, rz.InvalidArgument), ([1] * 9, rz.InvalidArgument), ([1.0] * 10, TypeError),
                                ([[1] * 10], TypeError)):
                with raises(kind):
                    sampler.sample(seeds, times=wrong)
            with raises(rz.InvalidArgument):
                graph.sampler([1]).sample([1], times=[1])
            with raises(rz.NotFound):
                graph.sampler([1], disjoint=True, times="none")
            with raises(rz.InvalidArgument):
                graph.sampler([1], times="stamp")  # not disjoint
            with raises(ValueError, "pick"):
                graph.sampler([1], pick="first")


def test_induced():
    """All edges between the vertices that are found, and no others."""
    example = Example(RNG, edges=4000)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        with rz.open(path / "g.rz") as graph:
            for direction in ("in", "out"):
                for fanouts in ([3, 2], []):
                    options = {"direction": direction, "seed": 7, "edge_ids": True}
                    drawn = graph.sampler(fanouts, **options).sample([1, 2, 3])
                    sub = graph.sampler(fanouts, induced=True, **options).sample([1, 2, 3])
                    assert np.array_equal(sub.vertices, drawn.vertices) and np.array_equal(sub.hops, drawn.hops)
                    inside = np.isin(example.edges, sub.vertices).all(0)
                    ends = sub.vertices[sub.edge_index if direction == "in" else sub.edge_index[::-1]]
                    wanted = zip(*example.edges[:, inside].tolist(), example.weights[inside].tolist())
                    assert sorted(zip(*ends.tolist(), sub.weights.tolist())) == sorted(wanted)
                    assert sub.edge_hops.tolist() == [inside.sum(), 0][:max(len(fanouts), 1)]
                    assert np.array_equal(graph.edge_rows("weight", sub.edge_ids)[:, 0], sub.weights)
            for wrong in ({"disjoint": True}, {"again": True}):
                with raises(rz.InvalidArgument, "induced"):
                    graph.sampler([2], induced=True, **wrong)


def test_vertex_times():
    """No neighbour is later than its seed."""
    example = Example(RNG, edges=3000)
    when = RNG.integers(0, 100, 300)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=300, arrays={"when": when, "feat": np.zeros((300, 2))})
        with rz.open(path / "g.rz") as graph:
            seeds, limits = RNG.permutation(300)[:40], RNG.integers(-5, 105, 40)
            for direction, (drawn, of) in (("in", example.edges), ("out", example.edges[::-1])):
                sub = graph.sampler([-1], disjoint=True, vertex_times="when", direction=direction).sample(
                    seeds, times=limits)
                for seed in range(40):
                    got = sub.vertices[sub.edge_index[0][sub.edge_index[1] == seed]]
                    want = drawn[(of == seeds[seed]) & (when[drawn] <= limits[seed])]
                    assert sorted(got.tolist()) == sorted(want.tolist())
            last = graph.sampler([1], disjoint=True, vertex_times="when", pick="last").sample(seeds, times=limits)
            for seed, limit in zip(range(40), limits):
                near = example.edges[0][example.edges[1] == seeds[seed]]
                times = when[last.vertices[last.edge_index[0][last.edge_index[1] == seed]]]
                assert times.tolist() == sorted(when[near][when[near] <= limit].tolist())[-1:]
            for wrong, kind in (({"vertex_times": "none"}, rz.NotFound), ({"vertex_times": "feat"}, rz.InvalidArgument),
                                ({"vertex_times": "when", "times": "when"}, rz.InvalidArgument)):
                with raises(kind):
                    graph.sampler([1], disjoint=True, **wrong)
            with raises(rz.InvalidArgument, "disjoint"):
                graph.sampler([1], vertex_times="when")


def test_memory_of_arrays():
    """Arrays that are kept stay as they are, though the memory of those that are dropped is used again, by all threads."""
    with folder() as path:
        rz.ingest(path / "g.rz", RNG.integers(0, 5000, (2, 60_000)), vertices=5000)
        with rz.open(path / "g.rz") as graph:
            sampler = graph.sampler([-1, 5], seed=SEED)
            plans = [(RNG.permutation(5000)[:int(RNG.integers(500, 5000))], number) for number in range(12)]
            expected = [tuple(array.copy() for array in (sub.vertices, sub.edge_index, sub.offsets))
                        for sub in (sampler.sample(*plan) for plan in plans)]
            assert max(len(edges[0]) for _, edges, _ in expected) > 40_000  # of 640 kB, which are kept

            def draw(seed):
                order = np.random.default_rng([SEED, seed])
                held = {}
                for number in order.integers(0, 12, 60).tolist():
                    held[number] = sampler.sample(*plans[number])
                    if len(held) > 4:
                        del held[order.choice(list(held))]
                    for one, sub in held.items():
                        for array, want in zip((sub.vertices, sub.edge_index, sub.offsets), expected[one]):
                            assert np.array_equal(array, want)
                return True

            with concurrent.futures.ThreadPoolExecutor(3) as threads:
                assert all(threads.map(draw, range(3)))


def test_edge_ids():
    """Numbers of edges are 0, 1, 2, ...; one number is always the same edge."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        with rz.open(path / "g.rz") as graph:
            seen = {}
            for fanout in (-1, 3, 5):
                for direction in ("in", "out", "both"):
                    sub = graph.sampler([fanout, 2], edge_ids=True, direction=direction).sample(range(example.vertices))
                    ends = sub.vertices[sub.edge_index if direction == "in" else sub.edge_index[::-1]]
                    if direction == "both":  # which way an edge leads is in neither
                        assert all({a, b} == set(seen[number][:2]) for number, a, b in zip(sub.edge_ids.tolist(), *ends))
                        continue
                    for number, src, dst, weight in zip(sub.edge_ids.tolist(), *ends.tolist(), sub.weights.tolist()):
                        assert seen.setdefault(number, (src, dst, weight)) == (src, dst, weight)
            assert sorted(seen) == list(range(example.edges.shape[1]))
            assert sorted(seen.values()) == sorted(zip(*example.edges.tolist(), example.weights.tolist()))
            assert graph.sampler([1]).sample([1]).edge_ids is None
        rz.ingest(path / "plain.rz", example.edges)
        with rz.open(path / "plain.rz") as graph:
            with raises(rz.InvalidArgument, "edge ids"):
                graph.sampler([1], edge_ids=True)
            assert graph.sampler([1], edge_ids=True, direction="out").sample([1]).edge_ids.dtype == np.int64


def test_edge_rows():
    """Attributes by the numbers of edges are those that were ingested or put, whatever is written, and after a compaction."""
    example = Example(RNG, edges=3000)
    years, vectors = RNG.integers(0, 1 << 40, 3000), RNG.normal(size=(3000, 3)).astype(np.float32)
    names = RNG.permutation(3000)
    kinds = {"a": example.edges[:, :1000], "b": example.edges[:, 1000:]}
    columns = {"name": names, "year": years, "vector": vectors, "weight": example.weights}
    known = {name: (0 if i < 1000 else 1, years[i], vectors[i], example.weights[i], tuple(example.edges[:, i]))
             for i, name in enumerate(names.tolist())}
    with folder() as path:
        rz.ingest(path / "g.rz", kinds, edge_arrays=columns, vertices=300, partitions=3)

        def check(graph):
            sub = graph.sampler([-1], edge_ids=True).sample(np.arange(graph.vertex_bound))
            found = graph.edge_rows("name", sub.edge_ids)[:, 0]
            assert sorted(found.tolist()) == sorted(known)
            wanted = [known[name] for name in found.tolist()]
            for column, values in zip(("type", "year", "vector", "weight"), zip(*wanted)):
                rows = graph.edge_rows(column, sub.edge_ids)
                assert np.array_equal(rows, np.reshape(values, rows.shape).astype(rows.dtype)), column
            assert np.array_equal(graph.edge_rows("weight", sub.edge_ids)[:, 0], sub.weights)
            assert np.array_equal(graph.edge_rows("type", sub.edge_ids)[:, 0], sub.types)
            ends = sub.vertices[sub.edge_index]
            assert [tuple(pair) for pair in ends.T.tolist()] == [one[4] for one in wanted]
            return dict(zip(found.tolist(), sub.edge_ids.tolist()))

        with rz.open(path / "g.rz", mode="w") as graph:
            assert list(graph.edge_attributes) == ["name", "vector", "year"]
            first = check(graph)
            for commit in range(3):
                with graph.batch() as batch:
                    for i in range(5):
                        name, src, dst = 3000 + 5 * commit + i, *RNG.integers(0, 300, 2).tolist()
                        year, weight, vector = int(RNG.integers(0, 99)), float(np.float32(RNG.random())), [0.5, i, commit]
                        batch.put_edge(src, dst, "ab"[i % 2], weight, {"year": year, "name": name, "vector": vector})
                        known[name] = (i % 2, year, vector, weight, (src, dst))
                    gone = known[(3000 if commit == 2 else 17) + commit]  # one that was written, and some of before
                    batch.delete_edge(*(int(end) for end in gone[4]), "ab"[gone[0]])
                    for name in [name for name, one in known.items() if one[4] == gone[4] and one[0] == gone[0]]:
                        del known[name]
                now = check(graph)
                assert all(now[name] == first[name] for name in now.keys() & first.keys())  # numbers stay
                first.update(now)
            with rz.open(path / "g.rz") as reader:
                assert check(reader) == now
            last = graph.sampler([-1], edge_ids=True).sample(np.arange(300)).edge_ids[:7]
            out = np.empty((7, 3), np.float32)
            assert graph.edge_rows("vector", last, out=out) is out
            assert np.array_equal(graph.edge_rows("vector", last.astype(np.int32)), out)
            assert graph.edge_rows("year", []).shape == (0, 1)
            with raises(rz.NotFound, "name, vector, year, weight, type"):
                graph.edge_rows("month", [1])
            for wrong, kind in (([-1], rz.InvalidArgument), ([1 << 40], rz.InvalidArgument), ([1.5], TypeError),
                                ([[1]], TypeError)):
                with raises(kind):
                    graph.edge_rows("year", wrong)
            for bad, kind in ((np.empty((6, 3), np.float32), ValueError), (np.empty((7, 3)), TypeError)):
                with raises(kind):
                    graph.edge_rows("vector", last, out=bad)
            graph.compact()
            check(graph)


def test_threads_give_the_same():
    example = Example(RNG, edges=20_000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            seeds = np.arange(example.vertices)
            one, four = (graph.sampler([5, 5], threads=threads).sample(seeds, batch=9) for threads in (1, 4))
            for name, ours in one._asdict().items():
                assert np.array_equal(ours, getattr(four, name)), name


if __name__ == "__main__":
    run(sys.modules[__name__])
