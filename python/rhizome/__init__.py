"""Rhizome: graphs and embeddings larger than memory, in a folder.

    import rhizome as rz

    rz.ingest("g.rz", edges=edge_index, arrays={"feat": x})
    with rz.open("g.rz", memory="2G") as g:
        rows = g["feat"][[0, 1, 2]]
        sub = g.sampler([10, 10]).sample([0, 1, 2])

The guide is docs/PYTHON.md. Only NumPy is imported.
"""

from . import errors
from ._array import Array
from ._batch import Batch
from ._core import VERSION as __version__
from ._graph import Graph, open
from ._ingest import ingest
from ._links import Link, evaluate
from ._loader import LentRows, Loader, LoaderMemory, LoaderReport, Minibatch
from ._masked import MaskedRows
from ._sampler import Sampler
from ._schema import create
from ._sniff import ColumnPlan, FilePlan, InputPlan, sniff
from ._stores import add_array, append_rows, backup, backups, clean, drop_array, repair, restore, set_alias, verify
from ._types import (
    AddReport, ArrayInfo, BackupInfo, BackupReport, Change, CleanReport, CompactReport, EdgeBlock, ExportReport,
    IngestReport, LogLine, NeighborLists, Neighbors, Point, RepairReport, Similar, Subgraph, VerifyReport, VertexBlock,
)
from ._verbs import import_, infer, train
from .errors import (
    AlreadyExists, Busy, Corruption, Error, Interrupted, InvalidArgument, IoError, NotFound, OutOfMemory, OutOfSpace,
    PermissionDenied, StoreNotFound, Unsupported,
)

__all__ = [
    "AddReport", "AlreadyExists", "Array", "ArrayInfo", "BackupInfo", "BackupReport", "Batch", "Busy", "Change",
    "CleanReport", "ColumnPlan", "CompactReport", "Corruption", "EdgeBlock", "Error", "ExportReport", "FilePlan",
    "Graph", "IngestReport", "InputPlan", "Interrupted", "InvalidArgument", "IoError", "LentRows", "Link", "Loader",
    "LoaderMemory", "LoaderReport", "LogLine", "MaskedRows", "Minibatch", "NeighborLists", "Neighbors", "NotFound",
    "OutOfMemory", "OutOfSpace", "PermissionDenied", "Point", "RepairReport", "Sampler", "Similar", "StoreNotFound",
    "Subgraph", "Unsupported", "VerifyReport", "VertexBlock", "__version__", "add_array", "append_rows", "backup",
    "backups", "clean", "create", "drop_array", "errors", "evaluate", "import_", "infer", "ingest", "open",
    "repair", "restore", "set_alias", "sniff", "train", "verify",
]
