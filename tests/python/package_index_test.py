#!/usr/bin/env python3
"""The index of a pandas table of vertices is its column of ids, numbers its rows, or is refused; in memory, in Arrow and in
Parquet."""
import importlib.util
import sys

from package import SEED, folder, logged, np, raises, run, rz

if importlib.util.find_spec("pandas") is None or importlib.util.find_spec("pyarrow") is None:
    print("skipped: no pandas or pyarrow here")
    sys.exit(77)
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402

RNG = np.random.default_rng(SEED)
COUNT = 50
EDGES = pd.DataFrame({"source": np.arange(COUNT), "target": np.roll(np.arange(COUNT), 1)})
AGES = RNG.permutation(COUNT) + 100


def shuffled(name=None, /, **more):
    """Vertices in random order, whose ids are the index."""
    ids = RNG.permutation(COUNT)
    return pd.DataFrame({"age": AGES[ids], **{key: values(ids) for key, values in more.items()}}, index=pd.Index(ids, name=name))


def forms(table, path):
    """The table in memory, as a table of Arrow, and in files."""
    table.to_parquet(path / "n.parquet")
    arrow = pa.Table.from_pandas(table)
    with pa.OSFile(str(path / "n.feather"), "wb") as file, pa.ipc.new_file(file, arrow.schema) as writer:
        writer.write_table(arrow)
    return {"pandas": table, "arrow": arrow, "parquet": path / "n.parquet", "feather": path / "n.feather"}


def ages_of(path, nodes, edges=EDGES):
    rz.ingest(path / "g.rz", edges, nodes=nodes, overwrite=True)
    with rz.open(path / "g.rz") as graph:
        return graph["age"][graph.at(list(range(COUNT)))].ravel().tolist(), sorted(graph.arrays)


def test_an_index_of_ids():
    with folder() as path:
        for name in ("id", "node", "Key", "name"):
            for form, nodes in forms(shuffled(name), path).items():
                assert ages_of(path, nodes) == (AGES.tolist(), ["age"]), (name, form)
        # Of an index and a column, that with the first name is of ids, as of two columns.
        table = shuffled("id", name=lambda ids: ids + 7)
        for form, nodes in forms(table, path).items():
            assert ages_of(path, nodes) == (AGES.tolist(), ["age", "name"]), form
        texts = pd.DataFrame({"age": [3, 4]}, index=pd.Index(["ann", "bob"], name="name"))
        for form, nodes in forms(texts, path).items():
            rz.ingest(path / "t.rz", (["bob"], ["ann"]), nodes=nodes, overwrite=True)
            with rz.open(path / "t.rz") as graph:
                assert graph["age"][["bob", "ann"]].ravel().tolist() == [4, 3], form
        with raises(ValueError, "id 1 occurs 2 times"):
            rz.ingest(path / "no.rz", EDGES, nodes=pd.DataFrame({"age": [1, 2]}, index=pd.Index([1, 1], name="id")))
        with raises(ValueError, "row 1 of 'id'"):
            rz.ingest(path / "no.rz", EDGES, nodes=pd.DataFrame({"age": [1, 2]}, index=pd.Index([1, None], name="id")))
        kinds = {"a": texts, "b": texts.rename(index=lambda name: name + "2")}
        rz.ingest(path / "kinds.rz", {("a", "to", "b"): (["ann"], ["bob2"])}, nodes=kinds)
        with rz.open(path / "kinds.rz") as graph:
            assert graph["age"][["bob", "ann2"]].ravel().tolist() == [4, 3]


def test_an_index_that_says_that_rows_are_no_vertices():
    """Without ids it is refused: values would be those of other vertices."""
    plain = pd.DataFrame({"age": AGES})
    levels = plain.set_index(pd.MultiIndex.from_arrays([np.arange(COUNT), np.arange(COUNT)], names=["a", "b"]))
    wrong = {"unnamed": shuffled(), "of another name": shuffled("paper"), "sample": plain.sample(frac=1, random_state=SEED % 1000),
             "range": pd.concat([plain, plain]).reset_index(drop=True)[COUNT:], "levels": levels,
             "texts": plain.rename(index=str), "backwards": plain[::-1],
             "periods": plain.set_index(pd.period_range("2020", periods=COUNT, freq="D"))}
    with folder() as path:
        for what, table in wrong.items():
            tables = {"pandas": table} if what == "periods" else forms(table, path)
            for form, nodes in tables.items():
                for call in (lambda: rz.ingest(path / "no.rz", EDGES, nodes=nodes),
                             lambda: rz.ingest(path / "no.rz", {("a", "to", "a"): EDGES}, nodes={"a": nodes})):
                    try:
                        call()
                    except ValueError as error:
                        text = str(error)
                    else:
                        raise AssertionError((what, form))
                    assert all(part in text for part in ("index", "reset_index(drop=True)", "'id'")), (what, form, text)
        # An index that was written as a column without a name.
        for column in ("Unnamed: 0", "__index_level_0__"):
            table = pd.DataFrame({column: np.arange(1, COUNT + 1), "age": AGES})
            with raises(ValueError, repr(column)):
                rz.ingest(path / "no.rz", EDGES, nodes=table)
            table[column] -= 1
            assert ages_of(path, table) == (AGES.tolist(), ["age"])
        assert not (path / "no.rz").exists()


