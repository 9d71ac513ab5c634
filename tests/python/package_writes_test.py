#!/usr/bin/env python3
"""Writing with the package `rhizome`: a batch is one commit or nothing, and reads see what was
written."""
import collections
import gc
import importlib.util
import sys
import warnings

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def make(path, **options):
    """A store of people, with names for ids."""
    (path / "edges.tsv").write_text("".join(f"p{i}\tp{(i + 1) % 20}\tknows\t1\n" for i in range(20)))
    rz.ingest(path / "g.rz", path / "edges.tsv", columns=["src", "dst", "type", "weight"], **options)
    return path / "g.rz"


def test_random_batches():
    """Random batches, compactions and readers against a model in Python."""
    with folder() as path:
        make(path)
        edges = collections.Counter((f"p{i}", f"p{(i + 1) % 20}") for i in range(20))
        names = {f"p{i}" for i in range(20)}
        with rz.open(path / "g.rz", mode="w") as graph, rz.open(path / "g.rz") as reader:
            for step in range(25):
                with graph.batch() as batch:
                    for _ in range(RNG.integers(1, 12)):
                        a, b = (f"p{i}" for i in RNG.integers(0, 30, 2))
                        what = RNG.choice(["put", "replace", "delete", "vertex", "gone"], p=[.5, .1, .2, .1, .1])
                        if what == "put":
                            batch.put_edge(a, b, weight=0.5)
                            edges[a, b] += 1
                            names |= {a, b}
                        elif what == "replace":
                            batch.upsert_edge(a, b)
                            edges[a, b] = 1
                            names |= {a, b}
                        elif what == "delete":
                            batch.delete_edge(a, b)
                            del edges[a, b]
                        elif what == "vertex":
                            batch.put_vertex(a)
                            names.add(a)
                        else:
                            batch.delete_vertex(a)
                            names.discard(a)
                            edges = collections.Counter({k: n for k, n in edges.items() if a not in k})
                if step % 10 == 7:
                    assert graph.compact().compacted
                reader.refresh()
                for seen in (graph, reader):
                    assert seen.num_vertices == len(names) and seen.num_edges == sum(edges.values())
                    for name in RNG.choice(sorted(names), 3):
                        near = seen.external_ids(seen.neighbors(name).ids)
                        want = collections.Counter({b: n for (a, b), n in edges.items() if a == name and n})
                        assert collections.Counter(near) == want, (name, near, want)
            assert graph.verify().ok


def test_numbers_that_would_be_zero():
    """Weights and attributes of edges below what float32 has are refused, with their place, by every way in."""
    tiny, pairs = [1.0, 0.0, 1e-180], np.array([[0, 1, 2], [1, 2, 0]])
    with folder() as path:
        with raises(ValueError, "row 2: 1e-180 is too small"):
            rz.ingest(path / "g.rz", pairs, edge_arrays={"weight": np.array(tiny)})
        rz.ingest(path / "g.rz", pairs, edge_arrays={"weight": np.ones(3), "flow": np.array([0.5, 0, 1e-40], np.float32)})
        with rz.open(path / "g.rz", mode="w") as graph:
            before = graph.num_edges
            with raises(ValueError, "too small"), graph.batch() as batch:
                batch.put_edge(0, 2, weight=1e-180)
            with raises(ValueError, "row 2"), graph.batch() as batch:
                batch.put_edges([0, 1, 2], [2, 0, 1], weights=tiny)
            for add in (lambda batch: batch.put_edge(0, 2, attributes={"flow": 1e-180}),
                        lambda batch: batch.put_edges([0], [2], attributes={"flow": np.array([-1e-180])})):
                with raises(rz.InvalidArgument, "too small"), graph.batch() as batch:
                    add(batch)
            assert graph.num_edges == before
            with graph.batch() as batch:
                batch.put_edge(0, 2, weight=1e-40, attributes=[0.0])
            assert graph.num_edges == before + 1


