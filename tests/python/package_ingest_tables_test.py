#!/usr/bin/env python3
"""Tables of edges and vertices, in memory and in files of Parquet and Arrow, become the graph that NumPy says; numbers
are stored exactly or refused with their place."""
import importlib.util
import logging
import pickle
import sys

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def has(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)} here")
    return not missing


class Stream:
    """A table of a library that exports Arrow's C stream and nothing else, as polars and DuckDB do."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Mapped:
    """A table by names: what of pyarrow's Table `ingest` uses."""

    def __init__(self, columns=(), **more):
        self._columns = dict(columns, **more)
        self.column_names = list(self._columns)
        self.column = self._columns.__getitem__


def edges_of(path):
    """(source, target, type, weight) of all edges, by the user's ids, sorted."""
    with rz.open(path) as graph:
        found = []
        for src, dst, kinds, weights in graph.scan_edges():
            names = [graph.edge_types[kind] for kind in kinds] if kinds is not None else graph.edge_types * len(src)
            heavy = weights.tolist() if weights is not None else [1.0] * len(src)
            found += zip(graph.external_ids(src), graph.external_ids(dst), names, heavy)
        return sorted(found)


def rows_of(path, array, ids):
    with rz.open(path) as graph:
        return graph[array][graph.find(ids)]


SRC, DST = [10, 20, 30], [20, 30, 10]


def test_roles_by_name():
    """Ends are found by their names in any order and case, with an index or another column before them."""
    plain = [(10, 20), (20, 30), (30, 10)]
    cases = [
        ({"Unnamed: 0": [0, 1, 2], "source": SRC, "target": DST}, plain),
        ({"target": DST, "source": SRC}, plain),
        ({"when": [7, 8, 9], "from": SRC, "to": DST}, plain),
        ({"Dst": DST, "t": [1, 2, 3], "SRC": SRC}, plain),
        ({"id": [1, 2, 3], "u": SRC, "v": DST}, plain),
        ({"tail": DST, "head": SRC}, plain),
        ({"Subject": SRC, "Object": DST}, plain),
        ({"FromNodeId": SRC, "ToNodeId": DST}, plain),
        ({"to_station_id": DST, "source_id": SRC, "station": [1, 2, 3]}, plain),
    ]
    with folder() as path:
        for number, (columns, want) in enumerate(cases):
            rz.ingest(path / f"{number}.rz", Mapped({name: np.array(values) for name, values in columns.items()}))
            assert [edge[:2] for edge in edges_of(path / f"{number}.rz")] == want, columns
        facts = Mapped(subject=["a", "b"], predicate=["likes", "knows"], object=["b", "c"], w=np.array([0.5, 2.0]))
        rz.ingest(path / "facts.rz", facts)
        assert edges_of(path / "facts.rz") == [("a", "b", "likes", 0.5), ("b", "c", "knows", 2.0)]
        for wrong, text in (({"a": SRC, "b": DST}, "'a', 'b'"), ({"src": SRC, "b": DST}, "is the dst"),
                            ({"src": SRC, "source": SRC, "dst": DST}, "'src', 'source'"),
                            ({"src": SRC, "dst": DST, "type": SRC, "relation": SRC}, "'type', 'relation'"),
                            ({"src": SRC}, "'src'")):
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", Mapped({name: np.array(values) for name, values in wrong.items()}))
        assert not (path / "wrong.rz").exists()


