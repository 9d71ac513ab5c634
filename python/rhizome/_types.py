"""What crosses the border to the engine: arguments made uniform, and results with names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union

import numpy as np

#: The path of a file or a folder.
PathLike = Union[str, "os.PathLike[str]"]

#: The lists of neighbours: of the edges that leave a vertex, of those that end in it, or of both.
Direction = Literal["out", "in", "both"]

#: The sets of vertices that a split array names, and its values for them.
SplitName = Literal["train", "valid", "val", "test"]
_SPLITS = {"train": 0, "valid": 1, "val": 1, "test": 2}

#: Called with a phase, and how much of how much of it is done (0: unknown).
Progress = Callable[[str, int, int], object]

#: One vertex, as the user names it: its id in the input, a str or an int.
UserId = Union[str, int]

#: The types of values that an array may have.
DTYPES = ("float32", "float16", "int64", "int32", "uint32", "uint8")


class ArrayInfo(NamedTuple):
    """An array of a graph: a row for each vertex."""

    name: str
    shape: tuple[int, int]  #: rows, and values in a row
    dtype: np.dtype
    layout: str  #: "row", made for reading random rows, or "chunk", made for scans
    versions: tuple[int, ...]  #: the numbers n of name@n; empty: it has no versions
    aliases: dict[str, int]  #: the versions that name@alias stands for


class Point(NamedTuple):
    """A state of a store by numbers and hashes: ``graph.point``, which ``rhizome.open(path, at=...)`` opens in any process."""

    store: str  #: the id of the store
    generation: int
    version: int  #: of the generation's manifest
    base: int  #: commits up to it are in the generation's files
    first: int  #: the first commit since; 0: there is none
    sequence: int  #: the last commit
    state: str = ""  #: hashes that tell it from a copy's; empty: of an older version, not compared


class Neighbors(NamedTuple):
    """The neighbours of one vertex, one entry for each edge."""

    ids: np.ndarray  #: vertex ids, int64 [n]
    types: np.ndarray | None  #: edge types as indices of ``graph.edge_types``, uint16 [n]; None: there is one
    weights: np.ndarray | None  #: float32 [n]; None: the graph has no weights


class NeighborLists(NamedTuple):
    """The neighbours of n vertices: those of vertex i are [offsets[i], offsets[i + 1])."""

    offsets: np.ndarray  #: int64 [n + 1]
    ids: np.ndarray  #: vertex ids, int64 [edges]
    types: np.ndarray | None  #: as in Neighbors, [edges]
    weights: np.ndarray | None  #: as in Neighbors, [edges]


class Subgraph(NamedTuple):
    """A sampled subgraph. Its vertices have numbers from 0, the seeds first."""

    vertices: np.ndarray  #: vertex ids by number, int64 [vertices]
    edge_index: np.ndarray  #: int64 [2, edges] of numbers: the neighbour drawn, and for which vertex
    seeds: np.ndarray  #: the number of each seed as given, int64 [seeds]
    hops: np.ndarray  #: vertices found in each hop, the seeds first, int64 [hops + 1]
    edge_hops: np.ndarray  #: edges drawn in each hop, int64 [hops]
    types: np.ndarray | None  #: edge types as indices of ``graph.edge_types``, uint16 [edges]; None: one type
    weights: np.ndarray | None  #: float32 [edges]; None: the graph has no weights
    edge_ids: np.ndarray | None  #: numbers of the edges, for ``graph.edge_rows``, int64 [edges]; None: not asked for
    seed_of: np.ndarray | None  #: if disjoint, for each vertex the index of its seed, int64 [vertices]; else None
    offsets: np.ndarray  #: the edges of list l are [offsets[l], offsets[l + 1]), int64 [lists + 1]
    hop_lists: np.ndarray  #: the lists of hop h are [hop_lists[h], hop_lists[h + 1]), int64 [hops + 1]


class VertexBlock(NamedTuple):
    """Some vertices, in ascending order of the user's ids."""

    vertices: np.ndarray  #: vertex ids, int64 [n]
    ids: list[UserId]  #: the user's ids, [n]
    types: np.ndarray  #: indices of ``graph.vertex_types``, uint16 [n]


class EdgeBlock(NamedTuple):
    """Some edges, in the order of the disk."""

    src: np.ndarray  #: vertex ids, int64 [n]
    dst: np.ndarray  #: vertex ids, int64 [n]
    types: np.ndarray | None  #: as in Neighbors, [n]
    weights: np.ndarray | None  #: as in Neighbors, [n]


class Similar(NamedTuple):
    """A vertex that is near to another."""

    id: UserId
    label: int | float | str | None  #: its row of ``label``, or the name of that class; None: there are no labels
    score: float  #: the cosine of both rows


class LogLine(NamedTuple):
    """An event of the engine."""

    time: float  #: seconds since 1970
    level: str  #: "debug", "info", "warning" or "error"
    component: str  #: such as "store" or "graph"
    message: str  #: a constant text; what varies is in the fields
    fields: dict[str, int | float | str]


