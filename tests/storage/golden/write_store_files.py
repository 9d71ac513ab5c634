#!/usr/bin/env python3
"""Writes golden files of format 1 that belong to storage/, from storage/FORMAT.md alone.

Usage: write_store_files.py FOLDER

Independent of the engine: nothing but the standard library. A store's FORMAT, the log of a job, and
from a generation a manifest and three arrays: `x` in layout row with its sidecar, two chunks, the
second padded; `y`, and version 2 of `z`, in layout chunk. A second manifest, of format 2, has also `w`,
whose two chunks are shards of raw inner chunks; a third, of format 3, `f` and `g` as well, of the second
form: with fill values of their own, and the sidecar in sums/. A manifest of format 6 is the third with the
ends of the edge types. The frames of the latter are stored ones, which zstd and
Blosc use for what does not compress; so they can be written by hand.
"""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testing"))
from golden import STORE_ID, crc32c, write_files  # noqa: E402

ARRAY_ID = 0xFEDCBA9876543210
X_ROWS = [(1.5, -2.0), (0.25, 3.0), (-0.125, 65504.0)]
Y_ROWS = [(-1,), (1 << 40,), (-(1 << 63),)]
Z_ROWS = [(100000, -100000, 7), (0, 1, 2)]
W_ROWS = [(0.5, 1.0), (2.0, -3.0), (0.0, 0.0), (4.0, 5.5), (-6.0, 7.0)]
RECORDS = [b'{"model": "gcn", "seed": 7}', b"", b"\xc3\xbc 16 bytes long"]

# DTYPES: name -> number, struct's letter. CODECS: name -> number. Both as the manifest has them.
DTYPES = {"float32": (1, "f"), "int64": (3, "q"), "int32": (4, "i"), "uint32": (5, "I")}
CODECS = {"raw": 1, "zstd": 2, "blosc-lz4": 3}
LAYOUTS = {"row": 1, "chunk": 2}

# XXH3-128 of the files, as libxxhash's XXH3_128bits gives it in canonical byte order. The one thing
# here that is not computed; a hash that does not fit its file fails the test.
XXH3 = {
    "arrays/f/c.0.0": "746e8e367454ec02988144d3f5b54a26",
    "arrays/f/c.1.0": "81bae7fb9ca5bec697a5c6e13e007b89",
    "arrays/f/zarr.json": "caf5b35ab631f722f963d7301472eba8",
    "arrays/g/c.0.0": "84a2eca487061081347a03aa4217c7f1",
    "arrays/g/zarr.json": "d4bbef4b1ae615ae290e6780d5c91d29",
    "arrays/w/c.0.0": "631693c6072eb4e1b824951eff29ff5c",
    "arrays/w/c.1.0": "cdb128681891a9c90bb80e8229f5ef94",
    "arrays/w/zarr.json": "3cffe67f3774ae4bd2591988eaeaba95",
    "arrays/x.crc32c/c.0.0": "9df6fd051378ecfcbedb05d3b19870da",
    "arrays/x.crc32c/zarr.json": "e86e8d25cd568f9a6aa61a075b03acd5",
    "arrays/x/c.0.0": "746e8e367454ec02988144d3f5b54a26",
    "arrays/x/c.1.0": "81bae7fb9ca5bec697a5c6e13e007b89",
    "arrays/x/zarr.json": "f4637bbc306f0635bdef498fcc4ca7ca",
    "arrays/y/c.0.0": "84a2eca487061081347a03aa4217c7f1",
    "arrays/y/zarr.json": "fa9ac09faefac84fadad3ba01552dbd8",
    "arrays/z.v2/c.0.0": "485fa75a644921039fd804dc336cf2e2",
    "arrays/z.v2/zarr.json": "e38c8ef6f8e962a7353b0e85b942b96a",
    "arrays/zarr.json": "1bd4b6d29ab209561223a0ff4861cbd9",
    "sums/f.crc32c/c.0.0": "9df6fd051378ecfcbedb05d3b19870da",
    "sums/f.crc32c/zarr.json": "d8514f1b4e3e4943228840b745c5f3bc",
}


class Array:
    def __init__(self, name, shape, dtype, layout, codec, level, chunk_rows, array_id, attributes,
                 inner_rows=0, form=1):
        self.name, self.shape, self.dtype, self.layout = name, shape, dtype, layout
        self.codec, self.level, self.chunk_rows = codec, level, chunk_rows
        self.array_id, self.attributes, self.inner_rows = array_id, attributes, inner_rows
        self.form = form

    def folder(self):
        apart = self.form == 2 and self.name.endswith(".crc32c")
        return ("sums/" if apart else "arrays/") + self.name

    def fill_value(self):
        by_type = {"float32": "NaN", "int64": -(1 << 63), "int32": -(1 << 31), "uint32": 2**32 - 1}
        return 0 if self.form == 1 else by_type[self.dtype]


