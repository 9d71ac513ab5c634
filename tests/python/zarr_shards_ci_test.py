#!/usr/bin/env python3
"""Ingests sharded and plain arrays of zarr-python and TensorStore; both read them again from the
store.

Every combination of writer, element type, codec, byte order and position of the shard index (or
none) is written with random values and holes, ingested in one run into arrays that are also
sharded, and read from the store by the same writers. Vertices are in natural order there, so row i
is vertex i.
"""
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import tensorstore
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec)

RHIZOME = os.environ["RHIZOME"]
ROWS = 53
DTYPES = ("float16", "float32", "float64", "int32", "int64", "uint8")
FILL = 3

# What stands behind `bytes`, as TensorStore writes it and as zarr-python's class.
CODECS = {
    "raw": ([], []),
    "crc": ([{"name": "crc32c"}], [Crc32cCodec()]),
    "zstd": ([{"name": "zstd", "configuration": {"level": 3}}], [ZstdCodec(level=3)]),
    "gzip": ([{"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}],
             [GzipCodec(level=5), Crc32cCodec()]),
    "lz4": ([{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle",
                                                 "typesize": 4, "blocksize": 0}},
             {"name": "crc32c"}],
            [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4), Crc32cCodec()]),
    "bzstd": ([{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 3,
                                                   "shuffle": "bitshuffle", "typesize": 2,
                                                   "blocksize": 0}}],
              [BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle", typesize=2)]),
}

# Shape, shard and inner chunk: ragged ends in one or two dimensions, one of each, single elements.
SHAPES = (((ROWS, 6), (16, 6), (4, 6)), ((ROWS, 5), (24, 4), (8, 2)), ((ROWS,), (20,), (5,)),
          ((ROWS, 3), (64, 3), (1, 1)), ((ROWS, 7), (8, 8), (8, 8)), ((ROWS, 4), (100, 4), (50, 1)))

INDEXES = (None, "start", "end")

SHARDS = ("--layout", "chunk", "--inner-rows")  # of what is ingested


def rhizome(*arguments, code=0):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == code, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout + run.stderr


def values(rng, dtype, shape):
    """Random values in which some inner chunks, and some shards, are nothing but the fill value."""
    if dtype.startswith("float"):
        data = rng.integers(-1000, 1000, shape).astype(dtype) / 8
    else:
        limits = np.iinfo(dtype)
        data = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    data = data.astype(dtype)
    first = int(rng.integers(0, ROWS))
    data[first:first + int(rng.integers(0, ROWS))] = FILL
    return data


def write_python(folder, data, shard, inner, codecs, endian, index):
    chain = [BytesCodec(endian=endian), *codecs]
    sharding = ShardingCodec(chunk_shape=inner, codecs=chain, index_location=index or "end",
                             index_codecs=[BytesCodec(endian=endian), Crc32cCodec()])
    plain = {"chunks": inner, "serializer": chain[0], "compressors": codecs or None}
    sharded = {"chunks": shard, "serializer": sharding, "compressors": None}
    array = zarr.create_array(folder, shape=data.shape, dtype=data.dtype, zarr_format=3,
                              fill_value=FILL, **(sharded if index else plain))
    array[...] = data


def write_tensorstore(folder, data, shard, inner, codecs, endian, index):
    order = {"name": "bytes", "configuration": {"endian": endian}}
    if data.dtype.itemsize == 1:
        order = {"name": "bytes"}
    chain = [order, *codecs]
    if index:
        chain = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": chain, "index_location": index,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": endian}},
                             {"name": "crc32c"}]}}]
    grid = {"name": "regular", "configuration": {"chunk_shape": shard if index else inner}}
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"},
            "metadata": {"codecs": chain, "chunk_grid": grid, "fill_value": FILL,
                         "data_type": data.dtype.name}}
    array = tensorstore.open(spec, create=True, shape=data.shape).result()
    array.write(data).result()


