#!/usr/bin/env python3
"""Compares `rhizome evaluate` with PyKEEN's RankBasedEvaluator. Prints one JSON object.

    tools/bench/peers/pykeen_ranks.py --data wn18rr --python P [--dim 128] [--turns 3]

`--data` is a folder with edges.tsv.zst, edges.valid.tsv.zst, edges.test.tsv.zst (lines src, dst, type) and
nodes.tsv.zst. Both rank both ends of all test edges by ComplEx with the same random table, filtered by the edges of all
three files, on one thread, in alternating turns. P is a Python with pykeen. Rates are queries per second of processor
time; Rhizome's includes the start of the process, PyKEEN's does not. Memory is the peak beyond what the process held
before the evaluation.
"""

import argparse
import json
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rhizome", default=ROOT / "build/release/bin/rhizome")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--dim", type=int, default=128, help="real numbers of a row; even")
    parser.add_argument("--batch-size", type=int, default=128, help="of PyKEEN's evaluation")
    parser.add_argument("--memory", default="64M", help="of Rhizome's evaluation")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--pykeen", type=pathlib.Path, help=argparse.SUPPRESS)  # one turn, in a child
    return parser.parse_args()


def triples_of(path):
    """Lines src, dst, type as a list of (src, type, dst)."""
    text = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True, text=True).stdout
    return [(h, r, t) for h, t, r in (line.split("\t")[:3] for line in text.splitlines())]


