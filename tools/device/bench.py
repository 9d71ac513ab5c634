#!/usr/bin/env python3
"""Times the kernels of cuda/ on a device next to those of torch and PyG, in one process. usage: bench.py LIBRARY

LIBRARY is built from ctypes_api.cc by tools/device/run.sh. Prints one line of JSON: seconds are medians measured by events
of the device, ratios are reference over ours (above 1: ours is faster). Results are compared before they are timed.
Work is queued while the device executes a pause, so that no figure contains the time that Python takes to queue it.
"""
import ctypes
import datetime
import json
import statistics
import subprocess
import sys

import torch

P, U32, U64, SIZE, INT, FLOAT = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int,
                                 ctypes.c_float)
SIGNATURES = {
    "gather": [P, P, U64, SIZE, P, U32, P, P, ctypes.c_bool],
    "sum": [P, INT, P, SIZE, SIZE, P, P, P, P, U32, P, U32, P],
    "attend": [P, P, SIZE, SIZE, SIZE, P, P, P, P, FLOAT, P, P],
    "attend_gradient": [P, P, SIZE, SIZE, SIZE, SIZE, P, P, P, P, P, P, FLOAT, P, P, P, P, P, P],
    "id_map": [P, INT, P, U32, U32, P, P, P, P, P, P, SIZE],
}
PAUSE_CYCLES = 600_000  # a third of a millisecond


class Kernels:
    """The functions of LIBRARY, on torch's stream; tensors stand for their addresses."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        for name, types in SIGNATURES.items():
            getattr(library, f"rhizome_device_{name}").argtypes = types
            getattr(library, f"rhizome_device_{name}").restype = None
        library.rhizome_device_id_map_scratch.argtypes, library.rhizome_device_id_map_scratch.restype = [U32], SIZE
        library.rhizome_device_long_lists.argtypes, library.rhizome_device_long_lists.restype = [P, SIZE, P, P], SIZE
        library.rhizome_device_error.restype = ctypes.c_char_p
        self.library = library

    def call(self, name, *args):
        args = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
        getattr(self.library, f"rhizome_device_{name}")(torch.cuda.current_stream().cuda_stream, *args)
        error = self.library.rhizome_device_error()
        if error:
            raise RuntimeError(f"{name}: {error.decode()}")


class Lists:
    """A CSR on the device, [targets] lists of sources, its long lists in pieces, and its transpose."""

    def __init__(self, kernels, offsets, index, sources):
        self.offsets, self.index, self.sources = offsets, index, sources
        self.targets = offsets.numel() - 1
        host, partials = offsets.cpu(), U32()
        count = kernels.library.rhizome_device_long_lists(host.data_ptr(), self.targets, None, ctypes.byref(partials))
        pieces = torch.empty(max(count, 1), 4, dtype=torch.int32)
        kernels.library.rhizome_device_long_lists(host.data_ptr(), self.targets, pieces.data_ptr(), ctypes.byref(partials))
        self.pieces, self.piece_count, self.partial_count = pieces.cuda(), count, partials.value

    def turned(self):
        """Offsets, targets and edges of the transpose."""
        order = torch.argsort(self.index, stable=True)
        offsets = torch.zeros(self.sources + 1, dtype=torch.int32, device="cuda")
        offsets[1:] = torch.bincount(self.index, minlength=self.sources).cumsum(0)
        return offsets, self.target_of_edges()[order].int(), order.int()

    def target_of_edges(self):
        return torch.repeat_interleave(torch.arange(self.targets, device="cuda"), self.offsets.diff())

    def sum(self, kernels, form, x, weight, out):
        partials = torch.empty(max(self.partial_count, 1), x.shape[1], device="cuda")
        kernels.call("sum", form, x, x.shape[1], self.targets, self.offsets, self.index, weight, self.pieces,
                     self.piece_count, partials, self.partial_count, out)


def minibatch_lists(kernels):
    """500 k targets of 10 edges among 1 M sources, as a minibatch's layer."""
    targets, degree, sources = 500_000, 10, 1_000_000
    offsets = torch.arange(0, targets * degree + 1, degree, device="cuda", dtype=torch.int32)
    return Lists(kernels, offsets, torch.randint(sources, [targets * degree], device="cuda", dtype=torch.int32), sources)


