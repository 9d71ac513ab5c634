"""Conversions at the border to the engine: checked arguments, and results as named tuples."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from ._numbers import exactly
from ._repr import as_html, boxed

#: The path of a file or a folder.
PathLike = Union[str, "os.PathLike[str]"]

#: Which neighbour lists to use: out-edges of a vertex, its in-edges, or both.
Direction = Literal["out", "in", "both"]

#: Names of the sets in a split array, and their values.
SplitName = Literal["train", "valid", "val", "test"]
_SPLITS = {"train": 0, "valid": 1, "val": 1, "test": 2}

#: Called with a phase, the amount done, and the total (0: unknown).
Progress = Callable[[str, int, int], object]

#: External id of a vertex: its id in the input, a str or an int.
UserId = Union[str, int]

#: The value types that an array may have.
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64")


class ArrayInfo(NamedTuple):
    """An array of a graph: a row for each vertex."""

    name: str
    shape: tuple[int, int]  #: number of rows, and number of values per row
    dtype: np.dtype
    layout: str  #: "row", for reading random rows, or "chunk", for scans
    versions: tuple[int, ...]  #: the numbers n of name@n; empty: no versions
    aliases: dict[str, int]  #: version that each name@alias refers to
    vertex_type: str | None = None  #: the vertex type whose vertices have rows; None: all vertices have one


class Point(NamedTuple):
    """A state of a store as numbers and hashes: ``graph.point``, which ``rhizome.open(path, at=...)`` opens in any
    process."""

    store: str  #: the id of the store
    generation: int
    version: int  #: version of the generation's manifest
    base: int  #: commits up to this one are in the generation's files
    first: int  #: first commit after that; 0: none
    sequence: int  #: the last commit
    state: str = ""  #: hashes that distinguish the store from copies; empty: from an older version, not compared


class Neighbors(NamedTuple):
    """The neighbours of one vertex, one entry per edge."""

    ids: np.ndarray  #: vertex ids, int64 [n]
    types: np.ndarray | None  #: edge types as indices of ``graph.edge_types``, uint16 [n]; None: there is only one
    weights: np.ndarray | None  #: float32 [n]; None: the graph has no weights

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class NeighborLists(NamedTuple):
    """The neighbours of n vertices: entries [offsets[i], offsets[i + 1]) belong to vertex i."""

    offsets: np.ndarray  #: int64 [n + 1]
    ids: np.ndarray  #: vertex ids, int64 [edges]
    types: np.ndarray | None  #: as in Neighbors, [edges]
    weights: np.ndarray | None  #: as in Neighbors, [edges]

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class Subgraph(NamedTuple):
    """A sampled subgraph. Its vertices are numbered from 0, starting with the seeds."""

    vertices: np.ndarray  #: vertex ids by number, int64 [vertices]
    edge_index: np.ndarray  #: int64 [2, edges] of numbers: the sampled neighbour, and the vertex for which it was sampled
    seeds: np.ndarray  #: number of each seed in the given order, int64 [seeds]
    hops: np.ndarray  #: number of vertices found in each hop, starting with the seeds, int64 [hops + 1]
    edge_hops: np.ndarray  #: number of edges sampled in each hop, int64 [hops]
    types: np.ndarray | None  #: edge types as indices of ``graph.edge_types``, uint16 [edges]; None: one type
    weights: np.ndarray | None  #: float32 [edges]; None: the graph has no weights
    edge_ids: np.ndarray | None  #: edge numbers, for ``graph.edge_rows``, int64 [edges]; None: not requested
    seed_of: np.ndarray | None  #: if disjoint, for each vertex the index of its seed, int64 [vertices]; else None
    offsets: np.ndarray  #: the edges of list l are [offsets[l], offsets[l + 1]), int64 [lists + 1]
    hop_lists: np.ndarray  #: the lists of hop h are [hop_lists[h], hop_lists[h + 1]), int64 [hops + 1]

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class VertexBlock(NamedTuple):
    """A block of vertices, in ascending order of external ids."""

    vertices: np.ndarray  #: vertex ids, int64 [n]
    ids: list[UserId]  #: external ids, [n]
    types: np.ndarray  #: indices of ``graph.vertex_types``, uint16 [n]

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class EdgeBlock(NamedTuple):
    """A block of edges, in disk order."""

    src: np.ndarray  #: vertex ids, int64 [n]
    dst: np.ndarray  #: vertex ids, int64 [n]
    types: np.ndarray | None  #: as in Neighbors, [n]
    weights: np.ndarray | None  #: as in Neighbors, [n]

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class Similar(NamedTuple):
    """A vertex that is similar to another."""

    id: UserId
    label: int | float | str | None  #: its row of ``label``, or the name of its class; None: there are no labels
    score: float  #: cosine similarity of the two rows


class Frames(NamedTuple):
    """The vertices and the edges of a graph as pandas.DataFrames."""

    vertices: Any
    edges: Any


class LogLine(NamedTuple):
    """An event of the engine."""

    time: float  #: seconds since 1970
    level: str  #: "debug", "info", "warning" or "error"
    component: str  #: such as "store" or "graph"
    message: str  #: a constant text; variable parts are in the fields
    fields: dict[str, int | float | str]


class Change(NamedTuple):
    """One change of a commit. Fields that a kind does not have are None or empty."""

    commit: int  #: sequence number of the commit
    #: "vertex_type", "edge_type", "delete_vertex", "put_vertex", "delete_edges", "put_edge" or "put_row"
    kind: str
    id: UserId | None  #: the vertex, or the source of the edge
    neighbor: UserId | None  #: the target of the edge
    type: int  #: index of ``graph.vertex_types`` or ``graph.edge_types``
    name: str  #: name of the type or of the array
    weight: float | None
    row: bytes | None  #: the values of the row


class IngestReport(NamedTuple):
    """Result of an ingestion."""

    vertices: int
    edges: int  #: number of directed edges
    partitions: int
    seconds: float
    spilled_bytes: int  #: bytes written to temporary files because memory was not sufficient
    #: None without homes; else "homes" (number), "by", "cut_share" (share of edges between homes), "training_vertices",
    #: "row_balance" and "training_balance" (largest home divided by the mean), "warning" (text or None)
    homes: dict[str, Any] | None = None
    #: what was taken where the input left a choice, and skipped lines: one sentence each
    notes: list[str] = []
    #: sets of edges that were held out, by "valid" and "test": "path", "edges", "unseen_ends" (edges with an end that no edge
    #: of the store has), "by_relation" (edges by the name of their type)
    held_out: dict[str, dict[str, Any]] = {}


class CompactReport(NamedTuple):
    """Result of a compaction."""

    compacted: bool  #: False: there was nothing to merge
    generation: int
    commits: int  #: number of commits merged into the generation


class CleanReport(NamedTuple):
    """Result of ``clean``."""

    removed: list[str]  #: folders that were removed; with ``dry_run``, that would be
    remaining: list[str]  #: folders of running jobs, and folders that no job created
    bytes: int  #: total size of the removed folders


class ExportReport(NamedTuple):
    """Result of an export."""

    files: list[str]  #: paths
    notes: list[str]  #: facts that the files do not have, a sentence each
    seconds: float


class VerifyReport(NamedTuple):
    """Result of a verification; ``ok`` if no problem was found."""

    files: int
    bytes: int
    damaged: list[tuple[str, int, str]]  #: file, offset in bytes, description
    unread: list[tuple[str, str]]  #: file, reason that it could not be read

    @property
    def ok(self) -> bool:
        return not self.damaged and not self.unread


class BackupReport(NamedTuple):
    """Result of a backup."""

    number: int
    files_copied: int
    bytes_copied: int
    files_shared: int  #: files that an earlier backup already contained
    seconds: float


class BackupInfo(NamedTuple):
    """A backup in a backup folder."""

    number: int
    unix_seconds: int  #: time of the backup
    bytes: int  #: size of its files, including files shared with other backups


class RepairReport(NamedTuple):
    """Result of a repair, or of a dry run."""

    damaged: list[tuple[str, int, str]]  #: damage before the repair: file, offset in bytes, description
    rebuilt: list[tuple[str, str]]  #: files that are restored to their committed contents, and how
    quarantined: list[tuple[str, str]]  #: files that were moved out of the store, and their new paths
    lost: list[tuple[str, str]]  #: lost data, and advice
    quarantine: str  #: the quarantine folder next to the store; empty: not needed
    ok: bool  #: whether the store is intact now


class AddReport(NamedTuple):
    """Result of adding an array or rows."""

    name: str  #: external name of the array: "emb", "emb@2"
    rows_given: int  #: number of vertices with an explicit row
    rows_read: int
    dropped_versions: list[int]
    seconds: float
    notes: list[str] = []  #: vertices without a row, where the input does not say that they have none


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def as_bytes(memory: int | str) -> int:
    """Converts a size to bytes: an int, or a text such as "512M", "1.5G" (powers of 1024)."""
    if isinstance(memory, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", memory.strip(), re.IGNORECASE)
        if not found:
            raise ValueError(f"memory is {memory!r}: give bytes, or a number with K, M, G or T, such as '2G'")
        return int(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(memory, bool) or not hasattr(memory, "__index__"):
        raise TypeError(f"memory must be an int or a str, not {type(memory).__name__}")
    if memory.__index__() < 0:
        raise ValueError(f"memory is {memory}, but must not be negative")
    return int(memory.__index__())


def as_count(value: Any, name: str, least: int = 0) -> int:
    """Returns an integer of at least ``least``; otherwise the error names the argument."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not least <= value.__index__() < 2**63:
        raise ValueError(f"{name} is {value}, but must be at least {least}, and below 2**63")
    return int(value.__index__())


