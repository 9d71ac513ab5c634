"""The exceptions of Rhizome. Each is also a subclass of the matching built-in Python exception."""

from __future__ import annotations

import errno
import re


class Error(Exception):
    """An error of the engine.

    ``message`` says what failed, where, and what to do; ``code`` is the kind of error, such as ``"not_found"``.
    """

    code = "error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class InvalidArgument(Error, ValueError):
    """Wrong usage or malformed input; retrying does not help."""

    code = "invalid_argument"


class AlreadyExists(Error, FileExistsError):
    """The path, array or name exists already."""

    code = "already_exists"


class NotFound(Error, LookupError):
    """No such vertex, array, type or commit; the message names it."""

    code = "not_found"


class StoreNotFound(NotFound, FileNotFoundError):
    """No such store or file."""


class PermissionDenied(Error, PermissionError):
    """The operating system denied access."""

    code = "permission_denied"


class IoError(Error, OSError):
    """A read, write or sync failed."""

    code = "io_error"


class Corruption(Error):
    """Stored bytes differ from the written ones; the message names file and position."""

    code = "corruption"


class Busy(Error, BlockingIOError):
    """A lock is held. ``pid`` is the process that holds it (possibly this one), or None if unknown."""

    code = "busy"

    @property
    def pid(self) -> int | None:
        found = re.search(r"\b(?:process|pid) (\d+)", self.message)
        return int(found[1]) if found else None


class OutOfSpace(Error, OSError):
    """The disk, a quota or a file size limit is exhausted; ``errno`` is ENOSPC."""

    code = "out_of_space"

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.errno = errno.ENOSPC


class OutOfMemory(Error, MemoryError):
    """The memory limit is too small for the request; the message reports a sufficient size."""

    code = "out_of_memory"


class Unsupported(Error, NotImplementedError):
    """A newer format of the store, or a feature that this build does not have."""

    code = "unsupported"


class Interrupted(Error):
    """The job was cancelled; nothing was published. (Ctrl-C raises KeyboardInterrupt instead.)"""

    code = "interrupted"


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgument, AlreadyExists, NotFound, PermissionDenied, IoError, Corruption, Busy,
        OutOfSpace, OutOfMemory, Unsupported, Interrupted,
    )
}


#: Jobs open stores and files, and look for what a store contains: the message says which of these was not found.
_CONTENTS = re.compile(r"\bthere is no (array|alias|edge type|vertex type|edge attribute|vertex)\b|"
                       r": commit \d+ of generation \d+ no longer exists\b")
_STORE = re.compile(r"there is no Rhizome store at |: No such file or directory$")


def _of_code(code: str, message: str, about: str = "contents") -> Error:
    """Creates the exception of a status. ``about``: what was not found, if the message does not say it: "store" (a store
    or file) or "contents"."""
    kind = _BY_CODE[code]
    if kind is NotFound and not _CONTENTS.search(message) and (about == "store" or _STORE.search(message)):
        kind = StoreNotFound
    return kind(message)
