#!/usr/bin/env python3
"""Every dtype goes in and comes out unchanged: from memory, .npy, Zarr and text, through updates, compaction, changes
and export; edge attributes with nulls and times likewise; and a loader makes features of all of them."""
import datetime
import json
import os
import subprocess
import sys

import ml_dtypes

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
RHIZOME = os.environ["RHIZOME"]
VERTICES = 40
RING = np.stack([np.arange(VERTICES), np.roll(np.arange(VERTICES), -1)])
DTYPES = tuple(np.dtype(one) for one in ("bool", "i1", "i2", "i4", "i8", "u1", "u4", "f2", ml_dtypes.bfloat16, "f4", "f8"))


def rhizome(*arguments, code=0):
    done = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def bits(values):
    """The bytes of an array, which are compared instead of its values, because of NaN and -0."""
    return np.ascontiguousarray(values).tobytes()


def random_rows(dtype, shape):
    """Random bits, so that all values occur: infinities, NaN with payloads, the ends of integer types."""
    if dtype == np.bool_:
        return RNG.random(shape) < 0.5
    return RNG.integers(0, 256, (*shape[:-1], shape[-1] * dtype.itemsize), dtype=np.uint8).view(dtype)


def random_arrays():
    return {f"a{i}": random_rows(dtype, (VERTICES, 3)) for i, dtype in enumerate(DTYPES)}


def check(path, arrays):
    with rz.open(path) as graph:
        for name, want in arrays.items():
            got = graph[name][np.arange(VERTICES)]
            assert got.dtype == want.dtype == graph.arrays[name].dtype == graph[name].dtype, (name, got.dtype)
            assert bits(got) == bits(want), (name, want.dtype)
            out = np.empty_like(want)
            assert graph[name].read(np.arange(VERTICES), out=out) is out and bits(out) == bits(want), name
            assert bits(graph[name].read(np.arange(3))) == bits(want[:3])
    for name, want in arrays.items():
        rhizome("export", path, "--array", name, "--out", path.parent / "out.npy")
        got = np.load(path.parent / "out.npy")
        if want.dtype == ml_dtypes.bfloat16:
            assert got.dtype == np.dtype("V2")
        else:
            assert got.dtype == want.dtype
        assert got.shape == want.shape and bits(got) == bits(want), (name, want.dtype)
        (path.parent / "out.npy").unlink()


def test_arrays_in_memory_and_in_files():
    arrays = random_arrays()
    with folder() as path:
        rz.ingest(path / "memory.rz", RING, arrays=arrays)
        check(path / "memory.rz", arrays)
        files = {}
        for name, values in arrays.items():
            files[name] = path / f"{name}.npy"
            np.save(files[name], values)
        rz.ingest(path / "files.rz", RING, arrays=files, layout="chunk")
        check(path / "files.rz", arrays)


def test_updates_changes_and_compaction():
    """Rows are put from Python, copied by `changes` and `put`, and survive a compaction."""
    arrays = random_arrays()
    with folder() as path:
        for name in ("leader.rz", "follower.rz"):
            rz.ingest(path / name, RING, arrays={name: np.zeros_like(rows) for name, rows in arrays.items()})
        with rz.open(path / "leader.rz", mode="w") as graph, graph.batch() as batch:
            for name, rows in arrays.items():
                batch.put_rows(name, np.arange(VERTICES), rows)
        check(path / "leader.rz", arrays)
        rhizome("changes", path / "leader.rz", "--out", path / "c.jsonl")
        rhizome("put", path / "follower.rz", path / "c.jsonl")
        check(path / "follower.rz", arrays)
        for name in ("leader.rz", "follower.rz"):
            rhizome("compact", path / name)
            check(path / name, arrays)
        assert rz.verify(path / "leader.rz").ok


