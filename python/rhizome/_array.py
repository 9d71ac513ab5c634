"""An array of a graph, with conversions for other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._repr import Box, as_html, boxed
from ._types import as_array, as_integers, as_text, block_rows

if TYPE_CHECKING:
    from ._graph import Graph


class Array(_core.Array):
    """An array with a row for each vertex id, as ``graph[name]`` returns it.

    Brackets select as in NumPy: ``a[7]``, ``a[[7, 8]]``, ``a[mask]``, ``a[10:20]``, ``a[ids, 0]``, ``a[..., -1]``. Rows
    are selected by *vertex ids*; a str, or a list of them, selects by external ids, and ``graph.find`` converts others.
    One difference: a negative vertex id is an IndexError, because -1 usually means "none". If the array has the
    attribute ``null``, the result is a MaskedRows: elements without a value are masked.

    Threads: any. It is valid as long as its graph is open.
    """

    __slots__ = ("graph",)

    graph: Graph  #: set by ``Graph.__getitem__``, because an __init__ in Python would double the construction time

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterates over the rows of all vertices by vertex id, including deleted ones, at one commit.

        The rows equal the result of ``numpy.asarray``, but are read block by block; ``batches`` is faster.
        Errors: NotFound; Corruption; IoError; ValueError, the graph was closed during the iteration.
        """
        return self._rows(self.graph.snapshot()[self.name])

    @staticmethod
    def _rows(fixed: Array) -> Iterator[np.ndarray]:
        count, block = len(fixed), block_rows(fixed)
        for first in range(0, count, block):
            yield from fixed.read(np.arange(first, min(first + block, count)))

    @property
    def vertex_type(self) -> str | None:
        """The vertex type that the array is bound to: other vertices have no rows. None: all vertices have one.

        ``a[graph.vertices_of(a.vertex_type)]`` are all its rows.
        """
        return self.attributes.get("vertex_type")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, values per row). There is a row for each vertex id, including those of deleted vertices."""
        return len(self), self.dim

    @property
    def ndim(self) -> int:
        """The number of dimensions: 2."""
        return 2

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self) * self.dim

    # NumPy would compare all values for ``in``, and ``reversed`` would confuse positions with external ids.
    __contains__ = None
    __reversed__ = None

    def __dlpack__(self, **options: Any) -> Any:
        """Reads the rows of all vertices, like ``numpy.asarray``, for ``torch.as_tensor`` and others."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the device of host memory."""
        return 1, 0

    def texts(self, ids: Any) -> list[str | None]:
        """Returns the texts of vertices in an array of texts, such as a property ``title``; None: it has no text.

        ``ids``: vertex ids int64 [n], or anything that NumPy converts to integers. Brackets return the codes instead:
        -1, or the position of the text among all texts of the array, which never changes. In ``label`` the codes are
        the classes.
        Errors: InvalidArgument, the array holds numbers; IndexError; TypeError; Corruption; IoError.
        """
        return _core.texts_of_vertices(self.graph._core, self.name, ids)

    def text_of(self, codes: Any) -> list[str | None]:
        """Returns the texts of codes, int64 [n]; None for -1.

        Errors: InvalidArgument, the array holds numbers, or there is no such code; TypeError; Corruption; IoError.
        """
        return _core.texts_of_codes(self.graph._core, self.name, as_integers(codes, "codes"))

    def code_of(self, text: str) -> int | None:
        """Returns the code of a text; None if the array does not have it.

        Errors: InvalidArgument, the array holds numbers; TypeError; Corruption; IoError.
        """
        return _core.code_of_text(self.graph._core, self.name, as_text(text, "a text"))

    def arrow_batches(self, rows: int | None = None) -> Any:
        """Returns a pyarrow.RecordBatchReader over all rows, which reads each block on demand.

        ``rows``: maximum number of rows per block; by default as many as fit in 16 MiB, but at most 65,536.
        Columns: ``vertex``, the vertex ids; ``id``, the external ids; and the rows under the array's name, as a
        fixed-size list unless a row has one value. Order and errors: as for ``batches``.
        Errors: ImportError, pyarrow is not installed.
        """
        from . import _to_arrow
        return _to_arrow.arrow_batches(self, rows)

    def to_arrow(self) -> Any:
        """Returns all rows as a pyarrow.Table in memory, with the columns of ``arrow_batches``."""
        return self.arrow_batches().read_all()

    def to_pandas(self) -> Any:
        """Returns all rows as a pandas.DataFrame in memory, in the order of ``arrow_batches``.

        Its index are the external ids. Columns: the array's name if a row has one value, else name_0, name_1, ...
        Errors: ImportError, pandas is not installed.
        """
        from . import _to_arrow
        return _to_arrow.array_frame(self)

    def to_parquet(self, path: str | os.PathLike[str], *, rows: int | None = None, **options: Any) -> int:
        """Writes all rows to a Parquet file, block by block, with the columns of ``arrow_batches``.

        ``rows``: rows per row group. ``options``: options of pyarrow.parquet.ParquetWriter; data is not compressed
        unless ``compression`` is given. Returns the number of rows. The file appears at ``path`` only when it is
        complete; an existing file is replaced.
        """
        from . import _to_arrow
        return _to_arrow.to_parquet(self, path, rows, **options)

    def zarr(self) -> Any:
        """Opens the files of the array as a read-only zarr.Array, without a copy.

        Its rows are in disk order; the array ``vertex_id`` next to it holds the vertex of each row (docs/LIBRARY.md,
        "Arrays in other programs"). It remains usable after the graph is closed, as long as the generation is kept
        after a compaction. Rows written since the last compaction are not in the files; a warning reports this.
        Errors: ImportError, zarr-python 3 is not installed.
        """
        from . import _tables
        return _tables.to_zarr(self)

    __repr__ = boxed
    _repr_html_ = as_html

    def _box(self) -> Box:
        return Box(f"rhizome.Array {self.name!r}", [
            ("rows", f"{len(self):,}"), ("values per row", f"{self.dim:,}"), ("dtype", self.dtype.name),
            ("layout", self.layout), *sorted(self.attributes.items())])


