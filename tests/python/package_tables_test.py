#!/usr/bin/env python3
"""The package `rhizome` with pyarrow, zarr-python, SciPy, NetworkX and pandas; each test skips
without its library."""
import collections
import importlib
import os
import sys
import warnings

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def there(*names):
    """Whether these libraries can be imported; says which one cannot."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"skipped: no {name}")
            return False
    return True


def changed_store(path):
    """A store of an Example in which vertex 7 is deleted and row 3 of `feat` is zero; returns it and the example."""
    example = Example(RNG)
    example.ingest(path)
    with rz.open(path, mode="w") as graph, graph.batch() as batch:
        batch.delete_vertex(7)
        batch.put_row("feat", 3, np.zeros(12))
    return example


def named_store(path):
    """A store of 40 vertices with names, two types of edges, and rows; returns its edges (src, dst, type, weight)."""
    edges = {(f"v{src}", f"v{dst}", ("likes", "knows")[kind])
             for src, dst, kind in RNG.integers(0, (40, 40, 2), (300, 3))}
    lines = [(*edge, float(weight)) for edge, weight in zip(sorted(edges), RNG.integers(1, 9, len(edges)))]
    text = path.with_suffix(".tsv")
    text.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    rz.ingest(path, str(text), columns=["src", "dst", "type", "weight"])
    return lines


def test_arrow():
    if not there("pyarrow"):
        return
    import pyarrow.parquet
    with folder() as path:
        example = changed_store(path / "g.rz")
        want = {vertex: row for vertex, row in enumerate(example.arrays["feat"].tolist()) if vertex != 7}
        want[3] = [0.0] * 12
        with rz.open(path / "g.rz") as graph:
            table = graph["feat"].to_arrow()
            assert table.column_names == ["vertex", "id", "feat"]
            assert dict(zip(table["vertex"].to_pylist(), table["feat"].to_pylist())) == want
            assert table["id"].to_pylist() == table["vertex"].to_pylist()
            sizes = [len(batch) for batch in graph["label"].arrow_batches(rows=100)]
            assert max(sizes) <= 100 and sum(sizes) == 299
            labels = graph["label"].to_arrow()
            assert labels["label"].to_pylist() == example.arrays["label"][labels["vertex"].to_numpy(), 0].tolist()
            file = path / "feat.parquet"
            assert graph["feat"].to_parquet(file, rows=64) == 299
            assert pyarrow.parquet.read_table(file).equals(table)
            graph["feat"].to_parquet(file, compression="zstd")  # replaces it
            assert pyarrow.parquet.read_table(file).equals(table)
            with raises(TypeError):
                graph["feat"].to_parquet(path / "none.parquet", no_such_option=1)
            with raises(ValueError):
                graph["feat"].to_parquet(path / "none.parquet", rows=0)
            assert sorted(os.listdir(path)) == ["feat.parquet", "g.rz"]
        names = {name for line in named_store(path / "names.rz") for name in line[:2]}
        values = RNG.normal(size=(len(names), 2)).astype(np.float32)
        rz.add_array(path / "names.rz", "x", values)
        with rz.open(path / "names.rz") as graph:
            table = graph["x"].to_arrow()
            got = dict(zip(table["id"].to_pylist(), table["x"].to_pylist()))
            assert got == {graph.external_ids([v])[0]: values[v].tolist() for v in range(len(values))}


def test_vertices_and_edges():
    """The tables of vertices and edges have what was ingested and written: ids, types, weights, attributes, arrays."""
    if not there("pyarrow", "pandas"):
        return
    import pyarrow as arrow
    ends = {("person", "likes", "item"): RNG.integers(0, (30, 50), (60, 2)).T,
            ("item", "of", "item"): RNG.integers(0, 50, (2, 40))}
    zeal, at = RNG.integers(0, 99, 100), RNG.integers(0, 99, (100, 2)) / 4
    weights, label = RNG.integers(1, 9, 100) / 2, RNG.integers(0, 9, 80)
    with folder() as path:
        for directions in ("both", "out", "in"):
            store = path / f"{directions}.rz"
            rz.ingest(store, ends, vertex_types={"person": 30, "item": 50}, directions=directions, partitions=2,
                      arrays={"label": label, "feat": RNG.random((80, 3))},
                      edge_arrays={"weight": weights, "zeal": zeal, "at": at})
            first = [0, 30]
            src = np.concatenate([end[0] + first[i] for i, end in enumerate(ends.values())]).tolist()
            dst = np.concatenate([end[1] + 30 for end in ends.values()]).tolist()
            want = list(zip(src, dst, ["likes"] * 60 + ["of"] * 40, weights.tolist(), zeal.tolist(), at.tolist()))
            with rz.open(store, mode="w") as graph:
                with graph.batch() as batch:
                    batch.put_vertex(300, "item")
                    batch.put_edge(1, 300, "likes", 0.5, {"zeal": 7, "at": [1, 2]})
                    batch.delete_vertex(2)
                want = [edge for edge in want if 2 not in edge[:2]] + [(1, 300, "likes", 0.5, 7, [1.0, 2.0])]
                for step in range(2):
                    reader = graph.edges_to_arrow(vertices=7)
                    assert isinstance(reader, arrow.RecordBatchReader)
                    table = reader.read_all()
                    assert table.column_names == ["src", "dst", "type", "weight", *graph.edge_attributes]
                    rows = [table[name].to_pylist() for name in ("src", "dst", "type", "weight", "zeal", "at")]
                    assert sorted(zip(*rows)) == sorted(want), directions
                    table = graph.vertices_to_arrow(rows=11).read_all()
                    assert table.column_names == ["vertex", "id", "type", "label"]
                    ids = table["id"].to_pylist()
                    assert ids == [*range(2), *range(3, 80), 300]
                    assert table["type"].to_pylist() == [("person", "item")[one >= 30] for one in ids]
                    assert table["label"].to_pylist()[:-1] == np.delete(label, 2).tolist()
                    assert graph.find(ids).tolist() == table["vertex"].to_pylist()
                    feat = graph.vertices_to_arrow(["feat"]).read_all()["feat"].to_pylist()
                    assert np.array_equal(feat, graph["feat"][graph.find(ids)])
                    frames = graph.to_pandas()
                    assert len(frames.edges) == len(want) and list(frames.vertices["id"]) == ids
                    if step == 0:
                        graph.compact()
                with raises(rz.NotFound):
                    graph.vertices_to_arrow(["none"])
                frame = graph["feat"].to_pandas()
                assert list(frame.columns) == ["feat_0", "feat_1", "feat_2"] and sorted(frame.index) == ids
                assert np.array_equal(frame.loc[ids].to_numpy(), graph["feat"][graph.find(ids)])
                assert list(graph["label"].to_pandas().columns) == ["label"]
        edges = np.unique(np.sort(RNG.integers(0, 50, (2, 80)), axis=0), axis=1)
        rz.ingest(path / "pairs.rz", edges, vertices=50, undirected=True, edge_arrays={"n": np.arange(edges.shape[1])})
        with rz.open(path / "pairs.rz") as graph:
            table = graph.edges_to_arrow(pairs_once=True).read_all()
            assert sorted(zip(*(table[name].to_pylist() for name in ("src", "dst", "n")))) == sorted(
                zip(*edges.tolist(), range(edges.shape[1])))
            assert graph.edges_to_arrow().read_all().num_rows == graph.num_edges
            reader = graph.edges_to_arrow()
        with raises((ValueError, arrow.ArrowInvalid), "closed"):
            reader.read_all()


def test_meanings_in_tables():
    """Texts, times, bools and missing integers are what they were in tables, not their codes."""
    if not there("pyarrow", "pandas"):
        return
    import pyarrow as arrow
    titles, words = ["one", None, "three", "two"], ["a", "b", None, "a"]
    times = np.array(["2020-01-01", "2021-02-03T04:05", "1969-12-31", "NaT"], "M8[us]")
    known = arrow.array([True, None, False, True])
    counts = arrow.array([1, None, -5, 2**62])
    nodes = arrow.table({"id": ["w", "x", "y", "z"], "title": titles, "when": times, "known": known, "count": counts})
    edges = arrow.table({"src": ["w", "x", "y", "z"], "dst": ["x", "y", "z", "w"], "word": words, "seen": times,
                         "n": counts})
    with folder() as path:
        rz.ingest(path / "g.rz", edges, nodes=nodes)
        with rz.open(path / "g.rz") as graph:
            table = graph.vertices_to_arrow(["title", "when", "known", "count"]).read_all()
            for name in ("id", "title", "known", "count"):
                assert table[name].to_pylist() == nodes[name].to_pylist(), name
            assert table["when"].cast(arrow.timestamp("us")).to_pylist() == nodes["when"].to_pylist()
            table = graph.edges_to_arrow().read_all().sort_by("src")
            for name in ("src", "dst", "word", "n"):
                assert table[name].to_pylist() == edges[name].to_pylist(), name
            assert table["seen"].cast(arrow.timestamp("us")).to_pylist() == edges["seen"].to_pylist()
            assert dict(zip(graph["title"].to_arrow()["id"].to_pylist(), graph["title"].to_arrow()["title"].to_pylist())) == \
                dict(zip(["w", "x", "y", "z"], titles))
            frame = graph["title"].to_pandas()["title"]
            assert [None if frame.isna()[one] else frame[one] for one in ("w", "x", "y", "z")] == titles
            # A table that was exported can be ingested.
            frames = graph.to_pandas()
        rz.ingest(path / "again.rz", frames.edges, nodes=frames.vertices.drop(columns="vertex"))
        with rz.open(path / "again.rz") as graph:
            assert graph.vertices_to_arrow(["title"]).read_all()["title"].to_pylist() == titles
            assert graph.edges_to_arrow().read_all().sort_by("src")["word"].to_pylist() == words


def test_zarr():
    if not there("zarr"):
        return
    with folder() as path:
        example = changed_store(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                graph["feat"].zarr()
            assert len(said) == 1 and "compact() first" in str(said[0].message)
            graph.compact()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rows = graph["feat"].zarr()
            import zarr
            vertices = zarr.open_array(os.path.join(graph["feat"].folder, "..", "vertex_id"), mode="r")[:]
        want = example.arrays["feat"].copy()
        want[3] = 0
        live = vertices >= 0
        assert sorted(vertices[live]) == [vertex for vertex in range(300) if vertex != 7]
        assert np.array_equal(rows[:][live], want[vertices[live]])
        with raises(Exception):
            rows[0] = 1


def test_scipy():
    if not there("scipy"):
        return
    with folder() as path:
        lines = named_store(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for kind in (None, "likes", "knows"):
                want = np.zeros((graph.vertex_bound, graph.vertex_bound), np.float32)
                for src, dst, its, weight in lines:
                    if kind in (None, its):
                        want[graph.find(src), graph.find(dst)] += weight
                assert np.array_equal(graph.to_scipy(kind).toarray(), want)
            with raises(ValueError, "'hates'"):
                graph.to_scipy("hates")
        example = changed_store(path / "plain.rz")
        with rz.open(path / "plain.rz") as graph:
            want = np.zeros((300, 300))
            np.add.at(want, tuple(example.edges), example.weights)
            want[7], want[:, 7] = 0, 0
            assert np.allclose(graph.to_scipy().toarray(), want, atol=1e-5)
            assert graph.vertices_of().tolist() == [vertex for vertex in range(300) if vertex != 7]


def test_networkx():
    if not there("networkx"):
        return
    with folder() as path:
        lines = named_store(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            made = graph.to_networkx()
            assert set(made) == {name for line in lines for name in line[:2]}
            got = [(src, dst, its["type"], its["weight"]) for src, dst, its in made.edges(data=True)]
            assert collections.Counter(got) == collections.Counter(lines)
            sub = graph.sampler([3, 2]).sample(graph.find(["v1", "v2"]))
            made = graph.to_networkx(sub)
            assert set(made) == set(graph.external_ids(sub.vertices))
            got = {(src, dst, its["type"], its["weight"]) for src, dst, its in made.edges(data=True)}
            assert made.number_of_edges() == sub.edge_index.shape[1] and got <= set(lines)


def test_pandas():
    if not there("pandas"):
        return
    with folder() as path:
        lines = named_store(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            frame = graph.neighbors_frame("v1")
            assert list(frame.columns) == ["id", "type", "weight"]
            assert sorted(frame.itertuples(index=False, name=None)) == sorted(
                line[1:] for line in lines if line[0] == "v1")
            frame = graph.neighbors_frame(graph.find(["v1", "v2"]), direction="in")
            assert sorted(frame.itertuples(index=False, name=None)) == sorted(
                (dst, src, *rest) for src, dst, *rest in lines if dst in ("v1", "v2"))
            with raises(rz.NotFound):
                graph.neighbors_frame("nobody")


def test_pandas_attributes():
    """neighbors_frame has the attributes of each edge, of parallel edges and of edges written later, too."""
    if not there("pandas", "pyarrow"):
        return
    import pandas
    stamps = pandas.Timestamp("2026-01-01", tz="UTC") + pandas.to_timedelta(RNG.integers(0, 10**6, 250), "s")
    src, dst = RNG.integers(0, 12, (2, 250))
    names, level, at = np.array([f"v{i}" for i in range(12)]), RNG.integers(-9, 9, 250), RNG.random((250, 2))
    table = pandas.DataFrame({"source": names[src], "target": names[dst], "time": stamps, "level": level, "at": list(at)})
    rows = list(zip(names[src], names[dst], stamps, level, *at.T))
    with folder() as path:
        rz.ingest(path / "g.rz", table[:200])
        with rz.open(path / "g.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_edges(table[200:])
            columns = ["time", "level", "at_0", "at_1"]
            for direction in ("out", "in", "both"):
                def of(name):
                    out = [(far, *rest) for near, far, *rest in rows if near == name]
                    into = [(near, *rest) for near, far, *rest in rows if far == name]
                    return {"out": out, "in": into, "both": out + into}[direction]
                frame = graph.neighbors_frame("v3", direction)
                assert set(frame.columns) == {"id", *columns}
                got = sorted(frame[["id", *columns]].itertuples(index=False, name=None))
                assert got == sorted(of("v3")), (direction, got, sorted(of("v3")))
                frame = graph.neighbors_frame(graph.find(["v5", "v3", "v5"]), direction)
                assert frame["of"].tolist() == [name for name in ("v5", "v3", "v5") for _ in of(name)]
                assert sorted(frame[["of", "id", *columns]].itertuples(index=False, name=None)) == sorted(
                    (name, *row) for name in ("v5", "v3", "v5") for row in of(name))
        with rz.open(path / "g.rz", topology="lazy") as graph:
            assert list(graph.neighbors_frame("v3").columns) == ["id"]


def test_absent():
    """What needs a library that is not there says which one, and how to get it."""
    code = ("import sys; sys.modules['pyarrow'] = sys.modules['networkx'] = None\n"
            f"sys.path[:0] = {sys.path!r}\nimport rhizome as rz\n"
            "g = rz.open(sys.argv[1])\n"
            "for call in (lambda: g['feat'].to_arrow(), g.to_networkx):\n"
            "    try: call()\n"
            "    except ImportError as error: print(error)\n")
    import subprocess
    with folder() as path:
        Example(RNG).ingest(path / "g.rz")
        told = subprocess.run([sys.executable, "-c", code, path / "g.rz"], capture_output=True, text=True, check=True)
    assert "pip install pyarrow" in told.stdout and "pip install networkx" in told.stdout, told


if __name__ == "__main__":
    run(sys.modules[__name__])
