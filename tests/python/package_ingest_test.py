#!/usr/bin/env python3
"""For every form of edges that `rhizome.ingest` accepts, the graph equals NumPy's."""
import importlib.util
import sys
import types

from package import SEED, Example, folder, logged, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def has(module):
    found = importlib.util.find_spec(module) is not None
    if not found:
        print(f"skipped: no {module} here")
    return found


def edges_of(graph):
    """(source, target, type, weight) of all edges, by the user's ids, sorted."""
    found = []
    for src, dst, kinds, weights in graph.scan_edges(100):
        names = [graph.edge_types[kind] for kind in kinds] if kinds is not None else graph.edge_types * len(src)
        heavy = weights.tolist() if weights is not None else [1.0] * len(src)
        found += zip(graph.external_ids(src), graph.external_ids(dst), names, heavy)
    return sorted(found)


def want(src, dst, kinds="edge", weights=1.0):
    many = len(src)
    kinds = [kinds] * many if isinstance(kinds, str) else list(kinds)
    weights = [weights] * many if isinstance(weights, float) else np.asarray(weights, np.float32).tolist()
    return sorted(zip(list(src), list(dst), kinds, weights))


def check(path, edges, expected, **options):
    rz.ingest(path, edges, **options)
    with rz.open(path) as graph:
        assert edges_of(graph) == expected
        return graph.num_vertices, graph.vertex_types, graph.edge_types


def test_pairs():
    """A pair of lists or arrays, of names or of integers."""
    names = [f"n{i}" for i in range(30)] + ["ü", "a b"]
    src, dst = ([names[i] for i in RNG.integers(0, 32, 200)] for _ in range(2))
    with folder() as path:
        for number, make in enumerate((list, tuple, np.array, lambda x: np.array(x, object))):
            check(path / f"{number}.rz", (make(src), make(dst)), want(src, dst))
        rows = RNG.normal(size=(32, 3)).astype(np.float32)
        rz.ingest(path / "ids.rz", (src, dst), ids=names, arrays={"x": rows})
        with rz.open(path / "ids.rz") as graph:
            assert graph.num_vertices == 32 and edges_of(graph) == want(src, dst)
            assert np.array_equal(graph["x"][graph.find(names)], rows)
            assert graph.external_ids(np.arange(32)) == names  # vertex ids in the order of ids
        keys = RNG.permutation(10_000)[:32] - 5000
        ints = keys[RNG.integers(0, 32, (2, 100))]
        for number, edges in enumerate((ints, tuple(ints), tuple(ints.tolist()), ints.astype(np.int16))):
            rz.ingest(path / f"keys{number}.rz", edges, ids=keys, arrays={"x": rows})
            with rz.open(path / f"keys{number}.rz") as graph:
                assert edges_of(graph) == want(*ints.tolist()) and np.array_equal(graph["x"][graph.find(keys)], rows)
        for wrong, kind in (((["a"], ["b", "c"]), ValueError), ((["a"], [1]), TypeError),
                            ((["a", 1], ["b", "c"]), TypeError), (([1.5], [2]), TypeError), (([True], [False]), TypeError),
                            (([b"a"], [b"b"]), TypeError),
                            (([None], ["a"]), ValueError)):
            with raises(kind):
                rz.ingest(path / "wrong.rz", wrong)
        for wrong in ([1, 1], [1, "a"], [0.5], [[1], [2]], ["a", "a"]):
            with raises((ValueError, TypeError)):
                rz.ingest(path / "wrong.rz", [[1], [1]], ids=wrong)
        for wrong in ({"arrays": {3: [1.0, 2.0]}}, {"edge_arrays": {b"w": [1.0]}}):
            with raises(TypeError, "names"):
                rz.ingest(path / "wrong.rz", [[0], [1]], **wrong)
        with raises(rz.InvalidArgument):  # neither edges nor vertices
            rz.ingest(path / "wrong.rz")
        assert not (path / "wrong.rz").exists()


