#!/usr/bin/env python3
"""Summarises the runs of train.sh. usage: compare_runs.py RUNS.json FOLDER, which has on_cpu.npy and on_cuda.npy

Prints one line of JSON per training: milliseconds per minibatch, megabytes and milliseconds of the upload of a
minibatch (means over the epochs after the first that ran no validation), the losses, and their difference from those
of the processor. Prints one line for the inferences. Exits with 1 if losses or embeddings differ too much from those
of the processor.
"""
import json
import sys

import numpy as np

LOSS_TOLERANCE = 1e-3, 5e-2  # of the first epoch, and of later ones, as trainings part from rounding on
ROW_TOLERANCE = 1e-3
STEPS = {"planted": 10, "rmat": 40, "infer": 20}  # --steps of train.sh


def of_training(name, answer, on_processor):
    epochs = answer["epochs"]
    steady = [epoch for epoch in epochs[1:] if epoch["valid_accuracy"] is None] or epochs[-1:]
    minibatches = STEPS[name.split("/")[0]] * len(steady)

    def of_one(key):
        return sum(epoch[key] for epoch in steady) / minibatches

    line = {"run": name, "ms": 1e3 * of_one("seconds"), "epochs_ms": [round(1e3 * e["seconds"]) for e in epochs],
            "superbatch": answer["superbatch"], "overlap": answer["overlap"], "loss": [e["loss"] for e in epochs]}
    for key in ("sample", "schedule", "switch", "update", "compute", "stall", "upload"):
        if f"{key}_seconds" in epochs[-1]:
            line[f"{key}_ms"] = 1e3 * of_one(f"{key}_seconds")
    if "upload_bytes" in epochs[-1]:
        line["upload_mb"] = of_one("upload_bytes") / 1e6
    if on_processor:
        pairs = zip(line["loss"], on_processor["loss"])
        apart = [abs(here - there) / max(abs(there), 1e-9) for here, there in pairs]
        line["loss_apart"] = max(apart)
        line["far"] = apart[0] > LOSS_TOLERANCE[0] or max(apart) > LOSS_TOLERANCE[1]
    return line


def main():
    runs, folder = sys.argv[1:]
    lines, far = {}, False
    for text in open(runs, encoding="utf-8"):
        run = json.loads(text)
        name, answer = run["run"], run["answer"]
        if "epochs" in answer:
            depth = 2 if name.startswith("planted/") else 1  # planted/MODEL/DEVICE, rmat/DEVICE or CACHE/...
            line = of_training(name, answer, lines.get("/".join([*name.split("/")[:depth], "cpu"])))
            far |= line.get("far", False)
        else:
            line = {"run": name} | {key: value for key, value in answer.items() if "seconds" in key or "bytes" in key}
        lines[name] = line
        print(json.dumps(line))
    cpu, cuda = (np.load(f"{folder}/on_{device}.npy", mmap_mode="r") for device in ("cpu", "cuda"))
    apart = float(np.abs(cpu - cuda).max() / np.abs(cpu).max())
    spread = float(np.std(cpu[:: max(1, len(cpu) // 10_000)], axis=0).mean() / np.abs(cpu).mean())  # 0: rows are alike
    far |= not apart <= ROW_TOLERANCE or not spread > ROW_TOLERANCE or cpu.shape != cuda.shape
    print(json.dumps({"run": "infer", "rows": list(cpu.shape), "largest_apart": apart, "spread": spread, "far": bool(far)}))
    return int(far)


if __name__ == "__main__":
    sys.exit(main())
