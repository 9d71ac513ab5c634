"""Creates stores from arrays in memory, from tables and graphs of other libraries, and from files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from . import _core
from ._graph import open as open_graph
from ._ingest_input import IngestInput
from ._replace import replaced
from ._sniff import Delimiter, set_text_options
from ._types import (
    IngestReport, PathLike, Progress, as_bytes, as_count, as_names, as_number, as_path, as_text, as_threads,
    is_path, lent,
)
from ._values import matrix_of
from .errors import InvalidArgument


def ingest(path: PathLike, edges: Any = None, *, arrays: Mapping[str, Any] | None = None,
           edge_arrays: Mapping[str, Any] | None = None, ids: Any = None, split: Any = None,
           vertices: int | None = None, vertex_types: Mapping[str, int] | None = None, nodes: Any = None,
           columns: Union[Sequence[str], Mapping[str, str], None] = None, node_columns: Sequence[str] | None = None,
           header: bool | None = None, delimiter: Delimiter | None = None, end_types: Sequence[str] | None = None,
           types: Mapping[str, str] | None = None, feature_columns: Sequence[str] | Literal["all"] = (),
           random_split: Sequence[float] | None = None, hold_out: Mapping[str, float] | None = None,
           hold_out_relations: Sequence[str] = (), hold_out_by: Literal["random", "time"] = "random",
           inverse: Mapping[str, str] | None = None, undirected: bool = False,
           directions: Literal["both", "out", "in"] = "both",
           layout: Literal["row", "chunk"] = "row", partitions: int | None = None, homes: Any = None,
           memory: int | str = 0, scratch: PathLike | None = None, threads: int | None = None, seed: int = 1,
           overwrite: bool = False, exist_ok: bool = False, progress: Progress | None = None) -> IngestReport:
    """Creates a new store at ``path``.

    ``edges``, in memory: integers [2, n] or [n, 2] ([2, 2] could be both: give a pair); a pair (sources, targets), each
    [n] of int or of str; a table, whose columns have roles by their names; a sparse matrix of SciPy, from row to column;
    a dict of these by edge type; torch_geometric's Data or HeteroData. Or a path, or a list of paths: text,
    Matrix Market, or .npy ([2, n] or [n, 2]), plain or compressed (gzip, zstd, bzip2, xz); or Parquet or Arrow IPC (Feather), which are read batch by batch as tables (with pyarrow).
    Or the path of a folder of `Graph.export`, which has everything.
    Contiguous int64 data is read in place; everything else is copied first.
    A table is one of pandas, pyarrow, or any library that exports Arrow's C stream (polars, DuckDB). Its columns, in any
    case: src, source, from, head, subject or u; dst, target, to, tail, object or v; the type of an edge: rel, relation,
    type, predicate or label; weight or w; time, timestamp or ts, the attribute ``time``. All others are attributes of
    their names. Times (datetime64) are int64 microseconds since 1970 UTC.
    ``columns``: of tables, the columns of sources and targets, or columns by role, {"src": "a", "dst": "b", "weight":
    "c"}; of text files, all columns in their order (src, dst, type, weight, names of attributes, "-" to skip), or None:
    found by the names in the header.
    ``ids``: the external ids of the vertices, int or str, [n], in the order of the rows of ``arrays``; vertices that
    only edges name follow. Without ``ids``, integers that are exactly 0, 1, 2, ... (taking into account ``vertices``
    and the rows of ``arrays``) are the vertex ids; any others are external ids, and get vertex ids in order of first
    occurrence.
    ``arrays``: by name, a row for each vertex 0, 1, 2, ...: an array [n] or [n, dim] of bool, int8, int16, int32,
    int64, uint8, uint32, float16, bfloat16 (of ml_dtypes or torch), float32 or float64, stored as it is (uint16 as
    int32, uint64 as int64, if its values fit); of times (datetime64), stored as int64 microseconds since 1970 UTC; of
    texts, of which the array holds codes (``Array.texts``; in ``label`` they are the names of classes); or a path (.npy,
    Zarr v3, text with one row a line; Parquet or Arrow IPC, with a column of this name, or columns that become those of the rows). Masked values, None and NA are missing: NaN in floats, -1 in ``label``, 255 in ``split``, and
    otherwise the integer in the attribute ``null`` of the array (a bool is int8 then). Or a dict by vertex type, of rows for
    the vertices of each type, in their order: if only one type has rows, the array is bound to it and has no other rows; if
    the widths or dtypes of several differ, there is a bound array for each, ``feat.paper`` and ``feat.author``.
    ``edge_arrays``: by name, a row for each edge in the order of ``edges``, as ``arrays``, but integers and bool are
    stored as int64, and floats narrower than float64 as float32; the name ``weight`` denotes the edge weights, which are
    float32: fractions are rounded, and a number that would change otherwise is refused with its row.
    ``split``: three arrays of vertex ids, or bool masks (train, valid, test), or uint8 [n] (0, 1, 2, 255 for none).
    ``vertices``: number of vertices, if ids are 0, 1, 2, ...; larger ids are an error. ``vertex_types``: number of
    vertices of each type; ``edges`` is then a dict by (type of the sources, name, type of the targets), with ids that
    count from 0 in each type. A sparse matrix gives the numbers of both types by its shape. If several of them share a
    name, such as "to" in a__to__b and b__to__a, the names of their edge types are built like these examples instead.
    ``nodes``: a table of vertices, in any form or file that ``edges`` may have: id, node, key or name, the external id;
    type; label, class or y; split (train, valid, test, or nothing); all others become arrays. An index of pandas with the
    name of an id is the id; without any ids, an index must be 0, 1, 2, .... Or a dict of such tables by
    vertex type, with ``edges`` by (type, name, type): with ids that are distinct over all types, or without ids, which
    then are row numbers in each type. Or a text file with one line per vertex, whose ``node_columns`` become arrays (None: found by the names in the header).
    ``types``: types of columns of text files that become arrays or attributes, by name: "int64", "float64", "bool",
    "timestamp", ...; other columns have the type of their values.
    ``feature_columns``: columns of ``nodes`` that become one array, ``feat``, float32, in their order there, NaN where a value
    is missing; "all": every column of numbers. ``random_split``: shares of training, validation and test, such as (.8, .1, .1), to which vertices
    with a label are assigned at random.
    ``hold_out``: shares of the edges that are kept out of the store, for training on links: {"valid": .05, "test": .05}.
    They are written to ``path``.valid.tsv.zst and ``path``.test.tsv.zst, which `evaluate` reads, with their columns; their
    ends are vertices of the store. All edges of a pair of vertices are in one set, in both directions. The report has the
    files and counts. ``hold_out_relations``: only edges of these types are held out; ``inverse``: types whose edges are the
    inverse of others, {"cites": "cited_by"}, which are held out with them. ``hold_out_by``: "random", by ``seed``, or
    "time": the pairs with the latest edges, by the attribute ``time``. With ``overwrite``, files that exist are replaced.
    ``header``: whether the first line of text files is a header; None: found. ``delimiter``: what separates fields;
    None: found. ``end_types``: the types of sources and of destinations, if these are two kinds of vertices with
    overlapping ids, so that 7 becomes "user:7"; None: found by names such as userId and movieId, unless ``columns`` chooses
    the ends. `sniff` shows what is found in files. ``undirected``: store each edge in both directions.
    ``directions``: the neighbour lists to store. ``layout``: "row" for reading random rows of arrays, "chunk"
    (compressed) for scans. ``partitions``: None: as many as memory requires.
    ``homes``: store a home for each vertex, one of ``partitions``, in the array "home": "edgecut" (few edges between
    homes; rows and training vertices balanced within 1.05), "owner", or explicit homes: integers [n], or a path (.npy,
    Zarr v3, or a text file with one per line). ``memory``: maximum memory of the process beyond its size now, in
    bytes or as a text such as "4G"; 0: no limit. ``scratch``: a folder for temporary files; None: next to the store.
    ``overwrite``: if there is a store at ``path``, it is replaced when the new one is complete; graphs of the old one
    that are still open can read only what is in memory. ``exist_ok``: if there is one, it remains as it is, whatever it
    contains, and the report has its counts.
    ``progress``: called with (phase, done, total).
    Ctrl-C raises KeyboardInterrupt. After any exception there is no store, unless the signal arrived when the store had
    just been published: in that case it is complete.
    Errors: AlreadyExists, also with ``overwrite`` if ``path`` is no store; Busy, a process writes to the store to be
    replaced; InvalidArgument, naming file, line and reason; StoreNotFound, a file does not exist;
    TypeError, ValueError: arrays of other types or shapes; OutOfMemory; OutOfSpace.
    """
    if overwrite and exist_ok:
        raise ValueError("overwrite=True replaces a store, and exist_ok=True keeps it: give one of them")
    if exist_ok and _core.is_store(as_path(path)):
        return _report_of(as_path(path))
    arguments = _core.IngestArguments()
    arguments.path = as_path(path)
    given = IngestInput(edges, arrays=arrays, edge_arrays=edge_arrays, ids=ids, split=split, vertices=vertices,
                        vertex_types=vertex_types, nodes=nodes, columns=columns, end_types=end_types,
                        folder=_scratch(path, scratch))
    given.take_features(feature_columns)
    given.fill(arguments)
    set_text_options(arguments, arguments.columns, node_columns if given.nodes_file else arguments.node_columns, header,
                     delimiter, given.end_types)
    if given.nodes_file:
        arguments.feature_columns = ["all"] if feature_columns == "all" else as_names(feature_columns, "feature_columns")
    arguments.random_split = [as_number(share, "random_split") for share in random_split or ()]
    _set_hold_out(arguments, hold_out, hold_out_relations, hold_out_by, inverse, bool(overwrite))
    arguments.types = [(as_text(name, "types"), as_text(type, "types")) for name, type in (types or {}).items()]
    arguments.undirected = bool(undirected)
    arguments.directions = as_text(directions, "directions")
    arguments.layout = as_text(layout, "layout")
    if isinstance(homes, str) and homes in ("edgecut", "owner"):
        arguments.homes = homes
    elif is_path(homes):
        arguments.homes_file = as_path(homes)
    elif homes is not None:
        arguments.homes_file = lent(matrix_of("homes", homes))
    arguments.scratch = "" if scratch is None else as_path(scratch)
    arguments.partitions = 0 if partitions is None else as_count(partitions, "partitions", least=1)
    arguments.memory_bytes = as_bytes(memory)
    arguments.threads = as_threads(threads)
    arguments.seed = as_count(seed, "seed")
    target = arguments.path
    report: IngestReport | None = None
    try:
        with replaced(target, overwrite=bool(overwrite)) as place:
            arguments.path = place
            try:
                report = IngestReport(**_core.ingest(arguments, progress))
            except InvalidArgument as error:
                raise given.explained(error) from None
    except BaseException:
        for held in report.held_out.values() if report is not None else ():
            os.remove(held["path"])
        raise
    for name, held in report.held_out.items():
        path = f"{os.path.abspath(target)}.{name}.tsv.zst"
        if held["path"] != path:
            os.replace(held["path"], path)
            held["path"] = path
    return report._replace(notes=given.notes + report.notes)


def _set_hold_out(arguments: _core.IngestArguments, shares: Mapping[str, float] | None, relations: Sequence[str], by: str,
                  inverse: Mapping[str, str] | None, overwrite: bool) -> None:
    """Sets the arguments of edges that are held out. Errors: ValueError, TypeError."""
    if shares is not None and not isinstance(shares, Mapping):
        raise TypeError('hold_out must be a dict of shares, such as {"valid": .05, "test": .05}')
    for name, share in (shares or {}).items():
        if name not in ("valid", "test"):
            raise ValueError(f"hold_out: {name!r} is no set; the sets are 'valid' and 'test'")
        setattr(arguments, f"hold_out_{name}", as_number(share, "hold_out"))
    if by not in ("random", "time"):
        raise ValueError("hold_out_by must be 'random' or 'time'")
    arguments.hold_out_relations = as_names(relations, "hold_out_relations")
    arguments.hold_out_by = by
    arguments.hold_out_overwrite = overwrite
    arguments.inverse = [(as_text(one, "inverse"), as_text(other, "inverse")) for one, other in (inverse or {}).items()]


def _report_of(path: str) -> IngestReport:
    """Returns the report of a store that exists."""
    with open_graph(path, topology="disk") as graph:
        return IngestReport(graph.num_vertices, graph.num_edges, graph._core.partitions, 0.0, 0)


def _scratch(path: PathLike, scratch: PathLike | None) -> str:
    """Returns the folder of temporary files: ``scratch``, the folder of the store, or, if there is none yet, any."""
    folder = os.path.dirname(os.path.abspath(as_path(path))) if scratch is None else as_path(scratch)
    if os.path.isdir(folder):
        return folder
    import tempfile  # a slow import

    return tempfile.gettempdir()
