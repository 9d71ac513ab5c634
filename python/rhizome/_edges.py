"""Converts edges in memory, in any form that ``ingest`` accepts, to one form. Only NumPy is imported: tables, sparse
matrices and graphs of PyTorch Geometric are recognised by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Union

import numpy as np

from ._types import as_array, as_float32, as_ids, as_matrix, as_names, dtype_name

#: The name of an edge type, or (type of the sources, name, type of the targets).
EdgeType = Union[str, tuple[str, str, str]]


class Group(NamedTuple):
    """Edges of one type. Ids are int64 [n], or lists of str."""

    type: EdgeType  #: "": untyped
    src: Any
    dst: Any
    columns: dict[str, np.ndarray]  #: weights and attributes by name, [n, dim]

    def part(self, chosen: Any, type: str) -> Group:
        """Returns some of the edges, with another type."""
        columns = {name: np.ascontiguousarray(values[chosen]) for name, values in self.columns.items()}
        return Group(type, _take(self.src, chosen), _take(self.dst, chosen), columns)


def groups_of(edges: Any, edge_arrays: Mapping[str, Any]) -> list[Group]:
    """Returns the edges by type. ``edge_arrays``: further columns, with one row per edge over all types, in order.

    Errors: TypeError, ValueError: an unsupported form, or different lengths.
    """
    by_type = edges if isinstance(edges, Mapping) else {"": edges}
    groups = [group for type, part in by_type.items() for group in _groups_of_part(type, part)]
    total = sum(len(group.src) for group in groups)
    begin = 0
    result = []
    for group in groups:
        end = begin + len(group.src)
        columns = dict(group.columns)
        for name, values in edge_arrays.items():
            matrix = edge_column(name, values)
            if len(matrix) != total:
                raise ValueError(f"{name!r} has {len(matrix)} rows, but there are {total} edges")
            columns[name] = matrix[begin:end]
        result += _by_type_column(group._replace(columns=columns))
        begin = end
    return result


def _groups_of_part(type: Any, edges: Any) -> Iterator[Group]:
    if not isinstance(type, str) and not (isinstance(type, tuple) and len(type) == 3):
        raise TypeError(f"an edge type must be a str or (type of the sources, name, type of the targets), not {type!r}")
    as_names([type] if isinstance(type, str) else type, "an edge type")
    src, dst, columns = _ends(edges)
    sources, targets = as_ids(src, "sources"), as_ids(dst, "targets")
    if isinstance(sources, list) != isinstance(targets, list) and len(sources) and len(targets):
        raise TypeError("sources and targets must be both int or both str")
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets")
    found = {name: values if name == "type" else edge_column(name, values) for name, values in columns.items()}
    for name, values in found.items():
        if len(values) != len(sources):
            raise ValueError(f"{name!r} has {len(values)} rows, but there are {len(sources)} edges")
    yield Group(type, sources, targets, found)


def _by_type_column(group: Group) -> list[Group]:
    """Divides edges by their column ``type``, in the order in which the types first appear."""
    if "type" not in group.columns:
        return [group]
    if group.type:
        raise ValueError("edges by type cannot also have a column 'type'")
    types = group.columns["type"]
    rest = group._replace(columns={name: values for name, values in group.columns.items() if name != "type"})
    names, first, codes = np.unique(np.asarray(as_ids(types, "types")), return_index=True, return_inverse=True)
    found = as_names(map(str, names), "an edge type")
    return [rest.part(np.flatnonzero(codes.ravel() == code), found[code]) for code in np.argsort(first)]


def _ends(edges: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Returns the sources, targets and further columns."""
    if hasattr(edges, "tocoo"):  # SciPy: one edge per stored entry, from row to column
        coo = edges.tocoo()
        return coo.row, coo.col, {} if (coo.data == 1).all() else {"weight": coo.data}
    if hasattr(edges, "column_names"):  # pyarrow
        return _ends_of_table({name: edges.column(name) for name in edges.column_names})
    if hasattr(edges, "iloc") and hasattr(edges, "columns"):  # pandas
        return _ends_of_table({str(name): edges[name] for name in edges.columns})
    if isinstance(edges, (list, tuple)) and len(edges) == 2 and not any(map(_is_scalar, edges)):
        return edges[0], edges[1], {}
    array = as_array(edges)
    if array.ndim != 2 or 2 not in array.shape:
        raise ValueError(f"edges must have shape [2, n] or [n, 2], not {list(array.shape)}")
    pairs = array if array.shape[0] == 2 else array.T  # [2, 2] is read as PyG's edge_index
    return pairs[0], pairs[1], {}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str) or not hasattr(value, "__len__")


