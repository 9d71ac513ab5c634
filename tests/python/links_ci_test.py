#!/usr/bin/env python3
"""`rz.evaluate` and `Graph.top_links` give the ranks and links that NumPy computes: on a small knowledge graph with text
ids, and on wn18rr (RHIZOME_TEST_DATA) with a random table. Rows are whole numbers, so that scores are exact and many are
equal. `rz.train` reports the figures of its test set, which NumPy computes from the published rows."""
import json
import os
import pathlib
import struct
import subprocess
import sys

from package import SEED, folder, np, raises, rz
from numcodecs import Zstd

RNG = np.random.default_rng(SEED)
DIM = 16

if not list((pathlib.Path(os.environ["RHIZOME_BUILD"]) / "lib").glob("librhizome_gnn.so*")):
    print("this build has no librhizome_gnn: nothing to test")
    sys.exit(77)


def save_decoder(path, tensors, **metadata):
    """A safetensors file."""
    header, data = {"__metadata__": metadata}, b""
    for name, values in sorted(tensors.items()):
        values = np.ascontiguousarray(values, np.float32)
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load_tensor(path, name):
    """A tensor of a safetensors file."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])[name]
    first, end = header["data_offsets"]
    return np.frombuffer(data[8 + length:][first:end], np.float32).reshape(header["shape"])


def ranks(rows, relations, test, known):
    """Ranks of the destination and the source of each edge, by DistMult: 1 + better + equal / 2, filtered."""
    found = []
    ends = {}
    for h, r, t in known:
        ends.setdefault((h, r, "dst"), set()).add(t)
        ends.setdefault((t, r, "src"), set()).add(h)
    for h, r, t in test:
        for given, truth, side in ((h, t, "dst"), (t, h, "src")):
            scores = rows @ (rows[given] * relations[r])
            others = np.ones(len(rows), bool)
            others[list(ends.get((given, r, side), set()) | {truth})] = False
            better = np.count_nonzero(scores[others] > scores[truth])
            equal = np.count_nonzero(scores[others] == scores[truth])
            found.append(1 + better + equal / 2)
    return np.array(found)


def expect_figures(report, wanted):
    assert report["ranks"] == len(wanted)
    assert abs(report["mrr"] - np.mean(1 / wanted)) < 1e-12, (report["mrr"], np.mean(1 / wanted))
    assert abs(report["mean_rank"] - wanted.mean()) < 1e-6
    for k in (1, 3, 10):
        assert abs(report["hits"][str(k)] - np.mean(wanted <= k)) < 1e-12, k


class Small:
    """A knowledge graph of 200 entities with text ids, and two relations."""

    def __init__(self, path):
        self.names = [f"e,{i}" if i % 7 == 0 else f"e{i}" for i in range(200)]
        self.types = ["likes", "knows"]
        drawn = {tuple(map(int, edge)) for edge in zip(RNG.integers(0, 200, 1500), RNG.integers(0, 2, 1500),
                                                       RNG.integers(0, 200, 1500))}
        edges = sorted(drawn)
        RNG.shuffle(edges)
        self.test, self.valid, self.train = edges[:80], edges[80:130], edges[130:]
        self.store = path / "g.rz"
        lines = "".join(self.line(edge) for edge in self.train)
        (path / "train.tsv").write_text(lines)
        self.rows = RNG.integers(-2, 3, (200, DIM)).astype(np.float32)
        np.save(path / "rows.npy", self.rows)
        (path / "nodes.tsv").write_text("".join(name + "\n" for name in self.names))
        rz.ingest(self.store, path / "train.tsv", columns=["src", "type", "dst"], nodes=path / "nodes.tsv",
                  node_columns=["id"], arrays={"ent": path / "rows.npy"})
        self.relations = RNG.integers(-2, 3, (2, DIM)).astype(np.float32)
        self.decoder = path / "d.safetensors"
        save_decoder(self.decoder, {"relations": self.relations}, decoder="distmult",
                     relation_names=json.dumps(self.types))

    def line(self, edge):
        return f"{self.names[edge[0]]}\t{self.types[edge[1]]}\t{self.names[edge[2]]}\n"

    def ids(self, edges):
        return [(self.names[h], self.names[t], self.types[r]) for h, r, t in edges]


def test_evaluate():
    with folder() as path:
        small = Small(path)
        known = small.train + small.test + small.valid
        wanted = ranks(small.rows, small.relations, small.test, known)
        (path / "test.tsv").write_text("".join(map(small.line, small.test)))
        (path / "valid.tsv.zst").write_bytes(Zstd().encode("".join(map(small.line, small.valid)).encode()))
        options = {"array": "ent", "decoder": small.decoder}
        expect_figures(rz.evaluate(small.store, test=path / "test.tsv", valid=path / "valid.tsv.zst", **options), wanted)
        half = len(small.valid) // 2
        report = rz.evaluate(small.store, test=small.ids(small.test), memory="64M", threads=1, columns="src,dst,type",
                             filter=[small.ids(small.valid[:half]), small.ids(small.valid[half:])], **options)
        expect_figures(report, wanted)
        assert report["edges"] == 80
        # The filter must not forget the validation set.
        without = ranks(small.rows, small.relations, small.test, small.train + small.test)
        expect_figures(rz.evaluate(small.store, test=path / "test.tsv", **options), without)
        with raises(rz.InvalidArgument, "allow_leaked"):
            rz.evaluate(small.store, test=small.ids(small.train[:3]), **options)
        assert rz.evaluate(small.store, test=small.ids(small.train[:3]), allow_leaked=True, **options)["leaked_edges"] == 3
        with raises(rz.NotFound, "nobody"):
            rz.evaluate(small.store, test=[*small.ids(small.test), ("nobody", "e1", "likes")], **options)
        report = rz.evaluate(small.store, test=[*small.ids(small.test), ("nobody", "e1", "likes")], max_bad_lines=1,
                             **options)
        assert report["bad_lines"] == 1 and report["edges"] == 80


def test_integer_ids():
    with folder() as path:
        edges = np.unique(np.stack([RNG.integers(0, 60, 300), RNG.integers(0, 60, 300)]), axis=1)
        RNG.shuffle(edges, axis=1)
        rows = RNG.integers(-2, 3, (60, DIM)).astype(np.float32)
        rz.ingest(path / "g.rz", edges[:, 30:], vertices=60, arrays={"ent": rows})
        triples = np.stack([edges[0], np.zeros_like(edges[0]), edges[1]]).T
        wanted = ranks(rows, np.ones((1, DIM)), triples[:30].tolist(), triples.tolist())
        for test in (edges[:, :30].T, np.stack([edges[0, :30], edges[1, :30], np.zeros(30, int)]).T):
            expect_figures(rz.evaluate(path / "g.rz", array="ent", test=test), wanted)
        with raises(rz.InvalidArgument):
            rz.evaluate(path / "g.rz", array="ent", test=np.zeros((3, 4), int))
        with rz.open(path / "g.rz") as graph:
            links = graph.top_links(7, array="ent", k=5)
            scores = rows @ rows[7]
            scores[7] = -np.inf
            order = np.lexsort((np.arange(60), -scores))[:5]
            assert [(link.id, link.score) for link in links] == [(int(v), float(scores[v])) for v in order]


def test_undirected():
    """An edge of an undirected store is known from both ends, and so is an edge of a test or validation set."""
    with folder() as path:
        pairs = sorted({(min(a, b), max(a, b)) for a, b in zip(RNG.integers(0, 80, 400).tolist(), RNG.integers(0, 80, 400).tolist())
                        if a != b})
        RNG.shuffle(pairs)
        # Each edge has its ends in any order, also in the files.
        edges = np.array([pair if RNG.random() < .5 else pair[::-1] for pair in pairs])
        rows = RNG.integers(-2, 3, (80, DIM)).astype(np.float32)
        rz.ingest(path / "g.rz", edges[60:].T, vertices=80, undirected=True, arrays={"ent": rows})
        both = [(a, 0, b) for a, b in edges.tolist()] + [(b, 0, a) for a, b in edges.tolist()]
        test = [(a, 0, b) for a, b in edges[:40].tolist()]
        ones = np.ones((1, DIM))
        expect_figures(rz.evaluate(path / "g.rz", array="ent", test=edges[:40], valid=edges[40:60]), ranks(rows, ones, test, both))
        half = [(a, 0, b) for a, b in edges[60:].tolist()]
        assert not np.array_equal(ranks(rows, ones, test, both), ranks(rows, ones, test, half))
        # An edge of the store is leaked in either order.
        for order in (1, -1):
            with raises(rz.InvalidArgument, "5 of the 5"):
                rz.evaluate(path / "g.rz", array="ent", test=edges[60:65, ::order])
        with rz.open(path / "g.rz") as graph:
            links = graph.top_links(7, array="ent", k=20, known="drop")
            near = {b for a, _, b in [(a, 0, b) for a, b in edges[60:].tolist()] + [(b, 0, a) for a, b in edges[60:].tolist()]
                    if a == 7}
            scores = rows @ rows[7]
            left = sorted((v for v in range(80) if v != 7 and v not in near), key=lambda v: (-scores[v], v))
            assert [(link.id, link.score) for link in links] == [(v, float(scores[v])) for v in left[:20]]


def test_bound_array():
    """An array that is bound to a vertex type ranks edges between its vertices; others are refused by name."""
    with folder() as path:
        types = ["paper" if i % 3 else "author" for i in range(90)]
        papers = [i for i in range(90) if types[i] == "paper"]
        edges = np.array(sorted({(int(RNG.choice(papers)), int(RNG.choice(papers))) for _ in range(300)}))
        RNG.shuffle(edges)
        wrote = np.array([(i - i % 3, i) for i in papers])  # from authors
        lines = [f"n{a}\tcites\tn{b}\n" for a, b in edges[30:]] + [f"n{a}\twrote\tn{b}\n" for a, b in wrote]
        (path / "edges.tsv").write_text("".join(lines))
        (path / "nodes.tsv").write_text("id\tntype\n" + "".join(f"n{i}\t{kind}\n" for i, kind in enumerate(types)))
        rows = RNG.integers(-2, 3, (90, DIM)).astype(np.float32)
        np.save(path / "papers.npy", rows[papers])
        subprocess.run([os.environ["RHIZOME"], "ingest", path / "g.rz", "--edges", path / "edges.tsv", "--columns", "src,type,dst",
                        "--nodes", path / "nodes.tsv", "--array", f"paper:ent={path / 'papers.npy'}", "--partitions", "2"],
                       check=True, capture_output=True)
        triples = np.stack([edges[:, 0], np.zeros(len(edges), int), edges[:, 1]], axis=1).tolist()
        named = [(f"n{a}", f"n{b}", "cites") for a, b in edges[:30]]
        # Authors have no rows and are no candidates.
        place = {v: i for i, v in enumerate(papers)}
        local = [(place[a], 0, place[b]) for a, _, b in triples]
        wanted = ranks(rows[papers], np.ones((1, DIM)), local[:30], local)
        for candidates in ("type", "all"):
            expect_figures(rz.evaluate(path / "g.rz", array="ent", test=named, candidates=candidates), wanted)
        with raises(rz.InvalidArgument, "type paper only"):
            rz.evaluate(path / "g.rz", array="ent", test=[(f"n{wrote[0, 0]}", "n1", "wrote")], allow_leaked=True)
        with rz.open(path / "g.rz") as graph:
            vertex_of = {i: graph.find(f"n{i}") for i in papers}
            links = graph.top_links(f"n{papers[3]}", array="ent", type="cites", k=8)
            scores = rows @ rows[papers[3]]
            left = sorted((v for v in papers if v != papers[3]), key=lambda v: (-scores[v], vertex_of[v]))
            assert [(link.id, link.score) for link in links] == [(f"n{v}", float(scores[v])) for v in left[:8]]


def test_top_links():
    with folder() as path:
        small = Small(path)
        with rz.open(small.store) as graph:
            vertex_of = {name: graph.find(name) for name in small.names}
            queries = [small.names[7], small.names[8], small.names[7]]
            found = graph.top_links(queries, array="ent", decoder=small.decoder, type="knows", k=9, known="drop")
            assert found[0] == found[2] and len(found) == 3
            assert graph.top_links(queries[1], array="ent", decoder=small.decoder, type="knows", k=9,
                                   known="drop") == found[1]
            by_vertex = graph.top_links(np.array([graph.find(queries[1])]), array="ent", decoder=small.decoder,
                                        type="knows", k=9, known="drop", memory="64M", threads=1)
            assert by_vertex == [found[1]]
            for name, links in zip(queries, found):
                given = small.names.index(name)
                scores = small.rows @ (small.rows[given] * small.relations[1])
                left = [i for i in range(200) if i != given and (given, 1, i) not in set(small.train)]
                left.sort(key=lambda i: (-scores[i], vertex_of[small.names[i]]))
                assert [(link.id, link.score) for link in links] == [(small.names[i], scores[i]) for i in left[:9]]
            with raises(rz.NotFound, "hates"):
                graph.top_links(queries, array="ent", decoder=small.decoder, type="hates")
            with raises(TypeError):
                graph.top_links(None, array="ent")


def test_train():
    """The figures of a training's test set are those of its published rows; a validation set has one for each epoch."""
    with folder() as path:
        small = Small(path)
        for name in ("test", "valid"):
            (path / f"{name}.tsv").write_text("".join(map(small.line, getattr(small, name))))
        options = {"model": "table", "task": "link", "dim": 8, "decoder": "distmult", "negatives": 20, "epochs": 3,
                   "valid": path / "valid.tsv", "test": path / "test.tsv", "threads": 1}
        report = rz.train(small.store, out=path / "t.st", out_array="rows", filter_negatives=True, **options)
        assert all(0 < epoch["mrr_sampled"] < 1 for epoch in report["epochs"]) and len(report["epochs"]) == 3
        with rz.open(small.store) as graph:
            vertices = np.array([graph.find(name) for name in small.names])
            rows = np.asarray(graph["rows"][vertices], np.float64)
        relations = load_tensor(path / "t.st", "relations").astype(np.float64)
        # The relations have the order of the store's edge types.
        with rz.open(small.store) as graph:
            relations = relations[[list(graph.edge_types).index(name) for name in small.types]]
        # Double precision may separate scores that float rounds to the same number.
        wanted = ranks(rows, relations, small.test, small.train + small.test + small.valid)
        assert abs(report["test"]["mrr"] - np.mean(1 / wanted)) < 1e-4, (report["test"]["mrr"], np.mean(1 / wanted))
        assert abs(report["test"]["mean_rank"] - wanted.mean()) < .02, (report["test"]["mean_rank"], wanted.mean())
        # The filter must not forget the validation set.
        assert ranks(rows, relations, small.test, small.train + small.test).mean() > report["test"]["mean_rank"] + .02
        with raises(rz.InvalidArgument, "out_array"):
            rz.train(small.store, out=path / "t.st", **options)
        (path / "test.tsv").write_text("".join(map(small.line, small.train[:3])))
        with raises(rz.InvalidArgument, "allow_leaked"):
            rz.train(small.store, out=path / "t.st", out_array="more", **options)
        assert rz.train(small.store, out=path / "t.st", out_array="more", allow_leaked=True, **options)["test"]["leaked_edges"] == 3