def test_a_block_that_raises_writes_nothing():
    with folder() as path:
        make(path)
        with rz.open(path / "g.rz", mode="w") as graph:
            before = (graph.sequence, graph.num_edges, graph.num_vertices)
            with raises(ZeroDivisionError), graph.batch() as batch:
                batch.put_edge("x", "y")
                batch.delete_vertex("p1")
                1 / 0
            assert (graph.sequence, graph.num_edges, graph.num_vertices) == before and batch.commit is None
            with raises(rz.InvalidArgument, "hates"), graph.batch() as batch:
                batch.put_edge("p1", "p9")
                batch.put_edge("p1", "p2", type="hates")
            with raises(rz.NotFound, "nobody"), graph.batch(create_vertices=False) as batch:
                batch.put_edge("p1", "p9")
                batch.put_edge("p1", "nobody")
            assert (graph.sequence, graph.num_edges, graph.num_vertices) == before
            with graph.batch() as batch:
                pass
            assert batch.commit is None and graph.sequence == before[0]
            with graph.batch(create_types=True) as batch:
                batch.put_edge("p1", "p2", type="hates")
            assert graph.sequence == batch.commit and graph.edge_types == ["knows", "hates"]
        with rz.open(path / "g.rz") as graph:
            assert graph.num_edges == before[1] + 1
            with raises(rz.InvalidArgument):
                graph.batch()
            assert graph.compact().compacted and graph.num_edges == before[1] + 1  # readers may compact
            with raises(ValueError, "snapshot"):
                graph.snapshot().refresh()


def test_put_edges():
    """Many edges in one call are those of as many calls, by the user's ids or by vertex ids."""
    example = Example(RNG)
    stamps = RNG.integers(0, 99, 2000)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=300,
                  edge_arrays={"weight": example.weights, "stamp": stamps, "flow": stamps / 8})
        with rz.open(path / "g.rz", mode="w") as graph:
            assert graph.edge_attributes == {"stamp": (np.dtype(np.int64), 1), "flow": (np.dtype(np.float64), 1)}
            src, dst = RNG.integers(0, 300, (2, 500))
            weights = RNG.random(500, dtype=np.float32)
            by_name = {"stamp": RNG.integers(0, 99, 500), "flow": RNG.random(500, dtype=np.float32)}
            with graph.batch() as batch:
                batch.put_edges(src[:250], dst[:250], weights=weights[:250],
                                attributes={name: values[:250] for name, values in by_name.items()})
                batch.put_edges(src[250:].tolist(), [*dst[250:499].tolist(), 1234], "edge", weights[250:].tolist(),
                                {"flow": by_name["flow"][250:], "stamp": by_name["stamp"][250:].tolist()})
                assert len(batch) == 500
            assert batch.vertices_added == 1
            graph.compact()
            for vertex in range(300):
                near = graph.neighbors(vertex)
                names = graph.external_ids(near.ids)
                added = src == vertex
                targets = [*dst[:499].tolist(), 1234]
                want = example.targets(vertex, "out") + [(targets[i], float(weights[i])) for i in np.flatnonzero(added)]
                assert sorted(zip(names, near.weights.tolist())) == sorted(want)
            sampler = graph.sampler([-1], disjoint=True, times="stamp", direction="out")
            late = sampler.sample(range(300), times=[50] * 300)
            assert len(late.weights) == (stamps <= 50).sum() + (by_name["stamp"] <= 50).sum()
            with graph.batch() as batch:
                for wrong, kind in ((([1], [2, 3]), ValueError), ((np.array([999]), [1]), IndexError),
                                    (([1.5], [1]), TypeError), (([1], [2], "", [1, 2]), ValueError),
                                    (([1], [2], "", None, {"stamp": [1, 2]}), ValueError),
                                    (([1], [2], "", None, {"stamp": [["a"]]}), TypeError),
                                    (([1], [2], "", None, {"stamps": [1]}), rz.InvalidArgument),
                                    (([1], [2], "", None, [[1], [2.0]]), rz.InvalidArgument),
                                    (([1], [2], ["edge", "edge"]), ValueError), (([1], [2], [1]), TypeError),
                                    (([1], [2], "", None, 3), TypeError), (([1, 2],), TypeError),
                                    (({"src": [1], "dst": [2]}, None, "", [1.0]), TypeError)):
                    with raises(kind):
                        batch.put_edges(*wrong)
                assert len(batch) == 0


