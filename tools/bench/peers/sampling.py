#!/usr/bin/env python3
"""Compares `rhizome bench sample` with GraphBolt. Prints one JSON object.

    tools/bench/peers/sampling.py --scale 20

Creates a virtual environment and the graphs in --work (default: build/bench); both are kept for the next run. Both
contestants use the same graph, from `rhizome generate`, and alternate. A turn is a process that runs several rounds.
Reports medians over the turns and, as the ratio, the median of the ratios of consecutive turns. Both wall-clock and
processor time are reported; on a loaded machine only the latter is meaningful.

Both perform the same work: GraphBolt expands every known vertex again in each hop, so Rhizome does so, too
(--frontier again). Its default (each vertex once) is reported as well.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGES = ["dgl==2.1.0", "torch==2.2.1", "torchdata==0.7.1", "numpy<2", "pyyaml", "pydantic",
            "pandas"]


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **more):
    note("$ " + " ".join(map(str, command)))
    return subprocess.run([str(c) for c in command], check=True, **more)


def run_json(command):
    done = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rhizome", default=ROOT / "build/release/bin/rhizome")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--python", help="a Python that has dgl already: no environment is made")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--partitions", default="1,8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=20, help="of a round")
    parser.add_argument("--rounds", type=int, default=5, help="of a turn")
    parser.add_argument("--turns", type=int, default=5, help="of each contestant")
    parser.add_argument("--kinds", default="uniform,weighted", help="uniform, replace, weighted")
    parser.add_argument("--metis", action="store_true",
                        help="also the balance of work against an edge cut by METIS")
    return parser.parse_args()


def find_python(args):
    """The environment's Python, and what could not be installed."""
    if args.python:
        return args.python, {}
    folder = args.work / "venv"
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True)
        run([python, "-m", "pip", "install", "-q", *PACKAGES])
        (folder / "ready").touch()
    missing = {}
    found = subprocess.run([str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:",
                            "pyg-lib"], stderr=subprocess.PIPE, text=True)
    if found.returncode != 0:
        missing["pyg_lib"] = "not compared: " + found.stderr.strip().splitlines()[-1]
    else:
        missing["pyg_lib"] = "installed, but this script has no turn for it"
    if args.metis:
        run([python, "-m", "pip", "install", "-q", "--only-binary", ":all:", "pymetis"])
    return python, missing


PREPARE = """
import numpy, sys
folder, vertices, weighted = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
edges = numpy.load(folder + "/edges.npy")
order = numpy.argsort(edges[:, 1], kind="stable")
numpy.save(folder + "/indices.npy", edges[order, 0].astype(numpy.int32))
counts = numpy.bincount(edges[:, 1], minlength=vertices)
numpy.save(folder + "/indptr.npy", numpy.concatenate([[0], numpy.cumsum(counts)]))
if weighted:
    # Whole sixteenths: as text and as float32 the same number.
    weights = numpy.random.default_rng(1).integers(1, 256, len(edges))
    numpy.save(folder + "/weights.npy", (weights[order] / 16).astype(numpy.float32))
    with open(folder + "/edges.tsv", "w") as out:
        for first in range(0, len(edges), 1 << 18):
            part, w = edges[first:first + (1 << 18)], weights[first:first + (1 << 18)] / 16
            out.write("".join(f"{s}\\t{d}\\t{x}\\n" for (s, d), x in zip(part.tolist(), w.tolist())))
"""


def make_graph(args, python, weighted):
    """The edges as both contestants take them; returns their folder."""
    folder = args.work / f"rmat{args.scale}x{args.edge_factor}"
    vertices = 1 << args.scale
    if not (folder / "edges.npy").exists():
        run([args.rhizome, "generate", "rmat", "--scale", args.scale, "--edge-factor",
             args.edge_factor, "--permute", "--seed", 1, "--out", folder], stdout=sys.stderr)
    if not (folder / "indptr.npy").exists() or (weighted and not (folder / "weights.npy").exists()):
        run([python, "-c", PREPARE, folder, vertices, int(weighted)])
    return folder