def test_two_kinds_of_ends():
    """Ends such as userId and movieId are of two kinds, as in text files; names like source_id are those of ends."""
    ratings = {"rating": np.array([4.5, 3, 5]), "userId": np.array([1, 1, 2]), "movie_id": np.array([1, 2, 1])}
    want = [("user:1", "movie:1"), ("user:1", "movie:2"), ("user:2", "movie:1")]
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    logging.getLogger("rhizome").addHandler(handler)
    with folder() as path:
        (path / "r.csv").write_text("rating,userId,movie_id\n4.5,1,1\n3,1,2\n5,2,1\n")
        for number, (edges, options) in enumerate((
                (Mapped(ratings), {}), ([Mapped(ratings)], {}), (path / "r.csv", {}), ({"rates": Mapped(ratings)}, {}),
                (Mapped(ratings), {"columns": ("userId", "movie_id"), "end_types": ("user", "movie")}))):
            report = rz.ingest(path / f"{number}.rz", edges, **options)
            assert [edge[:2] for edge in edges_of(path / f"{number}.rz")] == want and "user:1" in " ".join(report.notes)
            with rz.open(path / f"{number}.rz") as graph:
                assert graph.vertex_types == ["user", "movie"] and list(graph.edge_attributes) == ["rating"]
        assert not heard, heard
        rz.ingest(path / "one.rz", Mapped(ratings), columns=("userId", "movie_id"))
        assert [edge[:2] for edge in edges_of(path / "one.rz")] == [(1, 1), (1, 2), (2, 1)]
        assert len(heard) == 1 and "user and movie: end_types=" in heard[0], heard
        for more in ({"vertices": 9}, {"ids": ["a", "b"]}, {"nodes": Mapped(id=["a", "b"])}):
            with raises(ValueError, "two kinds by their names, user and movie"):
                rz.ingest(path / "wrong.rz", Mapped(ratings), **more)
        with raises(ValueError, "two kinds by their names"):
            rz.ingest(path / "wrong.rz", [Mapped(ratings), Mapped(src=[1], dst=[2])])
        with raises(ValueError, "two kinds by their names"):
            rz.ingest(path / "wrong.rz", {("user", "rates", "movie"): Mapped(ratings)}, vertex_types={"user": 3, "movie": 3})
        for src, dst in (("source_id", "TargetId"), ("from_station_id", "to_station_id")):
            rz.ingest(path / f"{src}.rz", Mapped({dst: DST, src: SRC}))
            assert [edge[:2] for edge in edges_of(path / f"{src}.rz")] == [(10, 20), (20, 30), (30, 10)]
        with raises(ValueError, "is the src"):
            rz.ingest(path / "wrong.rz", Mapped(start_station_id=SRC, end_station_id=DST))
        with rz.open(path / "one.rz", mode="w") as graph, graph.batch() as batch:
            with raises(rz.InvalidArgument, "rename those of the ends to 'src' and 'dst'"):
                batch.put_edges(ratings)
    logging.getLogger("rhizome").removeHandler(handler)


def test_chosen_columns():
    table = Mapped(a=np.array(SRC), b=np.array(DST), c=np.array([0.5, 1.0, 2.0]), source=np.array([1, 2, 3]))
    with folder() as path:
        rz.ingest(path / "pair.rz", table, columns=("b", "a"))
        assert [edge[:2] for edge in edges_of(path / "pair.rz")] == [(10, 30), (20, 10), (30, 20)]
        rz.ingest(path / "roles.rz", table, columns={"src": "a", "dst": "b", "weight": "c"})
        assert edges_of(path / "roles.rz") == [(10, 20, "edge", 0.5), (20, 30, "edge", 1.0), (30, 10, "edge", 2.0)]
        with rz.open(path / "roles.rz") as graph:
            assert graph.edge_rows("source", np.arange(3)).ravel().tolist() == [1, 2, 3]
        for wrong, text in ((("a", "x"), "no column 'x'"), (("a",), "sources and targets"), (("a", "a"), "two roles"),
                            ({"src": "a", "end": "b"}, "no role 'end'"), ({"weight": "c"}, "dst")):
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", table, columns=wrong)
        (path / "e.csv").write_text("1,2\n")
        with raises(ValueError, "text files"):
            rz.ingest(path / "wrong.rz", path / "e.csv", columns={"src": "a", "dst": "b"})


def test_pandas():
    if not has("pandas", "pyarrow"):
        return
    import pandas as pd
    frame = pd.DataFrame({"source": pd.Categorical(["x", "y", "x"]), "target": pd.array(["y", "x", "y"], dtype="string"),
                          "stamp": pd.to_datetime(["2024-01-01", "2024-01-02", "1969-12-31 23:59:59.999999"], format="ISO8601"),
                          "count": pd.array([1, 2, 3], dtype="Int64"), "ok": [True, False, True],
                          "far": pd.to_datetime(["2024-01-01 02:00"] * 3).tz_localize("Europe/Berlin"),
                          "arrow": pd.array([5, 6, 7], dtype="int64[pyarrow]")}, index=[5, 6, 7])
    with folder() as path:
        rz.ingest(path / "g.rz", frame)
        assert [edge[:2] for edge in edges_of(path / "g.rz")] == [("x", "y"), ("x", "y"), ("y", "x")]
        with rz.open(path / "g.rz") as graph:
            numbers = np.arange(3)
            rows = {name: sorted(graph.edge_rows(name, numbers).ravel().tolist())
                    for name in ("stamp", "count", "ok", "far", "arrow")}
        assert rows["stamp"] == [-1, 1704067200_000000, 1704153600_000000]
        assert rows["count"] == [1, 2, 3] and rows["ok"] == [0, 1, 1] and rows["arrow"] == [5, 6, 7]
        assert set(rows["far"]) == {1704067200_000000 + 3600_000000}
        twice = pd.DataFrame([[1, 2, 3]], columns=["src", "dst", "dst"])
        with raises(ValueError, "'dst'"):
            rz.ingest(path / "wrong.rz", twice)
        with raises(ValueError, "row 1"):
            rz.ingest(path / "wrong.rz", pd.DataFrame({"src": pd.array([1, None], dtype="Int64"), "dst": [2, 3]}))
        with raises(ValueError, "microseconds"):
            rz.ingest(path / "wrong.rz", pd.DataFrame({"src": [1], "dst": [2], "t": np.array([1], "datetime64[ns]")}))


