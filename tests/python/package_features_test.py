#!/usr/bin/env python3
"""`feature_columns` of tables gives the array that a text file with the same columns gives."""
import importlib.util
import sys

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


class Mapped:
    """A table by names: what of pyarrow's Table `ingest` uses."""

    def __init__(self, columns=(), **more):
        self._columns = dict(columns, **more)
        self.column_names = list(self._columns)
        self.column = self._columns.__getitem__


def features_of(path, nodes, wanted, ids, **options):
    """The array feat in the order of the ids, the names of all arrays, and the notes about it."""
    edges = (ids[:-1], ids[1:])
    report = rz.ingest(path / "g.rz", edges, nodes=nodes, feature_columns=wanted, overwrite=True, **options)
    with rz.open(path / "g.rz") as graph:
        assert graph["feat"].dtype == np.float32
        return graph["feat"][graph.at(ids)], sorted(graph.arrays), [note for note in report.notes if "feat" in note]


def test_as_from_a_text_file():
    count = 40
    ids = [f"v{i}" for i in range(count)]
    columns = {"id": ids, "age": RNG.integers(-9, 90, count), "label": RNG.integers(0, 3, count), "height": RNG.random(count),
               "member": RNG.random(count) < 0.5, "note": [f"n{i}" for i in range(count)], "gap": RNG.integers(0, 9, count)}
    missing = np.arange(count) % 5 == 2
    lines = [",".join(columns)] + [",".join("" if name == "gap" and missing[i] else str(values[i]).lower()
                                            for name, values in columns.items()) for i in range(count)]
    table = Mapped(columns, id=np.array(ids), note=np.array(columns["note"]), gap=np.ma.MaskedArray(columns["gap"], missing))
    with folder() as path:
        (path / "n.csv").write_text("\n".join(lines) + "\n")
        tables = {"mapped": table}
        if importlib.util.find_spec("pandas") and importlib.util.find_spec("pyarrow"):
            import pandas as pd
            frame = pd.DataFrame({**columns, "gap": pd.Series(columns["gap"]).astype("Int64").mask(missing)})
            frame.to_parquet(path / "n.parquet", row_group_size=7)
            tables |= {"pandas": frame, "parquet": path / "n.parquet", "index": frame.set_index("id"),
                       "floats": frame.assign(gap=frame["gap"].astype("float64"))}
        for wanted in (["gap", "age"], "all", ["member", "height"], ("height",)):
            feat, arrays, notes = features_of(path, path / "n.csv", wanted, ids)
            for form, nodes in tables.items():
                own, own_arrays, own_notes = features_of(path, nodes, wanted, ids)
                assert np.array_equal(own, feat, equal_nan=True), (form, wanted)
                assert (own_arrays, own_notes) == (arrays, notes), (form, own_arrays, arrays, own_notes, notes)
            if "gap" in wanted:
                assert np.isnan(feat).any(axis=1).tolist() == missing.tolist()
        feat, arrays, _ = features_of(path, table, ["age"], ids, random_split=(.5, .25, .25))
        assert arrays == ["feat", "gap", "height", "label", "member", "note", "split"]
        typed = {"a": Mapped(id=np.array(["p", "q"]), x=np.array([1, 2])), "b": Mapped(id=np.array(["r"]), z=np.array([0.5]))}
        rz.ingest(path / "typed.rz", {("a", "to", "b"): (["p"], ["r"])}, nodes=typed, feature_columns="all")
        with rz.open(path / "typed.rz") as graph:
            want = np.array([[1, np.nan], [2, np.nan], [np.nan, 0.5]], np.float32)
            assert np.array_equal(graph["feat"][["p", "q", "r"]], want, equal_nan=True)


def test_refusals():
    table = Mapped(id=np.array([0, 1]), a=np.array([1, 2]), t=np.array(["2020", "2021"], "datetime64[us]"),
                   x=np.array(["p", "q"]), label=np.array([0, 1]), rows=np.ones((2, 3)), whole=np.array([1, 2**53 + 1]),
                   huge=np.array([1.0, 1e300]), gaps=np.ma.MaskedArray([True, False], [True, False]))
    with folder() as path:
        for wanted, text in ((["b"], "no column 'b'"), (["label"], "no column 'label'"), (["a", "x"], "'x' has texts"),
                             (["t"], "'t' has times"), (["rows"], "several values"), (["whole"], "row 1"),
                             (["huge"], "row 1 of 'huge'"), (["gaps"], "missing bools")):
            with raises(ValueError, text):
                rz.ingest(path / "g.rz", ([0], [1]), nodes=table, feature_columns=wanted)
        with raises(ValueError, "no column of numbers"):
            rz.ingest(path / "g.rz", ([0], [1]), nodes=Mapped(x=np.array(["p", "q"])), feature_columns="all")
        for options in ({}, {"arrays": {"a": np.ones(2)}}):
            with raises(ValueError, "nodes="):
                rz.ingest(path / "g.rz", ([0], [1]), feature_columns=["a"], **options)
        with raises(ValueError, "'feat'"):
            rz.ingest(path / "g.rz", ([0], [1]), nodes=table, feature_columns=["a"], arrays={"feat": np.ones(2)})
        assert not (path / "g.rz").exists()


if __name__ == "__main__":
    run(sys.modules[__name__])
