#!/usr/bin/env python3
"""Measures the cost of calls of the Python package and of importing it, compared with NumPy. Rounds alternate between
all contestants. Prints the median and the minimum of the rounds, in nanoseconds per call (row, vertex) and
milliseconds.

usage: PYTHONPATH=build/release/python tools/bench/peers/python_calls.py [--rounds N]
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import rhizome as rz

VERTICES, EDGES, COLUMNS, CALLS = 400_000, 4_000_000, 128, 5000


def nanoseconds(call, calls):
    begun = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - begun) / calls


def small_calls(graph, feat):
    """Calls for one vertex; each is measured CALLS times in a round."""
    one, row = np.array([5]), np.empty((1, COLUMNS), np.float32)
    return {
        "python call": lambda: None,
        "graph.closed": lambda: graph.closed,
        "graph.find(5)": lambda: graph.find(5),
        "graph.neighbors(5)": lambda: graph.neighbors(5),
        "graph.neighbors([5])": lambda: graph.neighbors(one),
        "array[5]": lambda: feat[5],
        "graph['feat'][5]": lambda: graph["feat"][5],
        "array.read([5], out=)": lambda: feat.read(one, row),
    }


def large_calls(graph, feat, held, rng, size):
    """Calls for `size` vertices, other ones each time."""
    ids = itertools.cycle([rng.integers(0, VERTICES, size) for _ in range(max(4, 200_000 // size))])
    rows = np.empty((size, COLUMNS), np.float32)
    return {
        f"array.read(ids, out=), {size}": lambda: feat.read(next(ids), rows),
        f"array[ids], {size}": lambda: feat[next(ids)],
        f"numpy held[ids], {size}": lambda: held[next(ids)],
        f"numpy take(held, ids, out=), {size}": lambda: np.take(held, next(ids), axis=0, out=rows, mode="clip"),
        f"graph.find(ids), {size}": lambda: graph.find(next(ids)),
        f"graph.neighbors(ids), {size}": lambda: graph.neighbors(next(ids)),
    }


def milliseconds(code):
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - begun) * 1e3


def measure(graph, held, rng, rounds):
    feat = graph["feat"]
    feat[np.arange(VERTICES)]  # so that all rows are in memory
    found = {}
    for _ in range(rounds):
        for name, call in small_calls(graph, feat).items():
            found.setdefault(name, []).append(nanoseconds(call, CALLS))
        for size in (1000, 100_000):
            for name, call in large_calls(graph, feat, held, rng, size).items():
                found.setdefault(name, []).append(nanoseconds(call, max(2, 100_000 // size)) / size)
        for code in ("pass", "import numpy", "import rhizome"):
            found.setdefault(f"python -c '{code}', ms", []).append(milliseconds(code))
    return {name: [round(statistics.median(values), 1), round(min(values), 1)] for name, values in found.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(1)
    held = rng.random((VERTICES, COLUMNS), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        rz.ingest(f"{folder}/g.rz", rng.integers(0, VERTICES, (2, EDGES)), arrays={"feat": held})
        with rz.open(f"{folder}/g.rz", memory="2G") as graph:
            figures = measure(graph, held, rng, rounds)
    print(json.dumps({"load": os.getloadavg(), **figures}, indent=1))


main()
