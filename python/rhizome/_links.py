"""Ranks and best links by the engine's decoders, in child processes: ``evaluate`` and ``Graph.top_links``."""

from __future__ import annotations

import csv
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

import numpy as np

from ._native import _run
from ._types import PathLike, Progress, as_path, as_vertex_ids
from .errors import InvalidArgument

if TYPE_CHECKING:
    from ._graph import Graph

#: Edges: the path of a file; int [m, 2] or [m, 3] (source, destination, number of the edge type); or tuples of ids and
#: the name of an edge type.
Edges = Union[PathLike, np.ndarray, Sequence[Sequence[Any]]]


class Link(NamedTuple):
    """A link that was found: the destination's external id, and its score."""

    id: int | str
    score: float


def evaluate(
    store: PathLike,
    *,
    array: str,
    test: Edges,
    decoder: PathLike | None = None,
    scorer: Literal["dot", "distmult", "complex", "transe", "rotate", "mlp"] | None = None,
    valid: Edges | None = None,
    filter: Edges | Iterable[Edges] | None = None,
    candidates: Literal["type", "all"] | PathLike = "type",
    negatives: Edges | None = None,
    columns: str | Sequence[str] | None = None,
    max_bad_lines: int | None = None,
    allow_leaked: bool = False,
    allow_stale: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ranks the true ends of test edges among all vertices, and returns the output of ``rhizome evaluate --json``.

        rz.evaluate("wn.rz", array="ent", decoder="complex.safetensors", test="test.tsv.zst", filter=["valid.tsv.zst"])

    Both ends of each edge are ranked, among the vertices of the true end's type. Ends of other known edges do not count:
    of the store, of ``test``, ``valid`` and ``filter``. A rank is 1 + better + equal / 2.

    ``array``: embeddings of the vertices
    ``test``: a file of edges, as ``ingest`` reads them; an int array [m, 2] or [m, 3] with external ids and numbers of
        edge types; or tuples (source, destination, name of the edge type)
    ``decoder``: file with the weights of a decoder; default: the dot product
    ``scorer``: the decoder, if its file does not name it
    ``valid``, ``filter``: more known edges; ``filter`` may be a list of files or arrays
    ``candidates``: "type", "all", or a file with the ids to rank for each test edge
    ``negatives``: edges that do not exist: the result also has AUC, average precision and OGB's Hits
    ``columns``: columns of the files, such as "src,type,dst"; default: found
    ``max_bad_lines``: number of lines with unknown ids or edge types that are skipped
    ``allow_leaked``: accept test edges that are in the store
    ``allow_stale``: accept an array with rows that are missing or out of date
    ``threads``: number of threads; default: all processors
    ``memory``: memory limit of the process beyond its size at start; default: 1G for edges and rows
    ``progress``: called with (phase, done, total)

    Requires the wheel ``rhizome-store-gnn``, or a build with libtorch.
    Errors: InvalidArgument; NotFound, an unknown id or edge type; any error of ``rhizome evaluate``.
    """
    with tempfile.TemporaryDirectory(prefix="rhizome") as folder:
        files = _Files(folder)
        words = [as_path(store), "--array", array, "--test", files.edges(test, "test")]
        for name, edges in (("valid", valid), ("negatives", negatives)):
            if edges is not None:
                words += [f"--{name}", files.edges(edges, name)]
        for edges in _several(filter):
            words += ["--filter", files.edges(edges, "filter")]
        words += ["--candidates", os.fsdecode(candidates)]
        words += _decoder(decoder, scorer)
        if columns is not None:
            words += ["--columns", columns if isinstance(columns, str) else ",".join(columns)]
        if allow_leaked:
            words.append("--allow-leaked")
        if allow_stale:
            words.append("--allow-stale")
        words += _numbers({"max-bad-lines": max_bad_lines, "threads": threads, "memory": memory})
        return _run("evaluate", words, progress)


def top_links(graph: Graph, ids: Any, array: str, decoder: PathLike | None, scorer: str | None, type: str | None, k: int,
              known: str, threads: int | None, memory: int | str | None, progress: Progress | None) -> Any:
    """Implements ``Graph.top_links``."""
    one = isinstance(ids, (str, int, np.integer)) and not isinstance(ids, bool)
    names = [int(ids) if isinstance(ids, np.integer) else ids] if one else _external_ids(graph, ids)
    distinct = list(dict.fromkeys(names))
    if not distinct:
        return []
    with tempfile.TemporaryDirectory(prefix="rhizome") as folder:
        of = os.path.join(folder, "ids.csv")
        with open(of, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([name] for name in distinct)
        out = os.path.join(folder, "links.csv")
        words = [as_path(graph.path), "--array", array, "--top", str(k), "--of", of, "--known", known, "--out", out]
        if type is not None:
            words += ["--type", type]
        words += _decoder(decoder, scorer)
        words += _numbers({"threads": threads, "memory": memory})
        _run("score", words, progress)
        found: dict[Any, list[Link]] = {name: [] for name in distinct}
        kind = int if isinstance(graph.external_ids([0])[0], int) else str
        with open(out, newline="", encoding="utf-8") as file:
            for line in csv.reader(file):
                found[kind(line[0])].append(Link(kind(line[1]), float(line[-1])))
    return found[names[0]] if one else [found[name] for name in names]


def _external_ids(graph: Graph, ids: Any) -> list[Any]:
    """External ids of a list of str, or of an array of vertex ids."""
    if isinstance(ids, (bool, float, Mapping)) or ids is None:
        raise TypeError("give a vertex (str or int), a list of str, or an array of vertex ids (int)")
    listed = list(ids)
    if all(isinstance(one, str) for one in listed):
        return listed
    vertices = as_vertex_ids(np.asarray(listed), graph.vertex_bound)
    return list(graph.external_ids(vertices))


def _decoder(decoder: PathLike | None, scorer: str | None) -> list[str]:
    words = [] if decoder is None else ["--decoder", as_path(decoder)]
    return words if scorer is None else [*words, "--scorer", scorer]


def _numbers(options: Mapping[str, Any]) -> list[str]:
    return [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]


def _several(edges: Edges | Iterable[Edges] | None) -> list[Any]:
    """Divides a list of files or arrays; a single one is a list of one."""
    if edges is None:
        return []
    if isinstance(edges, (str, os.PathLike, np.ndarray)):
        return [edges]
    listed = list(edges)
    if listed and all(isinstance(one, (tuple, list)) and all(isinstance(part, (str, int, np.integer)) for part in one)
                      for one in listed):
        return [listed]
    return listed


class _Files:
    """Writes edges that are in memory to files of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = pathlib.Path(folder)
        self._count = 0

    def edges(self, edges: Any, name: str) -> str:
        """Returns the path of a file with these edges."""
        if isinstance(edges, (str, os.PathLike)):
            return as_path(edges)
        self._count += 1
        numbers = edges if isinstance(edges, np.ndarray) else None
        if numbers is not None and numbers.dtype.kind in "iu":
            if numbers.ndim != 2 or numbers.shape[1] not in (2, 3):
                raise InvalidArgument(f"{name}: edges must be int [m, 2] or [m, 3], not {list(numbers.shape)}")
            path = self._folder / f"{self._count}.npy"
            np.save(path, np.ascontiguousarray(numbers, dtype=np.int64))
            return str(path)
        path = self._folder / f"{self._count}.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(edges)
        return str(path)
