#!/usr/bin/env python3
"""Measures worker processes of PyG's NeighborLoader on a store: the time to the first minibatch, the memory of each
worker, and whether many starts of workers all succeed.

    PYTHONPATH=build/release/python python3 tools/bench/peers/python_workers.py [--scale N] [--store DIR] [--turns N]
                                                                              [--starts N] [--method fork|spawn]

R-MAT of 2^N vertices, edge factor 16, 128 columns of float32; minibatches of 1,000 seeds and 10,10,10 neighbours by
four workers. Memory is the proportional set size (a page shared by k processes counts 1/k) without the minibatches
that are sent through shared memory; it is reported beyond that of four DataLoader workers that send zeros of the same
size, in a process with the same imports. --starts: starts this number of workers, four at a time, reads a minibatch
from each and ends them; a worker that does not answer for a minute is an error. Prints one JSON object.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
from python_epoch import rmat

WORKERS, BATCH, FANOUTS, DIM = 4, 1000, [10, 10, 10], 128


def make(path, scale):
    import rhizome as rz
    rng = np.random.default_rng(1)
    rz.ingest(path, rmat(scale, 16 << scale, rng), vertices=1 << scale,
              arrays={"feat": rng.random((1 << scale, DIM), np.float32)})


class Zeros:
    """Minibatches of zeros, as large as those of the other contestant."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return 64

    def __getitem__(self, number):
        import torch
        return torch.zeros(self.rows, DIM)


def loader_of(kind, path, method, memory, rows=0):
    import torch
    import torch_geometric.loader
    import rhizome as rz
    import rhizome.pyg as rzpyg
    options = {"batch_size": BATCH, "num_workers": WORKERS, "multiprocessing_context": method, "timeout": 60}
    if kind == "torch":
        options.pop("batch_size")
        return torch.utils.data.DataLoader(Zeros(rows), batch_size=None, **options), None
    graph = rz.open(path, memory="3G", topology="memory")
    fs, gs = rzpyg.backend(graph, x="feat", memory=memory)
    return torch_geometric.loader.NeighborLoader(
        (fs, gs), FANOUTS, neighbor_sampler=rzpyg.NeighborSampler(gs, FANOUTS), input_nodes=torch.arange(64 * BATCH),
        **options), graph


def pss_mb(process):
    text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    size = {name: int(kib) / 1024 for name, kib in re.findall(r"^(Pss|Pss_Shmem):\s+(\d+)", text, re.M)}
    return size["Pss"] - size["Pss_Shmem"]


def contest(kind, path, method, memory, rows):
    loader, graph = loader_of(kind, path, method, memory, rows)
    begin = time.perf_counter()
    batches = iter(loader)
    batch = next(batches)
    first = time.perf_counter() - begin
    rows = len(batch) if kind == "torch" else batch.num_nodes
    sizes = []
    for _ in range(10 * WORKERS):
        next(batches)
        sizes += [pss_mb(worker.pid) for worker in batches._workers]
    print(json.dumps({"rows": rows, "first_minibatch_s": first, "pss_mb": statistics.median(sizes)}))
    del batches, graph


def start_often(path, method, memory, starts):
    loader, _ = loader_of("rhizome", path, method, memory)
    begin = time.perf_counter()
    for _ in range(starts // WORKERS):
        batches = iter(loader)
        for _ in range(WORKERS):
            assert next(batches).batch_size == BATCH
        workers = batches._workers
        del batches
        assert all(worker.exitcode == 0 for worker in workers), [worker.exitcode for worker in workers]
    print(json.dumps({"method": method, "starts": starts // WORKERS * WORKERS, "failed": 0,
                      "seconds": round(time.perf_counter() - begin, 1)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("python_workers.rz"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--method", default="fork")
    parser.add_argument("--memory", default="32M", help="of each worker's own store")
    parser.add_argument("--contestant")
    parser.add_argument("--rows", type=int, default=0)
    flags = parser.parse_args()
    if flags.contestant:
        contest(flags.contestant, flags.store, flags.method, flags.memory, flags.rows)
        return
    if not flags.store.exists():
        make(flags.store, flags.scale)
    if flags.starts:
        start_often(flags.store, flags.method, flags.memory, flags.starts)
        return
    found = {}
    rows = 0
    for _ in range(flags.turns):
        for kind in ("rhizome", "torch"):
            command = [sys.executable, __file__, "--contestant", kind, "--store", flags.store, "--method", flags.method,
                       "--memory", flags.memory, "--rows", str(rows)]
            turn = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            rows = turn["rows"]
            for name, value in turn.items():
                found.setdefault(f"{kind}: {name}", []).append(value)
    medians = {name: round(statistics.median(values), 2) for name, values in found.items()}
    print(json.dumps({"scale": flags.scale, "method": flags.method, **medians, "pss_mb_beyond_torch": round(
        medians["rhizome: pss_mb"] - medians["torch: pss_mb"], 1)}))


if __name__ == "__main__":
    main()
