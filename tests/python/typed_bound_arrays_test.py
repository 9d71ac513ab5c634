#!/usr/bin/env python3
"""Arrays that are bound to a vertex type, in Python: a dict by vertex against what the store returns, and Zarr."""
import copy
import pathlib
import sys

import xarray
import zarr

from package import SEED, folder, logged, np, raises, run, rz

RNG = np.random.default_rng(SEED)
AUTHORS, PAPERS = 400, 300


def make(store):
    """Papers are the vertices 0 to 299, authors the rest."""
    writes = RNG.integers(AUTHORS, size=2000), RNG.integers(PAPERS, size=2000)
    rz.ingest(store, {("author", "writes", "paper"): writes}, vertex_types={"paper": PAPERS, "author": AUTHORS},
              partitions=4)


def rows_of(count):
    return RNG.normal(size=(count, 3)).astype(np.float32)


def check(store, model):
    """`model`: the rows by vertex; the papers that are not in it have zeros."""
    with rz.open(store) as graph:
        papers = graph.vertices_of("paper")
        want = np.array([model.get(int(v), np.zeros(3)) for v in papers], np.float32)
        assert np.array_equal(graph["feat"][papers], want)
        scanned = {int(v): row for vertices, rows in graph["feat"].batches() for v, row in zip(vertices, rows)}
        assert sorted(scanned) == sorted(papers.tolist())
        assert all(np.array_equal(scanned[int(v)], row) for v, row in zip(papers, want))
        author = int(graph.vertices_of("author")[0])
        with raises(rz.InvalidArgument, "has the type 'author', but array 'feat' has rows of the type 'paper' only"):
            graph["feat"][[author]]
    assert rz.verify(store).ok


def check_zarr(store, model):
    """After a compaction: what programs see that read the files as Zarr."""
    with rz.open(store) as graph:
        place = pathlib.Path(graph["feat"].folder)
        types = graph.vertex_types
        papers = set(graph.vertices_of("paper").tolist())
    group = zarr.open_group(place.parent, mode="r")
    assert group.attrs["rhizome"]["vertex_types"] == types == ["paper", "author"]
    vertex, kind, rows = group["vertex_id"][:], group["vertex_type"][:], group["feat"][:]
    assert kind.dtype == np.int32
    for v, type, row in zip(vertex, kind, rows):
        if v >= 0:
            assert (types[type] == "paper") == (int(v) in papers)
        if types[type] == "paper" and v >= 0:
            assert np.array_equal(row, model.get(int(v), np.zeros(3))), v
        elif types[type] != "paper":
            assert np.isnan(row).all(), v
    dataset = xarray.open_zarr(place.parent, consolidated=False, zarr_format=3)
    assert {"vertex_id", "vertex_type"} <= set(dataset.coords)
    files, chunks = len(list(place.glob("c.*"))), group["feat"].nchunks
    assert files < chunks, (files, chunks)


def test_a_model_by_vertex():
    with folder() as path:
        store = path / "g.rz"
        make(store)
        feat = rows_of(PAPERS - 20)
        with logged() as said:
            report = rz.add_array(store, "feat", feat, vertex_type="paper")
        assert (report.rows_given, report.rows_read) == (PAPERS - 20, PAPERS - 20)
        assert "280 of 300 vertices of type 'paper'" in said[-1] and report.notes == said[-1:]
        model = dict(enumerate(feat))
        check(store, model)
        for step in range(6):
            with rz.open(store, mode="w") as graph:
                papers = graph.vertices_of("paper")
                with graph.batch() as batch:
                    for v in RNG.choice(papers, 10, replace=False).tolist():
                        model[v] = rows_of(1)[0]
                        batch.put_row("feat", v, model[v])
                    for v in RNG.choice([v for v in papers.tolist() if v >= 0], 2, replace=False).tolist():
                        batch.delete_vertex(v)
                        model.pop(v, None)
                if step % 2 == 1:
                    graph.compact(repartition=step == 3)
            check(store, model)
            if step % 2 == 1:
                check_zarr(store, model)
        rz.backup(store, path / "backups")
        rz.restore(path / "backups", path / "again.rz")
        check(path / "again.rz", model)


