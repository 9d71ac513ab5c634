#!/usr/bin/env python3
"""Worker processes of `rhizome infer`, whose ranges are of equal edges or of equal learned cost: one command, one JSON object.

    tools/bench/peers/worker_ranges.py STORE --model-file MODEL.safetensors [--workers N] [--turns N] [--chunk-rows N] [--learn N]

The contestants take turns on the same code path (--ranges edges|learned); before, --learn jobs of equal edges let the model of
costs learn. What counts is processor time, which no other process disturbs much: a layer's pass takes as long as its
slowest worker. Of each layer, medians over the turns: the slowest worker's seconds, and over the mean of all workers'.
The pass time of a job is the sum of its layers' slowest. The store gets an array, of which one version is kept.
"""
import argparse
import json
import os
import pathlib
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
    parser.add_argument("more", nargs="*", help="behind --: further flags of infer")
    args = parser.parse_args()
    runs = {name: [] for name in CONTESTANTS}
    with tempfile.TemporaryDirectory() as folder:
        costs = pathlib.Path(folder) / "costs.json"
        for _ in range(args.learn):
            infer(args, costs, "edges")
        for turn in range(args.turns):
            for name in CONTESTANTS if turn % 2 == 0 else CONTESTANTS[::-1]:
                runs[name].append(infer(args, costs, name))
    layers = len(runs["edges"][0])
    told = {"load": os.getloadavg()[0], "layers": []}
    for layer in range(layers):
        of = {}
        for name in CONTESTANTS:
            measured = [run[layer]["measured"] for run in runs[name]]
            of[name] = {"slowest_seconds": median([max(m) for m in measured]),
                        "over_mean": median([max(m) * len(m) / sum(m) for m in measured]),
                        "learned": [run[layer]["learned"] for run in runs[name]]}
        told["layers"].append(of)
    passes = {name: [sum(max(ranges["measured"]) for ranges in run) for run in runs[name]] for name in CONTESTANTS}
    told["pass_seconds"] = {name: median(passes[name]) for name in CONTESTANTS}
    told["edges_over_learned"] = median([a / b for a, b in zip(passes["edges"], passes["learned"])])
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
