"""Vertices whose rows are similar to one or many others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Progress, Similar, as_array, as_vertex_ids
from .errors import InvalidArgument

if TYPE_CHECKING:
    from ._graph import Graph

#: Maximum number of scores in memory at once.
_SCORES = 1 << 22

_FORMS = ("give a vertex (str or int), a row (floats), or several: a list of str, an array of vertex ids (int), or rows "
          "(floats, [n, dim])")


def similar(graph: Graph, to: Any, array: str, k: int, progress: Progress | None) -> Any:
    """Implements ``Graph.similar``."""
    if isinstance(to, bool) or to is None:
        raise TypeError(_FORMS)
    if isinstance(to, (str, int, np.integer)):
        return _described(graph, *graph._core.similar(to, array, k, progress))
    with graph.snapshot() as fixed:
        query = as_array(to)
        if query.dtype.kind in "UTO" and query.ndim == 1:
            return _of_many(fixed, fixed.at(to), array, k, progress)
        if query.dtype.kind in "iu" and query.ndim == 1 and query.size:
            return _of_many(fixed, as_vertex_ids(query, fixed.vertex_bound), array, k, progress)
        if query.dtype.kind not in "fiu" or query.ndim not in (1, 2):
            raise TypeError(_FORMS)
        if query.ndim == 2:
            return _of_rows(fixed, query.astype(np.float64), array, k, progress)
        row = np.ascontiguousarray(query, dtype=np.float32)
        return _described(fixed, *fixed._core.similar(row, array, k, progress))


def _of_many(graph: Graph, vertices: np.ndarray, array: str, k: int, progress: Progress | None) -> list[list[Similar]]:
    rows = graph[array][vertices].astype(np.float64)
    wrong = _without_direction(rows)
    if wrong is not None:
        raise InvalidArgument(f"the row of {graph.external_ids([vertices[wrong]])[0]} in {array!r} is all zeros or not "
                              "finite: it has no direction to compare")
    return _nearest(graph, rows, vertices, array, k, progress)


def _of_rows(graph: Graph, rows: np.ndarray, array: str, k: int, progress: Progress | None) -> list[list[Similar]]:
    dim = graph[array].dim
    if rows.shape[1] != dim:
        raise InvalidArgument(f"the queries have {rows.shape[1]} columns, but {array!r} has {dim}")
    wrong = _without_direction(rows)
    if wrong is not None:
        raise InvalidArgument(f"query {wrong} is all zeros or not finite: it has no direction to compare")
    return _nearest(graph, rows, None, array, k, progress)


def _without_direction(rows: np.ndarray) -> int | None:
    """Returns the index of the first row that cannot be compared."""
    norms = np.linalg.norm(rows, axis=1)
    wrong = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    return int(wrong[0]) if len(wrong) else None


def _nearest(graph: Graph, queries: np.ndarray, omitted: np.ndarray | None, array: str, k: int,
             progress: Progress | None) -> list[list[Similar]]:
    """Compares all rows with all queries, [q, dim], a block of rows in memory at a time. ``omitted``: for each query the
    vertex that is not a result."""
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    best = [(np.empty(0, np.int64), np.empty(0)) for _ in unit]
    done = 0
    for ids, rows in graph[array].batches(max(_SCORES // max(len(unit), 1), 256)):
        done += len(ids)
        wide = rows.astype(np.float64)
        norms = np.linalg.norm(wide, axis=1)
        fine = np.isfinite(norms) & (norms > 0)
        ids = ids[fine]
        scores = unit @ (wide[fine] / norms[fine, None]).T
        if omitted is not None:
            scores[ids == omitted[:, None]] = -np.inf
        best = [_merged(*one, ids, of_query, k) for one, of_query in zip(best, scores)]
        if progress is not None:
            progress("comparing", done, graph.num_vertices)
    return [_described(graph, *one) for one in best]


def _merged(ids: np.ndarray, scores: np.ndarray, new_ids: np.ndarray, new_scores: np.ndarray,
            k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the k best of both, the best first and ties by vertex id."""
    ids, scores = np.concatenate([ids, new_ids]), np.concatenate([scores, new_scores])
    least = np.partition(scores, len(scores) - k)[len(scores) - k] if len(scores) > k else -np.inf
    near = np.flatnonzero((scores >= least) & np.isfinite(scores))
    order = near[np.lexsort((ids[near], -scores[near]))][:k]
    return ids[order], scores[order]


def _described(graph: Graph, vertices: np.ndarray, scores: Any) -> list[Similar]:
    labels = _labels(graph, vertices)
    return [Similar(*found) for found in zip(graph.external_ids(vertices), labels, map(float, scores))]


def _labels(graph: Graph, vertices: np.ndarray) -> list[Any]:
    """Returns the labels of vertices, as names if the classes have names."""
    if "label" not in graph.arrays or graph["label"].dim != 1:
        return [None] * len(vertices)
    labels, names = graph["label"], graph.class_names
    return [names[label] if isinstance(label, int) and 0 <= label < len(names) else label
            for label in labels[vertices][:, 0].tolist()]