def test_rows_tell_the_vertices():
    """Integers below the number of rows are vertex ids, whether or not all of them have edges."""
    with folder() as path:
        with logged() as said:
            report = rz.ingest(path / "g.rz", [[0, 7], [7, 3]], arrays={"x": np.arange(10.0)})
        (note,) = report.notes
        assert said == [note] and "10 rows" in note and "up to 7" in note and "the last 2" in note, note
        with rz.open(path / "g.rz") as graph:
            assert graph.num_vertices == 10 and graph.find(9) == 9
            assert graph["x"][np.arange(10)][:, 0].tolist() == list(range(10))
        rz.ingest(path / "masks.rz", [[0, 7], [7, 3]], arrays={"x": np.arange(10.0)},
                  split=(np.arange(10) < 4, np.arange(10) == 5, np.arange(10) > 7))
        with rz.open(path / "masks.rz") as graph:
            assert [graph.split(name).tolist() for name in ("train", "valid", "test")] == [[0, 1, 2, 3], [5], [8, 9]]
            assert graph.split("val").tolist() == [5]
            with raises(ValueError, "train"):
                graph.split("training")
            with raises(rz.NotFound):
                graph.split("train", array="none")
        with logged() as said:
            for number, (rows, options) in enumerate(((8, {}), (10, {"vertices": 10}), (10, {"ids": np.arange(10)}))):
                report = rz.ingest(path / f"{number}.rz", [[0, 7], [7, 3]], arrays={"x": np.zeros(rows)}, **options)
                assert report.notes == [] and report.vertices == rows
        assert said == []


def test_ids_that_are_no_row_numbers():
    """What rows belong to ids is said in terms of `ingest`: by ids=, or by a column of nodes=."""
    texts, far, x = (["a"], ["b"]), ([10, 20], [20, 30]), {"x": np.zeros(3)}
    with folder() as path:
        (path / "e.csv").write_text("src,dst\na,b\n")
        nodes = Table(x)
        for edges, options, words in ((texts, {"nodes": nodes}, ("column 'id'", "texts")), (far, {"nodes": nodes}, ("column 'id'", "integers")),
                                      (path / "e.csv", {"nodes": nodes}, ("column 'id'", "texts")),
                                      (([0, 3], [3, 4]), {"nodes": nodes}, ("3 rows", "column 'id'")),
                                      (texts, {"arrays": x}, ("'x'", "ids=", "texts")), (far, {"arrays": x}, ("'x'", "ids=")),
                                      (path / "e.csv", {"arrays": x}, ("'x'", "ids=", "texts")),
                                      (texts, {"vertices": 2}, ("vertices=2", "ids="))):
            try:
                rz.ingest(path / "g.rz", edges, **options)
            except rz.InvalidArgument as error:
                text = str(error)
            else:
                raise AssertionError(options)
            assert all(word in text for word in words) and "nodes file" not in text, text
        assert not (path / "g.rz").exists()


def test_missing_ids():
    """An id that is None, NaN or NA is named with its row, and is no text."""
    nan = float("nan")
    with folder() as path:
        for edges, options, what in ((([0, None], [1, 2]), {}, "sources"), (([0, 1], [1, nan]), {}, "targets"),
                                     ((["a", "b"], ["b", None]), {}, "targets"),
                                     (Table({"src": np.array([0, nan]), "dst": np.array([1, 2])}), {}, "sources"),
                                     (Table({"src": np.array([0, 1]), "dst": np.array([1, None])}), {}, "targets"),
                                     (np.array([[0, nan, 1], [1, 2, 0]]), {}, "sources"),
                                     (([0], [1]), {"ids": [0, None]}, "ids"), ((["a"], ["b"]), {"ids": ["a", None]}, "ids"),
                                     (([0], [1]), {"ids": np.array([0, nan])}, "ids"),
                                     (([0], [1]), {"nodes": Table({"id": np.array([0, nan])})}, "the id of a vertex"),
                                     (([0], [1]), {"nodes": Table({"id": np.arange(2), "type": np.array([0, nan])})}, "a vertex type"),
                                     (Table({"src": [0, 1], "dst": [1, 2], "type": np.array([0, nan])}), {}, "an edge type")):
            with raises(ValueError, f"{what} must not be missing: row 1"):
                rz.ingest(path / "g.rz", edges, **options)
        assert not (path / "g.rz").exists()
        rz.ingest(path / "g.rz", ([0], [1]))
        with rz.open(path / "g.rz", mode="w") as graph, raises(ValueError, "row 1"), graph.batch() as batch:
            batch.put_edges(np.array([0, nan]), [1, 0])


