#!/usr/bin/env python3
"""Times minibatches of PyG with features beyond memory: rhizome.pyg.Loader, PyG's NeighborLoader on our stores, without
workers and with two, the same on features that are mapped (np.memmap), and on features in memory without a limit.

    python3 python_epoch.py [--scale N] [--limit SIZE] [--batches N] [--turns N] [--store DIR] [--no-model]

As root, for control groups: each contestant is a process that may take --limit (1.5 GiB), page cache included. PyG of
PyPI has no neighbour sampler of its own, so that all contestants draw by rhizome.pyg.NeighborSampler. The graph is R-MAT
of 2^N vertices, edge factor 8, 256 columns of float32. Prints one JSON object: milliseconds a minibatch of each turn,
medians, and their ratios to rhizome.pyg.Loader's.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

FANOUTS, BATCH, DIM = [10, 10, 10], 1000, 256
CONTESTANTS = ("loader", "stores", "workers", "mapped", "memory")


def rmat(scale, count, rng):
    """Edges of an R-MAT graph with the probabilities of Graph500."""
    edges = np.zeros((2, count), np.int64)
    for _ in range(scale):
        draw = rng.random(count, np.float32)
        edges[0] = edges[0] * 2 + (draw > 0.76)
        edges[1] = edges[1] * 2 + (((draw > 0.57) & (draw <= 0.76)) | (draw > 0.95))
    return edges


def make(folder, scale):
    import rhizome as rz
    rng = np.random.default_rng(1)
    count = 1 << scale
    features = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (count, DIM))
    for begin in range(0, count, 1 << 18):
        features[begin:begin + (1 << 18)] = rng.random((min(1 << 18, count - begin), DIM), np.float32)
    features.flush()
    label = rng.integers(0, 10, count)
    rz.ingest(folder / "g.rz", rmat(scale, 8 << scale, rng), vertices=count, directions="in",
              arrays={"feat": folder / "x.npy", "label": label}, split=(np.arange(0, count, 4), [], []), memory="6G")


def minibatches(name, folder):
    import torch
    import rhizome as rz
    import rhizome.pyg as rzpyg
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    graph = rz.open(folder / "g.rz", memory="700M" if name == "stores" else "400M", topology="memory")
    workers = 2 if name == "workers" else 0
    seeds = torch.from_numpy(graph.split("train"))
    if name == "loader":
        return rzpyg.Loader(graph, FANOUTS, x="feat", y="label", input_nodes="train", batch_size=BATCH, memory="300M")
    fs, gs = rzpyg.backend(graph, x="feat", y="label", memory="150M")  # of each worker
    sampler = rzpyg.NeighborSampler(gs, FANOUTS)
    if name in ("stores", "workers"):
        data = (fs, gs)
    else:
        x = np.load(folder / "x.npy", mmap_mode="r+" if name == "mapped" else None)
        data = Data(x=torch.from_numpy(x), y=torch.from_numpy(np.asarray(graph["label"])[:, 0]),
                    edge_index=torch.empty((2, 0), dtype=torch.int64))  # our sampler has the edges
        data.num_nodes = len(x)
    return NeighborLoader(data, FANOUTS, neighbor_sampler=sampler, input_nodes=seeds, batch_size=BATCH, shuffle=True,
                          num_workers=workers, multiprocessing_context="fork" if workers else None)


def contest(name, folder, batches, with_model):
    import torch
    import torch.nn.functional as F
    from torch_geometric.nn import GraphSAGE
    torch.manual_seed(1)
    model = GraphSAGE(DIM, 256, num_layers=3, out_channels=10)
    optimizer = torch.optim.Adam(model.parameters())
    times, begin = [], None
    for number, batch in enumerate(minibatches(name, folder)):
        if with_model:
            optimizer.zero_grad()
            F.cross_entropy(model(batch.x, batch.edge_index)[:batch.batch_size], batch.y[:batch.batch_size]).backward()
            optimizer.step()
        now = time.perf_counter()
        if begin is not None:
            times.append(1000 * (now - begin))
        begin = now
        if number == batches:
            break
    print(json.dumps(statistics.fmean(times)))


def in_group(limit, command):
    """Runs a command in a control group of its own; returns what it prints."""
    root, file = pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"  # version 1, else version 2
    if not root.is_dir():
        root, file = root.parent, "memory.max"
    group = root / f"rhizome-epoch-{os.getpid()}"
    group.mkdir()
    try:
        if limit:
            (group / file).write_text(limit)
        join = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, preexec_fn=join).stdout
    finally:
        group.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--limit", default="1536M")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("python_epoch"))
    parser.add_argument("--no-model", action="store_true", help="only take minibatches")
    parser.add_argument("--only", default=",".join(CONTESTANTS))
    parser.add_argument("--contestant")
    flags = parser.parse_args()
    if flags.contestant:
        contest(flags.contestant, flags.store, flags.batches, not flags.no_model)
        return
    if not flags.store.exists():
        flags.store.mkdir()
        make(flags.store, flags.scale)
    names, turns = flags.only.split(","), []
    for _ in range(flags.turns):
        turn = {}
        for name in names:
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            command = [sys.executable, __file__, "--contestant", name, "--store", flags.store,
                       "--batches", str(flags.batches if name != "mapped" else max(flags.batches // 6, 2))]
            command += ["--no-model"] if flags.no_model else []
            turn[name] = float(in_group("" if name == "memory" else flags.limit, command))
        turns.append(turn)
        print(turn, file=sys.stderr, flush=True)
    medians = {name: round(statistics.median(turn[name] for turn in turns), 1) for name in names}
    ratios = {name: round(statistics.median(turn[name] / turn["loader"] for turn in turns), 2)
              for name in names if "loader" in names}
    print(json.dumps({"scale": flags.scale, "limit": flags.limit, "model": not flags.no_model, "ms": medians,
                      "of_loader": ratios}))


if __name__ == "__main__":
    main()