def test_numbers_that_do_not_fit_are_refused():
    with folder() as path:
        rz.ingest(path / "g.rz", RING, arrays={f"a{i}": np.zeros((VERTICES, 1), one) for i, one in enumerate(DTYPES)})
        refused = [("bool", 2), ("i1", 128), ("i2", -32769), ("i4", 2**31), ("u1", -1), ("u4", 2**32), ("f2", 2049),
                   ("f2", 1e5), (ml_dtypes.bfloat16, 257), (ml_dtypes.bfloat16, 3.4e38), ("f4", 16777217), ("f4", 1e300),
                   ("f4", 1e-180), ("f4", 16777217.0)]
        with rz.open(path / "g.rz", mode="w") as graph:
            for dtype, value in refused:
                with raises((ValueError, TypeError)), graph.batch() as batch:
                    batch.put_row(f"a{DTYPES.index(np.dtype(dtype))}", 1, np.array([value]))
            assert graph.sequence == 0
            with graph.batch() as batch:
                batch.put_row(f"a{DTYPES.index(np.dtype('f4'))}", 1, np.array([0.1]))
        big = np.array([1, 2**63 - 1] * (VERTICES // 2), np.uint64)
        rz.ingest(path / "big.rz", RING, arrays={"a": big})
        with rz.open(path / "big.rz") as graph:
            assert graph["a"].dtype == np.int64 and graph["a"][[1]][0, 0] == 2**63 - 1
        big[7] = 2**63
        with raises(ValueError, "row 7: 9223372036854775808 is beyond int64"):
            rz.ingest(path / "wrong.rz", RING, arrays={"a": big})
        with raises(TypeError, "complex"):
            rz.ingest(path / "wrong.rz", RING, arrays={"a": np.zeros(VERTICES, complex)})


def test_attributes_of_edges():
    values = {"wide": RNG.normal(size=VERTICES) * 10.0 ** RNG.integers(-300, 300, VERTICES),
              "stamp": 1.6e9 + RNG.random(VERTICES), "small": RNG.integers(-128, 128, VERTICES).astype("i1"),
              "flag": RNG.random(VERTICES) < 0.5, "half": RNG.normal(size=VERTICES).astype("f2"),
              "brain": RNG.normal(size=VERTICES).astype(ml_dtypes.bfloat16),
              "long": RNG.integers(-2**63, 2**63 - 1, VERTICES)}
    stored = {"wide": "f8", "stamp": "f8", "small": "i8", "flag": "i8", "half": "f4", "brain": "f4", "long": "i8"}
    with folder() as path:
        rz.ingest(path / "g.rz", RING, edge_arrays=values)
        with rz.open(path / "g.rz", mode="w") as graph:
            def attribute(name):
                """The values by the source of the edge, of edges in the generation."""
                sub = graph.sampler([-1], direction="out", edge_ids=True).sample(np.arange(VERTICES))
                return dict(zip(sub.vertices[sub.edge_index[1]].tolist(), graph.edge_rows(name, sub.edge_ids)[:, 0].tolist()))

            def check_all(want):
                for name, kind in stored.items():
                    assert graph.edge_attributes[name] == (np.dtype(kind), 1)
                    assert attribute(name) == want[name], name

            want = {name: dict(enumerate(one.astype(stored[name]).tolist())) for name, one in values.items()}
            check_all(want)
            row = {"wide": 1e-180, "stamp": 0.1, "small": -7, "flag": 1, "half": 0.5, "brain": 2.0, "long": 2**62 + 1}
            with graph.batch() as batch:
                batch.upsert_edge(3, 4, attributes=row)
            for name in stored:
                want[name][3] = row[name]
            check_all(want)
            for bad in (1e300, 1e-180, 16777217):
                with raises(rz.InvalidArgument, "half"), graph.batch() as batch:
                    batch.put_edge(3, 9, attributes={**row, "half": bad})
            changed = [json.loads(line) for line in rhizome("changes", path / "g.rz", "--out", "-").splitlines()
                       if '"wide"' in line]
            assert {name: changed[0][name] for name in row} == row
            for options in ({}, {"repartition": True}):
                graph.compact(**options)
                check_all(want)
                with graph.batch() as batch:
                    batch.put_vertex(VERTICES + len(options))


def random_times(count):
    """Times with and without offsets and fractions, as Python's datetime writes them, and what it says they are."""
    for _ in range(count):
        zone = datetime.timezone(datetime.timedelta(minutes=int(RNG.integers(-23 * 60, 23 * 60))))
        time = EPOCH + datetime.timedelta(microseconds=int(RNG.integers(-6 * 10**16, 2 * 10**17)))
        time = time.astimezone(zone).replace(microsecond=time.microsecond if RNG.random() < 0.5 else 0)
        text = time.isoformat(sep=RNG.choice(["T", " "]))
        if RNG.random() < 0.3:
            time = time.replace(tzinfo=datetime.timezone.utc)
            text = time.isoformat().replace("+00:00", RNG.choice(["", "Z"]))
        yield text, (time - EPOCH) // datetime.timedelta(microseconds=1)


def test_times_of_text_agree_with_datetime():
    times = list(random_times(2000))
    with folder() as path:
        edges = "".join(f"{i}\t{i + 1}\t{text}\n" for i, (text, _) in enumerate(times))
        nodes = "".join(f"{i}\t{text}\n" for i, (text, _) in enumerate(times))
        (path / "e.tsv").write_text(edges)
        (path / "n.tsv").write_text(nodes + f"{len(times)}\t\n")
        rz.ingest(path / "g.rz", path / "e.tsv", columns=["src", "dst", "time"], nodes=path / "n.tsv",
                  node_columns=["id", "when"])
        want = np.array([time for _, time in times])
        with rz.open(path / "g.rz") as graph:
            attributes = graph["when"].attributes
            got = graph["when"][np.arange(len(times) + 1)][:, 0]
            assert np.array_equal(got[:-1], want) and attributes["type"] == "timestamp"
            assert got[-1] is np.ma.masked and got.data[-1] == int(attributes["null"])
            assert len(graph.sampler([-1], times="time", disjoint=True).sample([0], times=[int(want[0])]).vertices) >= 1
        shown = json.loads(rhizome("get", path / "g.rz", 0, "--array", "when", "--json"))["values"][0]
        assert datetime.datetime.fromisoformat(shown.replace("Z", "+00:00")) == EPOCH + datetime.timedelta(microseconds=int(want[0]))


def test_columns_of_text():
    """The types of text columns, forced and inferred, and their nulls."""
    with folder() as path:
        (path / "n.tsv").write_text("0\t1600000001\t0.1\t1e-180\ttrue\t7\n1\t\t\tNA\tnull\t8\n2\t1600000003\t-inf\tnan\tfalse\t-9\n")
        (path / "e.tsv").write_text("0\t1\n1\t2\n")
        columns = ["id", "count", "short", "wide", "flag", "tiny"]
        rz.ingest(path / "g.rz", path / "e.tsv", nodes=path / "n.tsv", node_columns=columns, types={"tiny": "int8"})
        with rz.open(path / "g.rz") as graph:
            everyone = np.arange(3)
            column = lambda name: graph[name][everyone][:, 0]
            null = int(graph["count"].attributes["null"])
            assert graph["count"].dtype == np.int64 and column("count").tolist() == [1600000001, None, 1600000003]
            assert graph["short"].dtype == np.float32 and graph["wide"].dtype == np.float64
            assert column("wide")[0] == 1e-180 and np.isnan(column("wide")[1:]).all()
            assert column("short")[2] == -np.inf and np.isnan(column("short")[1])
            assert graph["tiny"].dtype == np.int8 and column("tiny").tolist() == [7, 8, -9]
            assert graph["flag"].attributes["type"] == "bool" and column("flag").tolist() == [1, None, 0]
        get = lambda name, id: json.loads(rhizome("get", path / "g.rz", id, "--array", name, "--json"))["values"][0]
        assert [get("count", 1), get("flag", 1), get("flag", 0), get("short", 2)] == [None, None, True, "-Infinity"]
        assert "inf" in rhizome("get", path / "g.rz", 2, "--array", "short").lower()
        lines = [{"id": 0, "rows": {"count": [None], "flag": [False], "wide": [None], "short": ["Infinity"]}}]
        (path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        rhizome("put", path / "g.rz", path / "p.jsonl")
        assert [get("count", 0), get("flag", 0), get("wide", 0), get("short", 0)] == [None, False, "NaN", "Infinity"]
        for wrong in ({"count": [null]}, {"tiny": [None]}, {"flag": [2.5]}, {"count": ["x"]}):
            (path / "p.jsonl").write_text(json.dumps({"id": 0, "rows": wrong}) + "\n")
            rhizome("put", path / "g.rz", path / "p.jsonl", code=1)
        with raises(rz.InvalidArgument, "n.tsv:1"):
            rz.ingest(path / "wrong.rz", path / "e.tsv", nodes=path / "n.tsv", node_columns=columns, types={"wide": "int8"})


def test_features_of_every_dtype():
    """A loader converts rows to float32, or leaves them float16, however little memory its cache has."""
    with folder() as path:
        values = {f"a{i}": RNG.integers(0, 2, (VERTICES, 5)).astype(dtype) if dtype == np.bool_ else
                  RNG.integers(-3 if dtype.kind != "u" else 0, 120, (VERTICES, 5)).astype(dtype)
                  for i, dtype in enumerate(DTYPES)}
        rz.ingest(path / "g.rz", RING, arrays={**values, "label": np.zeros(VERTICES, np.int8)})
        with rz.open(path / "g.rz") as graph:
            for name, rows in values.items():
                loader = rz.Loader(graph, [2, 2], features=name, labels="label", seeds=np.arange(VERTICES), batch_size=7)
                for batch in loader:
                    got = np.asarray(batch.x)
                    assert got.dtype == (np.float16 if rows.dtype == np.float16 else np.float32), (name, got.dtype)
                    assert np.array_equal(got, rows[batch.vertices].astype(np.float32)), (name, rows.dtype)


if __name__ == "__main__":
    run(sys.modules[__name__])