def test_typed():
    """A dict by edge type; with vertex types, ids count from 0 within their type."""
    writes = np.stack([RNG.integers(0, 20, 50), RNG.integers(0, 30, 50)])
    cites = RNG.integers(0, 30, (2, 40))
    with folder() as path:
        _, _, names = check(path / "names.rz", {"writes": writes, "cites": cites},
                            sorted(want(*writes.tolist(), "writes") + want(*cites.tolist(), "cites")),
                            arrays={"x": np.zeros(30)})
        assert names == ["writes", "cites"]
        weights = RNG.random(90, dtype=np.float32)
        count, kinds, names = check(
            path / "types.rz", {("author", "writes", "paper"): writes, ("paper", "cites", "paper"): cites},
            sorted(want((writes[0] + 30).tolist(), writes[1].tolist(), "writes", weights[:50]) +
                   want(*cites.tolist(), "cites", weights[50:])),
            vertex_types={"paper": 30, "author": 20}, edge_arrays={"weight": weights})
        assert (count, kinds, names) == (50, ["paper", "author"], ["writes", "cites"])
        with rz.open(path / "types.rz") as graph:
            assert graph.types_of(np.arange(50)).tolist() == [0] * 30 + [1] * 20
            assert graph.vertices_of("author").tolist() == list(range(30, 50))
            with raises(rz.NotFound, "paper"):
                graph.vertices_of("editor")
        for wrong, options in (({"cites": cites}, {"vertex_types": {"paper": 30}}),
                               ({("a", "b", "c"): cites}, {"vertex_types": {"a": 30}}), ({("a", "b", "c"): cites}, {}),
                               ({1: cites}, {}), ({("a", "b"): cites}, {}),
                               ({("p", "c", "p"): cites}, {"vertex_types": {"p": 3}})):
            with raises((ValueError, TypeError)):
                rz.ingest(path / "wrong.rz", wrong, **options)


class Table:
    """What of a pyarrow table `ingest` uses."""

    def __init__(self, columns):
        self.columns_ = columns
        self.column_names = list(columns)

    def column(self, name):
        return self.columns_[name]


def test_tables():
    example = Example(RNG)
    src, dst = example.edges
    kinds = np.array(["likes", "knows", "is"])[RNG.integers(0, 3, 2000)]
    stamps = RNG.integers(0, 50, 2000)
    columns = {"dst": dst, "stamp": stamps, "type": kinds, "src": src, "weight": example.weights.astype(np.float64)}
    tables = {"table": Table(columns), "first two": Table({"from": src, "to": dst})}
    if has("pandas"):
        import pandas
        tables["pandas"] = pandas.DataFrame(columns)
        names = pandas.DataFrame({"src": [f"v{i}" for i in src], "dst": [f"v{i}" for i in dst]})
        names["type"] = pandas.Categorical(kinds)
        tables["pandas names"] = names
    if has("pyarrow"):
        import pyarrow
        tables["pyarrow"] = pyarrow.table(columns)
        tables["pyarrow names"] = pyarrow.table({"src": [f"v{i}" for i in src], "dst": [f"v{i}" for i in dst]})
    with folder() as path:
        for name, table in tables.items():
            ends = [[f"v{i}" for i in end] for end in (src, dst)] if "names" in name else (src.tolist(), dst.tolist())
            typed = kinds.tolist() if name not in ("first two", "pyarrow names") else "edge"
            weights = example.weights if name in ("table", "pandas", "pyarrow") else 1.0
            check(path / f"{name}.rz", table, want(*ends, typed, weights))
            if name in ("table", "pandas", "pyarrow"):
                with rz.open(path / f"{name}.rz") as graph:
                    early = graph.sampler([-1], disjoint=True, times="stamp").sample(range(300), times=[20] * 300)
                    assert len(early.types) == (stamps <= 20).sum()
        with raises(ValueError, "rows"):
            rz.ingest(path / "wrong.rz", Table({"src": src, "dst": dst, "w": stamps[:-1]}))
        with raises(ValueError, "columns"):
            rz.ingest(path / "wrong.rz", Table({"src": src}))


