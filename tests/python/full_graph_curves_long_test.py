#!/usr/bin/env python3
"""Full-graph training against PyTorch Geometric: losses of 50 epochs of Adam on cora, from the same
weights."""
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

import cpu_torch
from models_ci_test import Oracle, make_cora, rhizome

EPOCHS = 50
CURVES = [("gcn", ["--layers", 2]), ("sage", ["--layers", 2]), ("gin", ["--layers", 2]),
          ("commnet", ["--layers", 2, "--skip"]), ("gcn", ["--layers", 4, "--residual"]),
          ("sage", ["--layers", 2, "--aggregator", "max"]), ("gat", ["--layers", 2, "--heads", 2])]


def check_curve(oracle, data, kind, arguments):
    """Both learn from the weights that one minibatch left; returns the largest difference of two losses."""
    store, edges, features, labels, split = data
    torch, start = oracle.torch, oracle.folder / "start.safetensors"
    model = ["--model", kind, "--hidden", 16, "--dropout", 0, "--no-test", "--seed", oracle.seed, *arguments]
    rhizome("train", store, "--epochs", 1, "--steps", 1, "--fanout", "all", "--lr", 1e-6, "--out", start, *model)
    report = json.loads(rhizome("train", store, "--full-graph", "--init", start, "--epochs", EPOCHS, "--lr", 0.01,
                                "--json", *model))
    ours = [epoch["loss"] for epoch in report["epochs"]]
    graph = oracle.pyg_net.Graph(len(labels), edges)
    tensors, description = oracle.pyg_net.read_safetensors(start)
    net = oracle.pyg_net.Net(description, graph).load(tensors, oracle.names).train()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.from_numpy(features.astype(np.float64)), torch.from_numpy(labels)
    members = torch.from_numpy(split == 0)
    worst = 0
    for epoch in range(EPOCHS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x, graph)[members], y[members])
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(loss.item() - ours[epoch]))
    assert worst < 1e-3, f"losses differ by {worst}"
    return worst


def main():
    seed = int(os.environ.get("RHIZOME_TEST_SEED", "1"))
    print("RHIZOME_TEST_SEED", seed)
    data = os.environ.get("RHIZOME_TEST_DATA")
    if not data:
        print("skipped: RHIZOME_TEST_DATA is not set; it names a folder with cora")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch = cpu_torch.import_torch(folder)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        oracle = Oracle(folder, torch, seed)
        cora = make_cora(folder, pathlib.Path(data) / "cora")
        for kind, arguments in CURVES:
            worst = check_curve(oracle, cora, kind, arguments)
            print(f"cora: {kind} {' '.join(map(str, arguments))}: losses of {EPOCHS} epochs within {worst:.1e}",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
