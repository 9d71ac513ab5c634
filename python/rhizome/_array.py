"""An array of a graph, with conversions for other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._types import as_integers, as_text, block_rows

if TYPE_CHECKING:
    from ._graph import Graph


class Array(_core.Array):
    """An array with a row for each vertex, as ``graph[name]`` returns it.

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
        -1, or the position of the text among all texts of the array. In ``label`` the codes are the classes.
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
        from . import _tables
        return _tables.arrow_batches(self, rows)

    def to_arrow(self) -> Any:
        """Returns all rows as a pyarrow.Table in memory, with the columns of ``arrow_batches``."""
        return self.arrow_batches().read_all()

    def to_parquet(self, path: str | os.PathLike[str], *, rows: int | None = None, **options: Any) -> int:
        """Writes all rows to a Parquet file, block by block, with the columns of ``arrow_batches``.

        ``rows``: rows per row group. ``options``: options of pyarrow.parquet.ParquetWriter; data is not compressed
        unless ``compression`` is given. Returns the number of rows. The file appears at ``path`` only when it is
        complete; an existing file is replaced.
        """
        from . import _tables
        return _tables.to_parquet(self, path, rows, **options)

    def zarr(self) -> Any:
        """Opens the files of the array as a read-only zarr.Array, without a copy.

        Its rows are in disk order; the array ``vertex_id`` next to it holds the vertex of each row (docs/LIBRARY.md,
        "Arrays in other programs"). It remains usable after the graph is closed, as long as the generation is kept
        after a compaction. Rows written since the last compaction are not in the files; a warning reports this.
        Errors: ImportError, zarr-python 3 is not installed.
        """
        from . import _tables
        return _tables.to_zarr(self)
