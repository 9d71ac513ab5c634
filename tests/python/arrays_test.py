#!/usr/bin/env python3
"""zarr-python, TensorStore and xarray read the arrays that Rhizome writes.

The C++ test InteropArraysTest writes one array for each element type, codec and width. Every value
follows a formula, which is repeated here independently of the engine.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import tensorstore
import xarray
import zarr

ROW_COUNTS = (0, 5, 256, 300)
DTYPES = ("float32", "float16", "int64", "int32", "uint32", "uint8", "bool", "int8", "int16", "float64")
CODECS = ("raw", "zstd", "blosc-lz4", "blosc-zstd")
DIMS = (1, 5)
# What a chunk that is gone reads as, beside NaN.
FILLS = {"int64": -2**63, "int32": -2**31, "uint32": 2**32 - 1, "uint8": 255, "int16": -2**15, "int8": -128,
         "bool": False}
ARRAY_ID = 0xFEDCBA9876543210


def expected(dtype, rows, dim):
    k = 31 * np.arange(rows, dtype=np.int64)[:, None] + 7 * np.arange(dim, dtype=np.int64)[None, :]
    values = {
        "float32": lambda: k / 8 - 100,
        "float16": lambda: k % 2048,
        "int64": lambda: k * 10_000_000_019 - 5_000_000_000,
        "int32": lambda: k * 100_003 - 1_000_000,
        "uint32": lambda: 4_000_000_000 - k,
        "uint8": lambda: k % 251,
        "int16": lambda: k % 60_000 - 30_000,
        "int8": lambda: k % 200 - 100,
        "bool": lambda: k % 3 == 0,
        "float64": lambda: k / 3,
        "bfloat16": lambda: k % 256,
    }
    return values[dtype]().astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


def check(values, want, what):
    values = np.asarray(values)
    assert values.dtype == want.dtype, f"{what}: dtype {values.dtype}, not {want.dtype}"
    assert values.shape == want.shape, f"{what}: shape {values.shape}, not {want.shape}"
    assert np.array_equal(values, want), f"{what}: values differ"


def check_sidecar(folder, name, want):
    """FORMAT.md, "Row checksums": CRC-32C of array id, row and the row's bytes."""
    # Beside the group, so that nobody who lists it meets them.
    sums = zarr.open_array(folder.parent / "sums" / f"{name}.crc32c", mode="r")[:]
    rows = [crc32c(struct.pack("<QQ", ARRAY_ID, row) + want[row].tobytes())
            for row in range(len(want))]
    check(sums, np.array(rows, dtype="uint32").reshape(-1, 1), f"{name}, row checksums")


def check_tensorstore(folder, name, want):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / name) + "/"}}
    opened = tensorstore.open(spec, open=True).result()
    check(opened.read().result(), want, f"TensorStore, {name}, {len(want)} rows")
    assert opened.domain.labels == ("row", name + "_dim"), name


def check_bfloat16(folder, rows):
    """zarr-python and xarray do not know the type, which is an extension of Zarr."""
    names = {f"bfloat16.{codec}.{dim}": dim for codec in CODECS for dim in DIMS}
    assert {one.name for one in folder.iterdir() if one.is_dir()} == set(names)
    for name, dim in names.items():
        want = expected("bfloat16", rows, dim)
        check_tensorstore(folder, name, want)
        if name.split(".")[1] == "raw":
            check_sidecar(folder, name, want)
    return len(names)


def check_array(folder, group, dataset, name, dtype, dim, rows):
    want = expected(dtype, rows, dim)
    array = group[name]
    check(array[:], want, f"zarr-python, {name}, {rows} rows")
    assert array.metadata.dimension_names == ("row", name + "_dim"), name
    fill = np.asarray(array.fill_value)
    assert np.isnan(fill) if dtype.startswith("float") else fill == FILLS[dtype], (name, fill)
    ours = array.attrs["rhizome"]
    assert int(ours["array_id"]) == ARRAY_ID and ours["attributes"] == {"model": "café"}, name

    check_tensorstore(folder, name, want)
    check(dataset[name].values, want, f"xarray, {name}, {rows} rows")
    assert dataset[name].dims == ("row", name + "_dim"), name

    if name.split(".")[1] == "raw":
        check_sidecar(folder, name, want)


def check_group(folder, rows):
    group = zarr.open_group(folder, mode="r")
    # Nothing is masked: a fill value stands for no missing rows here.
    dataset = xarray.open_zarr(folder, consolidated=False, zarr_format=3, mask_and_scale=False)
    names = {f"{dtype}.{codec}.{dim}": (dtype, dim)
             for dtype in DTYPES for codec in CODECS for dim in DIMS}
    assert set(group.array_keys()) == set(names), set(group.array_keys())
    assert set(dataset.variables) == set(names), set(dataset.variables)
    for name, (dtype, dim) in names.items():
        check_array(folder, group, dataset, name, dtype, dim, rows)
        document = json.loads((folder / name / "zarr.json").read_text())
        files = len(list((folder / name).iterdir())) - 1
        assert files == -(-rows // document["chunk_grid"]["configuration"]["chunk_shape"][0]), name
    return len(names)


def check_bound(folder):
    """FORMAT.md, "Bound arrays": the fill value where no row is, stored in a chunk or not."""
    rows, chunk_rows = 300, 128
    row = np.arange(rows)
    others = (row // chunk_rows == 1) | (row % chunk_rows % 2 == 1)
    group = zarr.open_group(folder, mode="r")
    dataset = xarray.open_zarr(folder, consolidated=False, zarr_format=3, mask_and_scale=False)
    names = {f"{dtype}.{codec}.{dim}": (dtype, dim) for dtype in DTYPES for codec in CODECS for dim in DIMS}
    assert set(group.array_keys()) == set(names)
    for name, (dtype, dim) in names.items():
        assert not (folder / name / "c.1.0").exists(), name
        want = expected(dtype, rows, dim)
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / name) + "/"}}
        for values in (group[name][:], dataset[name].values, tensorstore.open(spec, open=True).result().read().result()):
            check(values[~others], want[~others], name)
            fills = values[others]
            assert np.isnan(fills).all() if dtype.startswith("float") else (fills == FILLS[dtype]).all(), name
            # Stored fill values have the bytes that Zarr's readers give those that are not.
            assert len({one.tobytes() for one in fills}) == 1, name
    return len(names)


def main():
    program = pathlib.Path(os.environ["RHIZOME_BUILD"]) / "bin" / "rhizome_storage_quick_tests"
    with tempfile.TemporaryDirectory() as temporary:
        run = subprocess.run([program, "--gtest_filter=InteropArraysTest.*"],
                             env={**os.environ, "RHIZOME_INTEROP_DIR": temporary},
                             capture_output=True, text=True)
        if run.returncode != 0 or "[  PASSED  ] 1 test" not in run.stdout:
            sys.exit(f"the writer failed:\n{run.stdout}{run.stderr}")
        arrays = sum(check_group(pathlib.Path(temporary) / str(rows) / "arrays", rows)
                     for rows in ROW_COUNTS)
        arrays += sum(check_bfloat16(pathlib.Path(temporary) / f"{rows}-bfloat16" / "arrays", rows)
                      for rows in ROW_COUNTS)
        arrays += check_bound(pathlib.Path(temporary) / "bound" / "arrays")
    print(f"{arrays} arrays: zarr-python {zarr.__version__}, TensorStore, "
          f"xarray {xarray.__version__} read what was written")


if __name__ == "__main__":
    main()
