"""The index of a pandas table, which is no column, but says which rows are left after shuffling and filtering."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._columns import column_of

_LOG = logging.getLogger("rhizome")

#: Columns into which pandas writes an index that has no name.
UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")

#: Those of an index with one level.
_FIRST = ("", "Unnamed: 0", "__index_level_0__")


class Index(NamedTuple):
    """An index that is not 0, 1, 2, ..., or has a name."""

    name: str  #: "": it has none
    values: Any  #: None: of several levels
    what: str  #: in messages, such as "its index 'key'"
    counts: bool  #: whether it is 0, 1, 2, ...


def index_of(table: Any, columns: Mapping[str, Any]) -> Index | None:
    """Returns the index of a table: of pandas, or that pandas wrote into a table or file of Arrow. None: there is none, or
    it says nothing.

    ``columns``: those of the table.
    """
    rows = len(next(iter(columns.values()))) if columns else 0
    index = _of_pandas(table)
    if index is not None:
        found = _index(_names(index), index if index.nlevels == 1 else None, len(index))
    else:
        found = _of_arrow(_written(table), columns, rows)
    if found is not None:
        return found
    first = next((name for name in _FIRST if name in columns), None)
    if first is None or _counts(columns[first]):
        return None
    return Index("", columns[first], f"its column {first!r}, into which pandas wrote an index,", False)


def note_index_of_edges(table: Any) -> None:
    """Logs that the index of a pandas table of edges is left out, unless it numbers the rows."""
    index = _of_pandas(table)
    if index is None or type(index).__name__ == "RangeIndex" and index.name is None:
        return
    found = _index(_names(index), index if index.nlevels == 1 else None, len(index))
    if found is not None:
        _LOG.warning("a table of edges: %s is left out; reset_index() makes it a column", found.what)


def note_index_of_rows(name: str, values: Any) -> None:
    """Logs that the index of a pandas Series is not used, if it does not number the rows of an array of vertices."""
    index = _of_pandas(values)
    if index is not None and (index.nlevels > 1 or not _counts(index)):
        _LOG.warning("%r: the index of the Series is not 0, 1, 2, ..., and it is not used: its values are those of the "
                     "vertices 0, 1, 2, ... in this order; give a table with ids as nodes= otherwise", name)


def _of_pandas(values: Any) -> Any:
    return getattr(values, "index", None) if hasattr(values, "iloc") else None


def _names(index: Any) -> str:
    return ", ".join(str(name) for name in index.names if name is not None)


def _index(name: str, values: Any, rows: int) -> Index | None:
    counts = rows == 0 if values is None else _counts(values)
    if counts and not name:
        return None
    return Index(name, values, f"its index {name!r}" if name else "its index", counts)


def _written(table: Any) -> Sequence[Any]:
    """Returns the names of the columns that were an index of pandas, or a dict with the range that it was."""
    if hasattr(table, "index_columns"):
        return list(table.index_columns)
    return index_columns(getattr(table, "schema", None))


def index_columns(schema: Any) -> list[Any]:
    """Returns what pandas wrote about the index into a schema of Arrow: names of columns, or a dict with a range."""
    return list((getattr(schema, "pandas_metadata", None) or {}).get("index_columns", []))


def _of_arrow(written: Sequence[Any], columns: Mapping[str, Any], rows: int) -> Index | None:
    if len(written) == 1 and isinstance(written[0], dict):
        span = written[0]
        values = np.arange(int(span.get("start", 0)), int(span.get("stop", 0)), int(span.get("step", 1)))
        # Rows that Arrow has taken from a table keep the range of all.
        return _index("", values, rows) if len(values) == rows else None
    names = [name for name in written if isinstance(name, str) and name in columns]
    if not names:
        return None
    shown = ", ".join(name for name in names if not UNNAMED.fullmatch(name))
    return _index(shown, columns[names[0]] if len(names) == 1 else None, rows)


def _counts(values: Any) -> bool:
    """Returns whether values are 0, 1, 2, ..."""
    try:
        column = column_of("index", values)
    except (TypeError, ValueError):  # intervals, periods
        return False
    if len(column) == 0:
        return True
    return not isinstance(column.values, list) and column.values.dtype.kind in "iu" and not column.type and \
        column.first_missing is None and np.array_equal(column.values, np.arange(len(column)))