def test_sparse_matrix():
    if not has("scipy"):
        return
    import scipy.sparse
    dense = np.where(RNG.random((40, 40)) < 0.1, RNG.random((40, 40)), 0).astype(np.float32)
    dense[39] = dense[:, 39] = 0
    rows, columns = np.nonzero(dense)
    with folder() as path:
        for number, make in enumerate((scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.csc_matrix)):
            count, _, _ = check(path / f"{number}.rz", make(dense),
                                want(rows.tolist(), columns.tolist(), "edge", dense[rows, columns]))
            assert count == 40
        check(path / "ones.rz", scipy.sparse.csr_array(dense > 0), want(rows.tolist(), columns.tolist()))


class Store(types.SimpleNamespace):
    """What of torch_geometric's Data, and of a part of its HeteroData, `ingest` uses."""

    def __contains__(self, key):
        return key in vars(self)

    def __getitem__(self, key):
        return vars(self)[key]


class Hetero(dict):
    """What of torch_geometric's HeteroData `ingest` uses."""

    node_types = property(lambda self: [key for key in self if isinstance(key, str)])
    edge_types = property(lambda self: [key for key in self if isinstance(key, tuple)])


def test_data():
    example = Example(RNG)
    feat, label = example.arrays["feat"], example.arrays["label"][:, 0]
    parts = RNG.integers(0, 4, 300)
    data = Store(edge_index=example.edges, x=feat, y=label, num_nodes=300, edge_weight=example.weights, edge_attr=None,
                 **{f"{name}_mask": parts == i for i, name in enumerate(("train", "val", "test"))})
    with folder() as path:
        check(path / "g.rz", data, want(*example.edges.tolist(), "edge", example.weights), arrays={"half": feat[:, :2]})
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(graph["feat"][np.arange(300)], feat)
            assert set(graph.arrays) == {"feat", "half", "label", "split"}
            assert np.array_equal(graph["label"][np.arange(300)][:, 0], label)
            assert np.array_equal(graph.split("val"), np.flatnonzero(parts == 1))
        writes, cites = RNG.integers(0, 20, (2, 50)), RNG.integers(0, 20, (2, 60))
        hetero = Hetero(paper=Store(x=feat[:20], y=label[:20], train_mask=parts[:20] == 0, num_nodes=20),
                        author=Store(num_nodes=25))
        hetero["author", "writes", "paper"] = Store(edge_index=writes)
        hetero["paper", "cites", "paper"] = Store(edge_index=cites)
        check(path / "h.rz", hetero, sorted(want((writes[0] + 20).tolist(), writes[1].tolist(), "writes") +
                                            want(*cites.tolist(), "cites")))
        with rz.open(path / "h.rz") as graph:
            assert graph["label"][np.arange(45)][:, 0].tolist() == label[:20].tolist() + [-1] * 25
            assert graph["feat"].vertex_type == "paper" and graph["label"].vertex_type is None
            assert np.array_equal(graph["feat"][graph.vertices_of("paper")], feat[:20])
            with raises(rz.InvalidArgument, "author"):
                graph["feat"][20]
            assert np.array_equal(graph.split("train"), np.flatnonzero(parts[:20] == 0))
            assert graph.edge_ends == {"writes": ("author", "paper"), "cites": ("paper", "paper")}
        hetero["author"].x = feat[:25]
        rz.ingest(path / "same.rz", hetero)
        with rz.open(path / "same.rz") as graph:
            assert graph["feat"].vertex_type is None
            assert np.array_equal(graph["feat"][np.arange(45)], np.concatenate([feat[:20], feat[:25]]))


