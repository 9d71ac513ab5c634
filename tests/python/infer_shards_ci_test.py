#!/usr/bin/env python3
"""zarr-python reads what `infer` writes, sharded or not, and it equals samplewise inference.

Rows are in natural order in this store, so row i is vertex i.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import zarr

RHIZOME = os.environ["RHIZOME"]


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout


def main():
    folder = pathlib.Path(os.path.realpath(RHIZOME)).parent
    if not ((folder / "../lib/librhizome_gnn.so").exists() or
            (folder / "librhizome_gnn.so").exists()):
        print("skipped: this build has no librhizome_gnn")
        return
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        rhizome("generate", "planted", "--scale", 10, "--dim", 12, "--out", "demo")
        rhizome("ingest", "g.rz", "--edges", "demo/edges.npy", "--nodes", "demo/nodes.tsv",
                "--node-columns", "id,label,split", "--array", "feat=demo/features.npy",
                "--order", "natural", "--partitions", 3, "--chunk-rows", 128)
        rhizome("train", "g.rz", "--epochs", 1, "--fanout", "5,5", "--hidden", 24, "--out", "m")
        infer = ("infer", "g.rz", "--model-file", "m")
        rhizome(*infer, "--out", "single", "--mode", "samplewise")
        rhizome("export", "g.rz", "--array", "single", "--out", "single.npy")
        wanted = np.load("single.npy")
        variants = {
            "plain": (),
            "small": ("--chunk-rows", 128, "--inner-rows", 32, "--codec", "zstd:3"),
            "auto": ("--inner-rows", "auto", "--codec", "raw", "--layout", "blocks"),
            "bzstd": ("--chunk-rows", 256, "--inner-rows", 8, "--codec", "blosc-zstd:1"),
        }
        seen = []
        for array, flags in variants.items():
            rhizome(*infer, "--out", array, *flags)
            opened = zarr.open_group("g.rz/generations/000001/arrays", mode="r")[array]
            values = opened[:]
            assert values.shape == wanted.shape and values.dtype == np.float32, array
            np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-4, err_msg=array)
            assert (opened.shards is not None) == ("--inner-rows" in flags), array
            seen.append(values)
        for values in seen[1:]:
            assert values.tobytes() == seen[0].tobytes(), "shards and codecs change values"
        listed = {a["name"]: a for a in json.loads(rhizome("info", "g.rz", "--json"))["arrays"]}
        assert listed["small"]["inner_rows"] == 32 and listed["auto"]["inner_rows"] > 0
        rhizome("verify", "g.rz")
        print(f"zarr-python reads {len(variants)} arrays of infer, {wanted.shape}")


main()
sys.exit(0)