class ThreeTypes:
    """A model of a store: the type of each vertex by id, and the rows of two bound arrays and of an array of all."""

    WIDTHS = {"feat": (5, np.float32, "paper"), "score": (2, np.int64, "author"), "year": (2, np.int32, None)}
    COUNTS = {"paper": 150, "author": 90, "venue": 12}

    def __init__(self):
        names = [name for name, count in self.COUNTS.items() for _ in range(count)]
        self.types = dict(enumerate(names))
        self.rows = {array: {v: self.row(array) for v in self.types if self.has(array, v)} for array in self.WIDTHS}

    def has(self, array, v):
        return self.WIDTHS[array][2] in (None, self.types[v])

    def row(self, array):
        width, dtype, _ = self.WIDTHS[array]
        return RNG.integers(-9, 9, width).astype(dtype)

    def ingest(self, store):
        papers, authors, venues = (np.array([v for v, type in self.types.items() if type == name])
                                   for name in self.COUNTS)
        edges = {("author", "writes", "paper"): (RNG.integers(90, size=600), RNG.integers(150, size=600)),
                 ("paper", "appears in", "venue"): (np.arange(150), RNG.integers(12, size=150))}
        rz.ingest(store, edges, vertex_types=self.COUNTS, partitions=3,
                  arrays={"year": np.stack([self.rows["year"][v] for v in self.types])})
        rz.add_array(store, "feat", np.stack([self.rows["feat"][v] for v in papers]), vertex_type="paper")
        rz.add_array(store, "score", np.stack([self.rows["score"][v] for v in authors]), vertex_type="author")

    def write(self, store):
        """Puts rows and new vertices, and deletes others."""
        with rz.open(store, mode="w") as graph, graph.batch() as batch:
            for v in RNG.choice(list(self.types), 4, replace=False).tolist():
                batch.delete_vertex(v)
                del self.types[v]
                for rows in self.rows.values():
                    rows.pop(v, None)
            for type in self.COUNTS:
                v = int(RNG.integers(1 << 40, 1 << 50))
                batch.put_vertex(v, type)
                self.types[v] = type
                for array, (width, dtype, _) in self.WIDTHS.items():
                    if self.has(array, v):
                        self.rows[array][v] = np.zeros(width, dtype)
            for array, rows in self.rows.items():
                for v in RNG.choice(list(rows), 6, replace=False).tolist():
                    rows[v] = self.row(array)
                    batch.put_row(array, v, rows[v])

    def check(self, store):
        with rz.open(store) as graph:
            found = {}
            for type in self.COUNTS:
                vertices = graph.vertices_of(type)
                found |= dict.fromkeys(graph.external_ids(vertices), type)
                for array, rows in self.rows.items():
                    if self.WIDTHS[array][2] not in (None, type):
                        with raises(rz.InvalidArgument, f"has the type '{type}'"):
                            graph[array][vertices[:1]]
                        continue
                    want = np.stack([rows[v] for v in graph.external_ids(vertices)])
                    got = graph[array][vertices]
                    assert got.dtype == want.dtype and np.array_equal(got, want), (array, type)
            assert found == self.types
            for array, (_, _, type) in self.WIDTHS.items():
                assert graph.arrays[array].vertex_type == type
                scanned = sorted(v for vertices, _ in graph[array].batches() for v in graph.external_ids(vertices))
                assert scanned == sorted(self.rows[array]), array
        assert rz.verify(store).ok

    def repair(self, store):
        """Damages a file of each bound array; its checksum tells which byte is wrong."""
        for array, (_, _, type) in self.WIDTHS.items():
            newest = max(store.glob("generations/*"), key=lambda generation: int(generation.name.split("-")[-1]))
            victim = max((file for file in newest.glob(f"arrays/{array}/**/c*") if file.is_file()),
                         key=lambda file: file.stat().st_size)
            data = bytearray(victim.read_bytes())
            data[len(data) // 2] ^= 4
            victim.write_bytes(data)
            assert not rz.verify(store).ok
            done = rz.repair(store)
            assert done.ok and len(done.rebuilt) == 1 and not done.lost, (array, done)


def test_three_types_through_writes_compactions_repairs_backups_and_exports():
    with folder() as path:
        store = path / "g.rz"
        model = ThreeTypes()
        model.ingest(store)
        model.check(store)
        for step in range(3):
            model.write(store)
            model.check(store)
            with rz.open(store, mode="w") as graph:
                graph.compact(repartition=step == 1)
            model.check(store)
            model.repair(store)
            model.check(store)
        model.write(store)
        rz.backup(store, path / "copies")
        saved = copy.deepcopy(model)
        model.write(store)
        rz.restore(path / "copies", path / "restored.rz")
        saved.check(path / "restored.rz")
        model.check(store)
        with rz.open(store) as graph:
            graph.export(path / "out")
        rz.ingest(path / "again.rz", path / "out", partitions=2)
        model.check(path / "again.rz")


def test_bad_input():
    with folder() as path:
        store = path / "g.rz"
        make(store)
        for wrong, text in (({"vertex_type": "editor"}, "vertex types: paper, author"),
                            ({"vertex_type": "paper"}, "400 rows, but the graph has 300 vertices of type 'paper'")):
            with raises(rz.InvalidArgument, text):
                rz.add_array(store, "feat", rows_of(AUTHORS), **wrong)
        with raises(TypeError):
            rz.add_array(store, "feat", rows_of(3), vertex_type=3)
        rz.add_array(store, "feat", rows_of(PAPERS), vertex_type="paper")
        with rz.open(store, mode="w") as graph:
            author = int(graph.vertices_of("author")[0])
            with raises(rz.InvalidArgument, "has the type 'author'"), graph.batch() as batch:
                batch.put_row("feat", author, rows_of(1)[0])
        assert rz.verify(store).ok


def test_a_loader_logs_which_type_has_no_features():
    with folder() as path, logged() as said:
        store = path / "g.rz"
        make(store)
        rz.add_array(store, "feat", rows_of(PAPERS), vertex_type="paper")
        with rz.open(store) as graph:
            seeds = graph.vertices_of("paper")[:4]
            batch = next(iter(rz.Loader(graph, [2], features={"paper": "feat"}, seeds=seeds)))
            assert list(batch.x) == ["paper"]
        assert sum("vertices of type author have no features" in text for text in said) == 1, said


if __name__ == "__main__":
    run(sys.modules[__name__])
