#!/usr/bin/env python3
"""`rhizome changes` writes what `rhizome put` reads, for every value: a follower that gets the changes as lines has
the same bytes in rows, the same edges with weights and attributes, the same types and deletions."""
import math
import os
import struct
import subprocess
import sys

from package import SEED, folder, np, run, rz

RNG = np.random.default_rng(SEED)
RHIZOME = os.environ["RHIZOME"]

# Values of each kind of dtype that conversions lose most easily.
INTEGERS = [0, 1, -1, 127, -128, 255, 32767, -32768, 65535, 2**31 - 1, -2**31, 2**32 - 1, 2**53 + 1, -2**53 - 1,
            2**63 - 1, -2**63]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 1e-40, 1e-45, 65504.0, 6e-8, 3.4e38, 1e300, 5e-324, math.inf, -math.inf,
          math.nan, -math.nan]


def dtypes():
    """The dtypes of arrays that this build has and NumPy, too."""
    for name in ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint32", "uint8", "bool"):
        with folder() as path:
            try:
                rz.create(path / "g.rz", arrays={"x": name}).close()
            except rz.InvalidArgument:
                continue  # not a dtype of this build
        yield name


def values_of(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.array([one for one in INTEGERS if info.min <= one <= info.max], kind)
    with np.errstate(over="ignore", under="ignore"):
        found = np.array(FLOATS).astype(kind)
    payload = {2: ("H", 0xFE12), 4: ("I", 0xFFC00123), 8: ("Q", 0xFFF8000000000123)}[kind.itemsize]
    nan = np.frombuffer(struct.pack(*payload), kind)  # another NaN than the usual one
    return np.concatenate([found, nan])


def rhizome(*arguments):
    done = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def follow(path, leader, follower):
    rhizome("changes", path / leader, "--out", path / "changes.jsonl")
    rhizome("put", path / follower, path / "changes.jsonl", "--create-types")


def test_rows_of_every_dtype():
    for dtype in dtypes():
        values = values_of(dtype)
        rows = np.stack([values, values[::-1]], axis=1)
        with folder() as path:
            for name in "ab":
                with rz.create(path / f"{name}.rz", arrays={"x": (dtype, 2)}) as graph, graph.batch() as batch:
                    for i in range(len(rows) + 1):
                        batch.put_vertex(i)
            with rz.open(path / "a.rz", mode="w") as graph:
                graph.compact()
                with graph.batch() as batch:
                    batch.put_rows("x", list(range(len(rows))), rows)
            rhizome("compact", path / "b.rz")
            follow(path, "a.rz", "b.rz")
            with rz.open(path / "a.rz") as a, rz.open(path / "b.rz") as b:
                ids = np.arange(len(rows) + 1)
                want = a["x"][ids]
                assert want[:-1].tobytes() == rows.tobytes(), dtype
                assert b["x"][ids].tobytes() == want.tobytes(), (dtype, (path / "changes.jsonl").read_text())


def test_edges_types_and_deletions():
    """Random histories of a store with weights and attributes, text ids and types that the follower lacks."""
    floats = [f for f in FLOATS if f == 0 or abs(np.float32(f)) > 0]
    for ids in ("text", "integer"):
        with folder() as path:
            for name in "ab":
                rz.create(path / f"{name}.rz", ids=ids, weighted=True, arrays={"x": "float32"},
                          edge_attributes={"time": "int64", "v": ("float32", 2)}).close()
            named = (lambda i: f"\"{i}\\ 'é\t") if ids == "text" else (lambda i: int(i) * 2**40 - 5)
            with rz.open(path / "a.rz", mode="w") as graph:
                for _ in range(30):
                    with graph.batch(create_types=True) as batch:
                        for _ in range(RNG.integers(1, 8)):
                            a, b = (named(i) for i in RNG.integers(0, 12, 2))
                            kind = RNG.choice(["edge", "replace", "gone", "vertex", "delete", "row"])
                            type = f"t{RNG.integers(0, 4)}"
                            if kind in ("edge", "replace"):
                                put = batch.put_edge if kind == "edge" else batch.upsert_edge
                                put(a, b, type, weight=float(np.float32(RNG.normal() * 10. ** RNG.integers(-30, 38))),
                                    attributes=[int(RNG.choice([2**63 - 1, -2**63, 0, 2**53 + 1])),
                                                float(RNG.choice(floats)), float(RNG.choice(floats))])
                            elif kind == "gone":
                                batch.delete_vertex(a)
                            elif kind == "vertex":
                                batch.put_vertex(a, f"v{RNG.integers(0, 3)}")
                            elif kind == "delete" and type in graph.edge_types:
                                batch.delete_edge(a, b, type)
                            elif kind == "row":
                                batch.put_row("x", a, [float(RNG.choice(floats))])
            follow(path, "a.rz", "b.rz")
            assert contents(path / "a.rz") == contents(path / "b.rz"), (path / "changes.jsonl").read_text()[-2000:]


def contents(path):
    """Vertices, edges and the values of edges of a store, by external ids and names of types. Weights, which differ
    from edge to edge, tell which values belong to which edge."""
    rhizome("compact", path)
    with rz.open(path) as graph:
        vertex_types, edge_types = graph.vertex_types, graph.edge_types
        vertices, edges = [], []
        for block in graph.scan_vertices():
            for id, type, row in zip(block.ids, block.types, graph["x"][block.vertices]):
                vertices.append((id, vertex_types[type], row.tobytes()))
        for block in graph.scan_edges():
            types = np.zeros(len(block.src), int) if block.types is None else block.types
            for a, b, type, weight in zip(graph.external_ids(block.src), graph.external_ids(block.dst), types,
                                          block.weights):
                edges.append((a, b, edge_types[type], weight.tobytes()))
        columns = {name: graph.edge_rows(name, np.arange(len(edges))) for name in ("type", "weight", "time", "v")}
        values = [(edge_types[columns["type"][i, 0]], *(columns[name][i].tobytes() for name in ("weight", "time", "v")))
                  for i in range(len(edges))]
    return {"vertices": sorted(vertices, key=repr), "edges": sorted(edges, key=repr), "values": sorted(values)}


if __name__ == "__main__":
    run(sys.modules[__name__])
