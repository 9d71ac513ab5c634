#!/usr/bin/env python3
"""Times Array.to_parquet on rows in a store against pyarrow on the same rows in memory, in alternating turns.

    python3 python_export.py [--rows N] [--dim N] [--rounds N] [--dir DIR]

Needs numpy, pyarrow and the package `rhizome`. Prints one JSON object: seconds of each turn, the median of their
ratios, and the memory that the export needs beyond that of a process with the store open.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rhizome as rz


def from_memory(rows, path):
    flat = pa.array(rows.reshape(-1))
    ids = pa.array(np.arange(len(rows)))
    table = pa.table({"vertex": ids, "id": ids, "x": pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])})
    pq.write_table(table, path, compression="none", use_dictionary=["id"], row_group_size=65_536)


def timed(call, *arguments):
    os.sync()
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


MEMORY = """
import pathlib, re, sys, pyarrow.parquet, rhizome as rz
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
with rz.open(sys.argv[1], memory="64M") as graph:
    array = graph["x"]
    before = peak()
    array.to_parquet(sys.argv[2])
    print(peak() - before)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=".")
    flags = parser.parse_args()
    rows = np.random.default_rng(1).normal(size=(flags.rows, flags.dim)).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=flags.dir) as folder:
        path = pathlib.Path(folder)
        edges = np.array([np.arange(flags.rows), np.roll(np.arange(flags.rows), 1)])
        rz.ingest(path / "g.rz", edges, arrays={"x": rows})
        turns = []
        with rz.open(path / "g.rz") as graph:
            array = graph["x"]
            for _ in range(flags.rounds):
                turns.append((timed(array.to_parquet, path / "a.parquet"), timed(from_memory, rows, path / "b.parquet")))
            assert pq.read_table(path / "a.parquet")["x"].combine_chunks().equals(
                pq.read_table(path / "b.parquet")["x"].combine_chunks())
        del rows
        extra = subprocess.run([sys.executable, "-c", MEMORY, path / "g.rz", path / "a.parquet"], check=True,
                               capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    print(json.dumps({"rows": flags.rows, "dim": flags.dim, "seconds": [round(ours, 3) for ours, _ in turns],
                      "pyarrow_seconds": [round(theirs, 3) for _, theirs in turns],
                      "speed_of_pyarrow": round(statistics.median(theirs / ours for ours, theirs in turns), 3),
                      "memory_mb": round(float(extra.stdout), 1)}))


if __name__ == "__main__":
    main()
