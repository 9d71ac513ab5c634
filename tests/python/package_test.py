#!/usr/bin/env python3
"""The package `rhizome`: reads agree with NumPy, and no index crashes the interpreter."""
import pickle
import sys
import threading

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_imports_numpy_alone():
    heavy = {"torch", "pandas", "scipy", "pyarrow", "networkx", "torch_geometric"}
    assert not heavy & set(sys.modules), heavy & set(sys.modules)


def test_round_trip():
    """Every way to give edges makes the same graph: [2, n], [n, 2], strided, other integers, files."""
    example = Example(RNG)
    pairs = np.ascontiguousarray(example.edges.T)
    with folder() as path:
        np.save(path / "pairs.npy", pairs)
        np.save(path / "two_rows.npy", example.edges)
        np.savetxt(path / "edges.tsv", pairs, fmt="%d", delimiter="\t")
        wide = np.zeros((4, example.edges.shape[1]), np.int64)
        wide[::2] = example.edges
        given = [example.edges, pairs, np.asfortranarray(pairs), wide[::2], example.edges.astype(np.int32),
                 example.edges.astype(np.uint64), path / "pairs.npy", path / "two_rows.npy",
                 str(path / "edges.tsv"), [path / "edges.tsv"]]
        for number, edges in enumerate(given):
            store = path / f"{number}.rz"
            report = rz.ingest(store, edges, vertices=example.vertices, memory="1G")
            assert (report.vertices, report.edges) == (example.vertices, pairs.shape[0])
            with rz.open(store, memory="64M") as graph:
                offsets, ids, types, weights = graph.neighbors(np.arange(example.vertices))
                assert types is None and weights is None
                got = np.stack([np.repeat(np.arange(example.vertices), np.diff(offsets)), ids], 1)
                assert (np.unique(got, axis=0, return_counts=True)[1].sum() == len(pairs)
                        and sorted(map(tuple, got.tolist())) == sorted(map(tuple, pairs.tolist()))), number
        assert not [p for p in path.iterdir() if p.name.startswith(".")], "a temporary folder was left"


def test_arrays():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(5), [7, 9], np.array([11])))
        with rz.open(path / "g.rz") as graph:
            assert (graph.num_vertices, graph.num_nodes, graph.num_edges) == (300, 300, 2000)
            assert graph.vertex_types == ["vertex"] and graph.edge_types == ["edge"]
            assert set(graph.arrays) == {*example.arrays, "split"}
            for name, values in example.arrays.items():
                info, array = graph.arrays[name], graph[name]
                assert (info.shape, info.dtype) == (values.shape, values.dtype) == (array.shape, array.dtype)
                for _ in range(5):
                    ids = RNG.integers(0, example.vertices, RNG.integers(0, 400))
                    rows = array[ids]
                    assert rows.dtype == values.dtype and np.array_equal(rows, values[ids])
                    out = np.zeros_like(rows)
                    assert array.read(ids, out=out) is out and np.array_equal(out, rows)
                assert np.array_equal(array[17], values[17])
            split = graph["split"][np.arange(13)][:, 0].tolist()
            assert split == [0] * 5 + [255, 255, 1, 255, 1, 255, 2, 255], split


def test_neighbors():
    example = Example(RNG, edges=200_000)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        for memory in ("1G", "12M"):
            with rz.open(path / "g.rz", memory=memory) as graph:
                assert graph.topology_on_disk == (memory == "12M")
                for direction in ("out", "in"):
                    ids = RNG.integers(0, example.vertices, 20)
                    offsets, found, _, weights = graph.neighbors(ids, direction)
                    for i, vertex in enumerate(ids):
                        want = example.targets(vertex, direction)
                        one = graph.neighbors(int(vertex), direction=direction)
                        assert sorted(zip(one.ids.tolist(), one.weights.tolist())) == want
                        many = slice(offsets[i], offsets[i + 1])
                        assert sorted(zip(found[many].tolist(), weights[many].tolist())) == want
                with raises(ValueError, "direction"):
                    graph.neighbors(1, "up")


