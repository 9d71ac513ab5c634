"""Common code of the peers of step.py: flags, clock and report. Imported by dgl_step.py and pyg_step.py, each of
which implements one library; pyg_infer.py uses the MLP and the measurement of memory."""

import argparse
import json
import statistics
import time


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder")
    parser.add_argument("--model", default="sage", choices=["sage", "gcn", "gin", "gat", "rgcn", "hgt"])
    parser.add_argument("--heads", type=int, default=4, help="of gat and hgt, which share --hidden")
    parser.add_argument("--relations", type=int, default=10, help="of rgcn and hgt, drawn at random by edge")
    parser.add_argument("--bases", type=int, default=4, help="of rgcn")
    parser.add_argument("--fast", action="store_true", help="rgcn: FastRGCNConv")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.fanouts = [int(f) for f in args.fanout.split(",")]
    return args


def memory(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def restart_peak():
    """Lets the peak of memory begin again at what there is now; returns what it was."""
    peak = memory("VmHWM")
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    return peak


def gin_mlp(inputs, hidden):
    from torch import nn
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
                         nn.Linear(hidden, hidden))


def make_network(args, make_conv, call):
    """As Rhizome's: each layer with ReLU (attention: ELU), dropout between them, a linear head.
    make_conv(inputs, outputs) makes a layer; call(layer, block, x) runs it."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [args.dim] + [args.hidden] * len(args.fanouts)
            self.layers = nn.ModuleList(make_conv(a, b) for a, b in zip(widths, widths[1:]))
            self.head = nn.Linear(args.hidden, args.classes)
            self.dropout = nn.Dropout(args.dropout)
            self.activation = nn.functional.elu if args.model == "gat" else torch.relu

        def forward(self, blocks, x):
            for layer, block in zip(self.layers, blocks):
                x = self.dropout(self.activation(call(layer, block, x)))
            return self.head(x)

    return Network()


def time_steps(args, network, batches, edges):
    """Trains on batches of (blocks, x, labels) and prints the report. What is timed is forward,
    backward and Adam. edges(blocks): how many there are."""
    import torch
    from torch import nn

    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    peak_before = restart_peak()
    before = memory("VmRSS")
    seconds, cpu_seconds = [], []
    for number in range(args.rounds + 1):
        for blocks, x, labels in batches:
            start, cpu_start = time.perf_counter(), time.process_time()
            loss = nn.functional.cross_entropy(network(blocks, x), labels)
            adam.zero_grad()
            loss.backward()
            adam.step()
            loss.item()
            if number > 0:  # the first round warms caches and allocator
                seconds.append(time.perf_counter() - start)
                cpu_seconds.append(time.process_time() - cpu_start)
    peak = memory("VmHWM")
    print(json.dumps({
        "step_seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(cpu_seconds),
        "peak_memory_bytes": max(peak, peak_before),
        "step_memory_bytes": peak - before,
        "rows_per_batch": statistics.mean(len(x) for _, x, _ in batches),
        "edges_per_batch": statistics.mean(edges(blocks) for blocks, _, _ in batches),
        "torch": torch.__version__,
    }))
