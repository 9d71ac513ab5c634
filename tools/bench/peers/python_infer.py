#!/usr/bin/env python3
"""Times embeddings of all vertices by a model of PyG: rhizome.pyg.infer under a memory limit, computed block by block
in torch and by the engine's own model, against PyG's BasicGNN.inference with everything in memory and no limit.

    python3 python_infer.py [--scale N] [--limit SIZE] [--turns N] [--store DIR]

Requires root, for control groups. GraphSAGE of two layers of 256 columns; R-MAT of 2^N vertices, edge factor 16, 128
columns of float32. PyG from PyPI has no neighbour sampler, so its loader samples with rhizome.pyg.NeighborSampler; if
torch-sparse is installed, PyG also takes part with its own graph and sampler (`stock`). Prints one JSON object:
vertices per second and MB of the process in each turn, ratios, and the maximum difference of the results.
"""
import argparse
import importlib.util
import json
import logging
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
from python_epoch import in_group, rmat

DIM, HIDDEN = 128, 256
PEERS = ("pyg", "stock") if importlib.util.find_spec("torch_sparse") else ("pyg",)
CONTESTANTS = ("torch", "native", *PEERS)


def make(folder, scale):
    import rhizome as rz
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1 << scale, DIM)).astype(np.float32)
    np.save(folder / "x.npy", rows)
    edges = rmat(scale, 16 << scale, rng)
    np.save(folder / "edges.npy", edges)
    rz.ingest(folder / "g.rz", edges, vertices=1 << scale, arrays={"feat": rows})


def peak_mb():
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024


class Peaks(logging.Handler):
    """The memory of the processes that compute for this one, as the package logs it."""

    found = [0]

    def emit(self, record):
        if "native engine" in record.msg and len(record.args) == 3:
            self.found.append(record.args[-1])


def contest(name, folder):
    import torch
    import rhizome as rz
    import rhizome.pyg as rzpyg
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import GraphSAGE
    torch.manual_seed(1)
    model = GraphSAGE(DIM, HIDDEN, num_layers=2, out_channels=HIDDEN).eval()
    graph = rz.open(folder / "g.rz", memory="2G" if name == "pyg" else "256M")
    vertices, base = graph.num_vertices, peak_mb()
    logging.getLogger("rhizome").addHandler(Peaks())
    logging.getLogger("rhizome").setLevel("INFO")
    if name not in PEERS:
        begin = time.perf_counter()
        rzpyg.infer(model, graph, features="feat", out="emb", memory="96M" if name == "torch" else "256M", engine=name)
        seconds = time.perf_counter() - begin
        graph.refresh()
        some = graph[f"emb@{graph.arrays['emb'].versions[-1]}"][np.arange(1000)]
    else:
        features = torch.from_numpy(np.load(folder / "x.npy"))
        if name == "pyg":
            edges = torch.empty((2, 0), dtype=torch.int64)
            draw = {"neighbor_sampler": rzpyg.NeighborSampler(rzpyg.backend(graph)[1], [-1])}
        else:
            edges, draw = torch.from_numpy(np.load(folder / "edges.npy")), {}
        loader = NeighborLoader(Data(x=features, edge_index=edges), [-1], batch_size=1000, input_nodes=None, **draw)
        begin = time.perf_counter()
        with torch.no_grad():
            some = model.inference(loader)[:1000].numpy()
        seconds = time.perf_counter() - begin
    np.save(folder / f"{name}.npy", some)
    print(json.dumps({"vertices_per_second": round(vertices / seconds),
                      "mb": round(max(peak_mb() - base, *Peaks.found))}))


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
        for name in CONTESTANTS:
            command = [sys.executable, __file__, "--contestant", name, "--store", flags.store]
            turn[name] = json.loads(in_group("" if name in PEERS else flags.limit, command))
        turns.append(turn)
        print(turn, file=sys.stderr, flush=True)
    expected = np.load(flags.store / "pyg.npy")

    def over(name, peer, what):
        return round(statistics.median(turn[name][what] / turn[peer][what] for turn in turns), 2)

    print(json.dumps({"scale": flags.scale, "limit": flags.limit, "turns": turns} | {
        name: {f"{what} over {peer}": over(name, peer, key) for peer in PEERS if peer != name
               for what, key in (("speed", "vertices_per_second"), ("memory", "mb"))} | {
            "difference": float(np.abs(np.load(flags.store / f"{name}.npy") - expected).max())}
        for name in CONTESTANTS if name != "pyg"}))


if __name__ == "__main__":
    main()
