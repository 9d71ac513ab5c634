#!/usr/bin/env python3
"""Trains the models of `rhizome bench models` on graphs with types, and the same models in PyTorch Geometric. Prints
one JSON object.

    tools/bench/peers/models.py --python PYTHON_WITH_PYG --only wordnet30

Settings are equal: layers, widths, dropout, fanouts, batches, Adam with the same rate, epochs, and the weights of the
epoch with the best result on the validation set. Each side draws its own samples and initial weights. Reports test
accuracies over the seeds, and how many points Rhizome's mean is above PyG's.
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
    parser.add_argument("--rhizome", default=sampling.ROOT / "build/release/bin/rhizome")
    parser.add_argument("--python", required=True, help="a Python with torch_geometric")
    parser.add_argument("--data", default=os.environ.get("RHIZOME_TEST_DATA", "../shared/data"))
    parser.add_argument("--only", default="wordnet30", help="cases whose 'DATA MODEL' contains this text")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def train_peer(args, row):
    settings = row["settings"]
    script = pathlib.Path(__file__).with_name("pyg_models.py")
    both = row["model"].endswith(" both ways")
    command = [args.python, script, pathlib.Path(args.data) / row["data"], "--model",
               row["model"].removesuffix(" both ways"), "--hidden", settings["hidden"], "--dropout",
               settings["dropout"], "--fanout", ",".join(map(str, settings["fanout"])), "--epochs", settings["epochs"],
               "--rate", settings["learning_rate"], "--threads", args.threads, *["--both"] * both]
    runs = []
    for seed in range(1, args.seeds + 1):
        runs.append(sampling.run_json([*command, "--seed", seed]))
        sampling.note(f"PyG {row['data']} {row['model']}, seed {seed}: {runs[-1]['test_accuracy'] * 100:.2f} in "
                      f"{runs[-1]['seconds']:.0f} s")
    return [run["test_accuracy"] for run in runs]


def main():
    args = parse_arguments()
    told = sampling.run_json([args.rhizome, "bench", "models", "--tier", "long", "--data", args.data, "--only",
                              args.only, "--runs", args.seeds, "--threads", args.threads, "--json", "--progress",
                              "none"])
    rows = []
    for row in told["rows"]:
        theirs = train_peer(args, row)
        rows.append({"data": row["data"], "model": row["model"], "rhizome": row["mean"], "rhizome_values": row["values"],
                     "pyg": statistics.mean(theirs), "pyg_values": theirs,
                     "points_above_pyg": (row["mean"] - statistics.mean(theirs)) * 100})
        sampling.note(f"{row['data']} {row['model']}: {rows[-1]['rhizome'] * 100:.2f}, PyG {rows[-1]['pyg'] * 100:.2f}")
    print(json.dumps({"workload": "models", "rows": rows}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
