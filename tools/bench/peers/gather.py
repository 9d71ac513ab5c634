#!/usr/bin/env python3
"""Compares `rhizome bench pool` with GraphBolt's features on disk. Prints one JSON object.

    tools/bench/peers/gather.py --store pds.rz --features features.npy --python P [--library L.so]

Both read the rows of the same minibatches, with direct I/O from the same disk, in alternating turns. GraphBolt reads
them in request order from one .npy file in vertex order, without a cache and with its best cache. Rhizome uses a
schedule of the whole superbatch, whose construction is included in the time. P is a Python with torch, and with dgl
2.4 or later or the library of GraphBolt's operators (its wheels are not on PyPI, so that none is installed here). The
median of the turns counts.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

import sampling


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rhizome", default=sampling.ROOT / "build/release/bin/rhizome")
    parser.add_argument("--store", type=pathlib.Path, required=True)
    parser.add_argument("--array", default="feat", help="of the store; its rows are FEATURES'")
    parser.add_argument("--features", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--library", help="libgraphbolt_pytorch_*.so; default: dgl's")
    parser.add_argument("--superbatch", type=int, default=24)
    parser.add_argument("--pool-bytes", type=int, default=384 << 20)
    parser.add_argument("--policies", default="s3_fifo,sieve", help="of GraphBolt's cache")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args()


def rhizome_turn(args, trace):
    told = sampling.run_json(
        [args.rhizome, "bench", "pool", "--store", args.store, "--array", args.array,
         "--superbatch", args.superbatch, "--shares", "0.1", "--pools", args.pool_bytes,
         "--policies", "belady", "--rounds", 1, "--trace-out", trace, "--json", "--progress",
         "none"])
    return told["disk"]["pools"][0]["belady"]["rows_per_second"], told["disk"]["reference"]


def graphbolt_turn(args, trace, cache_bytes, policy):
    script = pathlib.Path(__file__).with_name("graphbolt_gather.py")
    library = ["--library", args.library] if args.library else []
    told = sampling.run_json([args.python, script, args.features, trace, "--threads", args.threads,
                              "--cache-bytes", cache_bytes, "--policy", policy, *library])
    return told["rows_per_second"]


def main():
    args = parse_arguments()
    policies = args.policies.split(",")
    rates = {"rhizome": [], "fio": [], "no cache": [], **{policy: [] for policy in policies}}
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.npy"
        for turn in range(args.turns):
            rate, fio = rhizome_turn(args, trace)
            rates["rhizome"].append(rate)
            rates["fio"].append(fio)
            rates["no cache"].append(graphbolt_turn(args, trace, 0, policies[0]))
            for policy in policies:
                rates[policy].append(graphbolt_turn(args, trace, args.pool_bytes, policy))
            sampling.note(f"turn {turn + 1}: " + ", ".join(
                f"{name} {values[-1]:,.0f}/s" for name, values in rates.items()))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max(medians[policy] for policy in policies)
    print(json.dumps({"superbatch": args.superbatch, "pool_bytes": args.pool_bytes,
                      "rows_per_second": medians, "over_graphbolt": medians["rhizome"] / best,
                      "over_graphbolt_without_cache": medians["rhizome"] / medians["no cache"]},
                     indent=1))


if __name__ == "__main__":
    main()