def _ends_of_table(columns: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    if len(columns) < 2:
        raise ValueError("a table of edges must have columns 'src' and 'dst', or at least two columns")
    if "src" not in columns or "dst" not in columns:
        src, dst = list(columns)[:2]
    else:
        src, dst = "src", "dst"
    return columns.pop(src), columns.pop(dst), columns


def edge_column(name: str, values: Any) -> np.ndarray:
    """Returns a column of edges in the engine's types, [n, dim]: int64 for integers and bool, float64 for float64, float32
    for narrower floats and for weights.
    """
    matrix = as_matrix(values, name)
    if name == "weight":
        return as_float32(matrix, name)
    if matrix.dtype.kind in "biu":
        return np.ascontiguousarray(matrix, dtype=np.int64)
    if dtype_name(matrix.dtype) == "bfloat16":  # its bits are the upper half of a float32
        return (matrix.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(matrix, dtype=np.float64 if matrix.dtype == np.float64 else np.float32)


def _take(ids: Any, chosen: np.ndarray) -> Any:
    return [ids[i] for i in chosen] if isinstance(ids, list) else ids[chosen]


def bounds_of(groups: list[Group]) -> tuple[int, int] | None:
    """Returns the minimum and maximum id of edges between integers; None if there are no edges or ids are strings."""
    ends = [end for group in groups for end in (group.src, group.dst) if not isinstance(end, list) and len(end)]
    if not ends:
        return None
    return min(int(end.min()) for end in ends), max(int(end.max()) for end in ends)


def is_data(edges: Any) -> bool:
    """Returns whether ``edges`` is torch_geometric's Data or HeteroData."""
    return hasattr(edges, "edge_index") or (hasattr(edges, "node_types") and hasattr(edges, "edge_types"))


def of_data(data: Any) -> dict[str, Any]:
    """Converts PyTorch Geometric's Data or HeteroData to arguments of ``ingest``."""
    if hasattr(data, "node_types"):
        return _of_hetero(data)
    arrays = {name: _plain(data[key]) for key, name in (("x", "feat"), ("y", "label")) if _has(data, key)}
    columns = {name: _plain(data[key]) for key, name in (("edge_weight", "weight"), ("edge_attr", "edge_attr"))
               if _has(data, key)}
    masks = [_plain(data[key]) for key in ("train_mask", "val_mask", "test_mask") if _has(data, key)]
    return {"edges": _plain(data.edge_index), "arrays": arrays, "edge_arrays": columns, "vertices": int(data.num_nodes),
            "split": tuple(masks) if len(masks) == 3 and all(mask.ndim == 1 for mask in masks) else None}


def _of_hetero(data: Any) -> dict[str, Any]:
    counts = {name: int(data[name].num_nodes) for name in data.node_types}
    edges = {tuple(name): _plain(data[name].edge_index) for name in data.edge_types}
    arrays = {}
    for key, name, missing in (("x", "feat", 0), ("y", "label", -1)):
        given = {of: _plain(data[of][key]) for of in counts if _has(data[of], key)}
        if given:
            arrays[name] = _joined(name, given, counts, missing)
    sets: dict[str, np.ndarray] = {}
    for number, key in enumerate(("train_mask", "val_mask", "test_mask")):
        for of in counts:
            if _has(data[of], key):
                sets.setdefault(of, np.full(counts[of], 255, np.uint8))[_plain(data[of][key]).astype(bool)] = number
    return {"edges": edges, "arrays": arrays, "edge_arrays": {}, "vertex_types": counts,
            "split": _joined("split", sets, counts, 255) if sets else None}


def _joined(name: str, given: Mapping[str, np.ndarray], counts: Mapping[str, int], missing: int) -> np.ndarray:
    """Concatenates the rows of all vertex types, in their order; types without rows get the missing value."""
    if len({(rows.shape[1:], rows.dtype) for rows in given.values()}) != 1:
        raise ValueError(f"{name!r} has another width or dtype in each vertex type: add arrays under different names")
    some = next(iter(given.values()))
    return np.concatenate([given[of] if of in given else np.full((count, *some.shape[1:]), missing, some.dtype)
                           for of, count in counts.items()])


def _has(data: Any, key: str) -> bool:
    return key in data and data[key] is not None


def _plain(values: Any) -> np.ndarray:
    return as_array(values.detach().cpu() if hasattr(values, "detach") else values)
