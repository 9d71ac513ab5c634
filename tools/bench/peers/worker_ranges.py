#!/usr/bin/env python3
"""Compares worker processes of `rhizome infer` with ranges of equal edges and of equal learned cost. Prints one JSON
object.

    tools/bench/peers/worker_ranges.py STORE --model-file MODEL.safetensors [--workers N] [--turns N] [--chunk-rows N] [--learn N]

The contestants alternate on the same code path (--ranges edges|learned). Before, the cost model learns from --learn
jobs with equal edges. Times are processor times, on which other processes have little influence: the pass of a layer
takes as long as its slowest worker. Reports per layer, as medians over the turns: the seconds of the slowest worker,
and their ratio to the mean of all workers; whether both contestants used the same ranges (then edges_over_learned is
1); and why the learned ranges were used or not. The pass time of a job is the sum over its layers of the slowest
worker. Writes an array to the store, of which one version is kept.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONTESTANTS = ("edges", "learned")


def infer(args, costs, ranges):
    command = [args.rhizome, "infer", args.store, "--model-file", args.model_file, "--out", args.out, "--new-version",
               "--keep", 1, "--workers", args.workers, "--threads", args.workers, "--chunk-rows", args.chunk_rows,
               "--costs", costs, "--ranges", ranges, "--json", "--progress", "none", *args.more]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, check=True)
    layers = json.loads(done.stdout)["layers"]
    for layer in layers:
        if any(seconds is None for seconds in layer["ranges"]["measured"]):
            sys.exit("a worker told no cost; was it killed?")
    return [layer["ranges"] for layer in layers]


def median(values):
    return round(statistics.median(values), 4)


def slowest(ranges):
    return max(ranges["measured"])


def compare(edges, learned):
    """A layer of two jobs: the slowest worker's seconds, by contestant. Ranges that are the same are one contestant, whose
    seconds differ by noise alone: both are given the mean."""
    if edges["cuts"] == learned["cuts"]:
        mean = (slowest(edges) + slowest(learned)) / 2
        return mean, mean
    return slowest(edges), slowest(learned)


def describe(pairs):
    """A layer over the turns. `pairs`: its ranges of equal edges, and of learned cost."""
    told = {"equal_ranges": [edges["cuts"] == learned["cuts"] for edges, learned in pairs]}
    for number, name in enumerate(CONTESTANTS):
        ranges = [pair[number] for pair in pairs]
        told[name] = {"slowest_seconds": median([slowest(r) for r in ranges]),
                      "over_mean": median([slowest(r) * len(r["measured"]) / sum(r["measured"]) for r in ranges])}
    told["learned"]["because"] = [learned["because"] for _, learned in pairs]
    told["edges_over_learned"] = median([a / b for a, b in (compare(*pair) for pair in pairs)])
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--rhizome", default=ROOT / "build/release/bin/rhizome")
    parser.add_argument("--model-file", required=True)
    parser.add_argument("--out", default="worker_ranges")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--learn", type=int, default=1)
    parser.add_argument("--chunk-rows", type=int, default=512)
    parser.add_argument("--costs", help="a file of costs to begin with; it is copied")
    parser.add_argument("more", nargs="*", help="behind --: further flags of infer")
    args = parser.parse_args()
    runs = {name: [] for name in CONTESTANTS}
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        costs = pathlib.Path(folder) / "costs.json"
        if args.costs:
            shutil.copy(args.costs, costs)
        for _ in range(args.learn):
            infer(args, costs, "edges")
        for turn in range(args.turns):
            for name in CONTESTANTS if turn % 2 == 0 else CONTESTANTS[::-1]:
                runs[name].append(infer(args, costs, name))
            loads.append(os.getloadavg()[0])
    turns = list(zip(runs["edges"], runs["learned"]))
    passes = []
    for edges, learned in turns:
        layers = [compare(*pair) for pair in zip(edges, learned)]
        passes.append([sum(seconds) for seconds in zip(*layers)])
    told = {"load": [min(loads), max(loads)],
            "layers": [describe([(edges[layer], learned[layer]) for edges, learned in turns])
                       for layer in range(len(turns[0][0]))],
            "pass_seconds": {name: median([p[number] for p in passes]) for number, name in enumerate(CONTESTANTS)},
            "edges_over_learned": median([edges / learned for edges, learned in passes])}
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
