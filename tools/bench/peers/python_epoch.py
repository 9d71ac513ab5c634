#!/usr/bin/env python3
"""Times epochs of PyG with features larger than memory. Contestants: rhizome.pyg.Loader; PyG's NeighborLoader on
Rhizome's stores, without workers and with two; the same on memory-mapped features (np.memmap, and with advice for
random reads), and on features in memory without a limit; and GraphBolt's pipeline on memory-mapped features.

    python3 python_epoch.py [--scale N] [--seeds N] [--limit SIZE] [--batches N] [--turns N] [--store DIR] [--no-model]

Requires root, for control groups: each contestant is a process limited to --limit (1.5 GiB), page cache included. PyG
from PyPI has no neighbour sampler, so all PyG contestants sample with rhizome.pyg.NeighborSampler. The graph is R-MAT
of 2^N vertices, edge factor 8, 256 columns of float32. An epoch covers --seeds vertices, starting from cold caches;
contestants that would take hours are stopped after --mapped-batches. Prints one JSON object: milliseconds per
minibatch of each turn, medians, and their ratios to rhizome.pyg.Loader.

GraphBolt runs in another environment: --graphbolt-python (dgl from PyPI and its torch; requires --no-model, because
its layers differ).
"""
import argparse
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

FANOUTS, BATCH, DIM = [10, 10, 10], 1000, 256
CONTESTANTS = ("loader", "stores", "workers", "mapped", "advised", "memory")
MAPPED = ("mapped", "advised", "graphbolt")


def rmat(scale, count, rng):
    """Edges of an R-MAT graph with the probabilities of Graph500."""
    edges = np.zeros((2, count), np.int64)
    for _ in range(scale):
        draw = rng.random(count, np.float32)
        edges[0] = edges[0] * 2 + (draw > 0.76)
        edges[1] = edges[1] * 2 + (((draw > 0.57) & (draw <= 0.76)) | (draw > 0.95))
    return edges


def make(folder, scale, seeds):
    import rhizome as rz
    rng = np.random.default_rng(1)
    count = 1 << scale
    features = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (count, DIM))
    for begin in range(0, count, 1 << 18):
        features[begin:begin + (1 << 18)] = rng.random((min(1 << 18, count - begin), DIM), np.float32)
    features.flush()
    label = rng.integers(0, 10, count)
    train = np.sort(rng.permutation(count)[:seeds or count // 4])
    edges = rmat(scale, 8 << scale, rng)
    rz.ingest(folder / "g.rz", edges, vertices=count, directions="in",
              arrays={"feat": folder / "x.npy", "label": label}, split=(train, [], []), memory="6G")
    np.save(folder / "train.npy", train)
    # For GraphBolt.
    np.save(folder / "indices.npy", edges[0][np.argsort(edges[1], kind="stable")].astype(np.int32))
    np.save(folder / "indptr.npy", np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=count))]))


def mapped_rows(folder, advised=False):
    """Returns the features as a tensor on a mapped file."""
    import torch
    rows = np.load(folder / "x.npy", mmap_mode="r+")
    if advised:
        rows._mmap.madvise(mmap.MADV_RANDOM)
    return torch.from_numpy(rows)


def graphbolt_minibatches(folder):
    """GraphBolt's own pipeline: sampling in memory, features mapped."""
    import torch
    import dgl.graphbolt as gb
    graph = gb.fused_csc_sampling_graph(torch.from_numpy(np.load(folder / "indptr.npy")),
                                        torch.from_numpy(np.load(folder / "indices.npy")))
    feature = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(mapped_rows(folder))})
    seeds = gb.ItemSet(torch.from_numpy(np.load(folder / "train.npy")).int(), names="seed_nodes")
    yield
    pipe = gb.ItemSampler(seeds, batch_size=BATCH, shuffle=True)
    pipe = pipe.sample_neighbor(graph, FANOUTS).fetch_feature(feature, node_feature_keys=["feat"])
    yield from gb.DataLoader(pipe, num_workers=0)


