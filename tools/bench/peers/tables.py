#!/usr/bin/env python3
"""Compares `rhizome train --model table` with a plain loop in torch. Prints one JSON object.

    tools/bench/peers/tables.py --data wn18rr --python P [--dim 128] [--negatives 512] [--turns 3]

`--data` is a folder with edges.tsv.zst (lines src, dst, type) and nodes.tsv.zst. Both train ComplEx with reciprocal
relations, the softmax loss over negatives that a batch shares, N3 and Adagrad, in memory, on one thread, in alternating
turns: five epochs of Rhizome, one of torch. P is a Python with torch. Rates are triples per second of processor time;
Rhizome's includes the start of the process and the load of the graph, torch's does not.
"""

import argparse
import json
import pathlib
import resource
import statistics
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
    parser.add_argument("--negatives", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--torch", type=pathlib.Path, help=argparse.SUPPRESS)  # one turn, in a child
    return parser.parse_args()


def columns_of(path, columns):
    text = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True, text=True).stdout
    return [line.split("\t")[:columns] for line in text.splitlines()]


def torch_turn(args):
    """An epoch of the plain loop. Prints the triples and the processor seconds."""
    import torch
    torch.set_num_threads(1)
    triples = torch.load(args.torch)
    entities, relations = int(triples[:, [0, 2]].max()) + 1, int(triples[:, 1].max()) + 1
    half = args.dim // 2
    rows = torch.nn.Parameter(torch.randn(entities, args.dim) * 0.1)
    types = torch.nn.Parameter(torch.randn(2 * relations, args.dim) * 0.1)
    optimizer = torch.optim.Adagrad([rows, types], lr=0.3)

    def loss_of(given, relation, truth, negatives):
        a, b = given[:, :half], given[:, half:]
        u, v = relation[:, :half], relation[:, half:]
        query = torch.cat([a * u - b * v, a * v + b * u], 1)
        scores = torch.cat([(query * truth).sum(1, keepdim=True), query @ negatives.T], 1)
        loss = torch.nn.functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
        cubes = sum((x[:, :half] ** 2 + x[:, half:] ** 2).pow(1.5).sum() for x in (given, relation, truth))
        return loss + 0.06 * cubes / len(scores)

    def take(table, numbers):  # with sparse gradients, so that only rows of the batch are updated
        return torch.nn.functional.embedding(numbers, table, sparse=True)

    order = torch.randperm(len(triples))
    begin = time.process_time()
    for batch in order.split(args.batch_size):
        h, r, t = triples[batch].unbind(1)
        optimizer.zero_grad()
        for given, relation, truth in ((h, r, t), (t, r + relations, h)):
            negatives = torch.randint(entities, (args.negatives,))
            (loss_of(take(rows, given), take(types, relation), take(rows, truth), take(rows, negatives)) / 2).backward()
        optimizer.step()
    print(json.dumps([len(triples), time.process_time() - begin]))


def rhizome_turn(args, store):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [args.rhizome, "train", store, "--task", "link", "--model", "table", "--dim", str(args.dim), "--decoder", "complex",
         "--reciprocal", "--negatives", str(args.negatives), "--batch-size", str(args.batch_size), "--n3", "0.06",
         "--optimizer", "adagrad", "--lr", "0.3", "--epochs", "5", "--threads", "1", "--json"],
        capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return sum(epoch["edges"] for epoch in json.loads(done.stdout)["epochs"]) / seconds


def main():
    args = parse_arguments()
    if args.torch:
        torch_turn(args)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines = columns_of(args.data / "edges.tsv.zst", 3)
        entity = {row[0]: i for i, row in enumerate(columns_of(args.data / "nodes.tsv.zst", 1))}
        relation = {name: i for i, name in enumerate(sorted({row[2] for row in lines}))}
        triples = [[entity[src], relation[kind], entity[dst]] for src, dst, kind in lines]
        (folder / "triples.json").write_text(json.dumps(triples))
        subprocess.run(
            [args.python, "-c",
             "import json, sys, torch; torch.save(torch.tensor(json.load(open(sys.argv[1]))), sys.argv[2])",
             folder / "triples.json", folder / "triples.pt"], check=True)
        (folder / "nodes.tsv").write_text("id\n" + "".join(f"{key}\n" for key in entity))
        store = folder / "store.rz"
        subprocess.run(
            [args.rhizome, "ingest", store, "--edges", args.data / "edges.tsv.zst", "--columns", "src,dst,type", "--nodes",
             folder / "nodes.tsv", "--partitions", "16"], check=True, capture_output=True)
        ours, theirs = [], []
        for _ in range(args.turns):
            ours.append(rhizome_turn(args, store))
            child = subprocess.run(
                [args.python, __file__, "--data", args.data, "--dim", str(args.dim), "--negatives", str(args.negatives),
                 "--batch-size", str(args.batch_size), "--torch", folder / "triples.pt"],
                capture_output=True, text=True, check=True)
            count, seconds = json.loads(child.stdout)
            theirs.append(count / seconds)
        print(json.dumps({
            "dim": args.dim, "negatives": args.negatives, "batch_size": args.batch_size,
            "rhizome_triples_per_cpu_second": statistics.median(ours),
            "torch_triples_per_cpu_second": statistics.median(theirs),
            "ratio": statistics.median(ours) / statistics.median(theirs)}))


if __name__ == "__main__":
    main()
