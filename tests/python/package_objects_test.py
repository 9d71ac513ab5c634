#!/usr/bin/env python3
"""The package's objects behave like Python's own: arrays are sequences, invalid text is refused,
close() closes."""
import os
import sys
import threading

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_array_protocols():
    """What NumPy's users do with an array: loops, lists, copies, one index too many, and one beyond the end."""
    example = Example(RNG, vertices=50, edges=100)
    with folder() as path:
        example.ingest(path / "dense.rz")
        names = [f"v{i}" for i in range(50)]
        rz.ingest(path / "named.rz", ([names[i] for i in example.edges[0]], [names[i] for i in example.edges[1]]),
                  ids=names, arrays=example.arrays)
        rz.ingest(path / "gaps.rz", 3 * example.edges + 7, ids=3 * np.arange(50) + 7, arrays=example.arrays)
        for store in ("dense", "named", "gaps"):
            with rz.open(path / f"{store}.rz", mode="w") as graph:
                for name, values in example.arrays.items():
                    array = graph[name]
                    for rows in (list(array), [*array], np.asarray(array), np.array(array), np.from_dlpack(array)):
                        assert np.array_equal(rows, values), (store, name)
                    assert np.array_equal(np.concatenate([array, array]), np.concatenate([values, values]))
                    assert len(array) == len(values) and bool(array) and np.array_equal(max(array, key=tuple),
                                                                                       max(values, key=tuple))
                array = graph["feat"]
                for call in (lambda: 1.0 in array, lambda: reversed(array), lambda: array[True]):
                    with raises(TypeError):
                        call()
                check_brackets(graph, array, example.arrays["feat"], store)
                # A loop is over one commit, though blocks are read one after the other.
                rows = iter(array)
                with graph.batch() as batch:
                    batch.put_rows("feat", np.arange(50), np.zeros((50, 12)))
                assert np.array_equal(np.stack(list(rows)), example.arrays["feat"]) and not np.stack(list(array)).any()
                again = iter(array)
            for call in (lambda: list(again), lambda: iter(array)):
                with raises(ValueError, "closed"):
                    call()
        rz.ingest(path / "wide.rz", [[0], [1]], vertices=70_000, arrays={"one": np.arange(70_000)})
        with rz.open(path / "wide.rz") as graph:  # more rows than a block has
            assert np.array_equal(np.concatenate(list(graph["one"])), np.arange(70_000))


def check_brackets(graph, array, values, store):
    """Brackets select what NumPy's select, by vertex ids; a str is an external id, and a negative id an error."""
    one, some, mask = int(RNG.integers(50)), RNG.integers(0, 50, 7), RNG.random(50) < 0.3
    start, stop, step = (int(number) for number in RNG.integers([-60, -60, 1], [60, 60, 7]))
    for key in (one, np.int64(one), np.array(one), some, some.tolist(), [], mask, mask.tolist(), slice(start, stop, step),
                slice(stop, start, -step), ..., None, (), (one,), (one, 2), (one, -1), (some, 2), (some, some % 12),
                (some[:, None], [0, 3]), (mask, 5), (mask, np.arange(mask.sum()) % 12), (slice(start, stop, step), [1, 0]),
                (slice(None), slice(None, None, -2)), (slice(None), values[0] > 0), (..., 3), (3, ...), (..., 3, 4),
                (None, one), (one, None), (slice(3), None, 1), (..., None), some.reshape(7, 1), values > 0, (values > 0, ...),
                ([True] * 50, slice(2))):
        got, want = array[key], values[key]
        assert type(got) is type(want) and got.shape == want.shape and got.dtype == want.dtype, (store, key)
        assert np.array_equal(got, want), (store, key)
    assert array.shape == values.shape and array.ndim == 2 and array.size == values.size
    assert array.shape == np.asarray(array).shape and len(array) == len(values)
    for beyond in (-1, 50, 1 << 70, [-1], (-1, 0), (50, 0), (0, 12), (0, 0, 0), (..., ...), np.ones(49, bool),
                   np.ones((50, 11), bool)):
        with raises(IndexError):
            array[beyond]
    for wrong in (1.5, b"v1", np.zeros(3), {1}, (1.5, 0), ([1.5], 0)):
        with raises(TypeError):
            array[wrong]
    with raises(rz.NotFound):
        array["v50"]
    own = graph.external_ids(some)
    assert np.array_equal(array[graph.find(own)], values[some]) and np.array_equal(array[graph.at(own)], values[some])
    assert np.array_equal(array[graph.find(own[0])], values[some[0]])
    assert np.array_equal(array[graph.at(own[0])], values[some[:1]])
    if store == "named":
        assert np.array_equal(array[own[0]], values[some[0]]) and np.array_equal(array[own], values[some])
        assert array[own[0], 3] == values[some[0], 3] and np.array_equal(array[own, -1], values[some, -1])
        assert np.array_equal(array[np.array(own)], values[some])


