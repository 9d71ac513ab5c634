"""Files of an inference in progress, which allow another run to continue it: rows and a journal."""

from __future__ import annotations

import fcntl
import io
import json
import mmap
import os
import pathlib
import shutil
import zlib
from typing import Any, NamedTuple

import numpy as np

from ..errors import Busy


class Block(NamedTuple):
    """Computed vertices [first, end) of a layer's order."""

    first: int
    end: int
    share: float  #: vertices beyond the block divided by its edges; predicts the size of the next block
    checksum: int  #: checksum of their rows


class RowFile:
    """Rows of all vertices, float32, in a memory-mapped .npy file. Threads: not thread-safe.

    Its pages are released from the process after each use; the system may still cache them, as for any file.
    """

    def __init__(self, path: pathlib.Path, rows: int, dim: int, row_of: np.ndarray | None) -> None:
        """Opens or creates a file. ``row_of``: the row of each vertex id; None: its id. Errors: OSError, the disk is
        full."""
        self.path = path
        self._row_of = row_of
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, dim)}
        with open(path, "r+b" if path.exists() else "w+b") as file:
            np.lib.format.write_array_header_1_0(file, header)
            self._begin = begin = file.tell()
            size = begin + 4 * rows * dim
            os.posix_fallocate(file.fileno(), 0, size)  # so that writes to the mapping cannot meet a full disk
            file.flush()
            self._map = mmap.mmap(file.fileno(), size)
        self._rows = np.frombuffer(self._map, np.float32, rows * dim, begin).reshape(rows, dim)

    def read(self, ids: np.ndarray) -> np.ndarray:
        """Returns a copy of the rows of vertices."""
        rows: np.ndarray = np.take(self._rows, self._places(ids), axis=0)
        self._map.madvise(mmap.MADV_DONTNEED)
        return rows

    def write(self, ids: np.ndarray, rows: np.ndarray) -> None:
        """Writes contiguous rows of vertices. If they are adjacent in the file, this avoids mapping its pages."""
        places = self._places(ids)
        if (np.diff(places) == 1).all():
            with open(self.path, "r+b", buffering=0) as file:
                _write_all(file, self._begin + rows.nbytes // len(rows) * int(places[0]), memoryview(rows).cast("B"))
            return
        self._rows[places] = rows
        self._map.madvise(mmap.MADV_DONTNEED)

    def _places(self, ids: np.ndarray) -> np.ndarray:
        return ids if self._row_of is None else self._row_of[ids]


class Leftovers:
    """The locked folder of a job next to its store. Its contents are reused if they are from the same job.

    ``layer`` is the layer in progress; the rows of the previous layer are available.
    """

    def __init__(self, store: str, out: str, job: dict[str, Any], resume: bool) -> None:
        """``job``: everything that the result depends on. Errors: Busy, a process computes this array; OSError."""
        self._folder = pathlib.Path(os.path.dirname(store) or ".") / f".infer-{os.path.basename(store)}-{out}"
        self._lock = _locked(self._folder)
        if self._lock is None:
            raise Busy(f"another process computes array {out} of {store}, in {self._folder}")
        text = json.dumps({"format": 1, **job}, sort_keys=True)
        file = self._folder / "job.json"
        if not (resume and file.exists() and file.read_text() == text):
            self.clear()
            file.write_text(text)
        self.layer = max((int(path.stem) for path in self._folder.glob("*.journal")), default=0)

    def clear(self) -> None:
        """Removes all progress."""
        for file in self._folder.iterdir():
            if file.name != "job.json":
                file.unlink()
        self.layer = 0

    def shape(self, layer: int) -> dict[str, Any] | None:
        """Returns the shape that ``begin`` recorded for a layer; None if the layer was not started."""
        lines = self._lines(layer)
        return dict(json.loads(lines[0])) if lines else None

    def begin(self, layer: int, shape: dict[str, Any]) -> None:
        """Starts or continues a layer. ``shape``: everything that its blocks depend on."""
        if self.shape(layer) is None:
            self._journal(layer).write_text(json.dumps(shape) + "\n")
        self.layer = layer

    def blocks(self, layer: int) -> list[Block]:
        """Returns the finished blocks of a layer, in order."""
        return [Block(*json.loads(line)) for line in self._lines(layer)[1:]]

    def keep(self, end: int) -> None:
        """Removes blocks that end after ``end`` from the layer's journal, and any partially written line."""
        shape, *lines = self._lines(self.layer)
        lines = [line for line in lines if json.loads(line)[1] <= end]
        self._journal(self.layer).write_text("\n".join([shape, *lines]) + "\n")

    def rows(self, layer: int, rows: int, row_of: np.ndarray | None) -> RowFile:
        """Opens or creates the row file of a layer that was started."""
        shape = self.shape(layer)
        assert shape is not None
        return RowFile(self._folder / f"{layer}.npy", rows, shape["width"], row_of)

    def add(self, block: Block) -> None:
        """Records that the rows of a block were written."""
        with open(self._journal(self.layer), "a", encoding="ascii") as file:
            file.write(json.dumps(block) + "\n")

    def drop(self, layer: int) -> None:
        """Removes the files of a layer that is no longer needed."""
        self._journal(layer).unlink(missing_ok=True)
        (self._folder / f"{layer}.npy").unlink(missing_ok=True)

    def close(self, done: bool) -> None:
        """Releases the folder, and removes it unless it contains blocks from which another run can continue."""
        assert self._lock is not None
        if done or (self.layer == 0 and len(self._lines(0)) < 2):
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def _journal(self, layer: int) -> pathlib.Path:
        return self._folder / f"{layer}.journal"

    def _lines(self, layer: int) -> list[str]:
        """Returns the complete lines of a journal."""
        file = self._journal(layer)
        return file.read_text().split("\n")[:-1] if file.exists() else []


def checksum(rows: np.ndarray) -> int:
    """Returns the checksum of contiguous rows."""
    return zlib.crc32(rows)


def _write_all(file: io.FileIO, at: int, data: memoryview) -> None:
    while data:
        count = os.pwrite(file.fileno(), data, at)
        at, data = at + count, data[count:]


def _locked(folder: pathlib.Path) -> int | None:
    """Creates and locks a folder. Returns the lock, or None if another process holds it."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # removed concurrently
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        if folder.exists() and os.path.samestat(os.fstat(lock), os.stat(folder)):
            return lock
        os.close(lock)
