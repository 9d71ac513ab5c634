"""Parquet and Arrow IPC (Feather) files as tables whose columns are read batch by batch.

Numbers go to unnamed files in a scratch folder, which are mapped into memory, so that a table larger than memory can be
ingested. Texts, such as ids that are names, are in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ._columns import Column, column_of
from ._index import UNNAMED, index_columns, index_of
from ._types import PathLike, as_path
from .errors import OutOfSpace, StoreNotFound

_MAGICS = (b"PAR1", b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")  # the last: a stream of Arrow


def is_arrow_file(path: PathLike) -> bool:
    """Returns whether a path is a file of Parquet or Arrow, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(8).startswith(_MAGICS)
    except OSError:
        return False


class FileTable:
    """The columns of a file."""

    def __init__(self, columns: dict[str, Column], index: list[Any]) -> None:
        """``index``: what pandas wrote about the index of the table."""
        self._columns = columns
        self.column_names = list(columns)
        self.index_columns = index

    def column(self, name: str) -> Column:
        """Returns a column by its name."""
        return self._columns[name]


def open_table(path: PathLike, folder: str) -> FileTable:
    """Reads a file. ``folder``: for temporary files; their space is free when the columns are.

    Errors: ImportError, no pyarrow; StoreNotFound; ValueError, no file of Parquet or Arrow, or a value that no array
    holds; OutOfSpace.
    """
    name = as_path(path)
    if not os.path.exists(name):
        raise StoreNotFound(f"{name!r} does not exist")
    if not is_arrow_file(name):
        raise ValueError(f"{name!r} is no file of Parquet or Arrow: texts and .npy are given as edges=[paths], nodes=path")
    schema, rows, batches = _batches(name)
    names = list(schema.names)
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise ValueError(f"{name!r} has several columns {', '.join(map(repr, twice))}: give each a name of its own")
    growing = [_Growing(column, rows, folder) for column in names]
    try:
        for batch in batches:
            for column, values in zip(growing, batch.columns):
                column.add(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name!r}: {error}") from None
    return FileTable({column.name: column.finish() for column in growing}, index_columns(schema))


def array_of_file(name: str, path: PathLike, folder: str, has_ids: bool) -> tuple[Column, Column | None]:
    """Reads the array ``name`` from a file: its column of this name, or else all columns, as the columns of the rows.
    Returns it, and the column ``id``, if there is one. ``has_ids``: the caller has the ids of the rows.

    Errors: as for ``open_table``; ValueError, the columns have several types, or there are no ids, and an index of pandas
    says that row i is not vertex i.
    """
    table = open_table(path, folder)
    columns = {one: table.column(one) for one in table.column_names}
    ids = columns.pop("id", None)
    columns.pop("vertex", None)  # the vertex ids, in a file that `Array.to_parquet` wrote
    index = index_of(table, columns)
    if index is not None and not index.counts and ids is None and not has_ids:
        raise ValueError(f"{as_path(path)!r} has no column 'id', and {index.what} is not 0, 1, 2, ...: write it with ids "
                         "(table.rename_axis('id')), or without an index if row i is vertex i (table.reset_index(drop=True))")
    columns = {one: column for one, column in columns.items() if not UNNAMED.fullmatch(one)}
    if name in columns or len(columns) == 1:
        return replace(columns.get(name) or next(iter(columns.values())), name=name), ids
    parts = [column.array for column in columns.values() if column.type != "text"]
    if len(parts) < len(columns) or len({part.dtype for part in parts}) != 1 or any(part.ndim > 1 for part in parts):
        raise ValueError(f"{as_path(path)!r} has no column {name!r}, and its columns are not numbers of one type: "
                         f"{', '.join(map(repr, columns))}")
    rows = mapped((len(parts[0]), len(parts)), parts[0].dtype, folder)
    missing = None
    for place, column in enumerate(columns.values()):
        rows[:, place] = column.array
        if column.missing is not None:
            missing = np.zeros(rows.shape, bool) if missing is None else missing
            missing[:, place] = column.missing
    return Column(name, rows, missing), ids


def _batches(path: str) -> tuple[Any, int, Iterator[Any]]:
    """Returns the schema, the number of rows, and the batches."""
    from ._tables import library

    arrow = library("pyarrow", f"the file {path!r}", "arrow")
    with open(path, "rb") as file:
        magic = file.read(6)
    try:
        if magic.startswith(b"PAR1"):
            parquet = library("pyarrow.parquet", f"the file {path!r}", "arrow").ParquetFile(path, memory_map=True)
            return parquet.schema_arrow, int(parquet.metadata.num_rows), parquet.iter_batches()
        source = arrow.memory_map(path)
        if magic.startswith(b"\xff\xff\xff\xff"):
            rows = sum(batch.num_rows for batch in arrow.ipc.open_stream(source))
            stream = arrow.ipc.open_stream(arrow.memory_map(path))
            return stream.schema, rows, iter(stream)
        file = arrow.ipc.open_file(source)
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        rows = sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))
        return file.schema, rows, batches
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path!r} cannot be read: {error}") from None


class _Growing:
    """A column to which batches are added."""

    def __init__(self, name: str, rows: int, folder: str) -> None:
        self.name = name
        self._rows, self._folder, self._done = rows, folder, 0
        self._values: Any = None
        self._missing: np.ndarray | None = None
        self._type = ""
        self._known: dict[str, str] = {}  # texts that occurred, so that equal ones share memory

    def add(self, values: Any) -> None:
        column = column_of(self.name, values)
        count = len(column.values)
        if count == 0:
            return
        if self._values is None:
            self._type = column.type
            self._values = [] if column.type == "text" else \
                mapped((self._rows, *column.array.shape[1:]), column.array.dtype, self._folder)
        place = slice(self._done, self._done + count)
        if isinstance(column.values, list):
            self._values.extend(self._known.setdefault(text, text) for text in column.values)
        elif column.values.shape[1:] != self._values.shape[1:]:
            raise ValueError(f"{self.name!r} has lists of several lengths: an array has rows of one width")
        else:
            self._values[place] = column.values
        if column.missing is not None:
            if self._missing is None:
                self._missing = np.zeros((self._rows, *column.missing.shape[1:]), bool)
            self._missing[place] = column.missing
        self._done += count

    def finish(self) -> Column:
        values = np.empty(0, np.int64) if self._values is None else self._values
        return Column(self.name, values, self._missing, self._type)


def mapped(shape: tuple[int, ...], dtype: np.dtype, folder: str) -> np.ndarray:
    """Creates an array in a file that has no name, so that nothing is left of it after any end of the process."""
    size = int(np.prod(shape)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    import tempfile  # a slow import

    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)  # a write to a mapping of a full disk would end the process
        except OSError as error:
            raise OutOfSpace(f"{folder!r} has no room for {size} bytes of columns: {error.strerror}") from error
        return np.memmap(file, dtype, "r+", shape=shape)
