"""An array of a graph, with what other libraries want of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._types import block_rows

if TYPE_CHECKING:
    from ._graph import Graph


class Array(_core.Array):
    """An array with a row for each vertex, as ``graph[name]`` returns it.

    Threads: any. It works as long as its graph is open.
    """

    __slots__ = ("graph",)

    graph: Graph  #: it is of; ``Graph.__getitem__`` sets it, for an __init__ in Python would double its time

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterates over the rows of all vertices by their ids, those of deleted ones too, at one commit.

        They are the rows of ``numpy.asarray``, read block by block; ``batches`` is faster.
        Errors: NotFound; Corruption; IoError; ValueError, the graph was closed meanwhile.
        """
        return self._rows(self.graph.snapshot()[self.name])

    @staticmethod
    def _rows(fixed: Array) -> Iterator[np.ndarray]:
        count, block = len(fixed), block_rows(fixed)
        for first in range(0, count, block):
            yield from fixed.read(np.arange(first, min(first + block, count)))

    # An array of NumPy's compares all values for ``in``; and ``reversed`` would take positions for the user's ids.
    __contains__ = None
    __reversed__ = None

    def __dlpack__(self, **options: Any) -> Any:
        """Reads the rows of all vertices, as ``numpy.asarray``, for ``torch.as_tensor`` and others."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns that of the host's memory."""
        return 1, 0

    def arrow_batches(self, rows: int | None = None) -> Any:
        """Returns a pyarrow.RecordBatchReader over all rows, which reads a block when it is asked for one.

        ``rows``: at most so many in a block; by default what 16 MiB hold, and no more than 65,536.
        Columns: ``vertex``, the vertex ids; ``id``, the user's own; and the rows under the array's name, a list of a
        fixed size unless a row has one value. Order and errors: those of ``batches``.
        Errors: ImportError, there is no pyarrow.
        """
        from . import _tables
        return _tables.arrow_batches(self, rows)

    def to_arrow(self) -> Any:
        """Returns all rows as a pyarrow.Table, in memory, with the columns of ``arrow_batches``."""
        return self.arrow_batches().read_all()

    def to_parquet(self, path: str | os.PathLike[str], *, rows: int | None = None, **options: Any) -> int:
        """Writes all rows to a Parquet file, block by block, with the columns of ``arrow_batches``.

        ``rows``: of a row group. ``options``: those of pyarrow.parquet.ParquetWriter; nothing is compressed unless
        ``compression`` says so. Returns the number of rows. There is no file at ``path`` unless all of it is there;
        one that is there is replaced.
        """
        from . import _tables
        return _tables.to_parquet(self, path, rows, **options)

    def zarr(self) -> Any:
        """Opens its files as a zarr.Array, to read, without a copy.

        Its rows are in the order of the disk; ``vertex_id`` beside it says whose each is (docs/LIBRARY.md, "Arrays in
        other programs"). It goes on working when the graph is closed, and as long as the generation is kept after a
        compaction. Rows that were written since the last compaction are not in the files: a warning says so.
        Errors: ImportError, there is no zarr-python 3.
        """
        from . import _tables
        return _tables.to_zarr(self)