def test_arrays_by_vertex_type():
    """Rows by vertex type are an array of that type, or one for each type if they differ; written, compacted and read."""
    feat, wide = RNG.random((20, 4), np.float32), RNG.random((25, 7), np.float32)
    edges = {("author", "writes", "paper"): RNG.integers(0, 20, (2, 50))}
    types = {"paper": 20, "author": 25, "venue": 3}
    with folder() as path:
        rz.ingest(path / "g.rz", edges, vertex_types=types,
                  arrays={"feat": {"author": wide, "paper": feat}, "year": {"paper": np.arange(20)}, "all": np.arange(48)})
        with rz.open(path / "g.rz", mode="w") as graph:
            assert {name: array.vertex_type for name, array in graph.arrays.items()} == {
                "all": None, "feat.author": "author", "feat.paper": "paper", "year": "paper"}
            papers, authors = graph.vertices_of("paper"), graph.vertices_of("author")

            def check_rows():
                assert np.array_equal(graph["feat.paper"][papers], feat)
                assert np.array_equal(graph["feat.author"][authors[::-1]], wide[::-1])
                assert graph["year"][papers][:, 0].tolist() == list(range(20))
                for name, ids in (("feat.paper", papers), ("feat.author", authors)):
                    found = np.concatenate([vertices for vertices, _ in graph[name].batches()])
                    assert sorted(found.tolist()) == ids.tolist()

            check_rows()
            feat[3] = 9
            with graph.batch(create_vertices=False) as batch:
                batch.put_rows("feat.paper", papers[3:4], feat[3:4])
            with raises(rz.InvalidArgument, "author"):
                with graph.batch(create_vertices=False) as batch:
                    batch.put_rows("feat.paper", authors[:1], feat[:1])
            check_rows()
            graph.compact()
            check_rows()
        wrong = {"feat": {"paper": feat[:19]}}, {"feat": {"papers": feat}}, {"feat": {}}
        for arrays, what in zip(wrong, ("19 rows, but there are 20", "no vertex type 'papers'", "no rows")):
            with raises(ValueError, what):
                rz.ingest(path / "wrong.rz", edges, vertex_types=types, arrays=arrays)
        with raises(ValueError, "'feat.paper'"):
            rz.ingest(path / "wrong.rz", edges, vertex_types=types,
                      arrays={"feat": {"author": wide, "paper": feat}, "feat.paper": np.arange(48)})
        np.save(path / "p.npy", feat)
        rz.ingest(path / "f.rz", edges, vertex_types=types, arrays={"feat": {"paper": path / "p.npy"}})
        with rz.open(path / "f.rz") as graph:
            assert np.array_equal(graph["feat"][graph.vertices_of("paper")], feat) and graph["feat"].vertex_type == "paper"
        # Ids of their own, in any order: the i-th row belongs to the i-th paper.
        ids = [f"v{i}" for i in range(30)]
        kinds = ["paper" if i % 3 else "author" for i in range(30)]
        (path / "n.csv").write_text("id,type\n" + "".join(f"{name},{kind}\n" for name, kind in zip(ids, kinds)))
        (path / "e.csv").write_text("src,dst\n" + "".join(f"{a},{b}\n" for a, b in zip(ids[:10], ids[10:20])))
        rz.ingest(path / "i.rz", path / "e.csv", nodes=path / "n.csv", arrays={"feat": {"paper": feat}})
        with rz.open(path / "i.rz") as graph:
            named = [name for name, kind in zip(ids, kinds) if kind == "paper"]
            assert np.array_equal(graph["feat"][named], feat) and graph["feat"].vertex_type == "paper"


def test_a_store_that_exists():
    """A store is replaced or kept if that is asked for; nothing else is touched, and after an error the old one is there."""
    old, new = ([0, 1], [1, 2]), np.array([[0, 1, 2], [1, 2, 3]])
    with folder() as path:
        store = path / "g.rz"

        def edges():
            with rz.open(store) as graph:
                return graph.num_edges

        for options in ({"exist_ok": True}, {"overwrite": True}):  # nothing to replace
            report = rz.ingest(path / f"{min(options)}.rz", old, **options)
            assert (report.vertices, report.edges) == (3, 2)
        rz.ingest(store, old)
        kept = rz.ingest(store, new, exist_ok=True)
        assert (kept.vertices, kept.edges, kept.seconds) == (3, 2, 0) and edges() == 2
        with raises(rz.AlreadyExists):
            rz.ingest(store, new)
        for wrong in (np.zeros((2, 3)), np.array([[-1, 2, 3], [3, 4, 5]])):
            with raises((TypeError, ValueError)):
                rz.ingest(store, wrong, vertices=3, overwrite=True)
            assert edges() == 2
        with raises(ValueError, "one of them"):
            rz.ingest(store, new, overwrite=True, exist_ok=True)
        with rz.open(store, mode="w"):
            with raises(rz.Busy):
                rz.ingest(store, new, overwrite=True)
        with rz.open(store) as reader:
            assert rz.ingest(store, new, overwrite=True).edges == 3
            assert edges() == 3 and reader.num_edges == 2
        (path / "link.rz").symlink_to(store)
        assert rz.ingest(path / "link.rz", old, overwrite=True).edges == 2 and edges() == 2
        assert (path / "link.rz").is_symlink()
        (path / "notes").mkdir()
        (path / "notes" / "mine.txt").write_text("mine")
        (path / "file").write_text("mine")
        for other in ("notes", "file"):
            for options in ({"overwrite": True}, {"exist_ok": True}, {}):
                with raises(rz.AlreadyExists):
                    rz.ingest(path / other, new, **options)
        assert (path / "notes" / "mine.txt").read_text() == (path / "file").read_text() == "mine"
        next((store / "catalog").iterdir()).write_bytes(b"damaged")
        with raises(rz.Corruption):
            rz.create(store, exist_ok=True)  # a damaged store is one, too
        assert rz.ingest(store, new, overwrite=True).edges == 3 and edges() == 3
        assert sorted(entry.name for entry in path.iterdir()) == ["exist_ok.rz", "file", "g.rz", "link.rz", "notes",
                                                                  "overwrite.rz"]