class Change(NamedTuple):
    """One change of a commit. Fields that a kind does not have are None or empty."""

    commit: int  #: its sequence number
    #: "vertex_type", "edge_type", "delete_vertex", "put_vertex", "delete_edges", "put_edge" or "put_row"
    kind: str
    id: UserId | None  #: the vertex, or the source of the edge
    neighbor: UserId | None  #: the target of the edge
    type: int  #: index of ``graph.vertex_types`` or ``graph.edge_types``
    name: str  #: of the type, or of the array
    weight: float | None
    row: bytes | None  #: the values of the row


class IngestReport(NamedTuple):
    """What an ingestion made."""

    vertices: int
    edges: int  #: directed ones
    partitions: int
    seconds: float
    spilled_bytes: int  #: written to files on the way, because memory did not suffice
    #: None without homes; else "homes" (how many), "by", "cut_share" (of edges, between homes), "training_vertices",
    #: "row_balance" and "training_balance" (the largest home over the mean), "warning" (text or None)
    homes: dict[str, Any] | None = None


class CompactReport(NamedTuple):
    """What a compaction did."""

    compacted: bool  #: False: there was nothing to merge
    generation: int
    commits: int  #: merged into the generation


class VerifyReport(NamedTuple):
    """What a verification found; ``ok`` if that is nothing."""

    files: int
    bytes: int
    damaged: list[tuple[str, int, str]]  #: file, offset in bytes, what is wrong
    unread: list[tuple[str, str]]  #: file, why it could not be read

    @property
    def ok(self) -> bool:
        return not self.damaged and not self.unread


class BackupReport(NamedTuple):
    """What a backup copied."""

    number: int
    files_copied: int
    bytes_copied: int
    files_shared: int  #: an earlier backup held them already
    seconds: float


class BackupInfo(NamedTuple):
    """A backup in a folder of them."""

    number: int
    unix_seconds: int  #: when it was made
    bytes: int  #: of its files, those that it shares with others too


class RepairReport(NamedTuple):
    """What a repair did, or would do."""

    damaged: list[tuple[str, int, str]]  #: beforehand: file, offset in bytes, what is wrong
    rebuilt: list[tuple[str, str]]  #: files that are again what was committed, and how
    quarantined: list[tuple[str, str]]  #: files that were moved out of the store, and where to
    lost: list[tuple[str, str]]  #: data that is lost, and advice
    quarantine: str  #: the folder beside the store; empty: none was needed
    ok: bool  #: whether the store is whole now