def as_seconds(value: Any, name: str) -> float:
    """Returns a time that is not negative; otherwise the error names the argument."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not value >= 0:
        raise ValueError(f"{name} is {value}, but must not be negative")
    return float(value)


def as_number(value: Any, name: str) -> float:
    """Returns an int or a float of any library as a float. Errors: TypeError, another type, which is named."""
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def as_threads(threads: int | None) -> int:
    """Returns a number of threads; for None, the number of available processors."""
    if threads is None:
        return len(os.sched_getaffinity(0))
    return min(as_count(threads, "threads", least=1), 1024)


def is_path(value: Any) -> bool:
    """Returns whether ``value`` is a path rather than data."""
    return isinstance(value, (str, os.PathLike))


def as_ids(ids: Any, what: str) -> np.ndarray | list[str]:
    """Returns external ids: int64 [n], or a list of str, from a list or a NumPy, pandas or pyarrow column.

    Errors: TypeError, other types, or a mixture of both kinds; ValueError, a str that is not valid text, or an id is missing.
    """
    if not isinstance(ids, (list, tuple)):
        array = as_array(ids)
        if array.dtype.kind not in "OUT":
            return as_integers(array, what)
        if array.ndim != 1:
            raise TypeError(f"{what} must be an array with one dimension, not {array.ndim}")
        ids = array.tolist()
    if not any(isinstance(one, str) for one in ids):
        return as_integers(ids, what)
    wrong = [one for one in ids if not isinstance(one, str)]
    if wrong:
        _check_something(ids, what)
        raise TypeError(f"{what} must be all int or all str: {reprlib.repr(wrong[0])} is not a str")
    return [as_text(str(one), what) for one in ids]


def as_split(name: str) -> int:
    """Returns the value of a set in a split array. Errors: ValueError, there is no such set."""
    if name not in _SPLITS:
        raise ValueError(f"a set must be 'train', 'valid' (or 'val') or 'test', not {name!r}")
    return _SPLITS[name]


def as_text(text: Any, what: str) -> str:
    """Checks that a text can be encoded in UTF-8. Errors: TypeError; ValueError, it contains a lone surrogate."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{what} is {text!a}, which has a lone surrogate and cannot be encoded in UTF-8")
    return text