def test_names_and_types():
    with folder() as path:
        (path / "edges.tsv").write_text("a\tb\tlikes\nb\tc\tknows\na\tc\tknows\n")
        rz.ingest(path / "g.rz", path / "edges.tsv", columns=["src", "dst", "type"])
        with rz.open(path / "g.rz") as graph:
            assert graph.edge_types == ["likes", "knows"]
            ids = graph.find(["a", "c", "b", "a"])
            assert ids.dtype == np.int64 and graph.external_ids(ids) == ["a", "c", "b", "a"]
            assert graph.find("c") == ids[1] and graph.find(np.array(["c"]))[0] == ids[1]
            near = graph.neighbors("a")
            assert dict(zip(graph.external_ids(near.ids), near.types.tolist())) == {"b": 0, "c": 1}
            for call in (lambda: graph.find("zz"), lambda: graph.find(["a", "zz"]), lambda: graph.neighbors("zz")):
                with raises(rz.NotFound, "zz"):
                    call()
            for wrong in (1.5, None, True, b"a", [b"a"], [True], [None], np.array(1), np.arange(2.0), np.zeros((2, 2), int)):
                with raises(TypeError):
                    graph.find(wrong)
            with raises(OverflowError):
                graph.find([1 << 70])
            for call in (lambda: graph.find("a\udcff"), lambda: graph.find(["a", "a\udcff"])):
                with raises(ValueError, r"'a\udcff'"):  # a str that is no text
                    call()


def test_integers_with_gaps():
    """Integers that are not 0, 1, 2, ... are the user's ids, and vertex ids are others."""
    with folder() as path:
        rz.ingest(path / "g.rz", [[-5, 40], [40, 1 << 50]])  # [2, 2]: sources, then targets
        with rz.open(path / "g.rz") as graph:
            ids = graph.find([-5, 40, 1 << 50])
            assert np.array_equal(ids, graph.find(np.array([-5, 40, 1 << 50])))
            assert sorted(ids) == [0, 1, 2] and graph.external_ids(ids) == [-5, 40, 1 << 50]
            assert graph.neighbors(-5).ids == [ids[1]] and graph.neighbors(np.int64(40)).ids == [ids[2]]
            for missing in (0, 7):
                with raises(rz.NotFound, str(missing)):
                    graph.find(missing)


def test_indices():
    """Any index gives the rows that NumPy gives, or TypeError or IndexError."""
    example = Example(RNG, vertices=40, edges=100)
    values = example.arrays["feat"]
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            array, sampler = graph["feat"], graph.sampler([2])
            readonly = np.arange(5)
            readonly.flags.writeable = False
            for good in ([], [3, 3], range(4), np.arange(8)[::3], np.arange(8)[::-1], readonly,
                         np.arange(4, dtype=np.int8), np.arange(4, dtype=np.uint64), np.arange(6).astype(">i8"),
                         RNG.random(40) < 0.5, slice(3, 30, 4), slice(None)):
                want = values[np.asarray(good, int)] if isinstance(good, (list, tuple, range)) else values[good]
                assert np.array_equal(array[good], want), good
            calls = (array.__getitem__, graph.external_ids, graph.neighbors, sampler.sample)
            for bad in ([-1], [40], [0, 1 << 62], np.array([1 << 63], np.uint64), np.zeros(3, bool)):
                for call in calls:
                    with raises(IndexError):
                        call(bad)
            for bad in ([0.5], np.float32(1), [None], {1: 2}, np.array([1 + 2j]), np.array(["2020-01-01"], "M8[s]"),
                        object(), [[1], [2, 3]], True, b"a", {3}):
                for call in calls:
                    with raises((TypeError, ValueError)):
                        call(bad)
            for bad in (["a"], [[1]], np.zeros((2, 2), int), None):  # which NumPy's indices may be
                for call in calls[1:]:
                    with raises((TypeError, ValueError)):
                        call(bad)
            for _ in range(200):
                dtype = RNG.choice(["i1", "u1", "i4", "u4", "i8", "u8", ">i4", "?", "f4", "S3"])
                ids = RNG.integers(-50, 90, RNG.integers(0, 60)).astype(dtype)[::RNG.choice([1, 2, -1])]
                try:
                    rows = array[ids]
                except (TypeError, IndexError):
                    continue
                assert ids.dtype.kind in "iub" and np.array_equal(rows, values[ids]), ids
            for shape, dtype in (((2, 11), "f4"), ((3, 12), "f4"), ((2, 12), "f8"), ((2, 12), "i4"), ((24,), "f4")):
                with raises((TypeError, ValueError), "out must be"):
                    array.read([1, 2], out=np.zeros(shape, dtype))
            frozen = np.zeros((2, 12), np.float32)
            frozen.flags.writeable = False
            for out in (frozen, np.zeros((2, 24), np.float32)[:, ::2], [0], "out"):
                with raises(TypeError, "out must be"):
                    array.read([1, 2], out=out)
            with raises(rz.NotFound, "nothing"):
                graph["nothing"]


