#!/usr/bin/env python3
"""`rhizome.sniff` and `ingest` of files: what pandas or NumPy write is read back as it was."""
import bz2
import gzip
import lzma
import sys

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def edges_of(path):
    with rz.open(path) as graph:
        found = []
        for block in graph.scan_edges():
            found += zip(graph.external_ids(block.src), graph.external_ids(block.dst))
        return sorted(found)


def test_plans():
    with folder() as path:
        (path / "a.csv").write_text("# x\nTarget;Weight;Source\n2;0.5;1\n3;1;2\n")
        plan = rz.sniff(path / "a.csv")
        assert plan.columns == ["dst", "weight", "src"] and plan.id_kind == "integer" and not plan.node_columns
        (file,) = plan.files
        assert (file.kind, file.format, file.delimiter, file.header, file.comments) == (
            "edges", "text", "semicolon", True, "#")
        assert (file.rows, file.comment_lines, file.bad_lines, file.whole, file.compression) == (2, 1, 0, True, None)
        assert [tuple(column) for column in file.columns] == [
            ("dst", "integer", "Target"), ("weight", "number", "Weight"), ("src", "integer", "Source")]
        assert "delimiter semicolon, header, 2 rows" in repr(plan) and "src (integer) 'Source'" in repr(plan)
        with gzip.open(path / "n.tsv", "wt") as nodes:
            nodes.write("name\tage\nann\t3\nbob\t4\n")
        np.save(path / "feat.npy", np.ones((2, 3), np.float32))
        both = rz.sniff([path / "n.tsv", path / "feat.npy"])
        assert [file.kind for file in both.files] == ["nodes", "array"] and both.files[1].array == "feat"
        assert both.node_columns == ["id", "age"] and both.id_kind == "string" and both.files[0].compression == "gzip"
        for module, name in ((bz2, "bzip2"), (lzma, "xz")):
            with module.open(path / "p.tsv", "wt") as packed:
                packed.write("1\t2\n2\t3\n")
            assert rz.sniff(path / "p.tsv").files[0].compression == name
            rz.ingest(path / f"{name}.rz", path / "p.tsv")
            assert edges_of(path / f"{name}.rz") == [(1, 2), (2, 3)]
        assert rz.sniff([], edges=path / "a.csv", columns=["-", "src", "dst"]).columns == ["-", "src", "dst"]
        assert any("looks like a header" in note for note in rz.sniff(path / "a.csv", columns=["dst", "weight", "src"],
                                                                      header=False).notes)


def test_refusals_name_keywords():
    with folder() as path:
        (path / "w.tsv").write_text("0\t1\t0.5\n1\t2\t0.25\n")
        (path / "p.csv").write_text("person,friend\n1,2\n2,3\n")
        for call in (rz.sniff, lambda file: rz.ingest(path / "no.rz", file)):
            with raises(rz.InvalidArgument, "columns=['src', 'dst', 'weight']"):
                call(path / "w.tsv")
            with raises(rz.InvalidArgument, "header=False"):
                call(path / "p.csv")
        with raises(rz.StoreNotFound, "absent"):
            rz.sniff(path / "absent.csv")
        with raises(ValueError, "delimiter"):
            rz.sniff(path / "w.tsv", delimiter="colon")
        assert not (path / "no.rz").exists()


def test_tables_need_no_sniffing():
    with folder() as path:
        for name, head in (("t.parquet", b"PAR1"), ("t.feather", b"ARROW1\0\0"), ("t.stream", b"\xff\xff\xff\xff")):
            (path / name).write_bytes(head + bytes(100))
            for call in (lambda: rz.sniff(path / name), lambda: rz.sniff([], edges=path / name), lambda: rz.sniff([], nodes=path / name),
                         lambda: rz.sniff([], arrays={"x": path / name})):
                with raises(rz.InvalidArgument, f"{name}' is a table of Parquet or Arrow"):
                    call()
                with raises(rz.InvalidArgument, "rz.ingest accepts the path itself"):
                    call()


def test_what_numpy_writes():
    src, dst = RNG.integers(0, 50, (2, 300))
    expected = sorted(zip(src.tolist(), dst.tolist()))
    with folder() as path:
        pairs = np.stack([src, dst], 1)
        for number, options in enumerate(({}, {"delimiter": ","}, {"delimiter": ", "}, {"delimiter": "\t"},
                                          {"header": "source target"}, {"header": "a comment", "fmt": "%6d"})):
            comments = {"comments": "" if options.get("header") == "source target" else "# "}
            np.savetxt(path / "e.txt", pairs, **{"fmt": "%d", **options, **comments})
            report = rz.ingest(path / f"{number}.rz", path / "e.txt", vertices=50)
            assert edges_of(path / f"{number}.rz") == expected and report.edges == 300, options
        for name, array in {"a": pairs, "b": pairs.T, "c": pairs.astype(np.int32), "d": np.asfortranarray(pairs),
                            "e": np.asfortranarray(pairs.T).astype(np.uint8)}.items():
            np.save(path / f"{name}.npy", array)
            rz.ingest(path / f"{name}.rz", path / f"{name}.npy", vertices=50)
            assert edges_of(path / f"{name}.rz") == expected, name
        x = RNG.normal(size=(50, 4)).astype(np.float32)
        np.savetxt(path / "x.csv", x, delimiter=",", header="a,b,c,d", comments="", fmt="%.9g")
        for save in (np.savez, np.savez_compressed):
            save(path / "x.npz", feat=x, other=x + 1)
            rz.ingest(path / f"{save.__name__}.rz", pairs.T, arrays={"x": path / "x.csv", "y": f"{path}/x.npz:other"})
            with rz.open(path / f"{save.__name__}.rz") as graph:
                assert np.array_equal(np.asarray(graph["x"]), x) and np.array_equal(np.asarray(graph["y"]), x + 1)


def test_notes():
    with folder() as path:
        (path / "r.csv").write_text("user_id,item_id\n1,1\n2,1\n")
        report = rz.ingest(path / "r.rz", path / "r.csv")
        assert any("'user:1' and 'item:1'" in note for note in report.notes)
        assert edges_of(path / "r.rz") == [("user:1", "item:1"), ("user:2", "item:1")]
        assert rz.ingest(path / "g.rz", [[0], [1]]).notes == []


if __name__ == "__main__":
    run(sys.modules[__name__])
