#!/usr/bin/env python3
"""Names of classes and texts of vertices and edges, from tables of text and from memory, compared with the values that
were given; with an update, compactions and errors."""
import csv

from package import SEED, folder, np, raises, rz


def table(path, rng, count):
    """Writes tables of vertices and edges; returns the labels and titles, None where there is none."""
    classes = ["poésie", "novel, short", 'the "rest"']
    labels = [None if rng.random() < .1 else classes[rng.integers(3)] for _ in range(count)]
    titles = [None if rng.random() < .2 else f"Title {rng.integers(count)} ✓" for _ in range(count)]
    with open(path / "nodes.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["id", "label", "title"])
        out.writerows([f"v{i}", label or "", title or ""] for i, (label, title) in enumerate(zip(labels, titles)))
    with open(path / "edges.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["src", "dst", "memo", "year"])
        out.writerows([f"v{i}", f"v{(i * 7 + 1) % count}", ("", "zitiert", "see, also")[i % 3], 2000] for i in range(count))
    return labels, titles


def check(g, labels, titles):
    ids = g.find([f"v{i}" for i in range(len(labels))])
    assert g["label"].texts(ids) == labels and g["title"].texts(ids) == titles
    names = g.class_names
    codes = g["label"].read(ids)[:, 0]
    assert [names[code] if code >= 0 else None for code in codes] == labels
    assert g["title"].text_of(g["title"].read(ids)[:, 0]) == titles
    for name in names:
        assert names[g["label"].code_of(name)] == name
    assert g["label"].code_of("nothing like it") is None


def check_new_texts(path):
    """Puts texts that the ingestion did not have, one by one and in tables of every kind."""
    tables = []
    (path / "cards.csv").write_text("id,label,title\n1,red,Tea\n2,blue,Ale\n3,red,\n")
    (path / "links.csv").write_text("src,dst,memo,year\n1,2,rent,2000\n2,3,,2001\n")
    rz.ingest(path / "t.rz", path / "links.csv", nodes=path / "cards.csv")
    with rz.open(path / "t.rz", mode="w") as g:
        before = g.snapshot()
        with g.batch() as b:
            b.put_row("title", 3, "Water")
            b.put_row("title", 1, None)
            b.put_row("label", 3, "blue")
            b.put_rows("title", g.find([2]), np.array(["Ünter"]))
            b.put_rows("title", [4, 5], ["Water", None])
            b.put_edge(3, 1, attributes={"memo": "car", "year": 2002})
            b.put_edge(3, 1, attributes={"memo": None, "year": 2003})
            b.upsert_edge(1, 2, attributes={"memo": "rents"})
            b.put_edges([1, 1, 1], [3, 3, 3], attributes={"memo": ["car", "", "bus"], "year": [1, 2, 3]})
            b.put_edges({"src": [4, 4], "dst": [1, 2], "memo": ["tram", None], "year": [4, 5]})
            for name, library in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
                try:
                    make = getattr(__import__(name), library)
                except ImportError:
                    continue
                b.put_edges(make({"src": [5], "dst": [1], "memo": [name], "year": [6]}))
                tables.append(name)
        memos = sorted([("rents", 0), ("", 2001), ("car", 2002), ("", 2003), ("car", 1), ("", 2), ("bus", 3), ("tram", 4),
                        ("", 5), *((name, 6) for name in tables)])
        for _ in range(3):
            assert g["title"].texts(g.find([1, 2, 3, 4, 5])) == [None, "Ünter", "Water", "Water", None]
            assert g["label"].texts(g.find([3])) == ["blue"]
            code = g["title"].code_of("Water")
            assert g["title"].text_of([code, -1]) == ["Water", None] and g["title"].code_of("Wate") is None
            if "pyarrow" in tables:
                edges = g.edges_to_arrow().read_all()
                found = zip(edges["memo"].to_pylist(), edges["year"].to_pylist())
                assert sorted((memo or "", year) for memo, year in found) == memos
            g.compact()
        assert before["title"].code_of("Water") is None and before["title"].code_of("Tea") == 1
        before.close()
        with raises(rz.InvalidArgument, "'green' is not one of the 2 classes of 'label' ('blue', 'red')"):
            with g.batch() as b:
                b.put_row("title", 1, "of a batch that is refused")
                b.put_row("label", 1, "green")
        assert g["title"].code_of("of a batch that is refused") is None
        with raises(TypeError, "'year'"):
            with g.batch() as b:
                b.put_edges([1], [2], attributes={"year": ["late"]})
        with raises(rz.InvalidArgument, "'year' is int64, but a text was given"):
            with g.batch() as b:
                b.put_edge(1, 2, attributes={"year": "late"})
    assert rz.verify(path / "t.rz").ok


def main():
    rng = np.random.default_rng(SEED)
    with folder() as path:
        check_new_texts(path)
        labels, titles = table(path, rng, 500)
        rz.ingest(path / "s.rz", path / "edges.csv", nodes=path / "nodes.csv", columns=["src", "dst", "memo", "year"],
                  node_columns=["id", "label", "title"], header=True)
        with rz.open(path / "s.rz", mode="w") as g:
            assert g.class_names == sorted(set(labels) - {None}, key=lambda text: text.encode())
            check(g, labels, titles)
            # A batch puts codes.
            code = g["title"].code_of(next(title for title in titles if title))
            with g.batch() as b:
                b.put_rows("title", ["v1"], np.array([[code]]))
                b.put_edge("v5", "v6", attributes={"year": 1999})
                b.put_edges(["v8", "v9"], ["v6", "v6"], attributes={"year": [2001, 2002]})
            titles[1] = g["title"].text_of([code])[0]
            for _ in range(2):
                check(g, labels, titles)
                g.compact()
            memos = g.edge_rows("memo", np.arange(503))[:, 0]
            assert (memos == -1).sum() == 167 + 3, "edges that were put without a memo have none"
        assert rz.verify(path / "s.rz").ok
        rz.ingest(path / "n.rz", ([0, 1], [1, 2]), arrays={"feat": np.eye(3, dtype=np.float32)})
        with rz.open(path / "n.rz") as g:
            assert g.class_names == []
            with raises(rz.InvalidArgument, "holds numbers, not texts"):
                g["feat"].texts([0])
    print("ok")


if __name__ == "__main__":
    main()
