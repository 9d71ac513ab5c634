#!/usr/bin/env python3
"""Times the kernels of cuda/ on a device beside torch's, in one process. usage: bench.py LIBRARY

LIBRARY is what tools/device/run.sh builds of door.cc. Prints one line of JSON: seconds are medians of events of the
device, ratios are reference over ours (above 1: ours is faster), and results are compared before they are timed.
"""
import ctypes
import datetime
import json
import statistics
import subprocess
import sys

import torch

NO_POSITION = 0xFFFFFFFF
P, U32, U64, SIZE, INT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
SIGNATURES = {
    "gather": [P, P, U64, SIZE, P, U32, P, P],
    "sum": [P, INT, P, SIZE, SIZE, P, P, P, P],
    "id_map": [P, INT, P, U32, U32, P, P, P, P, P, P, P, P, SIZE],
}


class Kernels:
    """The functions of LIBRARY, on torch's stream; tensors stand for their addresses."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        for name, types in SIGNATURES.items():
            getattr(library, f"rhizome_device_{name}").argtypes = types
            getattr(library, f"rhizome_device_{name}").restype = None
        library.rhizome_device_id_map_scratch.argtypes, library.rhizome_device_id_map_scratch.restype = [U32], SIZE
        library.rhizome_device_error.restype = ctypes.c_char_p
        self.library = library

    def call(self, name, *args):
        args = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
        getattr(self.library, f"rhizome_device_{name}")(torch.cuda.current_stream().cuda_stream, *args)
        error = self.library.rhizome_device_error()
        if error:
            raise RuntimeError(f"{name}: {error.decode()}")


def seconds(function, rounds=20, before=lambda: None):
    """The median time of a call on the device; `before` is not timed."""
    times = []
    for turn in range(rounds + 3):
        before()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        if turn >= 3:
            times.append(begin.elapsed_time(end) / 1000)
    return statistics.median(times)


def same(name, ours, reference):
    if not torch.equal(ours, reference):
        raise RuntimeError(f"{name}: the results differ")


def flag():
    return torch.full([1], -1, dtype=torch.int32, device="cuda")  # NO_POSITION


def bench_gather(kernels, pinned):
    """Random rows out of a table, in memory of the device or pinned memory of the host, against copies of the same bytes."""
    results = []
    for row_bytes in (512, 1024, 2048, 4096):
        table_bytes = 2 << 30
        rows, columns, count = table_bytes // row_bytes, row_bytes // 4, (64 << 20 if pinned else 512 << 20) // row_bytes
        table = torch.empty(rows, columns, pin_memory=True) if pinned else torch.empty(rows, columns, device="cuda")
        table.uniform_()
        index = torch.randint(rows, [count], device="cuda")
        out = torch.empty(count, columns, device="cuda")
        bad = flag()
        run = lambda: kernels.call("gather", table, rows, row_bytes, index, count, out, bad)
        run()
        same("gather", out, table[index.cpu()].cuda() if pinned else table[index])
        ours = seconds(run)
        source = table[:count]
        copy = seconds(lambda: out.copy_(source, non_blocking=True))
        result = {"row_bytes": row_bytes, "seconds": ours, "bytes_per_second": count * row_bytes / ours,
                  "share_of_copy": copy / ours}
        if not pinned:
            result["over_index_select"] = seconds(lambda: torch.index_select(table, 0, index, out=out)) / ours
        results.append(result)
        del table, source
    return results


def bench_sum(kernels):
    """Sums of lists with weights, 500 k targets of 10 edges among 1 M sources, as a minibatch's layer."""
    results = []
    targets, degree, sources = 500_000, 10, 1_000_000
    for dim in (32, 64, 128, 256, 512):
        x = torch.rand(sources, dim, device="cuda")
        index = torch.randint(sources, [targets * degree], device="cuda", dtype=torch.int32)
        offsets = torch.arange(0, targets * degree + 1, degree, device="cuda", dtype=torch.int32)
        weight = torch.rand(targets * degree, device="cuda")
        out = torch.empty(targets, dim, device="cuda")
        run = lambda form: kernels.call("sum", form, x, dim, targets, offsets, index, weight, out)
        matrix = torch.sparse_csr_tensor(offsets, index, weight, size=(targets, sources))
        run(1)
        shared = out.clone()
        run(0)
        same("sum", out, shared)
        if not torch.allclose(out, matrix @ x, rtol=1e-4, atol=1e-5):
            raise RuntimeError("sum: differs from torch's sparse product")
        ours = seconds(lambda: run(0))
        result = {"dim": dim, "seconds": ours, "over_shared_memory": seconds(lambda: run(1)) / ours,
                  "over_sparse_csr": seconds(lambda: matrix @ x, rounds=10) / ours}
        if dim <= 128:  # the messages of all edges take memory
            target = torch.repeat_interleave(torch.arange(targets, device="cuda"), degree)
            of_edge = index.long()
            add = lambda: torch.zeros_like(out).index_add_(0, target, x[of_edge] * weight[:, None])
            result["over_index_add"] = seconds(add, rounds=5) / ours
        results.append(result)
    return results


def bench_id_map(kernels):
    """1 M ids, about 300 k of them distinct. Filling the table is part of each call."""
    count, capacity = 1_000_000, 1 << 20
    ids = torch.randint(310_000, [count], device="cuda") * 1_000_003
    keys = torch.empty(capacity, dtype=torch.int64, device="cuda")
    first, number = (torch.empty(capacity, dtype=torch.int32, device="cuda") for _ in range(2))
    arrays = torch.empty(3 * count, dtype=torch.int32, device="cuda")
    distinct, locals_ = (torch.empty(count, dtype=torch.int64, device="cuda") for _ in range(2))
    counts = torch.zeros(2, dtype=torch.int32, device="cuda")
    scratch_bytes = kernels.library.rhizome_device_id_map_scratch(count)
    scratch = torch.empty(scratch_bytes, dtype=torch.uint8, device="cuda")

    def run(form):
        keys.fill_(-1)
        first.fill_(-1)
        counts.zero_()
        kernels.call("id_map", form, ids, count, capacity, keys, first, number, arrays, distinct, locals_, counts,
                     scratch, scratch_bytes)

    times = {}
    for form, name in enumerate(["seconds", "fused_seconds", "three_steps_seconds"]):
        run(form)
        found = counts[0].item()
        same(name, distinct[:found][locals_], ids)
        if found != torch.unique(ids).numel():
            raise RuntimeError(f"{name}: {found} ids were numbered")
        times[name] = seconds(lambda: run(form))
    unique = seconds(lambda: torch.unique(ids, return_inverse=True))
    ours = times["seconds"]
    return {**times, "over_three_steps": times["three_steps_seconds"] / ours, "over_fused": times["fused_seconds"] / ours,
            "over_torch_unique": unique / ours}


def main():
    if not torch.cuda.is_available():
        sys.exit("bench: torch finds no device")
    torch.manual_seed(1)
    kernels = Kernels(sys.argv[1])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": commit.stdout.strip(),
              "date": datetime.date.today().isoformat()}
    for name, bench in (("gather", lambda: bench_gather(kernels, False)), ("pinned", lambda: bench_gather(kernels, True)),
                        ("sum", lambda: bench_sum(kernels)), ("id_map", lambda: bench_id_map(kernels))):
        report[name] = bench()
        torch.cuda.empty_cache()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
