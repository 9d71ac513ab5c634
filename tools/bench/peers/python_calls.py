#!/usr/bin/env python3
"""What a call of the Python package costs: medians of rounds that alternate, in nanoseconds, and of fresh interpreters
that import it, in milliseconds.

usage: PYTHONPATH=build/release/python tools/bench/peers/python_calls.py [--rounds N]
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import rhizome as rz

VERTICES, EDGES, COLUMNS, CALLS = 100_000, 1_000_000, 128, 5000


def nanoseconds(call):
    begun = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - begun) / CALLS


def milliseconds(command):
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        rz.ingest(f"{folder}/g.rz", edges=rng.integers(0, VERTICES, (2, EDGES)),
                  arrays={"feat": rng.random((VERTICES, COLUMNS), dtype=np.float32)})
        with rz.open(f"{folder}/g.rz", memory="1G") as g:
            measure(g, rng, rounds)


def measure(g, rng, rounds):
    feat = g["feat"]
    one, many = np.array([5]), rng.integers(0, VERTICES, 1000)
    row, rows = np.empty((1, COLUMNS), np.float32), np.empty((1000, COLUMNS), np.float32)
    held = np.asarray(feat)
    feat.read(many, rows)
    calls = {
        "python call": lambda: None,
        "closed": lambda: g.closed,
        "find one": lambda: g.find(5),
        "neighbors of one": lambda: g.neighbors(5),
        "neighbors of an array of one": lambda: g.neighbors(one),
        "row of one": lambda: feat[5],
        "row into a buffer": lambda: feat.read(one, row),
    }
    large = {"1000 rows into a buffer": lambda: feat.read(many, rows),
             "numpy takes 1000 rows": lambda: np.take(held, many, axis=0, out=rows)}
    commands = {"python": [sys.executable, "-c", "pass"], "import numpy": [sys.executable, "-c", "import numpy"],
                "import rhizome": [sys.executable, "-c", "import rhizome"]}
    found = {name: [] for name in (*calls, *large, *commands)}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(nanoseconds(call))
        for name, call in large.items():
            begun = time.perf_counter_ns()
            for _ in range(50):
                call()
            found[name].append((time.perf_counter_ns() - begun) / 50)
        for name, command in commands.items():
            found[name].append(milliseconds(command))
    print(json.dumps({name: round(statistics.median(values), 1) for name, values in found.items()}, indent=1))


main()
