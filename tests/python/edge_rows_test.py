#!/usr/bin/env python3
"""Rows of edge attributes beside their edges, as described in docs/LIBRARY.md: zarr-python reads
the rows of each partition, `export` lists their edges, and together they equal what was ingested,
also after compaction.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import zarr

RHIZOME = os.environ["RHIZOME"]
SEED = int(os.environ.get("RHIZOME_TEST_SEED", random.randrange(2**32)))


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"rhizome {arguments}: {run.stderr}")
    return run.stdout


def rows_by_edge(store, work):
    """(source, target, type) -> sorted times, of all partitions."""
    group = zarr.open_group(rhizome("array", "path", store).strip(), mode="r")
    found = {}
    for name in sorted(n for n in group.array_keys() if n.startswith("time.p") and "crc32c" not in n):
        rhizome("export", store, "--array", name, "--out", work / "time.npy")
        edges = [tuple(line.split("\t")) for line in (work / "time.ids.tsv").read_text().splitlines()]
        times = group[name][:, 0]
        assert len(edges) == len(times), (name, len(edges), len(times))
        for edge, time in zip(edges, times):
            found.setdefault(edge, []).append(int(time))
    return {edge: sorted(times) for edge, times in found.items()}


def check(kind, flags, work):
    rng = random.Random(f"{SEED} {kind}")
    wanted = {}
    lines = []
    for number in range(500):
        edge = (f"v{rng.randrange(40)}", f"v{rng.randrange(40)}", rng.choice("xyz"))
        wanted.setdefault(edge, []).append(number)
        lines.append("\t".join((*edge, str(number))))
    (work / "edges.tsv").write_text("\n".join(lines) + "\n")
    store = work / f"{kind}.rz"
    rhizome("ingest", store, "--edges", work / "edges.tsv", "--columns", "src,dst,type,time", *flags)
    assert rows_by_edge(store, work) == wanted, kind
    (work / "more.tsv").write_text("v1\tnew\tx\t1000\nv2\tv3\ty\t1001\n")
    rhizome("put", store, work / "more.tsv", "--columns", "src,dst,type,time")
    (work / "gone.tsv").write_text("v5\n")
    rhizome("delete", store, work / "gone.tsv", "--vertices")
    # What was written since is in the delta: the rows of the generation are still those of its edges.
    assert rows_by_edge(store, work) == wanted, f"{kind}, after updates"
    rhizome("compact", store)
    wanted = {e: times for e, times in wanted.items() if "v5" not in e[:2]}
    wanted.setdefault(("v1", "new", "x"), []).append(1000)
    wanted.setdefault(("v2", "v3", "y"), []).append(1001)
    assert rows_by_edge(store, work) == wanted, f"{kind}, compacted"


def main():
    print("RHIZOME_TEST_SEED", SEED)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check("out", ("--partitions", 3, "--directions", "out"), work)
        check("in", ("--partitions", 2, "--directions", "in"), work)
        check("both", ("--partitions", 2, "--topology-codec", "elias-fano"), work)


main()