def test_wn18rr():
    data = os.environ.get("RHIZOME_TEST_DATA")
    if not data:
        print("skipped: wn18rr, RHIZOME_TEST_DATA is not set")
        return
    data = pathlib.Path(data) / "wn18rr"
    nodes = Zstd().decode((data / "nodes.tsv.zst").read_bytes()).decode().splitlines()
    number = {line.split("\t")[0]: i for i, line in enumerate(nodes)}
    triples, types = {}, {}
    for split in ("edges", "edges.valid", "edges.test"):
        lines = subprocess.run(["zstd", "-dcq", data / f"{split}.tsv.zst"], capture_output=True, check=True,
                               text=True).stdout.splitlines()
        parts = [line.split("\t") for line in lines]
        triples[split] = [(number[h], types.setdefault(r, len(types)), number[t]) for h, t, r in parts]
    rows = RNG.integers(-2, 3, (len(number), DIM)).astype(np.float32)
    relations = RNG.integers(-1, 2, (len(types), DIM)).astype(np.float32)
    with folder() as path:
        np.save(path / "ent.npy", rows)
        rz.ingest(path / "g.rz", data / "edges.tsv.zst", nodes=data / "nodes.tsv.zst",
                  node_columns=["id", "label", "split", "name"], arrays={"ent": path / "ent.npy"})
        save_decoder(path / "d.safetensors", {"relations": relations}, decoder="distmult",
                     relation_names=json.dumps(list(types)))
        report = rz.evaluate(path / "g.rz", array="ent", decoder=path / "d.safetensors", memory="64M",
                             test=data / "edges.test.tsv.zst", valid=data / "edges.valid.tsv.zst")
    wanted = ranks(rows, relations, triples["edges.test"], [edge for split in triples.values() for edge in split])
    expect_figures(report, wanted)
    assert report["edges"] == 3134 and report["unseen_ends"] == 210
    by_relation = {name: [] for name in types}
    for i, (_, relation, _) in enumerate(triples["edges.test"]):
        by_relation[list(types)[relation]] += wanted[2 * i:2 * i + 2].tolist()
    for name, of_relation in by_relation.items():
        expect_figures(report["by_relation"][name], np.array(of_relation))


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
