"""How the files of an ingestion are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from . import _core
from ._arrow_files import is_arrow_file
from ._types import PathLike, as_names, as_path, as_text, is_path
from .errors import InvalidArgument

Delimiter = Literal["tab", "comma", "semicolon", "pipe", "blanks"]


class ColumnPlan(NamedTuple):
    """A column of a text file."""

    role: str  #: as in ``columns`` and ``node_columns`` of `ingest`
    type: str  #: of the values in the first lines: "integer", "number", "time", "text" or "empty"
    name: str  #: in the header; empty without one


class FilePlan(NamedTuple):
    """How one file is read."""

    path: str
    kind: str  #: "edges", "nodes" or "array"
    array: str | None  #: the name of the array
    format: str  #: "text", "Matrix Market", "npy" or "Zarr"
    compression: str | None  #: "gzip", "zstd", "bzip2" or "xz"
    delimiter: str | None  #: of a text: "tab", "comma", "semicolon", "pipe" or "blanks"
    comments: str  #: the characters that begin comments
    header: bool
    columns: list[ColumnPlan]
    rows: int  #: in the first 10,000 lines
    comment_lines: int
    bad_lines: int
    whole: bool  #: these are all lines

    def __str__(self) -> str:
        parts = [f"{self.path}: {self.kind}" + (f" {self.array!r}" if self.array else ""), self.format]
        if self.compression:
            parts.append(self.compression)
        if self.delimiter:
            parts += [f"delimiter {self.delimiter}", "header" if self.header else "no header"]
        parts.append(f"{self.rows} rows" + ("" if self.whole else " in the first lines"))
        text = ", ".join(parts)
        if self.delimiter and self.kind != "array":
            text += "".join(f"\n  {column.role} ({column.type})" + (f" {column.name!r}" if column.name else "")
                            for column in self.columns)
        return text


class InputPlan(NamedTuple):
    """How `ingest` reads files."""

    files: list[FilePlan]
    columns: list[str]  #: of edge files; empty if there are none
    node_columns: list[str]
    end_types: list[str]  #: the types of sources and destinations; empty: one kind of vertices
    id_kind: str  #: "integer" or "string"
    undirected: bool
    vertices: int | None
    notes: list[str]  #: what was taken where the input leaves a choice

    def __repr__(self) -> str:
        lines = [str(file) for file in self.files]
        lines.append(f"ids: {self.id_kind}")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


def set_text_options(arguments: Any, columns: Sequence[str] | None, node_columns: Sequence[str] | None,
                     header: bool | None, delimiter: str | None, end_types: Sequence[str] | None) -> None:
    """Sets the options of text files; None: found."""
    arguments.columns = [] if columns is None else as_names(columns, "columns")
    arguments.node_columns = [] if node_columns is None else as_names(node_columns, "node_columns")
    arguments.header = None if header is None else bool(header)
    arguments.delimiter = "" if delimiter is None else as_text(delimiter, "delimiter")
    arguments.end_types = [] if end_types is None else as_names(end_types, "end_types")


def sniff(paths: PathLike | Sequence[PathLike], *, edges: PathLike | Sequence[PathLike] | None = None,
          nodes: PathLike | None = None, arrays: Mapping[str, PathLike] | None = None,
          columns: Sequence[str] | None = None, node_columns: Sequence[str] | None = None, header: bool | None = None,
          delimiter: Delimiter | None = None, end_types: Sequence[str] | None = None) -> InputPlan:
    """Finds how `ingest` reads files, from their first 10,000 lines, without reading the rest.

    ``paths``: a path or several, whose kind (edges, nodes, an array) is found. The other arguments are those of
    `ingest`: files whose kind is known, and options that override what would be found.
    Errors: InvalidArgument, an input that is ambiguous or not supported, naming the file and the options that decide, or
    a table of Parquet or Arrow, whose columns have names and types; StoreNotFound, a file does not exist.
    """
    arguments = _core.IngestArguments()
    arguments.inputs = _paths(paths)
    arguments.edges = [] if edges is None else _paths(edges)
    arguments.nodes = "" if nodes is None else as_path(nodes)
    arguments.arrays = [(name, as_path(path), "", {}, None, "") for name, path in (arrays or {}).items()]
    set_text_options(arguments, columns, node_columns, header, delimiter, end_types)
    for path in (*arguments.inputs, *arguments.edges, arguments.nodes, *(array[1] for array in arguments.arrays)):
        if is_arrow_file(path):
            raise InvalidArgument(f"{path!r} is a table of Parquet or Arrow, whose columns have names and types, so that nothing has "
                                  "to be found: rz.ingest accepts the path itself, as edges, in nodes= or in arrays=")
    plan = _core.sniff(arguments)
    files = [FilePlan(**{**file, "columns": [ColumnPlan(*column) for column in file["columns"]]})
             for file in plan["files"]]
    return InputPlan(**{**plan, "files": files})


def _paths(paths: Any) -> list[str]:
    return [as_path(path) for path in ([paths] if is_path(paths) else paths)]