def test_attributes_by_name():
    """Attributes, types and weights of single edges and of tables are those of the store, whatever their order."""
    pairs = ([0, 1], [1, 2])
    with folder() as path:
        rz.ingest(path / "g.rz", {"r": pairs, "s": pairs}, vertices=4,
                  edge_arrays={"weight": np.ones(4), "zeal": np.zeros(4, int), "amount": np.zeros(4), "at": np.zeros((4, 2))})
        src, dst = RNG.integers(0, 900, (2, 30))
        types, weights = RNG.choice(["r", "s"], 30), RNG.integers(1, 9, 30) / 4
        zeal, amount, at = RNG.integers(0, 99, 30), RNG.integers(0, 99, 30) / 8, RNG.integers(0, 99, (30, 2)) / 2
        wanted = sorted(zip(src.tolist(), dst.tolist(), types.tolist(), weights.tolist(), zeal.tolist(), amount.tolist(),
                            at.tolist()))
        columns = {"amount": amount, "rel": types.tolist(), "target": dst, "zeal": zeal, "w": weights, "source": src, "at": at}

        def one_by_one(batch):
            for i in range(30):
                (batch.put_edge if i % 2 else batch.upsert_edge)(
                    int(src[i]), int(dst[i]), types[i], weights[i],
                    attributes={"at": at[i], "amount": amount[i], "zeal": int(zeal[i])})

        def tables(module):
            if module == "pandas":
                import pandas
                return pandas.DataFrame({name: list(column) for name, column in columns.items()})
            import pyarrow
            return pyarrow.table({name: list(column) for name, column in columns.items()})

        ways = {"one by one": one_by_one, "a dict": lambda batch: batch.put_edges(columns),
                "columns": lambda batch: batch.put_edges(src.tolist(), dst.tolist(), types, weights,
                                                         {"zeal": zeal, "at": at, "amount": amount})}
        for module in ("pandas", "pyarrow"):
            if importlib.util.find_spec(module):
                ways[module] = lambda batch, module=module: batch.put_edges(tables(module))
            else:
                print(f"skipped: no {module}")
        for name, put in ways.items():
            with rz.open(path / "g.rz", mode="w") as graph, graph.snapshot() as before:
                known = before.num_edges
                with graph.batch() as batch:
                    put(batch)
                with graph.snapshot() as now:
                    sub = now.sampler([-1], direction="out", edge_ids=True).sample(now.vertices_of())
                    new = sub.edge_ids >= known
                    values = [now.edge_rows(name, sub.edge_ids[new]) for name in ("weight", "zeal", "amount", "at")]
                    far, near = sub.vertices[sub.edge_index[:, new]]
                    got = sorted(zip(now.external_ids(near), now.external_ids(far),
                                     [now.edge_types[kind] for kind in sub.types[new]], values[0][:, 0].tolist(),
                                     values[1][:, 0].tolist(), values[2][:, 0].tolist(), values[3].tolist()))
                    assert got == wanted, name
                    with graph.batch() as batch:
                        for edge in set(zip(src.tolist(), dst.tolist(), types.tolist())):
                            batch.delete_edge(*edge)
                graph.compact()
        with rz.open(path / "g.rz", mode="w") as graph, graph.batch() as batch:
            for text, call in (
                    ("'at': ..., 'zeal': ...", lambda: batch.put_edge(0, 1, attributes=[1, 2, 3])),
                    ("no attribute 'amuont'", lambda: batch.put_edge(0, 1, attributes={"amuont": 3})),
                    ("'at' has 2 value(s) per edge, but 1", lambda: batch.put_edge(0, 1, attributes={"at": 3})),
                    ("without names", lambda: batch.put_edges([0], [1], attributes=[[1]])),
                    ("'a', 'b'", lambda: batch.put_edges({"a": [1], "b": [2]})),
                    ("int or float", lambda: batch.put_edges({"src": [1], "dst": [2], "zeal": ["a"]})),
                    ("no attribute 'zele'", lambda: batch.put_edges({"src": [1], "dst": [2], "zele": [3]})),
                    ("'from', 'u'", lambda: batch.put_edges({"from": [1], "u": [1], "dst": [2]})),
                    ("give one", lambda: batch.put_edges({"src": [1], "dst": [2], "type": ["r"]}, type="s"))):
                with raises((ValueError, TypeError), text):
                    call()
            assert len(batch) == 0
        rz.ingest(path / "one.rz", pairs, edge_arrays={"amount": np.zeros(2)})
        with rz.open(path / "one.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_edge(0, 2, attributes=[2.5])  # there is only one that it can be
                batch.put_edges([0], [2], attributes=[[2.5]])
            assert graph.edge_rows("amount", [2, 3]).tolist() == [[2.5], [2.5]]


def test_upsert_edges():
    """Many upserts in one call are as many calls of upsert_edge, and a repetition changes nothing."""
    src, dst = RNG.integers(0, 12, (2, 200))
    types, weights, amount = RNG.choice(["r", "s"], 200), RNG.integers(1, 9, 200) / 4, RNG.integers(0, 99, 200)
    table = {"source": src, "target": dst, "type": types.tolist(), "weight": weights, "amount": amount}
    ways = {"one by one": lambda batch: [batch.upsert_edge(*map(int, edge), kind, weight, {"amount": int(value)})
                                         for *edge, kind, weight, value in zip(*table.values())],
            "a table": lambda batch: batch.upsert_edges(table),
            "columns": lambda batch: batch.upsert_edges(src, dst, types, weights, {"amount": amount})}
    last = {(*edge, kind): (weight, value) for *edge, kind, weight, value in zip(*(np.asarray(part).tolist() for part in table.values()))}
    with folder() as path:
        for number, put in enumerate(ways.values()):
            with rz.create(path / f"{number}.rz", edge_types=["r", "s"], weighted=True,
                           edge_attributes={"amount": "int64"}) as graph:
                with graph.batch() as batch:
                    for vertex in range(12):
                        batch.put_vertex(vertex)
                    batch.put_edges([5, 5, 5], [6, 6, 7], "r")
                for _ in range(2):
                    with graph.batch() as batch:
                        put(batch)
                with graph.snapshot() as now:
                    sub = now.sampler([-1], direction="out", edge_ids=True).sample(now.vertices_of())
                    far, near = sub.vertices[sub.edge_index]
                    amounts = now.edge_rows("amount", sub.edge_ids)[:, 0]
                    kinds = [now.edge_types[kind] for kind in sub.types]
                    got = sorted(zip(now.external_ids(near), now.external_ids(far), kinds, sub.weights.tolist(), amounts.tolist()))
                before = [(5, 6, "r", 1, 0)] * 2 * ((5, 6, "r") not in last) + [(5, 7, "r", 1, 0)] * ((5, 7, "r") not in last)
                assert got == sorted([(*edge, *values) for edge, values in last.items()] + before)
                with graph.batch() as batch, raises(rz.InvalidArgument, "upsert_edges: "):
                    batch.upsert_edges({"a": [1], "b": [2]})


def test_times_of_edges():
    """Times are written to attributes of times alone, as microseconds; a missing one is refused with its row."""
    stamps = np.datetime64("2026-01-01", "us") + RNG.integers(0, 10**12, 5).astype("m8[us]")
    with folder() as path:
        with rz.create(path / "g.rz", edge_attributes={"time": "timestamp", "plain": "int64"},
                       arrays={"born": ("timestamp", 2)}) as graph:
            assert graph.edge_attributes["time"] == (np.dtype(np.int64), 1) and graph["born"].dtype == np.int64
            assert graph["born"].attributes["type"] == "timestamp"
            graph.alter(edge_attributes={"later": "timestamp"})
            meanings = {name: meaning.get("type") for name, _, _, meaning in graph._core.edge_attributes()}
            assert meanings == {"time": "timestamp", "plain": None, "later": "timestamp"}
            columns = [stamps, stamps.astype("M8[ns]").astype("M8[us]"), stamps.tolist(), stamps.astype(np.int64)]
            for module in ("pandas", "pyarrow"):
                if importlib.util.find_spec(module):
                    columns.append(importlib.import_module(module).array(stamps))
            for given in columns:
                with graph.batch() as batch:
                    batch.put_edges({"src": range(5), "dst": range(1, 6), "time": given})
            numbers = np.arange(graph.num_edges)
            assert np.array_equal(graph.edge_rows("time", numbers).reshape(-1, 5), [stamps.astype(np.int64)] * len(columns))
            with graph.batch() as batch:
                for text, attributes in (("'plain' has plain numbers, not times", {"plain": stamps}),
                                         ("row 1 of 'time'", {"time": [stamps[0], None, *stamps[2:]]})):
                    with raises((ValueError, TypeError), text):
                        batch.put_edges(range(5), range(5), attributes=attributes)


def test_a_batch_ends_with_its_block():
    """After its block, committed or not, a batch accepts nothing: it would be lost."""
    with folder() as path, rz.open(make(path), mode="w") as graph:
        with graph.batch() as written:
            written.put_edge("p1", "p2")
        with raises(KeyError), graph.batch() as raised:
            raised.put_edge("p1", "p2")
            raise KeyError
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for batch in (written, raised):
                before = len(batch)
                for call in (lambda: batch.put_vertex("x"), lambda: batch.delete_vertex("x"), lambda: batch.put_edge("x", "y"),
                             lambda: batch.upsert_edge("x", "y"), lambda: batch.delete_edge("x", "y"),
                             lambda: batch.put_edges(["x"], ["y"]), lambda: batch.put_edges({"src": ["x"], "dst": ["y"]}),
                             batch.__enter__):
                    with raises(rz.InvalidArgument, "has ended"):
                        call()
                assert len(batch) == before == 0
            del raised, batch
        assert graph.num_edges == 21
        # Before its block it can be filled.
        early = graph.batch()
        early.put_edge("p1", "p2")
        with early:
            early.put_edge("p1", "p3")
        assert graph.num_edges == 23


def test_arguments_of_a_batch():
    with folder() as path:
        make(path)
        with rz.open(path / "g.rz", mode="w") as graph, graph.batch() as batch:
            for wrong in (None, 1.5, True, b"p1", ["p1"]):
                for call in (batch.put_vertex, batch.delete_vertex, lambda id: batch.put_edge("p1", id),
                             lambda id: batch.upsert_edge(id, "p1"), lambda id: batch.delete_edge(id, "p1")):
                    with raises(TypeError):
                        call(wrong)
            for wrong in ({"weight": "heavy"}, {"type": 3}, {"attributes": ["a"]}, {"attributes": 1},
                          {"weight": None}, {"attributes": {"none": 1}}):
                with raises((TypeError, rz.InvalidArgument)):
                    batch.put_edge("p1", "p2", **wrong)
            assert len(batch) == 0


def test_dropped_batches_say_so():
    """What is lost with a batch is a ResourceWarning: without a commit, and when an exception left the block."""
    with folder() as path, rz.open(make(path), mode="w") as graph, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        def said():
            gc.collect()
            texts = [str(one.message) for one in told if one.category is ResourceWarning]
            told.clear()
            return texts

        batch = graph.batch()
        batch.put_edge("p1", "p2")
        batch.put_vertex("p3")
        assert not said()
        del batch
        text, = said()
        assert text.startswith("2 operations") and "no `with` block" in text and "`with graph.batch() as b:`" in text

        with raises(KeyError):
            with graph.batch() as batch:
                batch.put_edge("p1", "p2")
                raise KeyError
        del batch
        text, = said()
        assert text.startswith("1 operations") and "the block raised" in text

        def forgets():
            batch = graph.batch()
            batch.put_edge("p1", "p2")
            raise KeyError

        with raises(KeyError):
            forgets()
        text, = said()
        assert text.startswith("1 operations") and "no `with` block" in text

        with raises(rz.NotFound), graph.batch(create_vertices=False) as batch:
            batch.put_edge("p1", "nobody")
        del batch
        text, = said()
        assert text.startswith("1 operations") and "the commit raised" in text

        assert graph.num_edges == 20
        # Nothing is lost here.
        with graph.batch() as batch:
            batch.put_edge("p1", "p2")
        with graph.batch():
            pass
        batch = graph.batch()
        del batch
        with rz.open(path / "g.rz") as reader, raises(rz.InvalidArgument):
            reader.batch()
        assert not said() and graph.num_edges == 21


def test_rows():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            snapshot = graph.snapshot()
            want = {name: values.copy() for name, values in example.arrays.items()}
            for name, values in example.arrays.items():
                ids = RNG.permutation(example.vertices)[:RNG.integers(1, 50)]
                rows = RNG.integers(0, 50, (len(ids), values.shape[1]))
                with graph.batch() as batch:
                    batch.put_rows(name, ids, rows.astype(values.dtype))
                want[name][ids] = rows
            with graph.batch() as batch:
                batch.put_rows("feat", [7, 8], np.ones((2, 12)))  # float64: of the same kind
                batch.put_row("label", 300, [3])  # a new vertex
                batch.put_rows("label", np.array([5]), [6])
            want["feat"][[7, 8]], want["label"][5] = 1, 6
            for step in range(2):
                everyone = np.arange(example.vertices)
                for name, values in want.items():
                    assert np.array_equal(graph[name][everyone], values), name
                    assert np.array_equal(snapshot[name][everyone], example.arrays[name]), name
                assert graph["label"][300] == 3 and not graph["feat"][300].any()
                with raises(IndexError):
                    snapshot["label"][300]
                with raises(IndexError):
                    snapshot["label"][[300]]
                if step == 0:
                    graph.compact()
            with graph.batch() as batch:
                for ids, rows, kind in (([1], np.ones((1, 11)), ValueError), ([1, 2], np.ones((1, 12)), ValueError),
                                        (np.array([301]), np.ones((1, 12)), IndexError),
                                        ([1.5], np.ones((1, 12)), TypeError), ([1], [["a"] * 12], TypeError)):
                    with raises(kind):
                        batch.put_rows("feat", ids, rows)
                for name, row, kind in (("label", [0.5], TypeError), ("bytes", [300] * 5, ValueError),
                                        ("none", [1], rz.NotFound)):
                    with raises(kind):
                        batch.put_row(name, 1, row)


def test_changes():
    with folder() as path:
        make(path)
        with rz.open(path / "g.rz", mode="w") as graph:
            start = graph.sequence
            with graph.batch() as first:
                first.put_edge("p1", "new", weight=0.25)
            with graph.batch() as second:
                second.delete_vertex("p3")
            got = list(graph.changes(start))
            assert [(c.commit, c.kind, c.id, c.neighbor, c.weight) for c in got] == [
                (first.commit, "put_vertex", "new", None, None),
                (first.commit, "put_edge", "p1", "new", 0.25),
                (second.commit, "delete_vertex", "p3", None, None)]
            assert [c.kind for c in graph.changes(start, first.commit)] == ["put_vertex", "put_edge"]
            assert list(graph.changes(second.commit)) == []
            graph.compact()
            with raises(rz.NotFound):
                graph.changes(start)
            with raises(rz.InvalidArgument):
                graph.changes(99)


def test_verify_and_backup():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            first = graph.backup(path / "copies", keep=2)
            again = graph.backup(path / "copies", keep=2)
            assert first.bytes_copied > 0 and again.number == first.number + 1 and again.files_shared > 0
            seen = []
            assert graph.verify(progress=lambda *report: seen.append(report)).ok
            assert all(isinstance(phase, str) and done <= (total or done) for phase, done, total in seen)
            with raises(KeyError, "stop"):
                def stop(*_):
                    raise KeyError("stop")
                while True:  # a job that ends before its first report calls nobody
                    graph.verify(progress=stop)
        victim = max((path / "g.rz").glob("generations/*/arrays/feat/**/*"), key=lambda file: file.stat().st_size)
        data = bytearray(victim.read_bytes())
        data[17] ^= 1
        victim.write_bytes(data)
        report = rz.verify(path / "g.rz")
        assert not report.ok and any("feat" in file for file, _, _ in report.damaged), report
        with rz.open(path / "g.rz") as graph, raises(rz.Corruption, "feat"):
            graph["feat"][np.arange(example.vertices)]


if __name__ == "__main__":
    run(sys.modules[__name__])