def make_store(args, folder, partitions, weighted):
    store = folder / f"p{partitions}{'-weighted' if weighted else ''}.rz"
    if store.exists() and subprocess.run([str(args.rhizome), "info", str(store)],
                                         stdout=subprocess.DEVNULL).returncode == 0:
        return store
    edges = (["--edges", folder / "edges.tsv", "--columns", "src,dst,weight", "--id-type",
              "integer"] if weighted else ["--edges", folder / "edges.npy"])
    run([args.rhizome, "ingest", store, *edges, "--vertices", 1 << args.scale, "--partitions",
         partitions], stdout=sys.stderr)
    return store


def work_flags(args):
    return ["--fanout", args.fanout, "--batch-size", args.batch_size, "--batches", args.batches,
            "--rounds", args.rounds]


def rhizome_turn(args, store, kind, frontier, callers):
    told = run_json([args.rhizome, "bench", "sample", "--store", store, "--kind", kind,
                     "--frontier", frontier, "--threads", args.threads, "--callers", callers,
                     *work_flags(args), "--json", "--progress", "none"])
    return {"edges_per_second": told["figure"],
            "edges_per_cpu_second": told["edges_per_cpu_second"],
            "edges_per_batch": told["edges_per_batch"]}


def graphbolt_turn(args, python, folder, kind, callers):
    flags = {"uniform": [], "weighted": ["--weighted"], "replace": ["--replace"]}[kind]
    script = pathlib.Path(__file__).with_name("graphbolt_sampler.py")
    return run_json([python, script, folder, "--threads", args.threads, "--callers", callers,
                     *work_flags(args), *flags])


def compare(args, python, folder, stores, kind, callers):
    """Turn by turn; one object for each contestant."""
    contestants = {"GraphBolt": lambda: graphbolt_turn(args, python, folder, kind, callers)}
    for partitions, store in stores.items():
        for frontier in ("again", "once"):
            name = f"Rhizome, {partitions} partition(s), frontier {frontier}"
            contestants[name] = lambda s=store, f=frontier: rhizome_turn(args, s, kind, f, callers)
    turns = {name: [] for name in contestants}
    for turn in range(args.turns):
        for name, take in contestants.items():
            turns[name].append(take())
            note(f"{kind}, {callers} caller(s), turn {turn + 1}: {name}: "
                 f"{turns[name][-1]['edges_per_second'] / 1e6:.1f} M edges/s")
    peer = turns["GraphBolt"]
    rows = []
    for name, mine in turns.items():
        row = {"contestant": name}
        for field in mine[0]:
            row[field] = statistics.median(t[field] for t in mine)
        if mine is not peer:
            for field in ("edges_per_second", "edges_per_cpu_second"):
                row["ratio_" + field] = statistics.median(
                    m[field] / p[field] for m, p in zip(mine, peer))
        rows.append(row)
    return {"kind": kind, "callers": callers, "threads": args.threads, "results": rows}


def balance(args, python, folder, store, partitions):
    parts = folder / f"metis{partitions}.npy"
    if not parts.exists():
        script = pathlib.Path(__file__).with_name("metis_parts.py")
        run([python, script, folder / "edges.npy", 1 << args.scale, partitions, parts])
    told = run_json([args.rhizome, "bench", "sample", "--store", store, "--vertex-parts", parts,
                     "--threads", args.threads, *work_flags(args), "--json", "--progress", "none"])
    return told["balance"]


def main():
    args = parse_arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    python, missing = find_python(args)
    partitions = [int(p) for p in args.partitions.split(",")]
    kinds = args.kinds.split(",")
    folder = make_graph(args, python, "weighted" in kinds)
    answer = {"workload": "sampling", "graph": f"RMAT scale {args.scale}, edge factor "
              f"{args.edge_factor}, permuted", "load_before": os.getloadavg(), **missing,
              "comparisons": []}
    for kind in kinds:
        stores = {p: make_store(args, folder, p, kind == "weighted") for p in partitions}
        for callers in (1, args.threads):
            answer["comparisons"].append(compare(args, python, folder, stores, kind, callers))
    if args.metis:
        most = max(partitions)
        store = make_store(args, folder, most, False)
        answer["balance"] = balance(args, python, folder, store, most)
    answer["load_after"] = os.getloadavg()
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
