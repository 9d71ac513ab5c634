#!/usr/bin/env python3
"""Compares the metrics of tasks with scikit-learn.

The C++ test TaskMetricsTest writes random scores with ties, their labels, and the engine's metrics;
each must equal scikit-learn's to 1e-9.
"""
import collections
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from sklearn import metrics as sk

TOLERANCE = 1e-9


def written():
    tests = pathlib.Path(os.environ["RHIZOME_BUILD"]) / "bin" / "rhizome_cache_quick_tests"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.json"
        subprocess.run([tests, "--gtest_filter=TaskMetricsTest.CasesForAnotherLibrary"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "RHIZOME_TASK_METRICS": str(path)})
        return json.loads(path.read_text())


def of_classes(labels, answers):
    return {"accuracy": sk.accuracy_score(labels, answers), "f1_micro": sk.f1_score(labels, answers, average="micro"),
            "f1_macro": sk.f1_score(labels, answers, average="macro")}


def of_scores(labels, scores):
    return {"roc_auc": sk.roc_auc_score(labels, scores, average="macro"),
            "average_precision": sk.average_precision_score(labels, scores, average="macro")}


def of_numbers(targets, predictions):
    return {"mae": sk.mean_absolute_error(targets, predictions),
            "rmse": sk.root_mean_squared_error(targets, predictions), "r2": sk.r2_score(targets, predictions)}


def expected(case, scores, labels):
    if case["task"] == "regression":
        return of_numbers(labels, scores)
    if case["task"] == "multiclass":
        return of_classes(labels, scores)
    return {**of_classes(labels.astype(int), (scores > 0).astype(int)), **of_scores(labels, scores)}


def main():
    seen = collections.Counter()
    for case in written():
        # The numbers are those of float32; scikit-learn would compute in the type of its arguments.
        scores = np.array(case["scores"], dtype=np.float64)
        labels = np.array(case["labels"], dtype=np.float64)
        if case["task"] in ("multilabel", "regression"):
            scores, labels = (x.reshape(-1, case["columns"]) for x in (scores, labels))
        want = expected(case, scores, labels)
        assert set(want) == set(case["metrics"]), (set(want), set(case["metrics"]))
        for name, value in want.items():
            assert abs(value - case["metrics"][name]) <= TOLERANCE, (case["task"], name, value, case["metrics"][name])
        if case["task"] in ("multiclass", "binary"):
            answers = scores if case["task"] == "multiclass" else scores > 0
            confusion = sk.confusion_matrix(labels, answers.astype(float))
            assert confusion.flatten().tolist() == case["confusion"], case["task"]
        if case["task"] != "regression":
            answers = scores if case["task"] == "multiclass" else (scores > 0).astype(float)
            by_class = sk.f1_score(labels, answers, average=None)
            assert np.abs(by_class - case["f1"]).max() <= TOLERANCE, case["task"]
        seen[case["task"]] += 1
    assert seen == {"binary": 6, "multilabel": 6, "multiclass": 6, "regression": 6}, seen


if __name__ == "__main__":
    main()
