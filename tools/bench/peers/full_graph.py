#!/usr/bin/env python3
"""Compares `rhizome train --full-graph` with full-batch training in PyTorch Geometric. Prints one JSON object.

    tools/bench/peers/full_graph.py --python PYG/bin/python --scale 18

Times epochs of a GCN 128-256-256-256 over all edges of an R-MAT graph: forward, backward, Adam. All vertices are in
the training set; there is no dropout. The contestants alternate. A turn is a process that runs several epochs, of
which the median counts:

    memory              Rhizome without a limit
    limit               Rhizome in a control group of a quarter of the peak of `memory`, page cache included
    mapped              as `memory`, in the control group of `limit`, with arrays in mapped files (mapped_memory.c)
    pyg scatter         PyG, messages as tensors
    pyg sparse          PyG, a sparse product
    pyg ... checkpoint  the same, each layer recomputed in the backward pass
    pyg in the group    whether PyG, sparse, survives in that group (it is expected to be killed)

Control groups require root. Reports medians over the turns, and ratios of consecutive turns. On a loaded machine only
ratios of processor time are meaningful; they do not include waiting for the disk.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

import sampling

PREPARE = """
import numpy, sys
folder, vertices = sys.argv[1], int(sys.argv[2])
random = numpy.random.default_rng(1)
numpy.save(folder + "/label.npy", random.integers(0, 16, vertices).astype(numpy.int64).reshape(-1, 1))
numpy.save(folder + "/split.npy", numpy.zeros((vertices, 1), numpy.uint8))
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = sampling.ROOT
    parser.add_argument("--rhizome", default=root / "build/release/bin/rhizome")
    parser.add_argument("--work", type=pathlib.Path, default=root / "build/bench")
    parser.add_argument("--python", required=True, help="a Python that has torch_geometric")
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2, help="of a turn, after one that warms up")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.25, help="of the peak, which the group gets")
    parser.add_argument("--only", help="contestants, divided by commas; default: all")
    return parser.parse_args()


class Group:
    """A control group with a memory limit, of version 1 or 2."""

    def __init__(self, limit):
        first = pathlib.Path("/sys/fs/cgroup/memory")
        is_first = (first / "memory.limit_in_bytes").exists()
        self.folder = (first if is_first else first.parent) / f"rhizome-{os.getpid()}"
        self.folder.mkdir(exist_ok=True)
        (self.folder / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(limit))

    def command(self, command):
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.folder, *command]

    def remove(self):
        self.folder.rmdir()