def test_arrow_and_streams():
    if not has("pyarrow"):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq
    count = 5000
    names = np.array([f"v{i}" for i in range(300)])
    src, dst = RNG.integers(0, 300, (2, count))
    kinds = np.array(["likes", "knows"])[RNG.integers(0, 2, count)]
    weights = RNG.random(count, dtype=np.float32)
    stamps = RNG.integers(0, 1 << 50, count)
    table = pa.table({"dst": names[dst], "kind": pa.array(stamps).cast(pa.timestamp("us", "UTC")), "src": names[src],
                      "rel": pa.array(kinds).dictionary_encode(), "weight": weights.astype(np.float64),
                      "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * count, dtype=np.float32)), 2)})
    want = sorted(zip(names[src].tolist(), names[dst].tolist(), kinds.tolist(), weights.tolist()))
    integers = pa.table({"src": src, "dst": dst, "at": stamps.astype(np.int64)})
    with folder() as path:
        pq.write_table(table, path / "t.parquet", row_group_size=700)
        with pa.OSFile(str(path / "t.feather"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=900)
        with pa.OSFile(str(path / "t.stream"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=900)
        for name, edges in {"table": table, "stream": Stream(table), "parquet": path / "t.parquet",
                            "feather": str(path / "t.feather"), "ipc": path / "t.stream"}.items():
            rz.ingest(path / f"{name}.rz", edges, memory="512M")
            assert edges_of(path / f"{name}.rz") == want, name
            with rz.open(path / f"{name}.rz") as graph:
                numbers = np.arange(count)
                assert np.array_equal(np.sort(graph.edge_rows("kind", numbers).ravel()), np.sort(stamps))
                assert graph.edge_rows("vector", numbers).shape == (count, 2)
        assert sorted(entry.suffix for entry in path.iterdir() if entry.suffix != ".rz") == [".feather", ".parquet", ".stream"]
        pq.write_table(integers, path / "i.parquet", row_group_size=600)
        rz.ingest(path / "twice.rz", [path / "i.parquet", path / "i.parquet"])
        both = sorted(2 * [(a, b, "edge", 1.0) for a, b in zip(src.tolist(), dst.tolist())])
        assert edges_of(path / "twice.rz") == both
        (path / "e.csv").write_text("1,2\n")
        with raises(ValueError, "one kind"):
            rz.ingest(path / "wrong.rz", [path / "i.parquet", path / "e.csv"])
        (path / "bad.parquet").write_bytes(b"PAR1 and no more")
        with raises(ValueError, "bad.parquet"):
            rz.ingest(path / "wrong.rz", path / "bad.parquet")
        with raises(TypeError, "stamp"):
            rz.ingest(path / "wrong.rz", pa.table({"src": [0], "dst": [1], "stamp": pa.array([1], pa.decimal128(9, 2))}))


def test_arrays_in_parquet():
    """A column of the array's name, or all columns as those of its rows; ids in the file say whose rows they are."""
    if not has("pyarrow"):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq
    edges, x = np.array([[10, 20, 30], [20, 30, 10]]), RNG.normal(size=(3, 2)).astype(np.float32)
    with folder() as path:
        pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), path / "x.parquet")
        pq.write_table(pa.table({"y": [1, None, 3], "other": ["p", "q", "r"]}), path / "y.parquet")
        rz.ingest(path / "g.rz", edges, ids=[10, 20, 30], arrays={"x": path / "x.parquet", "y": path / "y.parquet"})
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(graph["x"][np.arange(3)], x)
            assert graph["y"].dtype == np.int64 and graph["y"][np.arange(3)].ravel().tolist() == [1, None, 3]
            graph["x"].to_parquet(path / "back.parquet")
        table = pq.read_table(path / "back.parquet").take([2, 0, 1])
        pq.write_table(table, path / "back.parquet")
        rz.add_array(path / "g.rz", "again", path / "back.parquet")
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(graph["again"][np.arange(3)], x)
        rz.ingest(path / "nodes.rz", edges, nodes=path / "back.parquet", overwrite=True)
        assert np.array_equal(rows_of(path / "nodes.rz", "x", [10, 20, 30]), x)
        for file, text in (("back", "nodes="), ("y", "'other'")):
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", edges, arrays={"z": path / f"{file}.parquet"})


def test_polars():
    if not has("polars", "pyarrow"):
        return
    import polars
    frame = polars.DataFrame({"source": SRC, "target": DST, "weight": [0.5, 1.0, 2.0]})
    with folder() as path:
        rz.ingest(path / "g.rz", frame)
        assert edges_of(path / "g.rz") == [(10, 20, "edge", 0.5), (20, 30, "edge", 1.0), (30, 10, "edge", 2.0)]


def test_exact_numbers():
    """A number is stored as it is, or refused with array, row and value; nothing is written then."""
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    with folder() as path:
        for name, values, text in (("whole", [3.0, 16777217.0, 1.0], "row 1"), ("huge", [1e300, 1, 2], "row 0: 1e+300"),
                                   ("tiny", [1.0, 2.0, 1e-300], "row 2")):
            for option in ("arrays", "edge_arrays"):
                try:
                    rz.ingest(path / f"{name}{option}.rz", edges, **{option: {"a": np.array(values)}})
                except ValueError as error:
                    assert text in str(error) and "'a'" in str(error), error
                    assert not (path / f"{name}{option}.rz").exists()
                    continue
                with rz.open(path / f"{name}{option}.rz") as graph:
                    stored = graph["a"][[0, 1, 2]] if option == "arrays" else graph.edge_rows("a", np.arange(3))
                    assert sorted(stored.ravel().tolist()) == sorted(values), (name, option, stored)
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", edges, edge_arrays={"weight": np.array(values)})
        with raises(ValueError, "16777217"):
            rz.ingest(path / "wrong.rz", edges, edge_arrays={"weight": np.array([1, 16777217, 2])})
        with raises(ValueError, "beyond int64"):
            rz.ingest(path / "wrong.rz", edges, arrays={"a": np.array([1, 2, 1 << 63], np.uint64)})
        for dtype in (bool, np.int8, np.int16, np.uint16, np.uint64, np.int64, np.uint32, np.float16):
            values = np.array([0, 1, 1]).astype(dtype)
            rz.ingest(path / f"{np.dtype(dtype).name}.rz", edges, arrays={"a": values}, edge_arrays={"e": values})
            with rz.open(path / f"{np.dtype(dtype).name}.rz") as graph:
                assert graph["a"][[0, 1, 2]].ravel().tolist() == [0, 1, 1], dtype
                assert sorted(graph.edge_rows("e", np.arange(3)).ravel().tolist()) == [0, 1, 1], dtype
        rz.ingest(path / "w.rz", edges, arrays={"a": np.zeros(3, np.float32)})
        with rz.open(path / "w.rz", mode="w") as graph:
            for value in (1e300, 16777217.0):
                with raises(ValueError, "row 0"):
                    with graph.batch() as batch:
                        batch.put_row("a", 1, np.array([value]))
            assert not graph["a"][[0, 1, 2]].any()
        rz.add_array(path / "w.rz", "b", np.array([1e300, 0, 16777217.]))
        with rz.open(path / "w.rz") as graph:
            assert graph["b"].dtype == np.float64 and graph["b"][:].ravel().tolist() == [1e300, 0, 16777217]
        with raises(ValueError, "beyond int64"):
            rz.add_array(path / "w.rz", "c", np.array([1, 2, 1 << 63], np.uint64))
        with raises(ValueError, "pair"):
            rz.ingest(path / "wrong.rz", np.array([[0, 1], [1, 2]]))


def test_missing_values():
    """Masked and missing values are NaN, no label, no set; edges without an end are refused."""
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    mask = [False, True, False]
    with folder() as path:
        rz.ingest(path / "g.rz", edges, arrays={
            "x": np.ma.MaskedArray(np.array([1, 2, 3], np.float32), mask),
            "label": np.ma.MaskedArray([4, 5, 6], mask)}, split=np.ma.MaskedArray(np.array([0, 1, 2], np.uint8), mask))
        with rz.open(path / "g.rz") as graph:
            x = graph["x"][[0, 1, 2]].ravel()
            assert x[[0, 2]].tolist() == [1, 3] and np.isnan(x[1])
            assert graph["label"][[0, 1, 2]].ravel().tolist() == [4, -1, 6]
            assert graph["split"][[0, 1, 2]].ravel().tolist() == [0, 255, 2]
        with raises(ValueError, "sources must not be missing: row 1"):
            rz.ingest(path / "wrong.rz", np.ma.MaskedArray(edges, [mask, [False] * 3]))
        with raises(ValueError, "row 1"):
            rz.ingest(path / "wrong.rz", Mapped(src=np.array([1, 2]), dst=np.array([2, 3]), type=np.array(["a", None])))


def test_table_of_vertices():
    """Ids, types, labels, sets and properties of a table; ids that only edges name follow."""
    ids = ["ann", "bob", "eve", "joe"]
    table = Mapped(name=np.array(ids), Type=np.array(["person", "robot", "person", "robot"]), age=np.array([31, 42, 53, 64]),
                   Class=np.array([1, 0, 1, 1]), split=np.array(["train", "val", "", "test"]))
    with folder() as path:
        rz.ingest(path / "g.rz", (["ann", "zoe"], ["bob", "eve"]), nodes=table, arrays={"x": np.eye(4, dtype=np.float32)})
        with rz.open(path / "g.rz") as graph:
            assert graph.external_ids(np.arange(5)) == [*ids, "zoe"]
            assert [graph.vertex_types[kind] for kind in graph.types_of(np.arange(5))] == [
                "person", "robot", "person", "robot", "unknown"]
            assert graph["age"][np.arange(4)].ravel().tolist() == [31, 42, 53, 64]
            assert graph["label"][np.arange(5)].ravel().tolist() == [1, 0, 1, 1, -1]
            assert graph["split"][np.arange(5)].ravel().tolist() == [0, 1, 255, 2, 255]
            assert np.array_equal(graph["x"][np.arange(4)], np.eye(4))
        rz.ingest(path / "rows.rz", np.array([[0, 1, 2], [1, 2, 0]]), nodes=Mapped(y=np.array([0, 1, 0, 1, 1])))
        with rz.open(path / "rows.rz") as graph:
            assert graph.num_vertices == 5 and graph["label"][np.arange(5)].ravel().tolist() == [0, 1, 0, 1, 1]
        # As in text files: the most likely name has the ids, and a y beside an x is a coordinate.
        places = Mapped(name=np.array(["inn", "mill"]), x=np.array([1, 2]), y=np.array([3, 4]), NodeId=np.array([7, 8]))
        rz.ingest(path / "places.rz", nodes=places)
        with rz.open(path / "places.rz") as graph:
            assert graph.external_ids([0, 1]) == [7, 8] and "label" not in graph.arrays
            assert graph["y"][[0, 1]].ravel().tolist() == [3, 4] and graph["name"].texts([0, 1]) == ["inn", "mill"]
        for number, alone in enumerate((Mapped(id=np.array([5, 6]), a=np.array([1, 2])), Mapped(a=np.array([1, 2])),
                                        {"x": Mapped(a=np.array([1, 2]))})):
            rz.ingest(path / f"alone{number}.rz", nodes=alone)
            with rz.open(path / f"alone{number}.rz") as graph:
                assert graph.num_vertices == 2 and graph.num_edges == 0 and graph["a"][[0, 1]].ravel().tolist() == [1, 2]
        for wrong, options, text in ((Mapped(id=np.array([1, 1])), {}, "id 1 occurs 2 times"),
                                     (Mapped(id=np.array(["a", None])), {}, "row 1"),
                                     (Mapped(id=np.array([1, 2]), split=np.array(["train", "dev"])), {}, "'dev'"),
                                     (Mapped(id=np.array([1, 2])), {"ids": [1, 2]}, "no ids="),
                                     (Mapped(id=np.array([1, 2]), age=np.array([1, 2])), {"arrays": {"age": [1, 2]}}, "'age'"),
                                     (Mapped(), {}, "no columns"), ({}, {}, "each vertex type")):
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", ([1], [2]), nodes=wrong, **options)
        if has("pyarrow"):
            import pyarrow as pa
            import pyarrow.parquet as pq
            pq.write_table(pa.table({"id": [7, 8, 9], "age": [1, 2, 3]}), path / "nodes.parquet")
            pq.write_table(pa.table({"src": [7, 8], "dst": [9, 9]}), path / "edges.parquet")
            rz.ingest(path / "files.rz", path / "edges.parquet", nodes=path / "nodes.parquet")
            assert rows_of(path / "files.rz", "age", [9, 7]).ravel().tolist() == [3, 1]
            assert [edge[:2] for edge in edges_of(path / "files.rz")] == [(7, 9), (8, 9)]


def test_tables_by_type():
    """Vertices of several types with their own ids, or with row numbers."""
    papers = Mapped(id=np.array(["p1", "p2", "p3"]), year=np.array([1999.0, 2001.0, 2020.0], np.float32), y=np.array([0, 1, 0]))
    authors = Mapped(id=np.array(["a1", "a2"]))
    writes, cites = (["a1", "a2", "a1"], ["p1", "p3", "p2"]), (["p1"], ["p2"])
    edges = {("author", "writes", "paper"): writes, ("paper", "cites", "paper"): cites}
    with folder() as path:
        rz.ingest(path / "own.rz", edges, nodes={"paper": papers, "author": authors})
        assert edges_of(path / "own.rz") == sorted([(a, p, "writes", 1.0) for a, p in zip(*writes)] + [("p1", "p2", "cites", 1.0)])
        with rz.open(path / "own.rz") as graph:
            assert graph.vertex_types == ["paper", "author"] and graph.external_ids(graph.vertices_of("author")) == ["a1", "a2"]
            years = graph["year"][graph.find(["p3", "a1"])].ravel()
            assert years[0] == 2020 and np.isnan(years[1])
            assert graph["label"][graph.find(["p2", "a2"])].ravel().tolist() == [1, -1]
        for wrong, text in (((["p1"], ["p2"]), "'p1' is no vertex of type 'author'"), ((["a1"], ["p9"]), "'p9'"),
                            (([1], [2]), "both int or both str")):
            with raises((ValueError, TypeError), text):
                rz.ingest(path / "wrong.rz", {("author", "writes", "paper"): wrong}, nodes={"paper": papers, "author": authors})
        same = {"paper": Mapped(id=np.array([1, 2])), "author": Mapped(id=np.array([2, 3]))}
        with raises(ValueError, "id 2 occurs 2 times in several vertex types"):
            rz.ingest(path / "wrong.rz", {("author", "writes", "paper"): ([2], [1])}, nodes=same)
        with raises(ValueError, "'author' have no column 'id'"):
            rz.ingest(path / "wrong.rz", edges, nodes={"paper": papers, "author": Mapped(age=np.array([1, 2]))})
        with raises(ValueError, "no vertices of type 'editor'"):
            rz.ingest(path / "wrong.rz", {("editor", "edits", "paper"): writes}, nodes={"paper": papers, "author": authors})
        rows = {"paper": Mapped(year=np.array([1, 2, 3])), "author": Mapped(year=np.array([4, 5]))}
        rz.ingest(path / "rows.rz", {("author", "writes", "paper"): ([0, 1], [2, 0])}, nodes=rows)
        assert [edge[:3] for edge in edges_of(path / "rows.rz")] == [(3, 2, "writes"), (4, 0, "writes")]
        assert rows_of(path / "rows.rz", "year", list(range(5))).ravel().tolist() == [1, 2, 3, 4, 5]


def test_bipartite_matrices():
    """A matrix that is not square has vertex types for rows and columns, whose numbers are its shape."""
    if not has("scipy"):
        return
    import scipy.sparse
    matrix = scipy.sparse.csr_array(np.array([[0, 2, 0], [1, 0, 3]], np.float32))
    with folder() as path:
        with raises(ValueError, "[2, 3]"):
            rz.ingest(path / "wrong.rz", matrix)
        with raises(ValueError, "[2, 3]"):
            rz.ingest(path / "wrong.rz", {"buys": matrix})
        rz.ingest(path / "g.rz", {("user", "buys", "item"): matrix})
        assert edges_of(path / "g.rz") == [(0, 3, "buys", 2.0), (1, 2, "buys", 1.0), (1, 4, "buys", 3.0)]
        rz.ingest(path / "more.rz", {("user", "buys", "item"): matrix}, vertex_types={"item": 4, "user": 2})
        assert edges_of(path / "more.rz") == [(4, 1, "buys", 2.0), (5, 0, "buys", 1.0), (5, 2, "buys", 3.0)]
        with raises(ValueError, "3"):
            rz.ingest(path / "wrong.rz", {("user", "buys", "item"): matrix}, vertex_types={"item": 2, "user": 2})


def test_nulls_of_integers():
    """An integer that is missing stays none: the type does not change, and no value is invented."""
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    with folder() as path:
        for values in ([1600000001, 0, 1600000003], [-1, 0, 5], [-(1 << 63), 0, -1]):
            column = np.ma.MaskedArray(np.array(values), [False, True, False])
            rz.ingest(path / "g.rz", edges, arrays={"a": column}, edge_arrays={"e": column}, overwrite=True)
            with rz.open(path / "g.rz") as graph:
                null = int(graph["a"].attributes["null"])
                assert graph["a"].dtype == np.int64 and null not in (values[0], values[2])
                assert graph["a"][[0, 1, 2]].ravel().tolist() == [values[0], None, values[2]]
                assert graph["a"][[0, 1, 2]].data.ravel().tolist() == [values[0], null, values[2]]
                stored = graph.edge_rows("e", np.arange(3)).ravel().tolist()
                assert len(stored) == 3 and set(stored) == {values[0], None, values[2]}
        small = np.ma.MaskedArray(np.arange(256).astype(np.uint8), np.arange(256) == 7)
        with raises(ValueError, "wider"):
            rz.ingest(path / "wrong.rz", edges, vertices=256, arrays={"a": np.ma.MaskedArray(
                np.append(small.data, 7).astype(np.uint8), np.append(small.mask, False))})
        rz.ingest(path / "small.rz", edges, vertices=256, arrays={"a": small})
        with rz.open(path / "small.rz") as graph:
            assert graph["a"].dtype == np.uint8 and graph["a"].attributes["null"] == "7"
        rz.ingest(path / "bool.rz", edges, arrays={"a": np.ma.MaskedArray([True, False, True], [False, True, False])})
        with rz.open(path / "bool.rz") as graph:
            assert graph["a"].attributes["type"] == "bool" and graph["a"][[0, 1, 2]].ravel().tolist() == [1, None, 1]


def masked_where(rows, values):
    """Compares masked rows with values, of which None is masked."""
    assert isinstance(rows, rz.MaskedRows) and rows.mask.shape == rows.shape and rows.tolist() == values, rows
    asked = np.array([np.nan if one is None else one for one in np.array(values, object).ravel()])
    for dtype in ("f8", np.float32):
        made = rows.astype(dtype)
        assert type(made) is np.ndarray and made.dtype == dtype and made.shape == rows.shape
        assert np.array_equal(made.ravel(), asked.astype(dtype), equal_nan=True)


def test_missing_integers_are_masked():
    """Every read of an array, or of an attribute of edges, with missing integers is masked; ``out`` is as stored."""
    edges, ids, mask = np.array([[0, 1, 2], [1, 2, 0]]), np.arange(3), [False, True, False]
    with folder() as path:
        column = np.ma.MaskedArray(np.array([5, 9, 7], np.int32), mask)
        wide = np.ma.MaskedArray(np.arange(6).reshape(3, 2), [[False, True], [False, False], [True, True]])
        rz.ingest(path / "g.rz", edges, arrays={"a": column, "w": wide, "full": np.array([1, 2, 3]),
                                                "x": np.ma.MaskedArray([.5, 1, 2], mask)},
                  edge_arrays={"e": column, "full": np.array([1, 2, 3])})
        with rz.open(path / "g.rz", mode="w") as graph:
            null = int(graph["a"].attributes["null"])
            for array in (graph["a"], graph.snapshot()["a"]):
                for rows in (array[ids], array[:], array[[0, 1, 2]], array.read(ids)):
                    masked_where(rows, [[5], [None], [7]])
                masked_where(array[1], [None])
                masked_where(array[0], [5])
                masked_where(array[ids, 0], [5, None, 7])
                masked_where(array[1:], [[None], [7]])
                assert array[1, 0] is np.ma.masked and array[0, 0] == 5
                assert [row.tolist() for row in array] == [[5], [None], [7]]
            found = {vertex: row for block, rows in graph["a"].batches(2) for vertex, row in zip(block.tolist(), rows.tolist())}
            assert found == {0: [5], 1: [None], 2: [7]}
            masked_where(graph["w"][ids], [[0, None], [2, 3], [None, None]])
            rows = graph.edge_rows("e", ids)
            assert isinstance(rows, rz.MaskedRows) and set(rows.ravel().tolist()) == {5, 7, None}
            out = np.zeros((3, 1), np.int32)
            assert graph["a"].read(ids, out=out) is out and out.ravel().tolist() == [5, null, 7]
            out = np.zeros((3, 1), np.int64)
            assert graph.edge_rows("e", ids, out=out) is out and set(out.ravel().tolist()) == {5, 7, null}
            assert graph["a"][ids].sum() == 12 and graph["a"][ids].filled().ravel().tolist() == [5, null, 7]
            assert pickle.loads(pickle.dumps(graph["a"][ids])).tolist() == [[5], [None], [7]]
            both = [graph["a"][[0]], graph["a"][[1, 2]]]
            for rows in (np.concatenate(both), np.vstack(both), np.concatenate([*both, both[0].data])[:3]):
                masked_where(rows, [[5], [None], [7]])
            for rows in (graph["full"][ids], graph.edge_rows("full", ids), graph["x"][ids], graph["full"][1]):
                assert type(rows) is np.ndarray
            # What is masked goes back in as it came out.
            rz.ingest(path / "again.rz", edges, arrays={"a": graph["a"][:]})
            with graph.batch() as batch:
                batch.put_row("a", 0, [null])
            for _ in range(2):
                masked_where(graph["a"][ids], [[None], [None], [7]])
                graph.compact()
        with rz.open(path / "again.rz") as graph:
            masked_where(graph["a"][ids], [[5], [None], [7]])


def test_texts():
    """Texts of vertices, of edges and of classes are in the store; a class is the place of its name in their order."""
    titles, topics = ["zebra", "", "ärger", "zebra"], ["music", "botany", None, "music"]
    nodes = Mapped(id=np.array([7, 8, 9, 10]), title=np.array(titles), label=np.array(topics, object))
    edges = Mapped(src=np.array([7, 8, 9]), dst=np.array([8, 9, 7]), note=np.array(["b", None, "a"], object))
    with folder() as path:
        rz.ingest(path / "g.rz", edges, arrays={"note": ["x", float("nan"), None, "nan"]}, ids=[7, 8, 9, 10])
        with rz.open(path / "g.rz") as graph:
            assert graph["note"].texts(graph.find([7, 8, 9, 10])) == ["x", None, None, "nan"]
    for memory in (0, "64M"):
        with folder() as path:
            rz.ingest(path / "g.rz", edges, nodes=nodes, memory=memory)
            with rz.open(path / "g.rz") as graph:
                ids = graph.find([7, 8, 9, 10])
                assert graph["title"].texts(ids) == ["zebra", None, "ärger", "zebra"]
                assert graph.class_names == ["botany", "music"]
                assert graph["label"][ids].ravel().tolist() == [1, 0, -1, 1]
                lists = graph.sampler([-1], edge_ids=True).sample(ids)
                codes = graph.edge_rows("note", lists.edge_ids).ravel()
                found = dict(zip(graph.external_ids(lists.vertices[lists.edge_index[0]]), codes.tolist()))
                assert found == {7: 1, 8: -1, 9: 0}
                assert graph.verify().ok
    with folder() as path:
        by_type = {"paper": Mapped(title=np.array(["x", "y"])), "author": Mapped(age=np.array([1, 2]))}
        rz.ingest(path / "g.rz", {("author", "writes", "paper"): ([0, 1], [1, 1])}, nodes=by_type)
        with rz.open(path / "g.rz") as graph:
            assert graph["title"].texts(np.arange(4)) == ["x", "y", None, None]
            assert graph["age"][np.arange(4)].ravel().tolist() == [None, None, 1, 2]
        with raises(TypeError, "texts in one"):
            by_type["author"] = Mapped(title=np.array([1, 2]))
            rz.ingest(path / "wrong.rz", {("author", "writes", "paper"): ([0], [1])}, nodes=by_type)


def test_index_is_left_out_and_said():
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("rhizome").addHandler(handler)
    try:
        with folder() as path:
            rz.ingest(path / "g.rz", Mapped({"Unnamed: 0": np.arange(3), "src": np.array(SRC), "dst": np.array(DST)}))
            with rz.open(path / "g.rz") as graph:
                assert list(graph.edge_attributes) == []
    finally:
        logging.getLogger("rhizome").removeHandler(handler)
    assert len(said) == 1 and "Unnamed: 0" in said[0]


if __name__ == "__main__":
    run(sys.modules[__name__])
