#!/usr/bin/env python3
"""Full-graph training against PyTorch Geometric: gradients of every model that it supports.

They are compared as in models_ci_test.py, which compares the scores of the same models.
"""
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

import cpu_torch
from models_ci_test import Oracle, cases_of, make_cora, make_graph, rhizome


class FullGraphOracle(Oracle):
    STEP = ["--full-graph"]

    def check(self, data, kind, arguments):
        layers = [] if "--layers" in arguments else ["--layers", 2]
        super().check(data, kind, [*arguments, *layers])

    def check_scores(self, store, graph, features, model, name):
        """Scores are not those of a training."""


def takes(kind, arguments):
    """Whether --full-graph takes such a network; docs/MODELS.md says which."""
    blocks_of_batches = "--feed-forward" in arguments and "batch" in arguments
    return "--attention-dropout" not in arguments and not blocks_of_batches


def main():
    seed = int(os.environ.get("RHIZOME_TEST_SEED", "1"))
    print("RHIZOME_TEST_SEED", seed)
    data = os.environ.get("RHIZOME_TEST_DATA")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch = cpu_torch.import_torch(folder)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        oracle = FullGraphOracle(folder, torch, seed)
        models = [model for model in json.loads(rhizome("models", "--json"))["models"] if model["network"]]
        drawn = make_graph(folder, np.random.default_rng(seed))
        cases = [(drawn, kind, arguments) for kind, arguments in cases_of(models) if takes(kind, arguments)]
        cases.append((drawn, "gcn", ["--layers", 4, "--residual"]))
        cora = make_cora(folder, pathlib.Path(data) / "cora") if data else None
        if cora:
            cases += [(cora, model["name"], []) for model in models if takes(model["name"], [])]
        for graph, kind, arguments in cases:
            oracle.worst = dict.fromkeys(oracle.worst, 0)
            oracle.check(graph, kind, arguments)
            print(f"{graph[0].stem}: {kind} {' '.join(map(str, arguments))}: gradients within "
                  f"{oracle.worst['gradient']:.1e}", flush=True)
        if not cora:
            print("skipped: cora; RHIZOME_TEST_DATA is not set; it names a folder with cora")


if __name__ == "__main__":
    sys.exit(main())