def save_decoder(path, relations, names):
    header = {"__metadata__": {"decoder": "complex", "relation_names": json.dumps(names)},
              "relations": {"dtype": "F32", "shape": list(relations.shape),
                            "data_offsets": [0, relations.nbytes]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + relations.tobytes())


def make(args, folder):
    """Writes the table, the decoder and the store; returns the store."""
    import numpy as np
    lines = subprocess.run(["zstd", "-dcq", args.data / "nodes.tsv.zst"], capture_output=True, check=True,
                           text=True).stdout.splitlines()
    splits = {name: triples_of(args.data / f"{name}.tsv.zst") for name in ("edges", "edges.valid", "edges.test")}
    entities = [line.split("\t")[0] for line in lines]
    relations = sorted({r for split in splits.values() for _, r, _ in split})
    rng = np.random.default_rng(1)
    np.save(folder / "entities.npy", rng.normal(size=(len(entities), args.dim)).astype(np.float32))
    np.save(folder / "relations.npy", rng.normal(size=(len(relations), args.dim)).astype(np.float32))
    save_decoder(folder / "complex.safetensors", np.load(folder / "relations.npy"), relations)
    entity = {name: i for i, name in enumerate(entities)}
    relation = {name: i for i, name in enumerate(relations)}
    for name, split in splits.items():
        numbers = [(entity[h], relation[r], entity[t]) for h, r, t in split]
        np.save(folder / f"{name}.npy", np.array(numbers, np.int64))
    columns = ",".join(["id"] + ["-"] * (len(lines[0].split("\t")) - 1))
    subprocess.run([args.rhizome, "ingest", folder / "kg.rz", "--edges", args.data / "edges.tsv.zst", "--columns",
                    "src,dst,type", "--nodes", args.data / "nodes.tsv.zst", "--node-columns", columns, "--array",
                    f"ent={folder / 'entities.npy'}"], check=True, capture_output=True)
    return folder / "kg.rz"


def rhizome_turn(args, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([args.rhizome, "evaluate", folder / "kg.rz", "--array", "ent", "--decoder",
                          folder / "complex.safetensors", "--test", args.data / "edges.test.tsv.zst", "--valid",
                          args.data / "edges.valid.tsv.zst", "--memory", args.memory, "--threads", "1", "--json"],
                         capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(run.stdout)
    # The start of the process is included.
    told["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return told


def pykeen_turn(args):
    """Runs in a child: PyKEEN's evaluation of the table in folder args.pykeen."""
    import numpy as np
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import ComplEx
    from pykeen.triples import CoreTriplesFactory
    torch.set_num_threads(1)
    folder = args.pykeen
    table = torch.from_numpy(np.load(folder / "entities.npy"))
    relations = torch.from_numpy(np.load(folder / "relations.npy"))
    triples = {name: torch.from_numpy(np.load(folder / f"{name}.npy"))
               for name in ("edges", "edges.valid", "edges.test")}
    factory = CoreTriplesFactory(triples["edges"], num_entities=len(table), num_relations=len(relations))
    model = ComplEx(triples_factory=factory, embedding_dim=args.dim // 2, random_seed=1)

    def as_pairs(rows):  # PyKEEN's complex numbers are pairs (real, imaginary)
        return torch.stack([rows[:, :args.dim // 2], rows[:, args.dim // 2:]], -1).reshape(len(rows), -1)

    with torch.no_grad():
        for given, representations in ((table, model.entity_representations), (relations, model.relation_representations)):
            parameter = next(representations[0].parameters())
            parameter.copy_(as_pairs(given).reshape(parameter.shape))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu = time.perf_counter(), time.process_time()
    results = RankBasedEvaluator(filtered=True).evaluate(
        model, triples["edges.test"], batch_size=args.batch_size, use_tqdm=False,
        additional_filter_triples=[triples["edges"], triples["edges.valid"]])
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {f"{side}_{kind}_{name}": results.get_metric(f"{side}.{kind}.{metric}")
               for side in ("both", "head", "tail") for kind in ("realistic", "optimistic", "pessimistic")
               for name, metric in (("mrr", "inverse_harmonic_mean_rank"), ("hits_10", "hits_at_10"),
                                    ("mean_rank", "arithmetic_mean_rank"))}
    json.dump({"figures": figures, "seconds": seconds, "cpu_seconds": cpu_seconds,
               "memory_bytes": (peak - held) * 1024}, sys.stdout)


def difference(ours, theirs):
    """The largest relative difference of figures that both have."""
    sides = {"both": ours, "head": ours["by_side"]["src"], "tail": ours["by_side"]["dst"]}
    most = 0
    for name, value in theirs.items():
        side, kind, figure = name.split("_", 2)
        found = sides[side] if kind == "realistic" else sides[side][kind]
        found = found["hits"]["10"] if figure == "hits_10" else found[figure]
        most = max(most, abs(found - value) / max(abs(value), 1e-12))
    return most


def main():
    args = parse_arguments()
    if args.pykeen:
        return pykeen_turn(args)
    turns = {"rhizome": [], "pykeen": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(args, folder)
        for _ in range(args.turns):
            turns["rhizome"].append(rhizome_turn(args, folder))
            child = subprocess.run([args.python, __file__, "--data", args.data, "--dim", str(args.dim), "--batch-size",
                                    str(args.batch_size), "--pykeen", folder], capture_output=True, text=True)
            if child.returncode != 0:
                sys.exit(child.stderr)
            turns["pykeen"].append(json.loads(child.stdout.splitlines()[-1]))
    queries = turns["rhizome"][0]["ranks"]
    rate = {name: queries / statistics.median(turn["cpu_seconds"] for turn in of) for name, of in turns.items()}
    print(json.dumps({
        "queries": queries, "dim": args.dim,
        "queries_per_cpu_second": rate, "ratio": rate["rhizome"] / rate["pykeen"],
        "largest_difference": max(difference(ours, theirs["figures"])
                                  for ours, theirs in zip(turns["rhizome"], turns["pykeen"])),
        "pykeen_memory_bytes": max(turn["memory_bytes"] for turn in turns["pykeen"]),
        "rhizome_memory_bytes": max(turn["peak_memory_bytes"] - turn["start_memory_bytes"]
                                    for turn in turns["rhizome"]),
        "cpu_seconds": {name: [turn["cpu_seconds"] for turn in of] for name, of in turns.items()}}, indent=1))


if __name__ == "__main__":
    main()