class Contest:
    def __init__(self, args):
        self.args = args
        self.folder, self.store = self.make()
        self.limit, self.group = None, None
        self.mapped = None

    def make(self):
        args = self.args
        folder = args.work / f"full{args.scale}x{args.edge_factor}"
        if not (folder / "edges.npy").exists():
            sampling.run([args.rhizome, "generate", "rmat", "--scale", args.scale, "--edge-factor", args.edge_factor,
                          "--dim", args.dim, "--permute", "--seed", 1, "--out", folder], stdout=sys.stderr)
        if not (folder / "split.npy").exists():
            sampling.run([args.python, "-c", PREPARE, folder, 1 << args.scale])
        store = folder / "g.rz"
        if not store.exists():
            arrays = [flag for name, file in (("feat", "features"), ("label", "label"), ("split", "split"))
                      for flag in ("--array", f"{name}={folder / file}.npy")]
            sampling.run([args.rhizome, "ingest", store, "--edges", folder / "edges.npy", "--vertices",
                          1 << args.scale, "--layout", "chunk", *arrays], stdout=sys.stderr)
        return folder, store

    def train(self, *more, wrap=lambda command: command, environment=None):
        args = self.args
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            command = [args.rhizome, "train", self.store, "--full-graph", "--model", "gcn", "--layers", args.layers,
                       "--hidden", args.hidden, "--dropout", 0, "--threads", args.threads, "--epochs",
                       args.epochs + 1, "--no-test", "--seed", 1, "--out", pathlib.Path(out) / "m.safetensors",
                       "--json", "--progress", "none", *more]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([str(c) for c in wrap(command)], stdout=subprocess.PIPE,
                                  env={**os.environ, **(environment or {})})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            return {"failed": done.returncode}
        told = json.loads(done.stdout)
        epochs = told["epochs"][1:]
        return {"epoch_seconds": statistics.median(e["forward_seconds"] + e["backward_seconds"] for e in epochs),
                # Of the whole process, opening the store included: no less than an epoch's own.
                "cpu_seconds": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) /
                               len(told["epochs"]),
                "peak_memory_bytes": told["peak_memory_bytes"], "spilled_bytes": told.get("measured_bytes"),
                "losses": [e["loss"] for e in told["epochs"]]}

    def take_limit(self, peak):
        """The group, once the first turn in memory has told its peak."""
        if self.group is None:
            self.limit = int(peak * self.args.share)
            self.group = Group(self.limit)
            sampling.note(f"the group has {self.limit / 1e6:.0f} MB, a peak was {peak / 1e6:.0f} MB")

    def limited(self):
        # The bare process, of which --memory does not tell, takes some of the group too.
        memory = self.limit - (160 << 20)
        return self.train("--memory", memory, wrap=self.group.command)

    def in_mapped_files(self):
        library = self.folder / "mapped_memory.so"
        if not library.exists():
            source = pathlib.Path(__file__).with_name("mapped_memory.c")
            sampling.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"])
        files = self.folder / "mapped"
        files.mkdir(exist_ok=True)
        return self.train(wrap=self.group.command,
                          environment={"LD_PRELOAD": str(library), "RHIZOME_MAPPED_FOLDER": str(files),
                                       "RHIZOME_MAPPED_BYTES": str(1 << 20)})

    def pyg(self, *flags, wrap=lambda command: command):
        args = self.args
        command = [args.python, pathlib.Path(__file__).with_name("pyg_full.py"), self.folder, "--layers", args.layers,
                   "--hidden", args.hidden, "--epochs", args.epochs, "--threads", args.threads, *flags]
        done = subprocess.run([str(c) for c in wrap(command)], stdout=subprocess.PIPE)
        return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.returncode}

    def run(self):
        takes = {
            "memory": self.train,
            "pyg sparse": lambda: self.pyg("--kernel", "sparse"),
            "limit": self.limited,
            "pyg scatter": lambda: self.pyg("--kernel", "scatter"),
            "mapped": self.in_mapped_files,
            "pyg sparse checkpoint": lambda: self.pyg("--kernel", "sparse", "--checkpoint"),
            "pyg scatter checkpoint": lambda: self.pyg("--kernel", "scatter", "--checkpoint"),
            "pyg in the group": lambda: self.pyg("--kernel", "sparse", wrap=self.group.command),
        }
        if self.args.only:
            takes = {name: take for name, take in takes.items() if name in self.args.only.split(",") or name == "memory"}
        turns = {name: [] for name in takes}
        for turn in range(self.args.turns):
            for name, take in takes.items():
                if turns[name] and "failed" in turns[name][-1]:
                    continue  # once is enough
                turns[name].append(take())
                told = turns[name][-1]
                if name == "memory":
                    self.take_limit(told["peak_memory_bytes"])
                sampling.note(f"turn {turn + 1}: {name}: " + (
                    f"failed, {told['failed']}" if "failed" in told else
                    f"{told['epoch_seconds']:.2f} s, peak {told['peak_memory_bytes'] / 1e6:.0f} MB, "
                    f"losses {told['losses'][0]:.4f} to {told['losses'][-1]:.4f}"))
        return turns


def main():
    args = parse_arguments()
    # As rhizome does for itself: threads that spin while they wait take the others' turns.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    args.work.mkdir(parents=True, exist_ok=True)
    contest = Contest(args)
    answer = {"workload": "full_graph", "graph": f"RMAT scale {args.scale}, edge factor {args.edge_factor}, permuted",
              "load_before": os.getloadavg()}
    turns = contest.run()
    if contest.group is not None:
        contest.group.remove()
    answer["group_bytes"] = contest.limit
    answer["contestants"] = {}
    for name, mine in turns.items():
        told = [t for t in mine if "failed" not in t]
        if not told:
            answer["contestants"][name] = {"killed_or_failed": mine[-1]["failed"]}
            continue
        answer["contestants"][name] = {
            "epoch_seconds": statistics.median(t["epoch_seconds"] for t in told),
            "cpu_seconds": statistics.median(t["cpu_seconds"] for t in told),
            "peak_memory_bytes": max(t["peak_memory_bytes"] for t in told),
            "over_memory": statistics.median(t["epoch_seconds"] / m["epoch_seconds"]
                                             for t, m in zip(told, turns["memory"])),
            "cpu_over_memory": statistics.median(t["cpu_seconds"] / m["cpu_seconds"]
                                                 for t, m in zip(told, turns["memory"])),
            "kernel": told[0].get("kernel"), "spilled_bytes": told[0].get("spilled_bytes"), "turns": [t["epoch_seconds"] for t in told]}
    answer["load_after"] = os.getloadavg()
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    sys.exit(main())
