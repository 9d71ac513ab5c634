#!/usr/bin/env python3
"""A second reader of a store, written from storage/FORMAT.md alone.

It parses FORMAT, every field of the manifest and every section file, recomputes all of their
checksums, and compares the contents with the existing files and with `rhizome info`.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from google_crc32c import value as crc32c

RHIZOME = os.environ["RHIZOME"]
DTYPES = {1: "float32", 2: "float16", 3: "int64", 4: "int32", 5: "uint32", 6: "uint8", 7: "bool", 8: "int8",
          9: "int16", 10: "bfloat16", 11: "float64"}
LAYOUTS = {1: "row", 2: "chunk"}
FILE_KINDS = {"topology": 1, "order": 2, "ids": 3}


class Reader:
    """Fields one after another, without gaps."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        form = "<" + form
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values[0] if len(values) == 1 else values

    def string(self):
        return self.take(f"{self.take('I')}s").decode()

    def names_of_chunk(self):
        return [self.string() for _ in range(self.take("I"))]

    def names(self):
        return [self.string() for _ in range(self.take("Q"))]


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"rhizome {arguments}: {run.stderr}")
    return run.stdout


def read_format(store):
    lines = (store / "FORMAT").read_text().split("\n")
    assert lines[:2] == ["rhizome store", "format 1"] and lines[3:] == [""], lines
    assert lines[2].startswith("id ") and len(lines[2]) == 35, lines[2]
    return bytes.fromhex(lines[2][3:])


def read_manifest(path, store_id):
    data = path.read_bytes()
    assert crc32c(data[:-4]) == struct.unpack("<I", data[-4:])[0], "seal"
    r = Reader(data)
    magic, version, reserved = r.take("8sII")
    assert (magic, reserved) == (b"RZMANIFE", 0) and version in (1, 2, 3)
    assert r.take("16s") == store_id
    assert r.take("Q") == len(data)
    m = {"generation": r.take("Q"), "version": r.take("Q")}
    m["vertices"], m["edges"], m["partitions"] = r.take("QQI")
    m["id_kind"], m["symmetric"], m["weighted"], m["directions"] = r.take("BBBB")
    m["replication_factor"], m["vertex_balance"], m["edge_balance"], m["interior_share"] = \
        r.take("dddd")
    m["partitioner"], m["order"] = r.string(), r.string()
    m["vertex_types"], m["edge_types"] = r.names(), r.names()
    m["files"] = {}
    for _ in range(r.take("Q")):
        name = r.string()
        m["files"][name] = dict(zip(("size", "xxh3", "crc32c"), r.take("Q16sI")))
    m["arrays"] = {}
    for _ in range(r.take("Q")):
        name = r.string()
        m["arrays"][name] = dict(zip(
            ("rows", "dim", "chunk_rows", "array_id", "dtype", "layout", "codec", "level"),
            r.take("QQQQBBBB")))
        m["arrays"][name]["attributes"] = {r.string(): r.string() for _ in range(r.take("Q"))}
        m["arrays"][name]["inner_rows"] = r.take("Q") if version >= 2 else 0
        m["arrays"][name]["form"] = r.take("B") if version == 3 else 1
    if version < 3:
        assert (version == 2) == any(a["inner_rows"] for a in m["arrays"].values())
    m["series"] = {}
    for _ in range(r.take("Q")):
        name, last = r.string(), r.take("Q")
        m["series"][name] = {"last": last, "aliases": {
            r.string(): r.take(f"{r.take('Q')}Q") for _ in range(r.take("Q"))}}
    m["keep"] = r.take("IQ") if version == 3 else (1, 64 << 30)
    if version == 3:
        assert m["keep"] != (1, 64 << 30) or any(a["form"] == 2 for a in m["arrays"].values())
    assert r.at == len(data) - 4, "bytes between the last series and the seal"
    assert list(m["files"]) == sorted(m["files"]) and list(m["arrays"]) == sorted(m["arrays"])
    return m


