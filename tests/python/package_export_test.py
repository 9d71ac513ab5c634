#!/usr/bin/env python3
"""`Graph.export` writes a folder from which `ingest` creates the same store."""
import json
import sys

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def content(path):
    with rz.open(path) as graph:
        ids = graph.external_ids(np.arange(graph.num_vertices))
        edges = sorted((src, graph.edge_types[kind], dst, float(weight))
                       for block in graph.scan_edges()
                       for src, kind, dst, weight in zip(graph.external_ids(block.src), block.types,
                                                         graph.external_ids(block.dst), block.weights))
        arrays = {name: graph[name][np.arange(graph.num_vertices)].tobytes() for name in ("x", "label", "wide")}
        return list(ids), graph.vertex_types, graph.edge_types, edges, arrays


def test_round_trip():
    with folder() as path:
        n = 20
        lines = [f"v {RNG.integers(n)}\t{('part of', '/people/person')[RNG.integers(2)]}\tv {RNG.integers(n)}\t{i / 4}"
                 for i in range(60)]
        (path / "e.tsv").write_text("\n".join(lines + ["v 0\tpart of\tv 1\t1", "v 1\t/people/person\tv 2\t2"]) + "\n")
        (path / "n.tsv").write_text("".join(f"v {i}\t{i % 3 - 1}\n" for i in range(n)))
        rz.ingest(path / "g.rz", path / "e.tsv", columns=["src", "type", "dst", "weight"], nodes=path / "n.tsv",
                  node_columns=["id", "label"],
                  arrays={"x": RNG.normal(size=n), "wide": RNG.integers(0, 99, (n, 3)).astype(np.int32)})
        with rz.open(path / "g.rz") as graph:
            report = graph.export(path / "out", memory="1M")
            assert str(path / "out" / "arrays" / "x.npy") in report.files and not report.notes
            with raises(rz.AlreadyExists):
                graph.export(path / "out")
            with raises(rz.InvalidArgument):
                graph.export(path / "g.rz" / "out")
        assert np.load(path / "out" / "arrays" / "wide.npy").shape == (n, 3)
        assert json.loads((path / "out" / "rhizome.json").read_text())["ids"] == "text"
        rz.ingest(path / "again.rz", path / "out", partitions=2)
        assert content(path / "again.rz") == content(path / "g.rz")
        with raises(ValueError, "arrays"):
            rz.ingest(path / "x.rz", path / "out", arrays={"y": np.ones(n)})
        with raises(rz.InvalidArgument):
            rz.ingest(path / "x.rz", path / "out", header=False)
        assert not (path / "x.rz").exists()


if __name__ == "__main__":
    run(sys.modules[__name__])
