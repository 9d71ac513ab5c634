#!/usr/bin/env python3
"""Programs that read a store's arrays as Zarr, before and after compactions.

Arrays that zarr-python, xarray and TensorStore opened before a compaction are read after it: the
rows are there while their generation is kept, and removed ones read as the fill value, never as a
row. The coordinates of every generation say which vertices the rows belong to; they are compared
with a model of the writes, verified and repaired. Warnings are errors.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import tensorstore
import xarray
import zarr

RHIZOME = os.environ["RHIZOME"]
LEAST = -2**63


def rhizome(*arguments, code=0):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == code, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout


def refused(why, *arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 1 and why in run.stderr, f"{arguments}: {run.returncode} {run.stderr}"


def group_of(store):
    return pathlib.Path(rhizome("array", "path", store).strip())


def open_xarray(folder):
    return xarray.open_zarr(folder, chunks=None, consolidated=False)


def open_tensorstore(folder):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"}}
    return tensorstore.open(spec, open=True).result()


class Model:
    """What a store should hold: rows by external id; and its vertices in the order of their ids."""

    def __init__(self, folder, ids, string_ids):
        self.folder, self.string_ids = folder, string_ids
        self.vertices = list(ids)
        self.rows = {}
        self.commits = 0

    def put(self, ids):
        """New rows for these, which are new vertices where they are not known."""
        file = self.folder / "rows.jsonl"
        lines = []
        for i in ids:
            self.commits += 1
            self.rows[i] = ([self.commits, self.commits / 8], self.commits * 10**12)
            if i not in self.vertices:
                self.vertices.append(i)
            x, n = self.rows[i]
            lines.append(json.dumps({"id": i, "type": "vertex", "op": "upsert",
                                     "rows": {"x": x, "n": [n]}}))
        file.write_text("\n".join(lines) + "\n")
        rhizome("put", self.folder / "g.rz", file)

    def delete(self, i):
        file = self.folder / "gone.tsv"
        file.write_text(f"{i}\n")
        rhizome("delete", self.folder / "g.rz", file, "--vertices")
        self.vertices[self.vertices.index(i)] = None
        del self.rows[i]

    def check(self):
        """Of what was compacted, as xarray and TensorStore see it."""
        folder = group_of(self.folder / "g.rz")
        info = json.loads(rhizome("info", self.folder / "g.rz", "--json"))
        assert str(folder) == info["arrays_folder"], info["arrays_folder"]
        dataset = open_xarray(folder)
        dense = info["id_kind"] == "dense"
        assert set(dataset.coords) == {"vertex_id"} | (set() if dense else {"external_id"})
        assert set(dataset.data_vars) == {"x", "n"}, set(dataset.data_vars)
        assert dataset.attrs["rhizome"] == {"generation": str(info["generation"])}, dataset.attrs
        rows = len(self.vertices)
        assert dataset.sizes["row"] == rows
        vertex = dataset["vertex_id"].values
        assert np.array_equal(open_tensorstore(folder / "vertex_id").read().result(), vertex)
        if not self.string_ids and not dense:
            external = open_tensorstore(folder / "external_id").read().result()
            assert np.array_equal(external, dataset["external_id"].values)
        for row in range(rows):
            if vertex[row] == -1:
                if not dense:
                    nobody = "" if self.string_ids else LEAST
                    assert dataset["external_id"].values[row] == nobody
                continue
            i = self.vertices[vertex[row]]
            if not dense:
                assert dataset["external_id"].values[row] == i, (row, i)
            x, n = self.rows[i]
            assert dataset["x"].values[row].tolist() == x and dataset["n"].values[row] == n, (row, i)
        live = sorted(v for v in vertex.tolist() if v != -1)
        assert live == [v for v, i in enumerate(self.vertices) if i is not None]
        if not dense:
            by_id = dataset.set_xindex("external_id")
            for i, (x, _) in self.rows.items():
                assert by_id.sel(external_id=i)["x"].values.tolist() == x, i


class Opened:
    """Arrays that were opened in three ways, and what they held then."""

    def __init__(self, folder):
        self.readers = {}
        for name in ("x", "n"):
            self.readers[name] = [zarr.open_array(folder / name, mode="r"),
                                  open_xarray(folder)[name], open_tensorstore(folder / name)]
        self.before = {name: np.asarray(readers[0][:]) for name, readers in self.readers.items()}

    def read(self, name):
        python, dataset, store = self.readers[name]
        return python[:], dataset.values, store.read().result()


def check_readers(model):
    """A generation is kept while one more is made; then its rows are gone, and say so."""
    store = model.folder / "g.rz"
    # xarray keeps what it has read, so that each look needs one of its own.
    now, later = Opened(group_of(store)), Opened(group_of(store))
    model.put([model.vertices[3]])
    rhizome("compact", store)
    for name, before in now.before.items():
        for rows in now.read(name):
            assert np.array_equal(rows, before), name
    model.check()
    model.put([model.vertices[4]])
    rhizome("compact", store)
    for name, lost in (("x", np.float32("nan")), ("n", LEAST)):
        for rows in later.read(name):
            assert np.array_equal(rows, np.full_like(rows, lost), equal_nan=name == "x"), name
    model.check()


def check_keeping(model):
    store = model.folder / "g.rz"
    generations = lambda: json.loads(rhizome("info", store, "--json"))["generations"]
    assert len(generations()) == 2
    model.put([model.vertices[5]])
    rhizome("compact", store, "--keep-generations", 3)
    model.put([model.vertices[6]])
    assert len(generations()) == 3, "who only writes keeps to what the store keeps"
    rhizome("compact", store, "--keep-bytes", 1)
    assert len(generations()) == 1
    rhizome("compact", store, "--keep-bytes", "1G", "--keep-generations", 1)
    assert "nothing to do" in rhizome("compact", store)


def check_repair(model):
    store = model.folder / "g.rz"
    folder = group_of(store)
    for name in ("vertex_id/c.0", "external_id/c.0", "vertex_id/zarr.json", "zarr.json"):
        file = folder / name
        if not file.exists():
            continue
        sound = file.read_bytes()
        for damaged in (bytes([sound[0] ^ 1, sound[1] ^ 1]) + sound[2:], None):
            file.unlink()
            if damaged:
                file.write_bytes(damaged)
            assert name in rhizome("verify", store, code=3)
            rhizome("repair", store)
            assert file.read_bytes() == sound, name
    rhizome("verify", store)
    for left in model.folder.glob("g.rz.quarantine-*"):
        subprocess.run(["rm", "-r", left], check=True)


def run(folder, ids, new, string_ids=False):
    folder.mkdir()
    model = Model(folder, ids, string_ids)
    (folder / "nodes.tsv").write_text("".join(f"{i}\n" for i in ids))
    (folder / "edges.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(ids, ids[7:])))
    np.save(folder / "x.npy", np.zeros((len(ids), 2), "f4"))
    np.save(folder / "n.npy", np.zeros((len(ids), 1), "i8"))
    rhizome("ingest", folder / "g.rz", "--edges", folder / "edges.tsv", "--nodes",
            folder / "nodes.tsv", "--partitions", 3, "--chunk-rows", 50, *[
                word for name in "xn" for word in ("--array", f"{name}={folder / name}.npy")])
    model.put(ids)
    rhizome("compact", folder / "g.rz")
    model.check()
    model.put(new)
    model.delete(ids[2])
    model.delete(new[1])
    model.put([ids[2]])  # another vertex that bears the id
    rhizome("compact", folder / "g.rz")
    model.check()
    check_readers(model)
    check_keeping(model)
    model.check()
    check_repair(model)


def check_names(folder):
    """Arrays cannot bear the name of a coordinate."""
    folder.mkdir()
    (folder / "edges.tsv").write_text("a\tb\nb\tc\n")
    (folder / "nodes.tsv").write_text("a\nb\nc\n")
    np.save(folder / "x.npy", np.arange(3, dtype="f4").reshape(3, 1))
    store = folder / "g.rz"
    ingest = ("ingest", store, "--edges", folder / "edges.tsv", "--nodes", folder / "nodes.tsv")
    for name in ("external_id", "vertex_id_", "row", "zarr.json"):
        refused("choose another name", *ingest, "--array", f"{name}={folder / 'x.npy'}")
        assert not store.exists(), name
    rhizome(*ingest, "--array", f"x={folder / 'x.npy'}")
    refused("choose another name", "array", "add", store, f"vertex_id={folder / 'x.npy'}")
    refused("choose another name", "array", "rename", store, "x", "external_id")
    assert set(open_xarray(group_of(store)).coords) == {"vertex_id", "external_id"}


def main():
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = [f"né {i}" if i % 3 else f"{i}:" + "long" * i for i in range(130)]
        run(folder / "strings", words, ["new", "short-lived", "x"], string_ids=True)
        run(folder / "integers", [5 * i - 200 for i in range(130)], [10**15, 7, -9])
        run(folder / "dense", list(range(130)), [130, 131, 132])
        check_names(folder / "names")
    print(f"zarr-python {zarr.__version__}, xarray {xarray.__version__} and TensorStore read rows, "
          "know whose they are, and are not given others")


if __name__ == "__main__":
    sys.exit(main())
