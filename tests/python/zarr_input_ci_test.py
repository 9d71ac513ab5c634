#!/usr/bin/env python3
"""Ingests arrays that zarr-python and TensorStore wrote, exports them again, and compares every
value."""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import tensorstore
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec

RHIZOME = os.environ["RHIZOME"]
ROWS = 37
DTYPES = ("float32", "float16", "int64", "int32", "uint32", "uint8", "float64", "bool", "int8", "int16", "uint64")
COMPRESSORS = {
    "none": [],
    "crc": [Crc32cCodec()],
    "zstd": [ZstdCodec(level=3)],
    "zstdsum": [ZstdCodec(level=1, checksum=True), Crc32cCodec()],
    "gzip": [GzipCodec(level=5)],
    "lz4": [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")],
    "lz4hc": [BloscCodec(cname="lz4hc", clevel=9, shuffle="bitshuffle"), Crc32cCodec()],
    "bzstd": [Crc32cCodec(), BloscCodec(cname="zstd", clevel=7, shuffle="noshuffle")],
}


def rhizome(*arguments, code=0):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == code, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stderr


def values(dtype, shape):
    k = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) * 7 + 3
    if dtype == "bool":
        return k % 3 == 0
    if dtype.startswith("float"):
        return (k % 2000 / 8 - 100).astype(dtype)
    if dtype.startswith("uint"):
        return (k % 251).astype(dtype)
    if dtype in ("int8", "int16"):
        return (k % 251 - 125).astype(dtype)
    return (k * 1_000_003 - 50_000_000).astype(dtype)


def python_arrays(folder):
    """One array for each dtype and compressor, with shapes, chunks and keys that take turns."""
    shapes = itertools.cycle([((ROWS,), (10,)), ((ROWS, 5), (8, 5)), ((ROWS, 5), (37, 2)),
                              ((ROWS, 3), (100, 4)), ((ROWS, 4), (1, 1))])
    keys = itertools.cycle([{"name": "default", "separator": "/"},
                            {"name": "default", "separator": "."},
                            {"name": "v2", "separator": "."}, {"name": "v2", "separator": "/"}])
    endians = itertools.cycle(["little", "little", "big"])
    for dtype, (name, compressors) in itertools.product(DTYPES, COMPRESSORS.items()):
        shape, chunks = next(shapes)
        array = zarr.create_array(
            folder / f"{dtype}-{name}", shape=shape, chunks=chunks, dtype=dtype, zarr_format=3,
            compressors=compressors or None, serializer=BytesCodec(endian=next(endians)),
            chunk_key_encoding=next(keys), fill_value=dtype == "bool" or 7)
        data = values(dtype, shape)
        array[...] = data
        yield f"{dtype}-{name}", data
    for dtype in DTYPES:  # only some of the chunks are there
        array = zarr.create_array(folder / f"{dtype}-holes", shape=(ROWS, 6), chunks=(5, 4),
                                  dtype=dtype, zarr_format=3, fill_value=dtype == "bool" or 11)
        data = np.full((ROWS, 6), 11, dtype=dtype)
        data[7:12, 1:3] = values(dtype, (5, 2))
        array[7:12, 1:3] = data[7:12, 1:3]
        yield f"{dtype}-holes", data
    array = zarr.create_array(folder / "nan", shape=(ROWS, 2), chunks=(8, 2), dtype="float32",
                              zarr_format=3, fill_value=float("nan"))
    data = np.full((ROWS, 2), np.nan, dtype="float32")
    data[:3] = array[:3] = 1.5
    yield "nan", data


def tensorstore_arrays(folder):
    codecs = {"plain": [], "zstd": [{"name": "zstd", "configuration": {"level": 3}}],
              "gzip": [{"name": "gzip", "configuration": {"level": 6}}],
              "blosc": [{"name": "blosc", "configuration": {
                  "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4,
                  "blocksize": 0}}, {"name": "crc32c"}]}
    for dtype, (name, chain) in itertools.product(DTYPES, codecs.items()):
        shape = (ROWS, 5)
        array = tensorstore.open({
            "driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/ts-{dtype}-{name}/"},
            "metadata": {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                                    *chain],
                         "chunk_grid": {"name": "regular",
                                        "configuration": {"chunk_shape": [16, 3]}}}},
            create=True, dtype=dtype, shape=shape).result()
        data = values(dtype, shape)
        array.write(data).result()
        yield f"ts-{dtype}-{name}", data


def ingest(work, arrays, *flags):
    """Arrays by name and folder, with a ring of ROWS vertices."""
    edges = work / "ring.tsv"
    edges.write_text("".join(f"{v}\t{(v + 1) % ROWS}\n" for v in range(ROWS)))
    store = work / "graph.rz"
    shutil.rmtree(store, ignore_errors=True)
    return ["ingest", store, "--edges", edges, *flags,
            *(word for name, folder in arrays for word in ("--array", f"{name}={folder}"))]


