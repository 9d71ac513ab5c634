"""One turn of GraphBolt: reads the rows of a trace from disk and prints one JSON object.

Run by gather.py. FEATURES is a .npy of float32 [vertices, columns]; TRACE was written by `rhizome bench pool
--trace-out`. Makes the same calls as dgl.graphbolt's DiskBasedFeature and CPUCachedFeature, directly on the
operators: either dgl (2.4 or later) is installed, or --library names its libgraphbolt_pytorch_*.so, which can be
built separately.
"""

import argparse
import json
import time

import numpy
import torch


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features")
    parser.add_argument("trace")
    parser.add_argument("--library")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache-bytes", type=int, default=0, help="0: no cache")
    parser.add_argument("--policy", default="s3_fifo", choices=["s3_fifo", "sieve", "lru", "clock"])
    return parser.parse_args()


class DiskRows:
    """As DiskBasedFeature.read."""

    def __init__(self, path, threads):
        self.shape = list(numpy.load(path, mmap_mode="r").shape)
        self.array = torch.ops.graphbolt.ondisk_npy_array(path, torch.float32, self.shape, threads)

    def read(self, ids):
        return self.array.index_select(ids).wait()


class CachedRows:
    """As CPUCachedFeature.read."""

    def __init__(self, rows, cache_bytes, policy, threads):
        self.rows = rows
        frames = cache_bytes // (rows.shape[1] * 4)
        make = getattr(torch.ops.graphbolt, policy + "_cache_policy")
        self.policy = make(frames, threads)
        self.cache = torch.ops.graphbolt.feature_cache(
            [frames, rows.shape[1]], torch.float32, False)

    def read(self, ids):
        positions, index, pointers, missing, found_offsets, missing_offsets = (
            self.policy.query_and_replace(ids, 0))
        found = ids.numel() - missing.numel()
        values = self.cache.query(positions[:found], index, ids.numel())
        self.policy.reading_completed(pointers[:found], found_offsets)
        read = self.rows.read(missing)
        values[index[found:]] = read
        self.cache.replace(positions[found:], read)
        self.policy.writing_completed(pointers[found:], missing_offsets)
        return values


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    if args.library:
        torch.ops.load_library(args.library)
    else:
        import dgl.graphbolt  # noqa: F401  registers the operators
    trace = torch.from_numpy(numpy.load(args.trace))
    steps = [trace[trace[:, 0] == s, 1].contiguous() for s in range(int(trace[-1, 0]) + 1)]
    rows = DiskRows(args.features, args.threads)
    # Rows that are no use to the trace, so that what starts late has started.
    rows.read(torch.arange(0, min(1000, rows.shape[0])))
    source = (CachedRows(rows, args.cache_bytes, args.policy, args.threads)
              if args.cache_bytes else rows)
    start = time.perf_counter()
    for step in steps:
        got = source.read(step)
    seconds = time.perf_counter() - start
    features = numpy.load(args.features, mmap_mode="r")
    some = steps[-1][:100]
    if not (got[:100].numpy() == features[some.numpy()]).all():
        raise SystemExit("GraphBolt gathered other rows than the file holds")
    print(json.dumps({"rows": len(trace), "seconds": seconds,
                      "rows_per_second": len(trace) / seconds}))


if __name__ == "__main__":
    main()