def test_descriptions():
    """Objects describe themselves in a few lines, whatever their size, as text and as a table."""
    example = Example(RNG, vertices=4000, edges=9000)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(300), [], []))
        graph = rz.open(path / "g.rz", mode="w")
        sampler = graph.sampler([3, 2], replace=True)
        loader = rz.Loader(graph, [3], features="feat", split="train", batch_size=100)
        minibatch = next(iter(loader))
        for thing, words in ((graph, ("4,000", "9,000", "feat: float32 [4000, 12]")), (graph["feat"], ("4,000", "12", "float32")),
                             (graph.neighbors(1), ("ids", "int64")), (graph.neighbors(np.arange(4000)), ("offsets", "[4001]")),
                             (sampler, ("[3, 2]", "replace", "in")), (sampler.sample(range(4000)), ("edge_index", "int64 [2, ")),
                             (loader, ("300", "feat", "epoch 0")), (minibatch, ("float32 [", "batch_size")),
                             (next(graph.scan_vertices()), ("list [4000]",)), (next(graph.scan_edges()), ("src", "[9000]"))):
            text = repr(thing)
            assert len(text) < 2500 and text.count("\n") < 20 and len({len(line) for line in text.split("\n")}) == 1, text
            assert all(word in text and word in thing._repr_html_() for word in words), text
            assert "<table>" in thing._repr_html_() and "0x" not in text
        with graph.batch() as batch:
            batch.put_edge(1, 2)
            assert "1 operations" in repr(batch)
        assert f"commit {batch.commit}" in repr(batch)
        graph.close()
        assert "closed" in repr(graph)


def test_descriptions_of_arrays():
    """Texts, classes and times are named as such, not by the integers that are stored."""
    with folder() as path:
        times = np.array(["2020", "2021", "2022"], "datetime64[us]")
        rz.ingest(path / "g.rz", ([0, 1], [1, 2]), arrays={
            "label": ["b", "a", "b"], "motto": ["carpe", "", "sapere"], "when": times, "age": [1, 2, 3],
            "ok": np.ma.MaskedArray([True] * 3, [True, False, False])})
        with rz.open(path / "g.rz") as graph:
            text = repr(graph)
        for words in ("label: text [3, 1], classes a, b", "motto: text [3, 1], 2 texts", "when: timestamp [3, 1]", "age: int64 [3, 1]",
                      "ok: bool [3, 1]"):
            assert words in text, text


def test_text_that_is_none():
    """Half of a surrogate pair in any argument is a ValueError that names it."""
    bad = "a\udc80"
    example = Example(RNG, vertices=20, edges=50)
    with folder() as path:
        store = path / "g.rz"
        example.ingest(store)
        with rz.open(store, mode="w") as graph:
            batch = graph.batch()

            def loader(seeds=(1,), features="feat", **options):
                return rz.Loader(graph, [1], seeds=seeds, features=features, **options)

            for name, call in (
                    ("the name of an array", lambda: graph[bad]), ("name", lambda: graph.edge_rows(bad, [0])),
                    ("array", lambda: graph.similar(1, bad)),
                    ("the name of an array", lambda: graph.split("train", bad)),
                    ("direction", lambda: graph.neighbors(1, bad)), ("direction", lambda: graph.degrees([1], bad)),
                    ("direction", lambda: graph.sampler([1], direction=bad)),
                    ("meta_path", lambda: graph.sampler([1], meta_path=[bad])),
                    ("times", lambda: graph.sampler([1], times=bad)),
                    ("vertex_times", lambda: graph.sampler([1], vertex_times=bad)),
                    (r"'a\udc80'", lambda: graph.sampler({bad: [1]})), ("features", lambda: loader(features=bad)),
                    ("labels", lambda: loader(labels=bad)), ("seed_times", lambda: loader(seed_times=bad)),
                    ("split_array", lambda: loader(None, split="train", split_array=bad)),
                    ("type", lambda: batch.put_vertex(1, type=bad)), ("type", lambda: batch.put_edge(1, 2, type=bad)),
                    ("type", lambda: batch.upsert_edge(1, 2, type=bad)),
                    ("type", lambda: batch.delete_edge(1, 2, type=bad)),
                    ("type", lambda: batch.put_edges([1], [2], type=bad)),
                    ("the name of an array", lambda: batch.put_rows(bad, [1], [[1]])), ("id", lambda: graph.find(bad)),
                    ("id", lambda: graph.find(["a", bad])), ("id", lambda: graph.neighbors(bad)),
                    ("id", lambda: graph["feat"][bad]), ("id", lambda: batch.put_vertex(bad)),
                    ("id", lambda: batch.put_edge(1, bad)), ("id", lambda: batch.put_edges([bad], [1])),
                    ("id", lambda: batch.put_rows("feat", [bad], np.zeros((1, 12))))):
                with raises((ValueError, rz.NotFound), name):
                    call()
            assert len(batch) == 0 and graph.verify().ok
        rows = np.zeros((20, 2), np.float32)
        edges, typed = [[0], [1]], {("a", "r", "a"): [[0], [1]]}

        def ingest(edges=edges, **options):
            return rz.ingest(path / "x", edges, **options)

        for name, call in (
                ("name", lambda: rz.add_array(store, bad, rows)), ("name", lambda: rz.append_rows(store, bad, rows)),
                ("ids", lambda: rz.add_array(store, "x", rows[:1], ids=[bad])),
                ("layout", lambda: rz.add_array(store, "x", rows, layout=bad)),
                ("name", lambda: rz.drop_array(store, bad)), ("name", lambda: rz.set_alias(store, bad, "live", 1)),
                ("alias", lambda: rz.set_alias(store, "feat", bad, 1)),
                ("names of arrays", lambda: ingest(arrays={bad: rows})),
                ("names of columns of edges", lambda: ingest(edge_arrays={bad: [1]})),
                ("directions", lambda: ingest(directions=bad)), ("layout", lambda: ingest(layout=bad)),
                ("columns", lambda: ingest(store, columns=["src", bad])), ("ids", lambda: ingest(ids=[bad])),
                ("sources", lambda: ingest(([bad], ["b"]))), ("an edge type", lambda: ingest({bad: edges})),
                ("vertex_types", lambda: ingest(typed, vertex_types={"a": 2, bad: 3})),
                ("an edge type", lambda: ingest({("a", bad, "a"): edges}, vertex_types={"a": 2})),
                ("topology", lambda: rz.open(store, topology=bad)), ("path", lambda: rz.open(path / bad))):
            with raises(ValueError, name):
                call()
        assert not (path / "x").exists()