def rmat_lists(kernels, scale=20, edges_per_vertex=16):
    """A whole R-MAT graph (0.57, 0.19, 0.19, 0.05), whose longest list has some 70 thousand edges."""
    vertices, edges = 1 << scale, edges_per_vertex << scale
    source, target = (torch.zeros(edges, dtype=torch.int64, device="cuda") for _ in range(2))
    for _ in range(scale):
        u = torch.rand(edges, device="cuda")
        source = source * 2 + (u >= 0.76).long()
        target = target * 2 + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95)).long()
    shuffled = torch.randperm(vertices, device="cuda")
    source, target = shuffled[source], shuffled[target]
    offsets = torch.zeros(vertices + 1, dtype=torch.int32, device="cuda")
    offsets[1:] = torch.bincount(target, minlength=vertices).cumsum(0)
    return Lists(kernels, offsets, source[torch.argsort(target, stable=True)].int(), vertices)


def seconds(function, rounds=12, queued=True):
    """The median time of a call on the device; not `queued`: with the time that it makes the device wait for the host."""
    times = []
    for turn in range(rounds + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        if queued:
            torch.cuda._sleep(PAUSE_CYCLES)
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


def near(name, ours, reference, tolerance=1e-4):
    # Sums of many terms are as exact as their largest terms.
    if (ours - reference).abs().max() > tolerance * max(1.0, reference.abs().max().item()):
        raise RuntimeError(f"{name}: differs by {(ours - reference).abs().max().item()}")


def bench_gather(kernels, pinned):
    """Random rows out of a table, in memory of the device or pinned memory of the host, against copies of the same bytes;
    out of the host in the order drawn, with as many warps as the device takes, and in the order of their addresses."""
    results = []
    for row_bytes in (512, 1024, 2048, 4096):
        table_bytes = 2 << 30
        rows, columns, count = table_bytes // row_bytes, row_bytes // 4, (64 << 20 if pinned else 512 << 20) // row_bytes
        table = torch.empty(rows, columns, pin_memory=True) if pinned else torch.empty(rows, columns, device="cuda")
        table.uniform_()
        index = torch.randint(rows, [count], device="cuda")
        out = torch.empty(count, columns, device="cuda")
        bad = torch.full([1], -1, dtype=torch.int32, device="cuda")
        gather = lambda numbers, from_host=pinned: kernels.call("gather", table, rows, row_bytes, numbers, count, out, bad, from_host)
        gather(index)
        same("gather", out, table[index.cpu()].cuda() if pinned else table[index])
        ours = seconds(lambda: gather(index))
        source = table[:count]
        copy = seconds(lambda: out.copy_(source, non_blocking=True))
        result = {"row_bytes": row_bytes, "seconds": ours, "bytes_per_second": count * row_bytes / ours,
                  "share_of_copy": copy / ours}
        if pinned:
            by_address = index.sort().values
            result["share_with_all_warps"] = copy / seconds(lambda: gather(index, False))
            result["share_by_address"] = copy / seconds(lambda: gather(by_address))
        else:
            result["over_index_select"] = seconds(lambda: torch.index_select(table, 0, index, out=out)) / ours
        results.append(result)
        del table, source
    return results


def bench_sum(kernels, lists, dims):
    """Sums of lists with weights, and what share of the device's copy rate their bytes move at."""
    results = []
    edges, targets = lists.index.numel(), lists.targets
    for dim in dims:
        x = torch.rand(lists.sources, dim, device="cuda")
        weight = torch.rand(edges, device="cuda")
        out = torch.empty(targets, dim, device="cuda")
        matrix = torch.sparse_csr_tensor(lists.offsets, lists.index, weight, size=(targets, lists.sources))
        lists.sum(kernels, 1, x, weight, out)
        shared = out.clone()
        lists.sum(kernels, 0, x, weight, out)
        if lists.partial_count == 0:
            same("sum", out, shared)
        near("sum", out, matrix @ x)
        ours = seconds(lambda: lists.sum(kernels, 0, x, weight, out))
        result = {"dim": dim, "seconds": ours,
                  "bytes_per_second": (edges * (4 * dim + 8) + targets * (4 * dim + 4)) / ours,
                  "over_shared_memory": seconds(lambda: lists.sum(kernels, 1, x, weight, out), rounds=5) / ours,
                  "over_sparse_csr": seconds(lambda: matrix @ x) / ours}
        if dim <= 128:  # the messages of all edges take memory
            target, of_edge = lists.target_of_edges(), lists.index.long()
            add = lambda: torch.zeros_like(out).index_add_(0, target, x[of_edge] * weight[:, None])
            result["over_index_add"] = seconds(add, rounds=5) / ours
        results.append(result)
    return results


def peak_of(function):
    """The bytes that a call takes at most beyond what is there."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def bench_attention(kernels, lists):
    """GAT's softmax and weighted sum, forward and with its gradients, against PyG's GATConv without its dense parts."""
    try:
        from torch_geometric.nn import GATConv
    except ImportError:
        return {"skipped": "no PyG"}
    results = []
    edges, targets, sources = lists.index.numel(), lists.targets, lists.sources
    edge_index = torch.stack([lists.index.long(), lists.target_of_edges()])
    own = torch.arange(targets, device="cuda")
    with_own = torch.cat([torch.stack([own, own]), edge_index], dim=1)
    turned = lists.turned()
    for heads, width in ((8, 8), (4, 64)):
        dim = heads * width
        x = torch.randn(sources, dim, device="cuda", requires_grad=True)
        source = torch.randn(sources, heads, device="cuda", requires_grad=True)
        query = torch.randn(targets, heads, device="cuda", requires_grad=True)
        gradient = torch.randn(targets, dim, device="cuda")
        conv = GATConv(1, width, heads=heads, add_self_loops=False, bias=False).cuda()

        def theirs(backward=True):
            # What GATConv.forward does behind its linear layer and its dot products.
            alpha = conv.edge_updater(with_own, alpha=(source, query), edge_attr=None, size=(sources, targets))
            out = conv.propagate(with_own, x=(x.view(-1, heads, width), x[:targets].view(-1, heads, width)), alpha=alpha,
                                 size=(sources, targets)).view(targets, dim)
            return (out, torch.autograd.grad(out, (x, source, query), gradient)) if backward else out

        def ours(backward=True):
            statistics = torch.empty(2, targets, heads, device="cuda")
            out = torch.empty(targets, dim, device="cuda")
            kernels.call("attend", x, heads, width, targets, lists.offsets, lists.index, source, query, 0.2, statistics, out)
            if not backward:
                return out
            scratch = torch.empty((5 * targets + edges) * heads, device="cuda")
            of_x, of_scores = torch.empty_like(x), torch.empty((sources + targets) * heads, device="cuda")
            kernels.call("attend_gradient", x, heads, width, sources, targets, lists.offsets, *turned, source, query, 0.2,
                         statistics, out, gradient, scratch, of_x, of_scores)
            split = sources * heads
            return out, (of_x, of_scores[:split].view(sources, heads), of_scores[split:].view(targets, heads))

        (out, gradients), (reference, references) = ours(), theirs()
        near("attention", out, reference, 1e-3)
        for name, a, b in zip(("rows", "sources", "queries"), gradients, references):
            near(f"attention's gradient of {name}", a, b, 1e-3)
        forward, both = seconds(lambda: ours(False)), seconds(ours)
        with torch.no_grad():
            their_forward = seconds(lambda: theirs(False), rounds=5)
        results.append({"heads": heads, "width": width, "forward_seconds": forward, "seconds": both,
                        "forward_over_pyg": their_forward / forward, "over_pyg": seconds(theirs, rounds=5) / both,
                        "memory_of_pyg": peak_of(ours) / peak_of(theirs)})
    return results


def bench_id_map(kernels):
    """1 M ids, about 300 k of them distinct. Filling the table is part of each call."""
    count, capacity = 1_000_000, 1 << 20
    ids = torch.randint(310_000, [count], device="cuda") * 1_000_003
    table = torch.empty(2 * capacity, dtype=torch.int64, device="cuda")
    arrays = torch.empty(2 * count, dtype=torch.int32, device="cuda")
    distinct, locals_ = (torch.empty(count, dtype=torch.int64, device="cuda") for _ in range(2))
    counts = torch.zeros(2, dtype=torch.int32, device="cuda")
    scratch_bytes = kernels.library.rhizome_device_id_map_scratch(count)
    scratch = torch.empty(scratch_bytes, dtype=torch.uint8, device="cuda")

    def run(form):
        table.fill_(-1)
        counts.zero_()
        kernels.call("id_map", form, ids, count, capacity, table, arrays, distinct, locals_, counts, scratch, scratch_bytes)

    times = {}
    for form, name in enumerate(["seconds", "fused_seconds", "three_steps_seconds"]):
        run(form)
        found = counts[0].item()
        same(name, distinct[:found][locals_], ids)
        if found != torch.unique(ids).numel():
            raise RuntimeError(f"{name}: {found} ids were numbered")
        times[name] = seconds(lambda: run(form))
    unique = seconds(lambda: torch.unique(ids, return_inverse=True), queued=False)
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
    minibatch, rmat = minibatch_lists(kernels), rmat_lists(kernels)
    for name, bench in (("gather", lambda: bench_gather(kernels, False)), ("pinned", lambda: bench_gather(kernels, True)),
                        ("sum", lambda: bench_sum(kernels, minibatch, (32, 64, 128, 256, 512))),
                        ("rmat_sum", lambda: bench_sum(kernels, rmat, (32, 128, 512))),
                        ("attention", lambda: bench_attention(kernels, minibatch)),
                        ("id_map", lambda: bench_id_map(kernels))):
        report[name] = bench()
        torch.cuda.empty_cache()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