def minibatches(name, folder, budget):
    """Yields when the graph (and features, where they are in memory) is there, and then minibatches."""
    if name == "graphbolt":
        yield from graphbolt_minibatches(folder)
        return
    import torch
    import rhizome as rz
    import rhizome.pyg as rzpyg
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    part = f"{budget * 3 // 7}M"
    graph = rz.open(folder / "g.rz", memory=f"{budget if name == 'stores' else budget * 4 // 7}M", topology="memory")
    workers = 2 if name == "workers" else 0
    seeds = torch.from_numpy(graph.split("train"))
    in_memory = torch.from_numpy(np.load(folder / "x.npy")) if name == "memory" else None
    yield
    if name == "loader":
        yield from rzpyg.Loader(graph, FANOUTS, x="feat", y="label", input_nodes="train", batch_size=BATCH, memory=part)
        return
    fs, gs = rzpyg.backend(graph, x="feat", y="label", memory=f"{budget * 3 // 14}M")  # of each worker
    sampler = rzpyg.NeighborSampler(gs, FANOUTS)
    if name in ("stores", "workers"):
        data = (fs, gs)
    else:
        x = mapped_rows(folder, name == "advised") if in_memory is None else in_memory
        data = Data(x=x, y=torch.from_numpy(np.asarray(graph["label"])[:, 0]),
                    edge_index=torch.empty((2, 0), dtype=torch.int64))  # our sampler has the edges
        data.num_nodes = len(x)
    yield from NeighborLoader(data, FANOUTS, neighbor_sampler=sampler, input_nodes=seeds, batch_size=BATCH, shuffle=True,
                              num_workers=workers, multiprocessing_context="fork" if workers else None)


def contest(name, folder, batches, with_model, budget):
    """Prints the milliseconds of a minibatch; making the loader counts, and opening the graph and loading features does not."""
    import torch
    torch.manual_seed(1)
    if with_model:
        import torch.nn.functional as F
        from torch_geometric.nn import GraphSAGE
        model = GraphSAGE(DIM, 256, num_layers=3, out_channels=10)
        optimizer = torch.optim.Adam(model.parameters())
    loader = minibatches(name, folder, budget)
    next(loader)
    begin, count = time.perf_counter(), 0
    for batch in loader:
        if with_model:
            optimizer.zero_grad()
            F.cross_entropy(model(batch.x, batch.edge_index)[:batch.batch_size], batch.y[:batch.batch_size]).backward()
            optimizer.step()
        count += 1
        if count == batches:
            break
    print(json.dumps(1000 * (time.perf_counter() - begin) / count))


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
    parser.add_argument("--seeds", type=int, default=0, help="of an epoch, when the store is made; 0: a quarter of all")
    parser.add_argument("--budget", type=int, default=700, help="MiB of graph and rows that ours take of the limit")
    parser.add_argument("--batches", type=int, default=0, help="of a shorter run; 0: whole epochs")
    parser.add_argument("--mapped-batches", type=int, default=8, help="where features are mapped")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("python_epoch"))
    parser.add_argument("--no-model", action="store_true", help="only take minibatches")
    parser.add_argument("--only", default=",".join(CONTESTANTS))
    parser.add_argument("--graphbolt-python", help="takes part, with this interpreter")
    parser.add_argument("--contestant")
    flags = parser.parse_args()
    if flags.contestant:
        contest(flags.contestant, flags.store, flags.batches, not flags.no_model, flags.budget)
        return
    if not flags.store.exists():
        flags.store.mkdir()
        make(flags.store, flags.scale, flags.seeds)
    names, turns = flags.only.split(","), []
    names += ["graphbolt"] if flags.graphbolt_python else []
    for _ in range(flags.turns):
        turn = {}
        for name in names:
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            command = [flags.graphbolt_python if name == "graphbolt" else sys.executable, __file__, "--contestant", name,
                       "--store", flags.store, "--budget", str(flags.budget),
                       "--batches", str(flags.mapped_batches if name in MAPPED else flags.batches)]
            command += ["--no-model"] if flags.no_model else []
            turn[name] = float(in_group("" if name == "memory" else flags.limit, command))
            print(f"{name}: {turn[name]:.1f} ms", file=sys.stderr, flush=True)
        turns.append(turn)
    medians = {name: round(statistics.median(turn[name] for turn in turns), 1) for name in names}
    ratios = {name: round(statistics.median(turn[name] / turn["loader"] for turn in turns), 2)
              for name in names if "loader" in names}
    print(json.dumps({"load": os.getloadavg(), "scale": flags.scale, "limit": flags.limit, "model": not flags.no_model,
                      "ms": medians, "of_loader": ratios}))


if __name__ == "__main__":
    main()
