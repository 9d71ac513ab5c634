#!/usr/bin/env python3
"""`rz.ingest(..., hold_out=)`: tables, arrays, files, and the same division of the same edges in each form."""
import os
import subprocess

from package import SEED, folder, np, raises, rz

RNG = np.random.default_rng(SEED)
SHARES = {"valid": .1, "test": .2}
COUNT = 3000
SRC, DST = RNG.integers(0, 300, COUNT), RNG.integers(0, 300, COUNT)
TIME = RNG.integers(0, 1000, COUNT)
KIND = RNG.integers(0, 2, COUNT)
NAMES = ("cites", "likes")


def lines(path):
    """The lines of a file, as tuples, and its header."""
    text = subprocess.run(["zstd", "-dqc", path], check=True, capture_output=True, text=True).stdout
    header, *rows = (line.split("\t") for line in text.splitlines())
    return header, sorted(map(tuple, rows))


def held(report):
    return {name: lines(one["path"])[1] for name, one in report.held_out.items()}


def test_forms(work):
    text = work / "e.csv"
    text.write_text("src,dst,type,time\n" + "".join(f"{s},{d},{NAMES[k]},{t}\n" for s, d, k, t in zip(SRC, DST, KIND, TIME)))
    wanted_report = rz.ingest(work / "text.rz", text, hold_out=SHARES)
    wanted = held(wanted_report)
    assert set(wanted) == {"valid", "test"} and all(wanted.values())
    for name, one in wanted_report.held_out.items():
        assert one["edges"] == len(wanted[name]) == sum(one["by_relation"].values())
        assert one["path"] == os.path.abspath(work / f"text.rz.{name}.tsv.zst")
    assert wanted_report.edges + sum(map(len, wanted.values())) == COUNT
    pairs = [{frozenset(row[:2]) for row in rows} for rows in wanted.values()]
    assert not pairs[0] & pairs[1]
    with rz.open(work / "text.rz") as g:
        matrix = g.to_scipy().tocoo()
        ends = [list(map(str, g.external_ids(ids))) for ids in (matrix.row, matrix.col)]
        stored = set(map(frozenset, zip(*ends)))
        assert g.num_vertices == len({*SRC.tolist(), *DST.tolist()})
    assert len(stored) > 1000
    assert not stored & (pairs[0] | pairs[1])

    by_type = {name: (SRC[KIND == k], DST[KIND == k]) for k, name in enumerate(NAMES)}
    arrays = held(rz.ingest(work / "arrays.rz", by_type, hold_out=SHARES))
    assert {name: sorted(row[:3] for row in rows) for name, rows in wanted.items()} == arrays

    try:
        import pandas as pd
    except ImportError:
        return
    frame = pd.DataFrame({"src": SRC, "dst": DST, "type": np.array(NAMES)[KIND], "time": TIME})
    header, _ = lines(rz.ingest(work / "frame.rz", frame, hold_out=SHARES).held_out["test"]["path"])
    assert header == ["src", "dst", "type", "time"], header
    assert held(rz.ingest(work / "again.rz", frame, hold_out=SHARES)) == wanted
    latest = held(rz.ingest(work / "time.rz", frame, hold_out=SHARES, hold_out_by="time"))
    assert latest == held(rz.ingest(work / "time_text.rz", text, hold_out=SHARES, hold_out_by="time"))
    assert latest != wanted
    some = rz.ingest(work / "some.rz", frame, hold_out={"test": .2}, hold_out_relations=["cites"])
    assert set(some.held_out) == {"test"} and set(some.held_out["test"]["by_relation"]) == {"cites"}
    both = rz.ingest(work / "both.rz", frame, hold_out={"test": .2}, hold_out_relations=["cites"], inverse={"likes": "cites"})
    assert set(both.held_out["test"]["by_relation"]) == set(NAMES)


def test_overwrite(work):
    edges = np.stack([SRC, DST])
    path = work / "o.rz"
    first = held(rz.ingest(path, edges, hold_out=SHARES))
    with raises(rz.AlreadyExists):
        rz.ingest(path, edges, hold_out=SHARES, seed=2)
    assert held(rz.ingest(path, edges, hold_out=SHARES, seed=2, overwrite=True)) != first
    assert held(rz.ingest(path, edges, hold_out=SHARES, overwrite=True)) == first
    with raises(rz.InvalidArgument, "hold_out_by='time'"):
        rz.ingest(path, edges, hold_out=SHARES, hold_out_by="time", overwrite=True)
    left = sorted(name for name in os.listdir(work) if "o.rz" in name)
    assert left == ["o.rz", "o.rz.test.tsv.zst", "o.rz.valid.tsv.zst"], left
    assert sorted(lines(path.with_name("o.rz.test.tsv.zst"))[1]) == first["test"]


def test_refused(work):
    edges = np.stack([SRC, DST])
    for error, part, more in ((ValueError, "'train' is no set", {"hold_out": {"train": .5}}),
                              (TypeError, "dict of shares", {"hold_out": .5}),
                              (ValueError, "'random' or 'time'", {"hold_out": SHARES, "hold_out_by": "luck"}),
                              (rz.InvalidArgument, "below 1", {"hold_out": {"test": .5, "valid": .5}}),
                              (rz.InvalidArgument, "hold_out_relations", {"hold_out": SHARES, "hold_out_relations": ["no"]})):
        with raises(error, part):
            rz.ingest(work / "bad.rz", edges, **more)
    assert not [name for name in os.listdir(work) if "bad" in name]


with folder() as place:
    for test in (test_forms, test_overwrite, test_refused):
        test(place)
