#!/usr/bin/env python3
"""Compares `rhizome bench step` with DGL and PyTorch Geometric. Prints one JSON object.

    tools/bench/peers/step.py --model gat,gin,sage,gcn --turns 3

Times training steps of a model of 3 layers on minibatches in memory: forward, backward, Adam. Graph, model and number
of seeds are equal. Each contestant samples by itself (DGL samples vertices again that it knows from an earlier hop,
the others sample each once), so rows and edges per minibatch are printed next to the times. Attention includes
self-loops in Rhizome and PyG, but not in DGL. The contestants alternate. Reports medians, and ratios of consecutive
turns. On a loaded machine only ratios of processor time are meaningful.

Memory is the peak of the process, and the increase caused by the steps; if sage is among the models,
`memory_over_sage` is the memory of the other models relative to it, by library.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

import sampling


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = sampling.ROOT
    parser.add_argument("--rhizome", default=root / "build/release/bin/rhizome")
    parser.add_argument("--work", type=pathlib.Path, default=root / "build/bench")
    parser.add_argument("--python", help="a Python that has the peers already: no environment is made")
    parser.add_argument("--model", default="sage", help="of sage, gcn, gin, gat, rgcn, hgt: one or several")
    parser.add_argument("--relations", type=int, default=10, help="of rgcn and hgt")
    parser.add_argument("--bases", type=int, default=4, help="of rgcn")
    parser.add_argument("--peers", default="dgl,pyg", help="also pyg_fast, PyG's FastRGCNConv, for rgcn")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=8, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3, help="of a turn")
    parser.add_argument("--turns", type=int, default=5, help="of each contestant")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--dropout", default="0,0.5", help="shares to compare at")
    parser.set_defaults(metis=False)
    return parser.parse_args()


FIELDS = ["step_seconds", "cpu_seconds", "peak_memory_bytes", "step_memory_bytes", "rows_per_batch",
          "edges_per_batch"]


def rhizome_turn(args, store, flags):
    told = sampling.run_json([args.rhizome, "bench", "step", "--store", store, *flags, "--json",
                              "--progress", "none"])
    return {"step_seconds": told["figure"], **told}


def compare(args, python, folder, store, model, dropout):
    flags = ["--model", model, "--threads", args.threads, "--fanout", args.fanout, "--batch-size",
             args.batch_size, "--batches", args.batches, "--rounds", args.rounds, "--dim", args.dim,
             "--hidden", args.hidden, "--dropout", dropout]
    peers = args.peers.split(",")
    own, theirs = flags, flags
    if model == "rgcn":  # the step of DGL has none
        peers = [peer for peer in peers if peer.startswith("pyg")]
        own = [*flags, "--relations", args.relations, "--model-option", f"bases={args.bases}"]
        theirs = [*flags, "--relations", args.relations, "--bases", args.bases]
    else:
        peers = [peer for peer in peers if peer != "pyg_fast"]
    if model == "hgt":  # the step of DGL has none
        peers = [peer for peer in peers if peer == "pyg"]
        own = theirs = [*flags, "--relations", args.relations]
    takes = {"rhizome": lambda: rhizome_turn(args, store, own)}
    for peer in peers:
        script = pathlib.Path(__file__).with_name(peer.removesuffix("_fast") + "_step.py")
        more = ["--fast"] if peer.endswith("_fast") else []
        takes[peer] = lambda s=script, m=more: sampling.run_json([python, s, folder, *theirs, *m])
    turns = {name: [] for name in takes}
    for turn in range(args.turns):
        for name, take in takes.items():
            turns[name].append(take())
            sampling.note(f"{model}, dropout {dropout}, turn {turn + 1}: {name} "
                          f"{turns[name][-1]['step_seconds'] * 1e3:.0f} ms, "
                          f"{turns[name][-1]['step_memory_bytes'] / 1e6:.0f} MB")
    answer = {"model": model, "dropout": dropout, "simd": turns["rhizome"][0]["simd"]}
    for name, mine in turns.items():
        answer[name] = {field: statistics.median(t[field] for t in mine) for field in FIELDS}
    for peer in peers:
        answer["over_" + peer] = {
            field: statistics.median(m[field] / t[field]
                                     for m, t in zip(turns["rhizome"], turns[peer]))
            for field in FIELDS[:4]}
    return answer


def over_sage(comparisons):
    """For each model and library, its memory over that of sage with the same dropout."""
    sage = {c["dropout"]: c for c in comparisons if c["model"] == "sage"}
    rows = []
    for one in comparisons:
        base = sage.get(one["dropout"])
        if base is None or base is one:
            continue
        row = {"model": one["model"], "dropout": one["dropout"]}
        for name in ("rhizome", "dgl", "pyg"):
            if name in one and name in base:
                row[name] = {field: one[name][field] / base[name][field]
                             for field in ("peak_memory_bytes", "step_memory_bytes")}
        rows.append(row)
    return rows


def main():
    args = parse_arguments()
    # As rhizome does for itself: threads that spin while they wait take the others' turns.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    args.work.mkdir(parents=True, exist_ok=True)
    python, _ = sampling.find_python(args)
    if not args.python and "pyg" in args.peers:
        sampling.run([python, "-m", "pip", "install", "-q", "torch_geometric"])
    folder = sampling.make_graph(args, python, False)
    store = sampling.make_store(args, folder, 1, False)
    answer = {"workload": "step", "graph": f"RMAT scale {args.scale}, edge factor "
              f"{args.edge_factor}, permuted", "load_before": os.getloadavg()}
    answer["comparisons"] = [compare(args, python, folder, store, model, float(dropout))
                             for dropout in args.dropout.split(",")
                             for model in args.model.split(",")]
    answer["memory_over_sage"] = over_sage(answer["comparisons"])
    answer["load_after"] = os.getloadavg()
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    sys.exit(main())