X = Array("x", (3, 2), "float32", "row", "raw", 0, 2, ARRAY_ID, {"model": "gcn", "note": 'a "ü"'})
X_SUMS = Array("x.crc32c", (3, 1), "uint32", "row", "raw", 0, 128, ARRAY_ID, {})
Y = Array("y", (3, 1), "int64", "chunk", "zstd", 5, 4, 2, {})
Z = Array("z.v2", (2, 3), "int32", "chunk", "blosc-lz4", 9, 2, 3, {})
W = Array("w", (5, 2), "float32", "chunk", "raw", 0, 4, 4, {}, inner_rows=2)
F = Array("f", (3, 2), "float32", "row", "raw", 0, 2, ARRAY_ID, {}, form=2)
F_SUMS = Array("f.crc32c", (3, 1), "uint32", "row", "raw", 0, 128, ARRAY_ID, {}, form=2)
G = Array("g", (3, 1), "int64", "chunk", "zstd", 5, 4, 5, {}, form=2)
ARRAYS = [X, X_SUMS, Y, Z]
ARRAYS_2 = [W, *ARRAYS]
ARRAYS_3 = [F, F_SUMS, G, *ARRAYS_2]


def row_bytes(array, row):
    return struct.pack("<%d%s" % (len(row), DTYPES[array.dtype][1]), *row)


def row_sums(rows):
    return [(crc32c(struct.pack("<QQ", ARRAY_ID, r) + row_bytes(X, row)),)
            for r, row in enumerate(rows)]


def zstd_frame(data):
    """Magic; single segment with a size of one byte; one last block, raw."""
    return struct.pack("<IBB", 0xFD2FB528, 0x20, len(data)) + \
        (len(data) << 3 | 1).to_bytes(3, "little") + data


def blosc_frame(data, element_bytes):
    """Flags: LZ4, bytes copied as they are (2), shuffle asked for (1)."""
    return struct.pack("<BBBBIII", 2, 1, 1 << 5 | 2 | 1, element_bytes, len(data), len(data),
                       16 + len(data)) + data


def encode(array, data):
    if array.codec == "raw":
        return data
    frame = zstd_frame(data) if array.codec == "zstd" else blosc_frame(data, 4)
    return frame + struct.pack("<I", crc32c(frame))


def summed(data):
    return data + struct.pack("<I", crc32c(data))


def shard(array, rows):
    """Inner chunks, table of sums, index and its sum."""
    inner, sums, index = b"", b"", b""
    for first in range(0, array.chunk_rows, array.inner_rows):
        data = b"".join(row_bytes(array, row) for row in rows[first:first + array.inner_rows])
        if not data:
            sums += bytes(4)
            index += b"\xff" * 16
            continue
        encoded = summed(data.ljust(array.inner_rows * len(row_bytes(array, rows[0])), b"\0"))
        sums += encoded[-4:]
        index += struct.pack("<QQ", len(inner), len(encoded))
        inner += encoded
    return inner + sums + summed(index)


def shard_files(array, rows):
    return {"%s/c.%d.0" % (array.folder(), k): shard(array, rows[first:first + array.chunk_rows])
            for k, first in enumerate(range(0, len(rows), array.chunk_rows))}


def chunk_files(array, rows):
    files = {}
    for k, first in enumerate(range(0, len(rows), array.chunk_rows)):
        data = b"".join(row_bytes(array, row) for row in rows[first:first + array.chunk_rows])
        full = array.chunk_rows * len(row_bytes(array, rows[0]))
        files["%s/c.%d.0" % (array.folder(), k)] = encode(array, data.ljust(full, b"\0"))
    return files


def codecs_json(array):
    first = {"name": "bytes", "configuration": {"endian": "little"}}
    if array.inner_rows:
        return [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [array.inner_rows, array.shape[1]],
            "codecs": [first, {"name": "crc32c"}],
            "index_codecs": [first, {"name": "crc32c"}],
            "index_location": "end"}}]
    if array.codec == "raw":
        return [first]
    if array.codec == "zstd":
        second = {"name": "zstd", "configuration": {"level": array.level, "checksum": False}}
    else:
        second = {"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": array.level, "shuffle": "shuffle", "typesize": 4,
            "blocksize": 0}}
    return [first, second, {"name": "crc32c"}]


