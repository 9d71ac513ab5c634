"""Rhizome: graphs and embeddings larger than memory, in a folder.

    import rhizome as rz

    rz.ingest("g.rz", edges=edge_index, arrays={"feat": x})
    with rz.open("g.rz", memory="2G") as g:
        rows = g["feat"][[0, 1, 2]]
        sub = g.sampler([10, 10]).sample([0, 1, 2])

The guide is docs/PYTHON.md. Only NumPy is imported.
"""

from . import errors
from ._core import VERSION as __version__
from ._core import Array
from ._graph import Batch, Graph, Sampler, open, verify
from ._ingest import ingest
from ._types import (
    ArrayInfo, BackupReport, Change, CompactReport, IngestReport, NeighborLists, Neighbors, Subgraph, VerifyReport,
)
from .errors import (
    AlreadyExists, Busy, Corruption, Error, Interrupted, InvalidArgument, IoError, NotFound, OutOfMemory, OutOfSpace,
    PermissionDenied, StoreNotFound, Unsupported,
)

__all__ = [
    "AlreadyExists", "Array", "ArrayInfo", "BackupReport", "Batch", "Busy", "Change", "CompactReport", "Corruption",
    "Error", "Graph", "IngestReport", "Interrupted", "InvalidArgument", "IoError", "NeighborLists", "Neighbors",
    "NotFound", "OutOfMemory", "OutOfSpace", "PermissionDenied", "Sampler", "StoreNotFound", "Subgraph",
    "Unsupported", "VerifyReport", "__version__", "errors", "ingest", "open", "verify",
]