WRITERS = {"zp": (write_python, 1), "ts": (write_tensorstore, 0)}


def write_all(folder, seed):
    """The arrays by name."""
    rng = np.random.default_rng(seed)
    shapes = itertools.cycle(SHAPES)
    arrays = {}
    for combination in itertools.product(WRITERS, DTYPES, CODECS, ("little", "big"), INDEXES):
        writer, dtype, codec, endian, index = combination
        write, which = WRITERS[writer]
        shape, shard, inner = next(shapes)
        name = "-".join((writer, dtype, codec, endian, index or "plain"))
        data = values(rng, dtype, shape)
        write(folder / name, data, shard, inner, CODECS[codec][which], endian, index)
        arrays[name] = data
        if len(arrays) % 7 == 0:  # so that shapes do not go in step with the rest
            next(shapes)
    return arrays


def ingest(work, store, names, *flags, code=0):
    edges = work / "ring.tsv"
    edges.write_text("".join(f"{v}\t{(v + 1) % ROWS}\n" for v in range(ROWS)))
    words = [word for name in names for word in ("--array", f"{name}={work / 'a' / name}")]
    return rhizome("ingest", store, "--edges", edges, "--order", "natural", *flags, *words,
                   code=code)


def expected(data):
    data = data.reshape(ROWS, -1)
    return data.astype(np.float32) if data.dtype == np.float64 else data


def read_tensorstore(folder):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"}}
    return tensorstore.open(spec, open=True).result().read().result()


def check_store(store, arrays):
    folder = next((store / "generations").iterdir()) / "arrays"
    group = zarr.open_group(folder, mode="r")
    for number, (name, data) in enumerate(arrays.items()):
        got = group[name][...] if number % 2 == 0 else read_tensorstore(folder / name)
        want = expected(data)
        assert got.dtype == want.dtype and np.array_equal(got, want), f"{store.name}: {name}"


def check_exports(work, store, arrays):
    for name, data in arrays.items():
        rhizome("export", store, "--array", name, "--out", work / "out.npy")
        assert np.array_equal(np.load(work / "out.npy"), expected(data)), name


def some(arrays, count, seed):
    chosen = random.Random(seed).sample(sorted(arrays), count)
    return {name: arrays[name] for name in chosen}


def main():
    seed = int(os.environ.get("RHIZOME_TEST_SEED", random.randrange(2**31)))
    print(f"RHIZOME_TEST_SEED={seed}")
    work = pathlib.Path(tempfile.mkdtemp(prefix="rhizome-shards-"))
    try:
        (work / "a").mkdir()
        arrays = write_all(work / "a", seed)
        wide = {name: data for name, data in arrays.items() if data.dtype == np.float64}
        kept = {name: data for name, data in arrays.items() if name not in wide}
        ingest(work, work / "kept.rz", kept, *SHARDS, "8", "--codec", "blosc-lz4")
        check_store(work / "kept.rz", kept)
        ingest(work, work / "wide.rz", wide, "--dtype", "float32", *SHARDS, "auto",
               "--codec", "raw")
        check_store(work / "wide.rz", wide)
        check_exports(work, work / "kept.rz", some(kept, 12, seed))
        spilled = some(kept, 40, seed)
        ingest(work, work / "spilled.rz", spilled, "--spill", "always", "--memory", "64M",
               *SHARDS, "5", "--chunk-rows", "20", "--codec", "blosc-zstd:7")
        check_store(work / "spilled.rz", spilled)
        plain = some(kept, 20, seed + 1)
        ingest(work, work / "plain.rz", plain, "--layout", "chunk", "--codec", "zstd")
        check_store(work / "plain.rz", plain)
    finally:
        shutil.rmtree(work)
    print(f"{len(arrays)} arrays: zarr-python {zarr.__version__} and TensorStore wrote and read them")


if __name__ == "__main__":
    sys.exit(main())
