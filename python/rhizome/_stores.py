"""Jobs on a store that need not be open in this process: verification, repair, backups, and changes of arrays."""

from __future__ import annotations

import logging
import os
from typing import Any, Literal

from . import _core
from ._arrow_files import array_of_file, is_arrow_file
from ._edges import ids_of
from ._types import (
    AddReport, BackupInfo, BackupReport, CleanReport, PathLike, Progress, RepairReport, VerifyReport, as_bytes, as_count,
    as_path, as_seconds, as_text, is_path, lent,
)
from ._values import matrix_of

Layout = Literal["row", "chunk"]


def verify(path: PathLike, *, progress: Progress | None = None) -> VerifyReport:
    """Reads every byte of a store and compares it with the committed data, then checks the consistency of the graph.

    Damage is reported in the result, and does not raise. ``progress``: called with (phase, done, total).
    Errors: StoreNotFound; IoError; Unsupported; KeyboardInterrupt.
    """
    return VerifyReport(**_core.verify(as_path(path), progress))


def clean(path: PathLike, *, dry_run: bool = False, scratch: PathLike | None = None) -> CleanReport:
    """Removes scratch files of jobs that ended, such as killed ones; files of running jobs remain.

    A killed job cannot be resumed afterwards. ``dry_run``: remove nothing. ``scratch``: a folder that jobs on this
    store used for their scratch files, to be cleaned as well. A writer may have the store open.
    Errors: StoreNotFound; IoError.
    """
    elsewhere = "" if scratch is None else as_path(scratch)
    return CleanReport(*_core.clean(as_path(path), bool(dry_run), elsewhere))


def repair(path: PathLike, *, fill_holes: bool = False, dry_run: bool = False, wait: float = 0,
           progress: Progress | None = None) -> RepairReport:
    """Repairs a damaged store as far as its remaining data allows; replaced files are moved to a folder next to it.

    ``fill_holes``: keep arrays that lost rows, with zeros (or "none") in these, instead of dropping them.
    ``dry_run``: change nothing, and report what would be done. No process may have the store open for writing;
    ``wait``: the seconds to wait for it.
    Errors: StoreNotFound; Busy; IoError, something could not be read, which does not prove damage; OutOfSpace.
    """
    return RepairReport(**_core.repair(as_path(path), bool(fill_holes), bool(dry_run), as_seconds(wait, "wait"),
                                       progress))


def backup(path: PathLike, folder: PathLike, *, keep: int = 0, progress: Progress | None = None) -> BackupReport:
    """Copies the current state of a store into ``folder``, next to earlier backups of it, with which it shares files.

    ``keep``: number of newest backups to keep; 0: all. A writer may continue concurrently.
    Errors: StoreNotFound; AlreadyExists, ``folder`` is not a backup folder of this store; Busy; Corruption, a file of
    the store is damaged; OutOfSpace.
    """
    return BackupReport(**_core.backup(as_path(path), as_path(folder), as_count(keep, "keep"), progress))


def backups(folder: PathLike) -> list[BackupInfo]:
    """Returns the backups in a folder, oldest first. Errors: StoreNotFound, it is not a backup folder; Corruption."""
    return [BackupInfo(*one) for one in _core.backups(as_path(folder))]


def restore(folder: PathLike, path: PathLike, *, number: int | None = None, progress: Progress | None = None) -> int:
    """Creates a store at ``path`` from a backup in ``folder``: the one with ``number``, or the newest. Returns its
    number.

    Errors: StoreNotFound, no such backup; AlreadyExists; Corruption, the backup is damaged; OutOfSpace. After any
    exception there is no store.
    """
    chosen = None if number is None else as_count(number, "number")
    return _core.restore(as_path(folder), as_path(path), chosen, progress)


def add_array(path: PathLike, name: str, rows: Any, *, ids: Any = None, vertex_type: str | None = None,
              layout: Layout = "row", new_version: bool = False, live: bool = False, keep: int = 0, memory: int | str = 0, wait: float = 0,
              progress: Progress | None = None) -> AddReport:
    """Adds an array of vertices to a store. Open graphs see it after ``refresh()``.

    ``rows``: [n] or [n, dim], of a type that ``ingest`` accepts, or a path (.npy, Zarr v3; Parquet or Arrow IPC with a
    column of this name, or columns that become those of the rows). Row i belongs to the i-th vertex that is not deleted,
    or to ``ids[i]``: external ids [n], or the path of a file with one per line; in Parquet and Arrow IPC a column ``id``.
    Vertices without a row get zeros (-1 in ``label``, 255 in ``split``), which a note says if there are no ``ids``;
    ``append_rows`` can add their rows later. An array [0, dim] has no rows yet.
    ``vertex_type``: binds the array to the vertices of this type: row i belongs to the i-th of them, and only their rows
    are stored.
    ``layout``: "row" for reading random rows, "chunk" (compressed) for scans.
    ``new_version``: if the name exists, add the next version, name@2; ``live``: let name@live refer to it; ``keep``:
    afterwards drop all versions except this number of newest ones, and those with an alias; 0: drop none.
    ``memory``: maximum memory in bytes, or a text such as "4G"; 0: 1 GiB. ``wait``: the seconds to wait, at the end,
    while a process has the store open for writing; 0: raise Busy at once.
    Errors: StoreNotFound; AlreadyExists; Busy, a process (possibly this one) has the store open for writing; NotFound,
    an unknown id; InvalidArgument, the number of rows does not match, or there is no such vertex type; OutOfSpace;
    KeyboardInterrupt. On error nothing is added.
    """
    arguments = _core.AddArguments()
    arguments.layout = as_text(layout, "layout")
    arguments.vertex_type = "" if vertex_type is None else as_text(vertex_type, "vertex_type")
    arguments.new_version = bool(new_version)
    arguments.live = bool(live)
    arguments.keep = as_count(keep, "keep")
    arguments.wait_seconds = as_seconds(wait, "wait")
    return _add_rows(arguments, False, path, name, rows, ids, memory, progress)