def select(array: Array, key: Any) -> np.ndarray:
    """Returns ``array[key]`` for every key except one vertex and arrays of vertex ids, which the engine's Array reads.

    Only the selected rows are read; NumPy applies the rest of the key to them.
    Errors: IndexError; TypeError; NotFound, an unknown external id.
    """
    parts = _without_ellipsis(list(key) if isinstance(key, tuple) else [key])
    at = next((i for i, part in enumerate(parts) if part is not None), len(parts))
    if at == len(parts):
        parts.append(slice(None))
    ids, chosen = _rows_of(array, parts[at])
    rows = array.read(ids)
    if len(parts) == 1 and (isinstance(chosen, slice) or (np.ndim(chosen) == 1 and chosen.dtype != np.bool_)):
        return rows
    index = (*parts[:at], chosen, *parts[at + 1:])
    if isinstance(key, tuple) and any(part is Ellipsis for part in key):
        index += (Ellipsis,)  # one element is then an array without dimensions, as in NumPy
    selected: np.ndarray = rows[index]
    return selected


def _without_ellipsis(parts: list[Any]) -> list[Any]:
    """Replaces an ellipsis by as many slices as there are dimensions left."""
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if not places:
        return parts
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    taken = sum(np.ndim(part) if _is_mask(part) else 1 for part in parts if part is not None and part is not Ellipsis)
    return [*parts[:places[0]], *[slice(None)] * (2 - taken), *parts[places[0] + 1:]]


def _is_mask(part: Any) -> bool:
    return not isinstance(part, (str, slice)) and as_array(part).dtype == np.bool_


def _rows_of(array: Array, part: Any) -> tuple[np.ndarray, Any]:
    """Returns the vertex ids that an index of rows selects, [n], and the index of these n rows that takes its place."""
    if isinstance(part, slice):
        return np.arange(*part.indices(len(array)), dtype=np.int64), slice(None)
    if isinstance(part, str):
        return np.array([array.graph.find(part)]), 0
    ids = as_array(part)
    if ids.dtype.kind in "OUT" and ids.ndim == 1 and all(isinstance(one, str) for one in ids.tolist()):
        ids = array.graph.find(ids.tolist())
    if ids.size == 0 and not isinstance(part, np.ndarray):
        ids = ids.astype(np.int64)
    if ids.dtype == np.bool_ and ids.ndim in (1, 2):
        if ids.shape != array.shape[:ids.ndim]:
            raise IndexError(f"a mask of shape {ids.shape} does not fit an array of shape {array.shape}")
        rows = np.flatnonzero(ids if ids.ndim == 1 else ids.any(axis=1))
        return rows, np.arange(len(rows)) if ids.ndim == 1 else ids[rows]
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{array.name!r} is indexed by vertex ids (int), slices, masks of bool or external ids (str), not "
                        f"by {type(part).__name__ if ids.ndim == 0 else ids.dtype}")
    return ids.reshape(-1), 0 if ids.ndim == 0 else np.arange(ids.size).reshape(ids.shape)
