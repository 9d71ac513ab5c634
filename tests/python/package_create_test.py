#!/usr/bin/env python3
"""Empty stores, their schemas, changes of a schema, waits for a writer, and scratch files, with the package."""
import os
import sys
import threading

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_an_empty_store_answers_every_question():
    with folder() as path:
        with rz.create(path / "g.rz", ids="text", weighted=True, edge_types=["cites"],
                       edge_attributes={"time": "int64", "v": (np.float32, 2)},
                       arrays={"feat": ("f4", 3), "code": np.int64}) as graph:
            assert graph.num_vertices == 0 and graph.num_edges == 0 and graph.vertex_bound == 0
            assert graph.edge_types == ["cites"] and graph.vertex_types == ["vertex"]
            assert graph.edge_attributes == {"time": (np.dtype("i8"), 1), "v": (np.dtype("f4"), 2)}
            assert {name: (one.shape, one.dtype) for name, one in graph.arrays.items()} == {
                "code": ((0, 1), np.dtype("i8")), "feat": ((0, 3), np.dtype("f4"))}
            assert graph["feat"][:].shape == (0, 3) and len(graph["feat"]) == 0
            assert list(graph["feat"].batches(10)) == []
            assert graph.external_ids([]) == [] and graph.find([]).shape == (0,)
            with raises(rz.NotFound):
                graph.find("a")
            assert not list(graph.changes(after=0)) and graph.verify().ok and not graph.compact().compacted
            assert "0 vertices" in repr(graph)
            with graph.batch() as batch:
                batch.put_edge("a", "b", weight=.5, attributes=[7, 1, 2])
                batch.put_row("feat", "a", [1, 2, 3])
            for _ in range(2):
                assert graph.num_vertices == 2 and graph.num_edges == 1
                assert graph["feat"][graph.find(["a", "b"])].tolist() == [[1, 2, 3], [0, 0, 0]]
                assert graph.neighbors("a").weights.tolist() == [.5]
                graph.compact()
            assert graph.verify().ok


def test_a_schema_makes_a_store_like_it():
    with folder() as path:
        n = 20
        rz.ingest(path / "a.rz", RNG.integers(0, n, (2, 50)), vertices=n,
                  arrays={"x": RNG.normal(size=(n, 4)).astype("f2"), "label": RNG.integers(0, 3, n)})
        with rz.open(path / "a.rz") as graph:
            schema = graph.schema
        with rz.create(path / "b.rz", schema=schema) as graph:
            assert graph.schema == schema and graph.num_vertices == 0
            with graph.batch() as batch:
                batch.put_vertex(3)
            assert graph["label"][[0]].tolist() == [[-1]], "a vertex without a label has none"
        with raises(rz.AlreadyExists):
            rz.create(path / "b.rz")
        with rz.create(path / "b.rz", exist_ok=True) as graph:
            assert graph.num_vertices == 1 and graph.schema == schema
        for wrong in ({"weight": True}, {"ids": "words"}, {"arrays": [{"name": "a", "dtype": "complex64"}]}):
            with raises(rz.InvalidArgument):
                rz.create(path / "c.rz", schema=wrong)
        with raises(TypeError):
            rz.create(path / "c.rz", arrays={"a": object()})
        with raises(ValueError):
            rz.create(path / "c.rz", ids="words")
        with raises(ValueError, "at least 1"):
            rz.create(path / "c.rz", arrays={"a": ("f4", 0)})
        assert not (path / "c.rz").exists()


def test_alter():
    with folder() as path:
        rz.ingest(path / "g.rz", np.array([[0, 1, 2], [1, 2, 0]]))
        with rz.open(path / "g.rz", mode="w") as graph, rz.open(path / "g.rz") as reader:
            assert reader.neighbors(0).weights is None
            with graph.batch() as batch:
                batch.put_edge(0, 2)
            done = graph.alter(weighted=True, edge_attributes={"time": "int64", "v": ("f4", 3)})
            assert done.compacted and done.commits == 1
            assert graph.neighbors(0).weights.tolist() == [1, 1] and reader.neighbors(0).weights is None
            reader.refresh()
            assert reader.neighbors(0).weights.tolist() == [1, 1]
            assert list(reader.edge_attributes) == ["time", "v"]
            with graph.batch() as batch:
                batch.put_edge(1, 0, weight=3, attributes=[17, 1, 2, 3])
            assert sorted(graph.neighbors(1).weights.tolist()) == [1, 3]
            with raises(rz.AlreadyExists):
                graph.alter(weighted=True)
            with raises(rz.InvalidArgument):
                graph.alter(edge_attributes={"w": "uint8"})
            assert graph.verify().ok


def test_an_array_without_rows():
    with folder() as path:
        rz.ingest(path / "g.rz", np.array([[0, 1, 2], [1, 2, 0]]))
        report = rz.add_array(path / "g.rz", "later", np.empty((0, 2), "f4"))
        assert report.rows_given == 0
        with rz.open(path / "g.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_row("later", 1, [3, 4])
            assert graph["later"][[0, 1, 2]].tolist() == [[0, 0], [3, 4], [0, 0]]


def test_wait():
    with folder() as path:
        graph = rz.create(path / "g.rz")
        with raises(rz.Busy, "wait="):
            rz.open(path / "g.rz", mode="w")
        with raises(rz.Busy, "after 0.1 s"):
            rz.open(path / "g.rz", mode="w", wait=.1)
        for wrong, error in ((-1, ValueError), ("1", TypeError), (float("nan"), ValueError)):
            with raises(error, "wait"):
                rz.open(path / "g.rz", mode="w", wait=wrong)
        for call in (lambda: rz.add_array(path / "g.rz", "x", np.empty((0, 2), "f4")),
                     lambda: rz.drop_array(path / "g.rz", "x"), lambda: rz.repair(path / "g.rz")):
            with raises(rz.Busy, str(os.getpid())):
                call()
        started = threading.Event()
        closer = threading.Thread(target=lambda: (started.wait(), graph.close()))
        closer.start()
        started.set()
        rz.add_array(path / "g.rz", "x", np.empty((0, 2), "f4"), wait=600)
        closer.join()
        with rz.open(path / "g.rz", mode="w", wait=600) as graph:
            assert list(graph.arrays) == ["x"]


def test_clean():
    with folder() as path:
        rz.create(path / "g.rz").close()
        killed = path / "g.rz" / "scratch" / "killed"
        killed.mkdir(parents=True)
        (killed / "LOCK").write_text("rhizome job 1\n")
        (killed / "spill").write_text("0123456789")
        report = rz.clean(path / "g.rz", dry_run=True)
        assert report.removed == [str(killed)] and report.bytes >= 10 and killed.exists()
        with rz.open(path / "g.rz"):
            assert rz.clean(path / "g.rz").removed == [str(killed)] and not killed.exists()
        assert rz.clean(path / "g.rz") == ([], [], 0)
        with raises(rz.StoreNotFound):
            rz.clean(path / "none.rz")


if __name__ == "__main__":
    run(sys.modules[__name__])
