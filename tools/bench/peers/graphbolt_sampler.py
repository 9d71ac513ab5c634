"""One turn of GraphBolt: samples rounds of batches and prints one JSON object.

Run by sampling.py in its own virtual environment. FOLDER holds indptr.npy and
indices.npy (in-edges, CSC) and, for --weighted, weights.npy in the same order.
"""

import argparse
import json
import os
import statistics
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--callers", type=int, default=1, help="processes, each on one thread")
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weighted", action="store_true")
    parser.add_argument("--replace", action="store_true")
    return parser.parse_args()


def load_graph(args, torch, graphbolt, numpy):
    indptr = torch.from_numpy(numpy.load(os.path.join(args.folder, "indptr.npy")))
    # int32 ids: half the memory traffic of int64, and the faster of the two here.
    indices = torch.from_numpy(numpy.load(os.path.join(args.folder, "indices.npy")))
    attributes = None
    if args.weighted:
        weights = numpy.load(os.path.join(args.folder, "weights.npy"))
        attributes = {"weight": torch.from_numpy(weights)}
    return graphbolt.fused_csc_sampling_graph(indptr, indices, edge_attributes=attributes)


def sample_round(args, graph, torch, compact, seeds, fanouts):
    """GraphBolt's own neighbour sampler, hop by hop: draw, then number the vertices."""
    edges = vertices = 0
    for batch in seeds:
        frontier = batch
        for fanout in fanouts:
            sampled = graph.sample_neighbors(
                frontier,
                fanout,
                replace=args.replace,
                probs_name="weight" if args.weighted else None,
            )
            csc = sampled.sampled_csc
            frontier, _ = compact(csc, frontier)
            edges += csc.indices.numel()
        vertices += frontier.numel()
    return edges, vertices


def run(args, share, result):
    import numpy
    import torch

    torch.set_num_threads(1 if args.callers > 1 else args.threads)
    import dgl.graphbolt as graphbolt

    compact = graphbolt.unique_and_compact_csc_formats
    graph = load_graph(args, torch, graphbolt, numpy)
    count = graph.csc_indptr.numel() - 1
    random = numpy.random.default_rng(args.seed)
    seeds = [
        torch.from_numpy(random.choice(count, args.batch_size, replace=False)).to(torch.int32)
        for _ in range(args.batches)
    ][share :: args.callers]
    fanouts = [torch.tensor([int(f)]) for f in args.fanout.split(",")]
    rates, cpu_rates, edges, vertices = [], [], 0, 0
    for number in range(args.rounds + 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        edges, vertices = sample_round(args, graph, torch, compact, seeds, fanouts)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        if number > 0:  # the first warms the caches
            rates.append(edges / seconds)
            cpu_rates.append(edges / cpu)
    result.update(
        edges_per_second=statistics.median(rates),
        edges_per_cpu_second=statistics.median(cpu_rates),
        edges_per_batch=edges / len(seeds),
        vertices_per_batch=vertices / len(seeds),
    )


def main():
    args = parse_arguments()
    results = []
    children = []
    # Callers are processes, as GraphBolt's own data loader has them; torch is loaded after the fork.
    for share in range(1, args.callers):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            mine = {}
            run(args, share, mine)
            os.write(write, json.dumps(mine).encode())
            os._exit(0)
        os.close(write)
        children.append((child, read))
    mine = {}
    run(args, 0, mine)
    results.append(mine)
    for child, read in children:
        with os.fdopen(read) as pipe:
            results.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    total = dict(results[0])
    total["edges_per_second"] = sum(r["edges_per_second"] for r in results)
    total["edges_per_cpu_second"] = statistics.mean(r["edges_per_cpu_second"] for r in results)
    print(json.dumps(total))


if __name__ == "__main__":
    main()