class AddReport(NamedTuple):
    """What was added to an array."""

    name: str  #: as users write it: "emb", "emb@2"
    rows_given: int  #: vertices that have a row of their own
    rows_read: int
    dropped_versions: list[int]
    seconds: float


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def as_bytes(memory: int | str) -> int:
    """Returns bytes: an int, or a text such as "512M", "1.5G" (powers of 1024)."""
    if isinstance(memory, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", memory.strip(), re.IGNORECASE)
        if not found:
            raise ValueError(f"memory is {memory!r}: give bytes, or a number with K, M, G or T, such as '2G'")
        return int(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(memory, bool) or not hasattr(memory, "__index__"):
        raise TypeError(f"memory is an int or a str, not {type(memory).__name__}")
    if memory.__index__() < 0:
        raise ValueError(f"memory is {memory}: it must not be negative")
    return int(memory.__index__())


def as_count(value: Any, name: str, least: int = 0) -> int:
    """Returns a whole number of at least ``least``, which is named if it is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    if not least <= value.__index__() < 2**63:
        raise ValueError(f"{name} is {value}: it must be at least {least}, and below 2**63")
    return int(value.__index__())


def as_threads(threads: int | None) -> int:
    """Returns a number of threads; as many as there are processors for None."""
    if threads is None:
        return len(os.sched_getaffinity(0))
    return min(as_count(threads, "threads", least=1), 1024)


def is_path(value: Any) -> bool:
    """Returns whether it is a path, and not data."""
    return isinstance(value, (str, os.PathLike))


def as_ids(ids: Any, what: str) -> np.ndarray | list[str]:
    """Returns ids of the user's: int64 [n], or a list of str, from a list, a NumPy, pandas or pyarrow column.

    Errors: TypeError, something else among them, or both kinds; ValueError, a str that is no text.
    """
    if not isinstance(ids, (list, tuple)):
        array = as_array(ids)
        if array.dtype.kind not in "OUT":
            return as_integers(array, what)
        if array.ndim != 1:
            raise TypeError(f"{what} are an array of one dimension, not of {array.ndim}")
        ids = array.tolist()
    if not any(isinstance(one, str) for one in ids):
        return as_integers(ids, what)
    wrong = next((one for one in ids if not isinstance(one, str)), None)
    if wrong is not None:
        raise TypeError(f"{what} are all int or all str, and not {wrong!r} among names")
    return [as_text(str(one), what) for one in ids]


def as_split(name: str) -> int:
    """Returns the number that a split array has for a set. Errors: ValueError, there is no such set."""
    if name not in _SPLITS:
        raise ValueError(f"a set is 'train', 'valid' (or 'val') or 'test', not {name!r}")
    return _SPLITS[name]


def as_text(text: Any, what: str) -> str:
    """Returns a text that UTF-8 has bytes for. Errors: TypeError; ValueError, one half of a surrogate pair is in it."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str, not {type(text).__name__}")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{what} is {text!a}, which is no text: UTF-8 has no bytes for half of a surrogate pair")
    return text


def as_names(names: Any, what: str) -> list[str]:
    """Returns names as a list of str. Errors: those of ``as_text``; TypeError, another thing, a single str included."""
    given = [names] if isinstance(names, str) else list(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{what}: a list of str, not {names!r}")
    return [as_text(name, what) for name in given]


def as_path(path: str | os.PathLike[str]) -> str:
    """Returns a path as a str. Errors: TypeError; ValueError, a path that is not UTF-8 or holds a NUL."""
    text = os.fsdecode(path)
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{text!r} is no path: it has to be UTF-8 without NUL")
    return text


#: Rows that a block has at most, and its bytes, unless one row is more.
_BLOCK_ROWS = 65_536
_BLOCK_BYTES = 16 << 20


def block_rows(array: Any) -> int:
    """Returns how many rows of an array are read together."""
    width = max(int(array.shape[1] * array.dtype.itemsize), 1)
    return max(min(_BLOCK_ROWS, _BLOCK_BYTES // width), 1)


def as_array(values: Any) -> np.ndarray:
    """Returns what NumPy makes of an array of any library, without a copy where it can be.

    DLPack comes first where there is no ``__array__``, as in libraries that know no NumPy.
    """
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def as_vertex_ids(ids: Any, vertices: int) -> np.ndarray:
    """Returns vertex ids as int64 [n], C-contiguous; a bool mask gives the ids that it holds for.

    Errors: TypeError, another type or shape; IndexError, a mask of another length, an id beyond int64.
    """
    if isinstance(ids, slice):
        return np.arange(*ids.indices(vertices), dtype=np.int64)
    array = as_array(ids)
    if array.dtype == np.bool_ and array.ndim == 1:
        if len(array) != vertices:
            raise IndexError(f"a mask has one bool for each of {vertices} vertices, not {len(array)}")
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.dtype.kind in "SU":
        raise TypeError("vertex ids are integers, not names; find() gives those of your own ids")
    return as_integers(array if array.size else ids, "vertex ids")


def as_integers(values: Any, what: str) -> np.ndarray:
    """Returns whole numbers as int64 [n], C-contiguous.

    Errors: TypeError, another type or shape, which is named; IndexError, a number beyond int64.
    """
    array = as_array(values)
    if array.ndim != 1:
        raise TypeError(f"{what} are an array of one dimension, not of {array.ndim}")
    if array.size == 0 and not isinstance(values, np.ndarray):
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} are integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise IndexError(f"{what}: {array.max()} is beyond int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_matrix(values: Any, name: str) -> np.ndarray:
    """Returns values for the array ``name`` as [rows, dim], C-contiguous; float64 becomes float32.

    Errors: TypeError, a dtype that no array has; ValueError, more than two dimensions.
    """
    array = as_array(values)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name!r} has {array.ndim} dimensions: an array has one or two")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    elif array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.name not in DTYPES:
        raise TypeError(f"{name!r} is of {array.dtype}: an array is of " + ", ".join(DTYPES))
    return np.ascontiguousarray(array.reshape(len(array), -1) if array.size else
                                array.reshape(len(array), array.shape[1] if array.ndim == 2 else 1))


def check_nonzero(values: Any, narrow: np.ndarray, name: str) -> None:
    """Checks that no number became 0 as float32, as 1e-180 does: of weights and attributes of edges 0 means another thing.

    Errors: ValueError, naming the row.
    """
    wide = as_array(values)
    if wide.dtype.kind != "f" or wide.dtype.itemsize <= narrow.dtype.itemsize:
        return
    lost = np.flatnonzero((narrow.reshape(-1) == 0) & (wide.reshape(-1) != 0))
    if len(lost):
        row = lost[0] // max(narrow.size // max(len(narrow), 1), 1)
        raise ValueError(f"{name!r}: row {row}: {wide.reshape(-1)[lost[0]]} is not 0, but too small for float32, in which "
                         "it would be 0 (the smallest is 1.4e-45); scale such numbers, or give their logarithms")


def as_rows(rows: Any, dtype: np.dtype, dim: int, name: str) -> np.ndarray:
    """Returns rows to put into an array, [n, dim] of ``dtype``; numbers change only within their kind.

    Errors: TypeError, another kind; ValueError, another width.
    """
    array = as_array(rows)
    whole = array.dtype.kind in "biu" and dtype.kind in "iu"  # their values are compared below
    if not whole and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"the rows are of {array.dtype}, and {name!r} is of {dtype}")
    if array.ndim == 1 and dim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ValueError(f"the rows have shape {array.shape}: those of {name!r} are (n, {dim})")
    cast = np.ascontiguousarray(array, dtype=dtype)
    if dtype.kind in "iu" and not np.array_equal(cast, array):
        raise ValueError(f"the rows hold numbers that {name!r}, of {dtype}, cannot hold")
    return cast