def _noted(path: str, report: AddReport, count: int, vertex_type: str) -> AddReport:
    """Notes in a report of an array whose rows were given in order that the last of ``count`` vertices have no row."""
    from ._graph import open as open_graph

    if report.rows_read in (0, count):
        return report
    with open_graph(path, topology="disk") as graph:
        others = {"label": "-1", "split": "255"}.get(report.name.partition("@")[0], "zeros")
        others = graph[report.name].attributes.get("missing", others)
    of_type = f" of type {vertex_type!r}" if vertex_type else ""
    note = f"{report.name!r} has rows for {report.rows_read:,} of {count:,} vertices{of_type}: the others have {others}"
    logging.getLogger("rhizome").warning("%s", note)
    return report._replace(notes=[note])


def append_rows(path: PathLike, name: str, rows: Any, *, ids: Any = None, memory: int | str = 0, wait: float = 0,
                progress: Progress | None = None) -> AddReport:
    """Appends rows for the vertices that were added after an array's rows.

    ``name``: "emb", "emb@3" or "emb@live". ``rows``, ``ids``, ``memory``, ``wait``: as for ``add_array``; ``ids`` must name
    exactly these vertices. The result becomes the next version of the array.
    Errors: as for ``add_array``; InvalidArgument, every vertex has a row already.
    """
    arguments = _core.AddArguments()
    arguments.wait_seconds = as_seconds(wait, "wait")
    return _add_rows(arguments, True, path, name, rows, ids, memory, progress)


def _add_rows(arguments: _core.AddArguments, append: bool, path: PathLike, name: str, rows: Any, ids: Any,
              memory: int | str, progress: Progress | None) -> AddReport:
    arguments.path = as_path(path)
    arguments.name = as_text(name, "name")
    if is_path(rows) and is_arrow_file(rows):
        rows, own = array_of_file(name.partition("@")[0], rows, os.path.dirname(os.path.abspath(arguments.path)),
                                  ids is not None)
        ids = own if ids is None and own is not None else ids
    matrix = None if is_path(rows) else matrix_of(name, rows)
    arguments.rows, arguments.dtype = (as_path(rows), "") if matrix is None else lent(matrix)
    arguments.memory_bytes = as_bytes(memory)
    if ids is None or is_path(ids):
        arguments.ids = "" if ids is None else as_path(ids)
        found = _core.add_rows(arguments, append, progress)
        count = found.pop("vertices")
        report = AddReport(**found)
        if append or ids is not None:
            return report
        return _noted(arguments.path, report, count, arguments.vertex_type)
    names = [str(one) for one in ids_of("ids", ids)]
    if any(set(one) & set("\t\r\n") for one in names):
        raise ValueError("ids that hold a tab or the end of a line cannot be given here")
    import tempfile  # a slow import

    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8", newline="\n") as file:
        file.writelines(one + "\n" for one in names)
        file.flush()
        arguments.ids = file.name
        found = _core.add_rows(arguments, append, progress)
        del found["vertices"]
        return AddReport(**found)


def drop_array(path: PathLike, name: str, *, all_versions: bool = False, wait: float = 0) -> None:
    """Drops an array, a version (emb@3) without an alias, or all versions with their aliases.

    Its files are removed when no process reads them any more. ``wait``: the seconds to wait while a process writes.
    Errors: StoreNotFound; NotFound, listing the existing arrays; Busy; InvalidArgument, an alias refers to it.
    """
    _core.drop_array(as_path(path), as_text(name, "name"), bool(all_versions), as_seconds(wait, "wait"))


def set_alias(path: PathLike, name: str, alias: str, version: int | None, *, wait: float = 0) -> None:
    """Lets ``name@alias`` refer to a version, or removes the alias if ``version`` is None.

    ``wait``: the seconds to wait while a process writes.

    Errors: StoreNotFound; NotFound, no such array, version or alias; InvalidArgument, not a valid alias name; Busy.
    """
    number = None if version is None else as_count(version, "version", least=1)
    _core.set_alias(as_path(path), as_text(name, "name"), as_text(alias, "alias"), number, as_seconds(wait, "wait"))
