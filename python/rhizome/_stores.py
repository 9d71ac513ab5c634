"""Jobs on a store that need not be open here: verification, repair, backups, and its arrays."""

from __future__ import annotations

from typing import Any, Literal

from . import _core
from ._types import (
    AddReport, BackupInfo, BackupReport, PathLike, Progress, RepairReport, VerifyReport, as_bytes, as_count, as_ids,
    as_matrix, as_path, as_text, is_path,
)

Layout = Literal["row", "chunk"]


def verify(path: PathLike, *, progress: Progress | None = None) -> VerifyReport:
    """Reads every byte of a store and compares it with what was committed, then the graph with itself.

    Damage is in the report, and raises nothing. ``progress``: called with (phase, done, total).
    Errors: StoreNotFound; IoError; Unsupported; KeyboardInterrupt.
    """
    return VerifyReport(**_core.verify(as_path(path), progress))


def repair(path: PathLike, *, fill_holes: bool = False, dry_run: bool = False,
           progress: Progress | None = None) -> RepairReport:
    """Repairs a damaged store as far as its own bytes allow; what it replaces goes to a folder beside it.

    ``fill_holes``: keep arrays that lost rows, with zeros (or "none") in these, instead of dropping them.
    ``dry_run``: change nothing, and report what would be done. Nobody may have the store open for writing.
    Errors: StoreNotFound; Busy; IoError, something could not be read, which proves no damage; OutOfSpace.
    """
    return RepairReport(**_core.repair(as_path(path), bool(fill_holes), bool(dry_run), progress))


def backup(path: PathLike, folder: PathLike, *, keep: int = 0, progress: Progress | None = None) -> BackupReport:
    """Copies a store as it is now into ``folder``, beside earlier backups of it, whose files it shares.

    ``keep``: only so many of the newest backups; 0: all. A writer may go on meanwhile.
    Errors: StoreNotFound; AlreadyExists, ``folder`` is something else; Busy; Corruption, a file of the store is
    damaged; OutOfSpace.
    """
    return BackupReport(**_core.backup(as_path(path), as_path(folder), as_count(keep, "keep"), progress))


def backups(folder: PathLike) -> list[BackupInfo]:
    """Returns the backups in a folder, oldest first. Errors: StoreNotFound, it is no such folder; Corruption."""
    return [BackupInfo(*one) for one in _core.backups(as_path(folder))]


def restore(folder: PathLike, path: PathLike, *, number: int | None = None, progress: Progress | None = None) -> int:
    """Makes a store at ``path`` from a backup in ``folder``: that of ``number``, or the newest. Returns its number.

    Errors: StoreNotFound, no such backup; AlreadyExists; Corruption, the backup is damaged; OutOfSpace. Whatever is
    raised, no store is there then.
    """
    chosen = None if number is None else as_count(number, "number")
    return _core.restore(as_path(folder), as_path(path), chosen, progress)


def add_array(path: PathLike, name: str, rows: Any, *, ids: Any = None, layout: Layout = "row",
              new_version: bool = False, live: bool = False, keep: int = 0, memory: int | str = 0,
              progress: Progress | None = None) -> AddReport:
    """Adds an array of vertices to a store. Graphs that are open see it after ``refresh()``.

    ``rows``: [n] or [n, dim], of the types that ``ingest`` takes, or a path (.npy, Zarr v3). Row i belongs to the
    i-th vertex that is not deleted, or to ``ids[i]``: your own ids [n], or the path of a file with one a line.
    Vertices without a row get zeros (-1 in ``label``, 255 in ``split``), and may get theirs by ``append_rows``.
    ``layout``: "row" for reading random rows, "chunk" (compressed) for scans.
    ``new_version``: if the name is taken, add the next version, name@2; ``live``: let name@live stand for it at once;
    ``keep``: drop all versions then but so many of the newest, and those with an alias; 0: drop none.
    ``memory``: a bound in bytes, or a text such as "4G"; 0: 1 GiB.
    Errors: StoreNotFound; AlreadyExists; Busy, somebody (this process, too) has the store open for writing; NotFound,
    an unknown id; InvalidArgument, a number of rows that does not fit; OutOfSpace; KeyboardInterrupt: all or nothing.
    """
    arguments = _core.AddArguments()
    arguments.layout = as_text(layout, "layout")
    arguments.new_version = bool(new_version)
    arguments.live = bool(live)
    arguments.keep = as_count(keep, "keep")
    return _add_rows(arguments, False, path, name, rows, ids, memory, progress)


def append_rows(path: PathLike, name: str, rows: Any, *, ids: Any = None, memory: int | str = 0,
                progress: Progress | None = None) -> AddReport:
    """Appends rows to an array that has fewer than there are vertices, for those that came after its rows.

    ``name``: "emb", "emb@3" or "emb@live". ``rows``, ``ids``, ``memory``: as ``add_array`` has them; ``ids`` must be
    those of just these vertices. The result takes the array's place, as its next version.
    Errors: those of ``add_array``; InvalidArgument, every vertex has a row already.
    """
    return _add_rows(_core.AddArguments(), True, path, name, rows, ids, memory, progress)


def _add_rows(arguments: _core.AddArguments, append: bool, path: PathLike, name: str, rows: Any, ids: Any,
              memory: int | str, progress: Progress | None) -> AddReport:
    arguments.path = as_path(path)
    arguments.name = as_text(name, "name")
    matrix = None if is_path(rows) else as_matrix(rows, name)
    arguments.rows = as_path(rows) if matrix is None else matrix
    arguments.dtype = "" if matrix is None else matrix.dtype.name
    arguments.memory_bytes = as_bytes(memory)
    if ids is None or is_path(ids):
        arguments.ids = "" if ids is None else as_path(ids)
        return AddReport(**_core.add_rows(arguments, append, progress))
    names = [str(one) for one in as_ids(ids, "ids")]
    if any(set(one) & set("\t\r\n") for one in names):
        raise ValueError("ids that hold a tab or the end of a line cannot be given here")
    import tempfile  # pylint: disable=import-outside-toplevel  # it imports much

    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8", newline="\n") as file:
        file.writelines(one + "\n" for one in names)
        file.flush()
        arguments.ids = file.name
        return AddReport(**_core.add_rows(arguments, append, progress))


def drop_array(path: PathLike, name: str, *, all_versions: bool = False) -> None:
    """Drops an array, a version (emb@3) that no alias stands for, or all versions with their aliases.

    Its files go when nobody reads them any more.
    Errors: StoreNotFound; NotFound, listing what there is; Busy; InvalidArgument, an alias stands for it.
    """
    _core.drop_array(as_path(path), as_text(name, "name"), bool(all_versions))


def set_alias(path: PathLike, name: str, alias: str, version: int | None) -> None:
    """Lets ``name@alias`` stand for a version from now on, or, if that is None, for nothing any more.

    Errors: StoreNotFound; NotFound, no such array, version or alias; InvalidArgument, no name for an alias; Busy.
    """
    number = None if version is None else as_count(version, "version", least=1)
    _core.set_alias(as_path(path), as_text(name, "name"), as_text(alias, "alias"), number)
