#!/usr/bin/env python3
"""Measures the cost of sampling through Python relative to the engine alone (`rhizome bench sample`), and the gain of
two Python threads over one in sampling and in reading rows. All contestants alternate; reports medians of the ratios.

    PYTHONPATH=build/release/python python3 tools/bench/peers/python_sampling.py [--scale N] [--rounds N] [--store DIR]

R-MAT of 2^N vertices, edge factor 16, 128 columns of float32, all in memory; minibatches of 1,000 seeds and 10,10,10
neighbours, each on one thread. For the engine alone, processor times are reported, too, which other programs on the
machine affect less. Prints one JSON object. The gain of two threads is printed next to the gain of two processes that
only add numbers, which is the maximum that the machine could give at that time.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np
import rhizome as rz
from python_epoch import rmat
from rhizome.cli import program

BATCHES, BATCH, FANOUTS, DIM = 20, 1000, [10, 10, 10], 128


def make(path, scale):
    rng = np.random.default_rng(1)
    rz.ingest(path, rmat(scale, 16 << scale, rng), vertices=1 << scale,
              arrays={"feat": rng.random((1 << scale, DIM), np.float32)})


def engine_alone(path, tool):
    said = json.loads(subprocess.run(
        [tool, "bench", "sample", "--store", path, "--fanout", ",".join(map(str, FANOUTS)), "--batch-size", str(BATCH),
         "--threads", "1", "--batches", str(BATCHES), "--rounds", "1", "--json"],
        check=True, capture_output=True, text=True).stdout)
    return said


def sampled(sampler, batches):
    """Returns edges a second, and edges a second of processor time."""
    wall, cpu, edges = time.perf_counter(), time.process_time(), 0
    for number, seeds in enumerate(batches):
        edges += sampler.sample(seeds, batch=number).edge_index.shape[1]
    return edges / (time.perf_counter() - wall), edges / (time.process_time() - cpu)


def gain(work, kind=threading.Thread):
    """Returns how much more two threads, or two workers of another kind, do in a second than one."""
    def seconds(count):
        workers = [kind(target=work, args=(number,)) for number in range(count)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - begin

    return 2 * seconds(1) / seconds(2)


def add(_):
    total = 0
    for number in range(4_000_000):
        total += number


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--store", type=pathlib.Path)
    parser.add_argument("--program", default=program(), help="the command line with its benches")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = flags.store or pathlib.Path(folder) / "g.rz"
        if not path.exists():
            make(path, flags.scale)
        found = {}
        with rz.open(path, memory="3G", topology="memory") as graph:
            rng = np.random.default_rng(2)
            sampler, feat = graph.sampler(FANOUTS), graph["feat"]
            batches = [rng.permutation(graph.num_vertices)[:BATCH] for _ in range(BATCHES)]
            ids = [rng.integers(0, graph.num_vertices, 50_000) for _ in range(8)]
            rows = [np.empty((50_000, DIM), np.float32) for _ in range(2)]

            def read(thread):
                for some in ids:
                    feat.read(some, out=rows[thread])

            sampled(sampler, batches)
            read(0)
            for _ in range(flags.rounds):
                alone = engine_alone(path, flags.program)
                rate, cpu_rate = sampled(sampler, batches)
                turn = {"time_of_engine": alone["figure"] / rate,
                        "cpu_of_engine": alone["edges_per_cpu_second"] / cpu_rate,
                        "edges_per_second": rate, "two_threads_sampling": gain(lambda _: sampled(sampler, batches)),
                        "two_threads_reading": gain(read), "two_processes_adding": gain(add, multiprocessing.Process)}
                for name, value in turn.items():
                    found.setdefault(name, []).append(value)
    print(json.dumps({"load": os.getloadavg(), "scale": flags.scale} | {
        name: {"median": round(statistics.median(values), 3), "best": round(
            (min if name.endswith("engine") else max)(values), 3)} for name, values in found.items()}, indent=1))


if __name__ == "__main__":
    main()
