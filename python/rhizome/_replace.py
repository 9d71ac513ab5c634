"""New stores at paths where there is one already."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from . import _core
from .errors import AlreadyExists, Busy, Error


@contextlib.contextmanager
def replaced(path: str, *, overwrite: bool) -> Iterator[str]:
    """Yields the path at which the block creates a store. If it succeeds and ``overwrite``, the new store takes the
    place of the old one; otherwise the old one is as before.

    Errors: AlreadyExists, there is something else than a store at ``path``; Busy, a process writes to the old store.
    """
    if not overwrite or not os.path.lexists(path):
        yield path
        return
    target = os.path.realpath(path)
    if not _core.is_store(target):
        if not os.path.isdir(target) or os.listdir(target):
            raise AlreadyExists(f"{path!r} is no store, so overwrite=True does not replace it: remove it, or give another "
                                "path")
        yield path
        return
    _check_no_writer(target)
    new, old = (f"{target}.{os.getpid()}.{which}" for which in ("new", "old"))
    try:
        yield new
        _check_no_writer(target)
        os.rename(target, old)
        os.rename(new, target)
    except BaseException:
        if os.path.exists(old) and not os.path.exists(target):
            os.rename(old, target)
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(old)


def _check_no_writer(path: str) -> None:
    """Raises Busy if a process has the store open for writing. A store that cannot be opened has no writer."""
    try:
        _core.check_no_writer(path)
    except Busy:
        raise
    except Error:
        pass
