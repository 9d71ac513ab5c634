#!/usr/bin/env python3
"""Trains every task, and recomputes its metrics with scikit-learn from the scores that `infer`
wrote."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import zarr
from sklearn import metrics as sk

RHIZOME = os.environ["RHIZOME"]
VERTICES, CLASSES, DIM = 600, 4, 12
SPLITS = {"train": 0, "valid": 1, "test": 2}


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout


def make_store(folder, rng):
    classes = rng.integers(0, CLASSES, VERTICES)
    edges = rng.integers(0, VERTICES, (4 * VERTICES, 2))
    for i in np.flatnonzero(rng.random(len(edges)) < 0.8):
        edges[i, 1] = rng.choice(np.flatnonzero(classes == classes[edges[i, 0]]))
    features = rng.normal(size=(VERTICES, DIM)).astype(np.float32)
    features[np.arange(VERTICES), classes] += 1
    numbers = np.stack([classes + rng.normal(size=VERTICES) * 0.2, 10 - 3 * classes], axis=1)
    arrays = {"feat": features, "split": rng.choice([0, 1, 2, 255], VERTICES).astype(np.uint8)[:, None],
              "label": classes.astype(np.int64)[:, None], "binary": (classes > 1).astype(np.int32)[:, None],
              "flags": np.stack([classes == 1, classes > 1, classes != 3], axis=1).astype(np.uint8),
              "number": numbers.astype(np.float32)}
    for name, values in {"edges": edges.astype(np.int64), **arrays}.items():
        np.save(folder / f"{name}.npy", values)
    rhizome("ingest", folder / "g.rz", "--edges", folder / "edges.npy", "--vertices", VERTICES, "--undirected",
            "--partitions", 2, *[f for name in arrays for f in ("--array", f"{name}={folder / name}.npy")])
    return arrays


def expected(task, labels, scores):
    if task == "regression":
        return {"mae": sk.mean_absolute_error(labels, scores), "rmse": sk.root_mean_squared_error(labels, scores),
                "r2": sk.r2_score(labels, scores)}
    answers = scores.argmax(1) if task == "multiclass" else (scores > 0).astype(int)
    want = {"accuracy": sk.accuracy_score(labels, answers), "f1_micro": sk.f1_score(labels, answers, average="micro"),
            "f1_macro": sk.f1_score(labels, answers, average="macro")}
    if task != "multiclass":
        want["roc_auc"] = sk.roc_auc_score(labels, scores)
        want["average_precision"] = sk.average_precision_score(labels, scores)
    return want


def check_task(folder, arrays, order, task, labels, flags):
    model = folder / f"{task}.safetensors"
    train = json.loads(rhizome("train", folder / "g.rz", "--labels", labels, "--hidden", 16, "--fanout", "5,5",
                               "--batch-size", 64, "--epochs", 6, "--seeds", 2, "--out", model, "--json", *flags))
    assert train["task"] == task, train["task"]
    assert len(train["seeds"]) == 2 and len(train["learning_rates"]) == 6
    infer = json.loads(rhizome("infer", folder / "g.rz", "--model-file", model, "--out", f"{task}-scores", "--scores",
                               "--fanout", "all", "--labels", labels, "--json"))
    assert (infer["test_accuracy"] is not None) == (task == "multiclass"), infer["test_accuracy"]
    stored = zarr.open_array(folder / "g.rz/generations/000001/arrays" / f"{task}-scores", mode="r")[:]
    scores = np.empty_like(stored, dtype=np.float64)
    scores[order] = stored
    targets = arrays[labels].astype(np.float64)
    if task in ("multiclass", "binary"):
        targets = targets[:, 0].astype(int)
        scores = scores[:, 0] if task == "binary" else scores
    for name, number in SPLITS.items():
        members = arrays["split"][:, 0] == number
        told = train["metrics"][name]
        assert told["vertices"] == members.sum()
        for metric, value in expected(task, targets[members], scores[members]).items():
            assert abs(told[metric] - value) < 1e-9, (task, name, metric, told[metric], value)
    for metric, mean in train["mean"].items():
        values = [seed["metrics"]["test"][metric] for seed in train["seeds"]]
        assert abs(mean - np.mean(values)) < 1e-12
        assert abs(train["deviation"][metric] - np.std(values, ddof=1)) < 1e-12


def main():
    seed = int(os.environ.get("RHIZOME_TEST_SEED", "1"))
    print("RHIZOME_TEST_SEED", seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arrays = make_store(folder, np.random.default_rng(seed))
        stored = zarr.open_array(folder / "g.rz/generations/000001/arrays/feat", mode="r")[:]
        vertex = {row.tobytes(): v for v, row in enumerate(arrays["feat"])}
        order = np.array([vertex[row.tobytes()] for row in stored])
        for task, labels, flags in (
                ("multiclass", "label", ["--class-weights", "balanced", "--label-smoothing", 0.1]),
                ("binary", "binary", ["--task", "binary", "--optimizer", "adamw", "--weight-decay", 0.01]),
                ("multilabel", "flags", ["--optimizer", "adagrad", "--lr", 0.05, "--schedule", "cosine"]),
                ("regression", "number", ["--optimizer", "sgd", "--lr", 0.001, "--clip-norm", 1, "--warmup", 2])):
            check_task(folder, arrays, order, task, labels, flags)


main()