def test_more_vertices_than_were_said():
    """`vertices` is the number of vertices: larger ids, or more rows, are an error that names both numbers."""
    edges = np.array([[0, 1, 7], [1, 2, 3]])
    with folder() as path:
        (path / "e.tsv").write_text("0\t1\n1\t2\n2\t3\n3\t4\n")
        for given, options in ((edges, {"arrays": {"x": np.zeros(8)}}), (edges % 5, {}), (path / "e.tsv", {})):
            with raises(ValueError, "vertices=2"):
                rz.ingest(path / "g.rz", given, vertices=2, **options)
        assert not (path / "g.rz").exists()
        assert rz.ingest(path / "g.rz", edges, vertices=8).vertices == 8


def test_files_of_arrays():
    """A file of float64 stays float64, as an array in memory does."""
    example = Example(RNG)
    wide = example.arrays["feat"].astype(np.float64)
    with folder() as path:
        np.save(path / "x.npy", wide)
        rz.ingest(path / "g.rz", example.edges, vertices=300, arrays={"x": path / "x.npy", "y": wide}, layout="chunk",
                  directions="in", scratch=path)
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(graph["x"][np.arange(300)], wide) and graph["x"].layout == "chunk"
            assert np.array_equal(np.asarray(graph["y"]), wide) and graph["x"].dtype == graph["y"].dtype == np.float64
            with raises(rz.InvalidArgument, "in"):
                graph.neighbors(1, "out")
        for wrong in ({"layout": "rows"}, {"directions": "up"}):
            with raises(ValueError):
                rz.ingest(path / "wrong.rz", example.edges, **wrong)


def test_homes_are_kept_and_measured():
    src, dst = RNG.integers(0, 400, 3000), RNG.integers(0, 400, 3000)
    own = RNG.integers(0, 4, 400).astype(np.int32)
    split = np.where(np.arange(400) % 3 == 0, 0, 2).astype(np.uint8)
    with folder() as path:
        np.savetxt(path / "own.txt", own, fmt="%d")
        reports = {name: rz.ingest(path / name, (src, dst), split=split, partitions=4, homes=homes).homes
                   for name, homes in {"cut": "edgecut", "owner": "owner", "own": own, "file": path / "own.txt"}.items()}
        assert rz.ingest(path / "none", (src, dst)).homes is None
        for name, facts in reports.items():
            with rz.open(path / name) as graph:
                home = np.asarray(graph["home"])[:, 0]
            apart = (home[src] != home[dst]).sum() / (src != dst).sum()
            rows, training = (np.bincount(home[chosen], minlength=4) for chosen in (split >= 0, split == 0))
            assert facts["homes"] == 4 and facts["training_vertices"] == (split == 0).sum()
            assert np.isclose(facts["cut_share"], apart)
            assert np.isclose(facts["row_balance"], rows.max() / rows.mean())
            assert np.isclose(facts["training_balance"], training.max() / training.mean())
            assert name not in ("own", "file") or np.array_equal(home, own)
        assert reports["cut"]["by"] == "edgecut" and reports["cut"]["warning"] is None
        assert reports["cut"]["cut_share"] < reports["own"]["cut_share"]
        with raises(rz.InvalidArgument, "home 3"):
            rz.ingest(path / "few", (src, dst), partitions=3, homes=own)
        with raises(rz.InvalidArgument, "rows"):
            rz.ingest(path / "short", (src, dst), partitions=4, homes=own[:300])


if __name__ == "__main__":
    run(sys.modules[__name__])