def test_snapshots_close_by_themselves():
    """A snapshot closes itself and what was made from it; the graph closes all snapshots, whichever goes first."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        graph = rz.open(path / "g.rz", mode="w")
        array, sampler, other = graph["feat"], graph.sampler([2]), graph.snapshot()
        with graph.snapshot() as snapshot:
            inner, its = snapshot.snapshot(), (snapshot["feat"], snapshot.sampler([2]))
            scan, loader = snapshot.scan_edges(), rz.Loader(snapshot, [2], features="feat", seeds=[1, 2, 3])
            assert next(scan) and snapshot.num_edges == 2000 and not snapshot.closed
        assert snapshot.closed and inner.closed and loader.graph.closed and "closed" in repr(snapshot)
        for call in (lambda: snapshot.num_edges, lambda: snapshot["feat"], lambda: its[0][[1]], lambda: list(its[0]),
                     lambda: its[1].sample([1]), lambda: list(scan), lambda: list(loader), snapshot.snapshot,
                     lambda: snapshot.point, lambda: snapshot.path, lambda: inner.find(1)):
            with raises(ValueError, "the snapshot is closed"):
                call()
        snapshot.close()
        # Nothing else is closed, for this thread and others.
        assert not graph.closed and not other.closed
        seen = []
        thread = threading.Thread(target=lambda: seen.append(sampler.sample([1]).vertices[0] + array[[3]].shape[1]))
        thread.start()
        thread.join()
        assert seen == [13] and other.num_edges == graph.num_edges == 2000
        with graph.batch() as batch:
            batch.put_edge(1, 2)
        assert (graph.num_edges, other.num_edges) == (2001, 2000)
        with raises(rz.Busy):
            rz.open(path / "g.rz", mode="w")
        # A graph that is closed before its snapshots.
        last = graph.snapshot()
        graph.close()
        for one in (other, last):
            assert one.closed
            with raises(ValueError, "the store is closed"):
                one.find(1)
            one.close()
        with raises(ValueError, "closed"):
            other.snapshot()
        # A snapshot keeps the store while the graph that it is of was only dropped.
        with rz.open(path / "g.rz", mode="w").snapshot() as kept:
            assert kept.num_edges == 2001
            with raises(rz.Busy):
                rz.open(path / "g.rz", mode="w")
        del kept
        rz.open(path / "g.rz", mode="w").close()


def test_snapshots_that_are_closed_hold_no_files():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            snapshot = graph.snapshot()
            first = set(os.listdir(path / "g.rz" / "generations"))

            def compact():
                with graph.batch() as batch:
                    batch.put_edge(1, 2)
                graph.compact(keep_generations=0)
                return set(os.listdir(path / "g.rz" / "generations"))

            compact()
            assert first < compact()
            snapshot.close()
            # The graph itself keeps the state that it showed last until it shows the next.
            compact()
            assert not first & compact()


if __name__ == "__main__":
    run(sys.modules[__name__])