def json_file(value):
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def array_json(array):
    return json_file({
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": array.dtype,
        "chunk_grid": {"name": "regular",
                       "configuration": {"chunk_shape": [array.chunk_rows, array.shape[1]]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": array.fill_value(),
        "codecs": codecs_json(array),
        "dimension_names": ["row", array.name + "_dim"],
        "attributes": {"rhizome": {"layout": array.layout, "array_id": str(array.array_id),
                                   "attributes": array.attributes}},
    })


def array_files():
    files = {"arrays/zarr.json": json_file({"zarr_format": 3, "node_type": "group",
                                            "attributes": {}})}
    for array, rows in (X, X_ROWS), (X_SUMS, row_sums(X_ROWS)), (Y, Y_ROWS), (Z, Z_ROWS):
        files.update(files_of(array, rows))
    return files


def files_of(array, rows):
    return {array.folder() + "/zarr.json": array_json(array), **chunk_files(array, rows)}


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def names(values):
    return struct.pack("<Q", len(values)) + b"".join(map(string, values))


def manifest_array(array, form):
    out = string(array.name)
    out += struct.pack("<QQQQBBBB", *array.shape, array.chunk_rows, array.array_id,
                       DTYPES[array.dtype][0], LAYOUTS[array.layout], CODECS[array.codec],
                       array.level)
    out += struct.pack("<Q", len(array.attributes))
    out += b"".join(string(k) + string(v) for k, v in sorted(array.attributes.items()))
    out += struct.pack("<Q", array.inner_rows) if form >= 2 else b""
    return out + (struct.pack("<B", array.form) if form >= 3 else b"")


def manifest_file(files, arrays, form):
    # Vertices, edges, partitions; string ids; directed; weighted; out-lists only.
    body = struct.pack("<QQIBBBB", 3, 5, 2, 3, 0, 1, 1)
    body += struct.pack("<4d", 1.25, 1.0625, 1.5, 0.375)
    body += string("adadne") + string("pds")
    body += names(["paper", "author"]) + names(["cites", "writes", "likes"])
    # Papers cite papers, authors write papers, several types like authors.
    body += struct.pack("<6H", 0, 0, 1, 0, 65535, 1) if form >= 6 else b""
    body += struct.pack("<Q", len(files))
    for path in sorted(files, key=str.encode):
        data = files[path]
        body += string(path) + struct.pack("<Q", len(data)) + bytes.fromhex(XXH3[path])
        body += struct.pack("<I", crc32c(data))
    body += struct.pack("<Q", len(arrays)) + b"".join(manifest_array(a, form) for a in arrays)
    # Version 3 of z was dropped; z@live and z@best stand for version 2.
    body += struct.pack("<Q", 1) + string("z") + struct.pack("<QQ", 3, 2)
    body += string("best") + struct.pack("<QQ", 1, 2) + string("live") + struct.pack("<QQQ", 2, 2, 2)
    # Two generations are kept, in a gibibyte.
    body += struct.pack("<IQ", 2, 1 << 30) if form >= 3 else b""
    generation, version = 4, form
    length = 56 + len(body) + 4
    head = struct.pack("<8sII16sQQQ", b"RZMANIFE", form, 0, STORE_ID, length, generation, version)
    return head + body + struct.pack("<I", crc32c(head + body))


def job_log():
    out = struct.pack("<8sII", b"RZJOBLOG", 1, 0)
    for index, payload in enumerate(RECORDS):
        covered = struct.pack("<IQ", len(payload), index)
        out += struct.pack("<I", 0x4C4A5A52) + covered
        out += struct.pack("<II", crc32c(covered + payload), 0) + payload
        out += bytes(-len(out) % 8)
    return out


def main():
    files = array_files()
    more = {**files, "arrays/w/zarr.json": array_json(W), **shard_files(W, W_ROWS)}
    most = {**more, **files_of(F, X_ROWS), **files_of(F_SUMS, row_sums(X_ROWS)),
            **files_of(G, Y_ROWS)}
    write_files(sys.argv[1], {
        **most,
        "MANIFEST-000001": manifest_file(files, ARRAYS, form=1),
        "MANIFEST-000002": manifest_file(more, ARRAYS_2, form=2),
        "MANIFEST-000003": manifest_file(most, ARRAYS_3, form=3),
        "MANIFEST-000006": manifest_file(most, ARRAYS_3, form=6),
        "FORMAT": b"rhizome store\nformat 1\nid " + STORE_ID.hex().encode() + b"\n",
        "LOG": job_log(),
    })


if __name__ == "__main__":
    main()
