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


def main():
    rng = np.random.default_rng(SEED)
    with folder() as path:
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
        rz.ingest(path / "n.rz", np.array([[0, 1], [1, 2]]), arrays={"feat": np.eye(3, dtype=np.float32)})
        with rz.open(path / "n.rz") as g:
            assert g.class_names == []
            with raises(rz.InvalidArgument, "holds numbers, not texts"):
                g["feat"].texts([0])
    print("ok")


if __name__ == "__main__":
    main()