def test_an_index_of_row_numbers():
    plain = pd.DataFrame({"age": AGES})
    numbers = plain.set_index(pd.Index(list(range(COUNT))))
    with folder() as path, logged() as said:
        for table in (plain, numbers, plain.set_index(pd.RangeIndex(COUNT, name="row"))):
            for form, nodes in forms(table, path).items():
                assert ages_of(path, nodes)[0] == AGES.tolist(), form
        # Rows that Arrow has taken keep what pandas wrote about all of them.
        rz.ingest(path / "part.rz", ([0], [1]), nodes=pa.Table.from_pandas(plain).slice(10, 5))
        with rz.open(path / "part.rz") as graph:
            assert graph["age"][np.arange(5)].ravel().tolist() == AGES[10:15].tolist()
    assert all("__index_level_0__" in note for note in said), said


def test_an_index_next_to_ids():
    """It is left out, with a note if it has a name."""
    table = shuffled(id=lambda ids: ids).reset_index(drop=True).sample(frac=1, random_state=SEED % 1000)
    with folder() as path:
        with logged() as said:
            assert ages_of(path, table) == (AGES.tolist(), ["age"])
        assert said == []
        with logged() as said:
            assert ages_of(path, table.rename_axis("row")) == (AGES.tolist(), ["age"])
        assert len(said) == 1 and "'row'" in said[0], said


def test_edges_and_arrays():
    """The index of a table of edges is left out, with a note unless it numbers rows; so is that of a Series."""
    want = list(zip(EDGES["source"], EDGES["target"]))
    with folder() as path:
        for table, notes in ((EDGES, 0), (EDGES[5:], 0), (EDGES.rename_axis("link"), 1), (EDGES.sample(frac=1), 1),
                             (EDGES.set_index(["source", "target"], drop=False), 1)):
            with logged() as said:
                rz.ingest(path / "g.rz", table, vertices=COUNT, overwrite=True)
            assert len(said) == notes and all("reset_index()" in note for note in said), said
            if len(table) == COUNT:
                with rz.open(path / "g.rz") as graph:
                    assert sorted(pair for block in graph.scan_edges() for pair in zip(block.src, block.dst)) == sorted(want)
        ages = pd.Series(AGES)
        for series, ids, notes in ((ages, None, 0), (ages.sample(frac=1), None, 1), (ages.sample(frac=1), np.arange(COUNT), 0)):
            with logged() as said:
                rz.ingest(path / "g.rz", EDGES, arrays={"age": series}, ids=ids, overwrite=True)
            assert len(said) == notes and all("'age'" in note for note in said), said


def test_arrays_in_files():
    """The index in a file of an array is no column of its rows, and says whose rows they are, too."""
    plain = pd.DataFrame({"a": AGES, "b": AGES + 1})
    with folder() as path:
        rz.ingest(path / "g.rz", EDGES)
        mixed = plain.sample(frac=1, random_state=SEED % 1000)
        mixed.to_parquet(path / "mixed.parquet")
        for call in (lambda: rz.add_array(path / "g.rz", "x", path / "mixed.parquet"),
                     lambda: rz.ingest(path / "no.rz", EDGES, arrays={"x": path / "mixed.parquet"})):
            with raises(ValueError, "reset_index(drop=True)"):
                call()
        rz.add_array(path / "g.rz", "given", path / "mixed.parquet", ids=mixed.index)
        mixed.rename_axis("id").to_parquet(path / "ids.parquet")
        rz.add_array(path / "g.rz", "own", path / "ids.parquet")
        plain.set_index(pd.Index(list(range(COUNT)))).to_parquet(path / "numbers.parquet")
        rz.add_array(path / "g.rz", "numbers", path / "numbers.parquet")
        with rz.open(path / "g.rz") as graph:
            for name in ("given", "own", "numbers"):
                assert np.array_equal(graph[name][np.arange(COUNT)], plain.to_numpy()), name


if __name__ == "__main__":
    run(sys.modules[__name__])