def check_all(work, arrays, *flags, narrowed=False):
    rhizome(*ingest(work, [(name, work / "a" / name) for name in arrays], *flags))
    for name, data in arrays.items():
        rhizome("export", work / "graph.rz", "--array", name, "--out", work / "out.npy")
        got = np.load(work / "out.npy")
        want = data.reshape(ROWS, -1)
        if want.dtype == np.uint64:
            want = want.astype(np.int64)
        if narrowed:
            want = want.astype(np.float32)
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True), name


def refused(work, folder, *parts, flags=()):
    message = rhizome(*ingest(work, [("x", folder)], *flags), code=1)
    for part in parts:
        assert part in message, f"the message lacks {part!r}: {message}"


def change(work, **fields):
    """A fresh array whose metadata is another."""
    folder = work / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    array = zarr.create_array(folder, shape=(ROWS, 4), chunks=(8, 4), dtype="float32",
                              zarr_format=3)
    array[...] = values("float32", (ROWS, 4))
    metadata = json.loads((folder / "zarr.json").read_text())
    metadata.update(fields)
    (folder / "zarr.json").write_text(json.dumps(metadata))
    return folder


def check_refusals(work):
    grid = lambda *chunk: {"name": "regular", "configuration": {"chunk_shape": list(chunk)}}
    refused(work, change(work, shape=[ROWS, 4, 1]), "/shape")
    refused(work, change(work, shape=[2**62, 4]), "/shape", "too large")
    refused(work, change(work, shape=[ROWS, 0]), "/shape", "no columns")
    refused(work, change(work, shape=[2**40, 4]), "missing")
    refused(work, change(work, chunk_grid=grid(2**30, 4)), "1 GiB")
    refused(work, change(work, chunk_grid=grid(0, 4)), "chunk_shape")
    refused(work, change(work, chunk_grid=grid(16, 4)), "c/0/0")
    refused(work, change(work, data_type="complex64"), "/data_type", "complex64")
    refused(work, change(work, codecs=[{"name": "bytes"}, {"name": "lzma"}]), "lzma")
    refused(work, change(work, codecs=[{"name": "bytes"}]), "c/0/0")
    blosc = {"name": "blosc", "configuration": {"cname": "blosclz"}}
    refused(work, change(work, codecs=[{"name": "bytes"}, blosc]), "blosclz")
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [8, 3]}}
    refused(work, change(work, codecs=[shards]), "index_codecs")
    refused(work, change(work, fill_value="x"), "/fill_value")
    refused(work, change(work, node_type="group"), "/node_type")
    refused(work, change(work, zarr_format=2), "/zarr_format")
    refused(work, change(work, unheard_of={"must_understand": True}), "unheard_of")
    folder = change(work)
    chunk = folder / "c/1/0"
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:-5])
    refused(work, folder, "c/1/0")
    chunk.write_bytes(sound[:20] + bytes([sound[20] ^ 0xFF]) + sound[21:-8] + bytes(8))
    refused(work, folder, "c/1/0")
    chunk.write_bytes(b"")
    refused(work, folder, "c/1/0")
    (folder / "zarr.json").write_text("{")
    refused(work, folder, "zarr.json")
    folder = work / "v2"
    zarr.create_array(folder, shape=(ROWS,), chunks=(8,), dtype="int32", zarr_format=2)
    refused(work, folder, "Zarr v2")
    folder = work / "wide"
    wide = zarr.create_array(folder, shape=(ROWS,), chunks=(8,), dtype="float64", zarr_format=3)
    wide[...] = 1e300
    refused(work, folder, "does not fit float32", flags=("--dtype", "float32"))
    short = work / "short"
    zarr.create_array(short, shape=(5, 2), chunks=(5, 2), dtype="int32", zarr_format=3)
    refused(work, short, "37 rows are expected")
    empty = work / "empty"
    empty.mkdir()
    assert "zarr.json" in rhizome(*ingest(work, [("x", empty)]), code=2)
    big = work / "big"
    zarr.create_array(big, shape=(ROWS, 1_000_000), chunks=(ROWS, 1_000_000), dtype="int32",
                      zarr_format=3)[...] = 1
    assert "memory" in rhizome(*ingest(work, [("x", big)], "--memory", "8M"), code=5)


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="rhizome-zarr-"))
    try:
        (work / "a").mkdir()
        arrays = dict(python_arrays(work / "a")) | dict(tensorstore_arrays(work / "a"))
        wide = {name: data for name, data in arrays.items() if data.dtype == np.float64}
        check_all(work, arrays)
        check_all(work, wide, "--dtype", "float32", "--spill", "always", "--memory", "64M", narrowed=True)
        some = dict(list(arrays.items())[::5])
        check_all(work, some, "--spill", "always", "--memory", "64M")
        check_refusals(work)
    finally:
        shutil.rmtree(work)
    print(f"{len(arrays)} arrays")


if __name__ == "__main__":
    sys.exit(main())