def check_section_file(path, kind, store_id):
    data = path.read_bytes()
    assert struct.unpack("<8sII16s32s", data[:64]) == \
        (b"RZSECTIO", 1, kind, store_id, bytes(32)), path
    table, checksums, length, blocks, sections, block_bytes, crc, version, reserved, own, magic = \
        struct.unpack("<QQQQIIIIII8s", data[-64:])
    assert (length, block_bytes, version, reserved, magic) == (len(data), 4096, 1, 0, b"RZSECEND")
    assert own == crc32c(data[-64:-12]), path
    assert crc == crc32c(data[checksums:-64]) and blocks == -(-checksums // 4096), path
    for block in range(blocks):
        stored, = struct.unpack_from("<I", data, checksums + 4 * block)
        assert stored == crc32c(data[4096 * block:min(4096 * (block + 1), checksums)]), path
    assert table + 32 * sections == checksums, path
    end = 64
    kinds = set()
    for section in range(sections):
        section_kind, width, offset, count, zero = \
            struct.unpack_from("<IIQQQ", data, table + 32 * section)
        assert offset == -(-end // 64) * 64 and not any(data[end:offset]), path
        assert section_kind not in kinds and width in (1, 2, 4, 8) and zero == 0, path
        kinds.add(section_kind)
        end = offset + width * count
    assert table == -(-end // 64) * 64, path
    return kinds


def check_files(generation, manifest, store_id):
    there = {str(p.relative_to(generation)) for p in generation.rglob("*") if p.is_file()}
    versions = {f"MANIFEST-{v:06}" for v in range(1, manifest["version"] + 1)}
    assert there - versions - {"PIN"} == set(manifest["files"])
    assert (generation / "PIN").stat().st_size == 0
    for name, entry in manifest["files"].items():
        data = (generation / name).read_bytes()
        assert (len(data), crc32c(data)) == (entry["size"], entry["crc32c"]), name
        folder = name.split("/")[0]
        if folder in FILE_KINDS:
            kinds = check_section_file(generation / name, FILE_KINDS[folder], store_id)
            assert 1 in kinds, f"{name} has no header section"


def check_shard(data, array, rows):
    """Inner chunks without gaps, the table of their sums, the index and its sum."""
    count = array["chunk_rows"] // array["inner_rows"]
    there = -(-rows // array["inner_rows"])
    index = data[-4 - 16 * count:-4]
    assert crc32c(index) == struct.unpack("<I", data[-4:])[0], "shard index"
    table = struct.unpack(f"<{count}I", data[-4 - 20 * count:-4 - 16 * count])
    end = 0
    for inner in range(count):
        offset, size = struct.unpack_from("<QQ", index, 16 * inner)
        if inner >= there:
            assert offset == size == 2**64 - 1 and table[inner] == 0
            continue
        assert offset == end
        end += size
        assert crc32c(data[offset:end - 4]) == table[inner]
        assert struct.pack("<I", table[inner]) == data[end - 4:end]
    assert end == len(data) - 4 - 20 * count


def check_shards(generation, manifest):
    shards = 0
    for name, array in manifest["arrays"].items():
        if not array["inner_rows"]:
            continue
        for first in range(0, array["rows"], array["chunk_rows"]):
            chunk = generation / f"arrays/{name}/c.{first // array['chunk_rows']}.0"
            check_shard(chunk.read_bytes(), array, min(array["chunk_rows"], array["rows"] - first))
            shards += 1
    return shards


def check_arrays(manifest, info):
    arrays = {n: a for n, a in manifest["arrays"].items() if not n.endswith(".crc32c")}
    assert set(arrays) == {a["name"] for a in info["arrays"]}
    for told in info["arrays"]:
        array = arrays[told["name"]]
        assert (array["rows"], array["dim"], DTYPES[array["dtype"]], LAYOUTS[array["layout"]]) == \
            (told["rows"], told["dim"], told["dtype"], told["layout"]), told
        files = {f"arrays/{told['name']}/c.{k}.0"
                 for k in range(-(-array["rows"] // array["chunk_rows"]))}
        assert files <= set(manifest["files"]), told["name"]
        sidecar = manifest["arrays"].get(told["name"] + ".crc32c")
        assert (sidecar is not None) == (told["layout"] == "row"), told["name"]
        assert array["form"] == 2, told["name"]
        if sidecar:
            assert f"sums/{told['name']}.crc32c/zarr.json" in manifest["files"], told["name"]
        if sidecar:
            assert (sidecar["rows"], sidecar["dim"], sidecar["array_id"], DTYPES[sidecar["dtype"]]) \
                == (array["rows"], 1, array["array_id"], "uint32"), told["name"]


def crc_ends(data):
    assert struct.pack("<I", crc32c(data[:-4])) == data[-4:]
    return data[:-4]


def check_coordinates(generation, manifest):
    """Vertex id and external id of each row, from the bytes of the order and of the dictionary."""
    rows = manifest["vertices"]
    group = json.loads((generation / "arrays/zarr.json").read_text())["attributes"]
    names = ["vertex_id"] if manifest["id_kind"] == 1 else ["external_id", "vertex_id"]
    ours = {"generation": str(manifest["generation"])}
    if len(manifest["vertex_types"]) > 1:
        names.append("vertex_type")
        ours["vertex_types"] = manifest["vertex_types"]
        types = np.frombuffer(crc_ends((generation / "arrays/vertex_type/c.0").read_bytes()), "<i4")
        assert types[:rows].max() < len(manifest["vertex_types"]) and not types[rows:].any()
    assert group == {"coordinates": " ".join(names), "rhizome": ours}, group
    numbers = np.frombuffer(crc_ends((generation / "arrays/vertex_id/c.0").read_bytes()), "<i4")
    vertices = numbers[:rows].tolist()
    assert sorted(vertices) == list(range(rows)) and not numbers[rows:].any()
    if manifest["id_kind"] == 3:
        r = Reader(crc_ends((generation / "arrays/external_id/c.0").read_bytes()))
        texts = r.names_of_chunk()
        assert r.at == len(r.data) and not any(texts[rows:])
        return dict(zip(vertices, texts))
    return None


def check_store(store):
    assert (store / "LOCK").read_bytes().startswith(b"rhizome ")
    store_id = read_format(store)
    info = json.loads(rhizome("info", store, "--json"))
    generation = store / "generations" / "000001"
    manifest = read_manifest(generation / "MANIFEST-000001", store_id)
    assert (manifest["generation"], manifest["version"]) == (1, 1)
    for name in ("vertices", "edges", "partitions", "replication_factor", "vertex_balance",
                 "edge_balance", "interior_share"):
        assert manifest[name] == info[name], (name, manifest[name], info[name])
    assert manifest["edge_types"] == info["edge_type_names"]
    check_files(generation, manifest, store_id)
    check_arrays(manifest, info)
    manifest["ids"] = check_coordinates(generation, manifest)
    manifest["shards"] = check_shards(generation, manifest)
    return manifest


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        rhizome("generate", "planted", "--out", folder / "g", "--scale", 8, "--dim", 5)
        rhizome("ingest", folder / "a.rz", "--edges", folder / "g/edges.npy", "--nodes",
                folder / "g/nodes.tsv", "--node-columns", "id,label,split", "--array",
                f"feat={folder}/g/features.npy", "--partitions", 3, "--order", "natural")
        dense = check_store(folder / "a.rz")
        assert dense["id_kind"] == 1 and "ids/ids.dict" not in dense["files"]

        (folder / "e.tsv").write_text(
            "ann\tbob\tlikes\t2\nann\tcat\tfears\t0.5\ncat\tann\tlikes\t3\n")
        (folder / "n.tsv").write_text("bob\nann\ncat\n")
        (folder / "x.txt").write_text("0\t0\t1\n1\t1\t0.5\n2\t0\t3\n")
        rhizome("ingest", folder / "b.rz", "--edges", folder / "e.tsv", "--columns",
                "src,dst,type,weight", "--nodes", folder / "n.tsv", "--array", f"x={folder}/x.txt:2", "--layout", "chunk",
                "--codec", "zstd:7", "--directions", "in")
        strings = check_store(folder / "b.rz")
        assert (strings["id_kind"], strings["weighted"], strings["directions"]) == (3, 1, 2)
        assert strings["ids"] == {0: "bob", 1: "ann", 2: "cat"}, strings["ids"]
        assert strings["arrays"]["x"]["codec"] == 2 and strings["arrays"]["x"]["level"] == 7

        rhizome("ingest", folder / "c.rz", "--edges", folder / "g/edges.npy", "--array",
                f"feat={folder}/g/features.npy", "--layout", "chunk", "--codec", "blosc-zstd",
                "--chunk-rows", 100, "--inner-rows", 20)
        assert check_store(folder / "c.rz")["shards"] == 3
    print("FORMAT, manifests and section files are what FORMAT.md says")


if __name__ == "__main__":
    main()