def as_names(names: Any, what: str) -> list[str]:
    """Returns names as a list of str. Errors: as for ``as_text``; TypeError, another type, including a single str."""
    given = [names] if isinstance(names, str) else list(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{what} must be a list of str, not {names!r}")
    return [as_text(name, what) for name in given]


def as_path(path: str | os.PathLike[str]) -> str:
    """Returns a path as a str. Errors: TypeError; ValueError, the path is not UTF-8 or contains a NUL."""
    text = os.fsdecode(path)
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{text!r} is not a path: it must be UTF-8 without NUL")
    return text


#: Maximum rows per block, and maximum bytes unless a single row is larger.
_BLOCK_ROWS = 65_536
_BLOCK_BYTES = 16 << 20


def block_rows(array: Any) -> int:
    """Returns the number of rows of an array to read together."""
    width = max(int(array.shape[1] * array.dtype.itemsize), 1)
    return max(min(_BLOCK_ROWS, _BLOCK_BYTES // width), 1)


def as_array(values: Any) -> np.ndarray:
    """Converts an array of any library to NumPy, without a copy if possible.

    Uses DLPack if there is no ``__array__``, for libraries without NumPy support.
    """
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def as_vertex_ids(ids: Any, vertices: int) -> np.ndarray:
    """Returns vertex ids as int64 [n], C-contiguous; a bool mask is converted to the ids of its true elements.

    Errors: TypeError, another type or shape; IndexError, a mask of another length, or an id beyond int64.
    """
    if isinstance(ids, slice):
        return np.arange(*ids.indices(vertices), dtype=np.int64)
    array = as_array(ids)
    if array.dtype == np.bool_ and array.ndim == 1:
        if len(array) != vertices:
            raise IndexError(f"a mask must have one bool for each of {vertices} vertices, not {len(array)}")
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.dtype.kind in "SU":
        raise TypeError("vertex ids must be integers, not names; find() converts external ids to vertex ids")
    return as_integers(array if array.size else ids, "vertex ids")


def as_integers(values: Any, what: str) -> np.ndarray:
    """Returns integers as int64 [n], C-contiguous.

    Errors: TypeError, another type or shape, which is named; ValueError, one is missing; IndexError, a number beyond int64.
    """
    array = as_array(values)
    if array.ndim != 1:
        raise TypeError(f"{what} must be an array with one dimension, not {array.ndim}")
    if array.size == 0 and not isinstance(values, np.ndarray):
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        _check_something(array.tolist() if array.dtype.kind in "fO" else (), what)
        raise TypeError(f"{what} must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise IndexError(f"{what}: {array.max()} is beyond int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def _check_something(values: Sequence[Any], what: str) -> None:
    """Errors: ValueError, a value is None, NaN or NA, naming its row."""
    for row, value in enumerate(values):
        if value is None or isinstance(value, float) and value != value or type(value).__name__ in ("NAType", "NaTType"):
            raise ValueError(f"{what} must not be missing: row {row} is")


def dtype_name(dtype: np.dtype) -> str:
    """Returns the engine's name of a dtype. Two bytes without a type (V2) are bfloat16, as in a .npy file of it."""
    return "bfloat16" if dtype == np.dtype("V2") else dtype.name


def lent(matrix: np.ndarray) -> tuple[np.ndarray, str]:
    """Returns a matrix in a form whose memory the engine can read, and the name of its dtype: NumPy does not lend the
    memory of bfloat16, so that is lent as uint16.
    """
    name = dtype_name(matrix.dtype)
    return (matrix.view(np.uint16) if name == "bfloat16" else matrix), name


def as_float32(values: Any, name: str) -> np.ndarray:
    """Returns weights, or values of edges, as float32; fractions are rounded to the nearest.

    Errors: ValueError, naming the row: a number beyond float32, an integer that float32 would round, or a nonzero
    number that would become 0, which means something else for weights.
    """
    return exactly(name, as_array(values), np.dtype(np.float32))


def as_rows(rows: Any, dtype: np.dtype, dim: int, name: str) -> np.ndarray:
    """Returns rows to put into an array, [n, dim] of ``dtype``; numbers are converted only within their kind.

    Errors: TypeError, another kind; ValueError, another width, or a number that the array cannot represent.
    """
    array = as_array(rows)
    whole = array.dtype.kind in "biu" and dtype.kind in "biu"  # their values are compared below
    narrow = array.dtype.kind in "biuf" and dtype_name(dtype) in ("bfloat16", "float16")
    if not whole and not narrow and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"the rows have dtype {array.dtype}, but {name!r} has {dtype}")
    if array.ndim == 1 and dim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ValueError(f"the rows have shape {array.shape}, but {name!r} needs (n, {dim})")
    if dtype == np.float32:
        return as_float32(array, name)
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(array, dtype=dtype)
    exact = dtype.kind in "biu" or array.dtype.kind in "biu"
    # Comparing with the float32 of float16 and bfloat16 is exact.
    back = cast.astype(np.float32) if dtype_name(dtype) in ("bfloat16", "float16") else cast
    if not np.array_equal(back, array) if exact else (np.isinf(back) & np.isfinite(array.astype(np.float64))).any():
        raise ValueError(f"the rows have numbers that {name!r}, of {dtype}, cannot represent")
    return cast
