#!/usr/bin/env python3
"""Recomputes embeddings that `rhizome infer` stored; zarr-python reads the arrays.

Layerwise and samplewise inference with full neighbourhoods, over arrays that zarr-python reads from
the store, must agree with each other and with GraphSAGE and GCN computed here by NumPy from the
edges, the features and the weights in the model file, independently of the engine. The accuracy of
each split is also recomputed here.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import zarr

RHIZOME = os.environ["RHIZOME"]
VERTICES, CLASSES, DIM, HIDDEN = 700, 4, 12, 16


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout


def safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + first:8 + length + last], "<f4")
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors


def embeddings(kind, features, edges, weights):
    """By vertex id. Sources send along (src, dst), both directions."""
    src, dst = np.concatenate([edges, edges[:, ::-1]]).T
    degree = np.bincount(dst, minlength=VERTICES)[:, None]
    x = features.astype(np.float64)
    for k in range(2):
        prefix = next(n[:-len("bias")] for n in weights if f"{k}." in n and n.endswith("bias")
                      and not n.startswith("head"))
        neighbor, bias = weights[prefix + "neighbor.weight"], weights[prefix + "bias"]
        total = np.zeros_like(x)
        if kind == "sage":
            np.add.at(total, dst, x[src])
            x = total / np.maximum(degree, 1) @ neighbor.T + x @ weights[prefix + "self.weight"].T
        else:
            scale = 1 / np.sqrt(degree + 1)
            np.add.at(total, dst, (scale * x)[src])
            x = (scale * total + scale**2 * x) @ neighbor.T
        x = np.maximum(x + bias, 0)
    return x


def make_store(folder, rng):
    classes = rng.integers(0, CLASSES, VERTICES)
    edges = rng.integers(0, VERTICES, (4 * VERTICES, 2))
    same = rng.random(len(edges)) < 0.8  # most edges within a class
    for i in np.flatnonzero(same):
        edges[i, 1] = rng.choice(np.flatnonzero(classes == classes[edges[i, 0]]))
    edges = edges[edges[:, 0] != edges[:, 1]]
    features = rng.normal(size=(VERTICES, DIM)).astype(np.float32)
    features[np.arange(VERTICES), classes] += 1
    split = rng.choice([0, 1, 2, 255], VERTICES).astype(np.uint8)
    for name, values in {"edges": edges.astype(np.int64), "feat": features, "split": split[:, None],
                         "label": classes.astype(np.int64)[:, None]}.items():
        np.save(folder / f"{name}.npy", values)
    rhizome("ingest", folder / "g.rz", "--edges", folder / "edges.npy", "--vertices", VERTICES,
            "--undirected", "--partitions", 3, *[f for name in ("feat", "label", "split") for f in
                                                 ("--array", f"{name}={folder / name}.npy")])
    return edges, features, classes, split


def main():
    seed = int(os.environ.get("RHIZOME_TEST_SEED", "1"))
    print("RHIZOME_TEST_SEED", seed)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        edges, features, classes, split = make_store(folder, rng)
        arrays = folder / "g.rz/generations/000001/arrays"
        # Which vertex a row is of is told by its features, which no two vertices share.
        stored = zarr.open_array(arrays / "feat", mode="r")[:]
        vertex = {row.tobytes(): v for v, row in enumerate(features)}
        order = np.array([vertex[row.tobytes()] for row in stored])
        assert sorted(order) == list(range(VERTICES))
        for kind in ("sage", "gcn"):
            model = folder / f"{kind}.safetensors"
            rhizome("train", folder / "g.rz", "--model", kind, "--layers", 2, "--hidden", HIDDEN,
                    "--fanout", "5,5", "--epochs", 2, "--seed", seed, "--out", model)
            weights = safetensors(model)
            want = embeddings(kind, features, edges, weights)
            scores = want @ weights["head.weight"].T + weights["head.bias"]
            for mode in ("layerwise", "samplewise"):
                told = json.loads(rhizome(
                    "infer", folder / "g.rz", "--model-file", model, "--out", f"{kind}-{mode}",
                    "--mode", mode, "--fanout", "all", "--block-rows", 128, "--chunk-rows", 256,
                    "--threads", 2, "--json"))
                got = zarr.open_array(arrays / f"{kind}-{mode}", mode="r")
                assert got.shape == (VERTICES, HIDDEN) and got.dtype == np.float32, got
                error = np.abs(got[:] - want[order]).max()
                assert error < 1e-3 * (1 + np.abs(want).max()), (kind, mode, error)
                for number, field in ((1, "valid_accuracy"), (2, "test_accuracy")):
                    of = split == number
                    share = (scores[of].argmax(1) == classes[of]).mean()
                    # A score that is a tie in one arithmetic is decided in the other.
                    assert abs(told[field] - share) <= 2 / of.sum(), (kind, mode, field, share)
            one, other = (zarr.open_array(arrays / f"{kind}-{mode}", mode="r")[:]
                          for mode in ("layerwise", "samplewise"))
            assert np.abs(one - other).max() < 1e-4 * (1 + np.abs(want).max())
        group = zarr.open_group(arrays, mode="r")
        assert set(group.array_keys()) >= {"feat", "sage-layerwise", "gcn-samplewise"}


if __name__ == "__main__":
    sys.exit(main())
