#!/usr/bin/env python3
"""Times the embeddings of all vertices by a model of PyG: rhizome.pyg.infer under a limit on memory, against PyG's
BasicGNN.inference with everything in memory and none.

    python3 python_infer.py [--scale N] [--limit SIZE] [--turns N] [--store DIR]

As root, for control groups. GraphSAGE of two layers of 256; R-MAT of 2^N vertices, edge factor 16, 128 columns of float32.
PyG of PyPI has no neighbour sampler of its own, so that its loader draws by rhizome.pyg.NeighborSampler. Prints one JSON
object: vertices a second and MB of the process in each turn, ratios, and the largest difference of the results.
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
from python_epoch import in_group, rmat

DIM, HIDDEN = 128, 256


def make(folder, scale):
    import rhizome as rz
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1 << scale, DIM)).astype(np.float32)
    np.save(folder / "x.npy", rows)
    rz.ingest(folder / "g.rz", rmat(scale, 16 << scale, rng), vertices=1 << scale, arrays={"feat": rows})


def peak_mb():
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024


def contest(name, folder):
    import torch
    import rhizome as rz
    import rhizome.pyg as rzpyg
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import GraphSAGE
    torch.manual_seed(1)
    model = GraphSAGE(DIM, HIDDEN, num_layers=2, out_channels=HIDDEN).eval()
    graph = rz.open(folder / "g.rz", memory="256M" if name == "rhizome" else "2G")
    base = peak_mb()
    if name == "rhizome":
        begin = time.perf_counter()
        rzpyg.infer(model, graph, features="feat", out="emb", memory="96M")
        seconds = time.perf_counter() - begin
        graph.refresh()
        some = graph[f"emb@{graph.arrays['emb'].versions[-1]}"][np.arange(1000)]
    else:
        fs, gs = rzpyg.backend(graph)
        data = Data(x=torch.from_numpy(np.load(folder / "x.npy")), edge_index=torch.empty((2, 0), dtype=torch.int64))
        loader = NeighborLoader(data, [-1], neighbor_sampler=rzpyg.NeighborSampler(gs, [-1]), batch_size=1000,
                                input_nodes=None)
        begin = time.perf_counter()
        with torch.no_grad():
            some = model.inference(loader)[:1000].numpy()
        seconds = time.perf_counter() - begin
    np.save(folder / f"{name}.npy", some)
    print(json.dumps({"vertices_per_second": round(graph.num_vertices / seconds), "mb": round(peak_mb() - base)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--limit", default="1G")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("python_infer"))
    parser.add_argument("--contestant")
    flags = parser.parse_args()
    if flags.contestant:
        contest(flags.contestant, flags.store)
        return
    if not flags.store.exists():
        flags.store.mkdir()
        make(flags.store, flags.scale)
    turns = []
    for _ in range(flags.turns):
        turn = {}
        for name in ("rhizome", "pyg"):
            command = [sys.executable, __file__, "--contestant", name, "--store", flags.store]
            turn[name] = json.loads(in_group(flags.limit if name == "rhizome" else "", command))
        turns.append(turn)
        print(turn, file=sys.stderr, flush=True)
    rows = [np.load(flags.store / f"{name}.npy") for name in ("rhizome", "pyg")]
    print(json.dumps({
        "scale": flags.scale, "limit": flags.limit, "turns": turns,
        "speed_of_pyg": round(statistics.median(t["rhizome"]["vertices_per_second"] / t["pyg"]["vertices_per_second"]
                                                for t in turns), 2),
        "memory_of_pyg": round(statistics.median(t["rhizome"]["mb"] / t["pyg"]["mb"] for t in turns), 2),
        "difference": float(np.abs(rows[0] - rows[1]).max())}))


if __name__ == "__main__":
    main()