def test_bad_input():
    with folder() as path:
        store = path / "g.rz"
        for bad, kind in ((np.zeros((2, 3)), TypeError), (np.zeros((3, 3), int), ValueError), ([1, 2], ValueError),
                          (path / "none.tsv", FileNotFoundError)):
            with raises(kind):
                rz.ingest(store, bad)
        edges = [[0, 1], [1, 2]]
        for bad, kind in ((np.zeros((3, 2, 2)), ValueError), (["a", "b"], TypeError), (np.zeros(3, "c16"), TypeError)):
            with raises(kind, "x"):
                rz.ingest(store, edges, arrays={"x": bad})
        for memory, kind in (("12X", ValueError), (-1, ValueError), (1.5, TypeError), ("", ValueError)):
            with raises(kind, "memory"):
                rz.ingest(store, edges, memory=memory)
        for name, bad in (("threads", 0), ("partitions", -1), ("vertices", -1), ("seed", 1 << 70), ("threads", "2")):
            with raises((TypeError, ValueError), name):
                rz.ingest(store, edges, **{name: bad})
        for bad in ("a\0b", "\udcff"):
            with raises(ValueError, "path"):
                rz.ingest(bad, edges)
        with raises(ValueError, "split"):
            rz.ingest(store, edges, split=[0, 1, 7, 2])
        with raises(ValueError, "more than one set"):
            rz.ingest(store, edges, split=([1], [1], []))
        assert list(path.iterdir()) == []
        with raises(FileNotFoundError):
            rz.open(store)
        with raises(rz.NotFound):
            rz.verify(store)
        rz.ingest(store, edges)
        with raises(FileExistsError):
            rz.ingest(store, edges)
        with raises(MemoryError, "memory"):
            rz.open(store, memory=1000)
        with raises(ValueError, "mode"):
            rz.open(store, mode="a")


def test_errors_pickle():
    kinds = [kind for kind in vars(rz.errors).values() if isinstance(kind, type) and issubclass(kind, rz.Error)]
    assert len(kinds) == 13, kinds
    for kind in kinds:
        error = kind("'g.rz/LOCK' is locked: process 17 (x)")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.code, copy.message) == (kind, str(error), kind.code, str(error))
        assert kind.__module__ == "rhizome.errors"
    assert pickle.loads(pickle.dumps(rz.Busy("by process 17 (x)"))).pid == 17


def test_close_is_exact():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        graph = rz.open(path / "g.rz", mode="w")
        snapshot, array, sampler = graph.snapshot(), graph["feat"], graph.sampler([2])
        with raises(rz.Busy, "locked"):
            rz.open(path / "g.rz", mode="w")
        batch, changes = graph.batch(), graph.changes(graph.sequence)
        graph.close()
        graph.close()
        assert graph.closed and "closed" in repr(graph)
        for call in (lambda: graph.num_edges, lambda: snapshot.num_vertices, lambda: array[[1]], graph.refresh,
                     lambda: sampler.sample([1]), graph.snapshot, graph.metrics, lambda: graph.arrays,
                     lambda: list(changes), graph.compact, lambda: graph.find(1), graph.batch):
            with raises(ValueError, "closed"):
                call()
        with raises(ValueError, "closed"), batch as b:
            b.put_edge(1, 2)
        rz.open(path / "g.rz", mode="w").close()  # the lock is free, though children are alive


def test_threads():
    """Readers beside a thread that closes: each call works or says that the store is closed."""
    example = Example(RNG)
    ids = RNG.integers(0, example.vertices, 1000)
    with folder() as path:
        example.ingest(path / "g.rz")
        graph = rz.open(path / "g.rz")
        array, sampler = graph["feat"], graph.sampler([3, 3])
        done, wrong = [], []

        def read():
            try:
                while True:
                    if not np.array_equal(array[ids], example.arrays["feat"][ids]):
                        wrong.append("rows")
                    sampler.sample(ids[:50])
                    done.append(1)
            except ValueError as error:
                if "closed" not in str(error):
                    wrong.append(error)
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(done) < 40 and not wrong:
            threading.Event().wait(0.01)
        graph.close()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:3]


def test_everything_public_is_explained():
    for name in rz.__all__:
        thing = getattr(rz, name)
        assert thing.__doc__, name
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            if not attribute.startswith("_") and callable(value) and thing.__module__.startswith("rhizome"):
                assert value.__doc__, f"{name}.{attribute}"


if __name__ == "__main__":
    run(sys.modules[__name__])
