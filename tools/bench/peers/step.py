#!/usr/bin/env python3
"""Compares `rhizome bench step` with DGL: one command, one JSON object.

    tools/bench/peers/step.py --scale 20

One step of a 3-layer GraphSAGE on minibatches in memory: forward, backward, Adam. Graph, network and
seeds' number are the same; both sample on their own (DGL draws again for vertices that it knows from
an earlier hop, Rhizome draws once for each), so rows and edges of a minibatch are printed beside the
times. They take turns; what counts is the median, and the ratio of turns that stand next to each
other. On a loaded machine only the ratio by processor time means anything.
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
    parser.add_argument("--python", help="a Python that has dgl already: no environment is made")
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


def compare(args, python, folder, store, dropout):
    flags = ["--threads", args.threads, "--fanout", args.fanout, "--batch-size", args.batch_size,
             "--batches", args.batches, "--rounds", args.rounds, "--dim", args.dim, "--hidden",
             args.hidden, "--dropout", dropout]
    script = pathlib.Path(__file__).with_name("dgl_step.py")
    ours, theirs = [], []
    for turn in range(args.turns):
        theirs.append(sampling.run_json([python, script, folder, *flags]))
        told = sampling.run_json([args.rhizome, "bench", "step", "--store", store, *flags,
                                  "--json", "--progress", "none"])
        ours.append({"step_seconds": told["figure"], "cpu_seconds": told["cpu_seconds"],
                     "rows_per_batch": told["rows_per_batch"],
                     "edges_per_batch": told["edges_per_batch"], "simd": told["simd"]})
        sampling.note(f"dropout {dropout}, turn {turn + 1}: DGL "
                      f"{theirs[-1]['step_seconds'] * 1e3:.0f} ms, Rhizome "
                      f"{ours[-1]['step_seconds'] * 1e3:.0f} ms")
    answer = {"dropout": dropout, "simd": ours[0]["simd"]}
    for name, turns in (("dgl", theirs), ("rhizome", ours)):
        answer[name] = {field: statistics.median(t[field] for t in turns) for field in theirs[0]}
    for field in ("step_seconds", "cpu_seconds"):
        answer["ratio_" + field] = statistics.median(
            m[field] / t[field] for m, t in zip(ours, theirs))
    return answer


def main():
    args = parse_arguments()
    # As rhizome does for itself: threads that spin while they wait take the others' turns.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    args.work.mkdir(parents=True, exist_ok=True)
    python, _ = sampling.find_python(args)
    folder = sampling.make_graph(args, python, False)
    store = sampling.make_store(args, folder, 1, False)
    answer = {"workload": "step", "graph": f"RMAT scale {args.scale}, edge factor "
              f"{args.edge_factor}, permuted", "load_before": os.getloadavg(),
              "comparisons": [compare(args, python, folder, store, float(d))
                              for d in args.dropout.split(",")]}
    answer["load_after"] = os.getloadavg()
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    sys.exit(main())
