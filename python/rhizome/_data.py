"""Data and HeteroData of PyTorch Geometric as arguments of ``ingest``. They are recognised by their attributes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._columns import column_of
from ._typed import by_type, joined

#: Keys of vertices, the names of their arrays, and the value of vertices of a type that has no rows.
_ARRAYS = (("x", "feat", 0), ("y", "label", -1), ("time", "time", None))
_MASKS = ("train_mask", "val_mask", "test_mask")
#: Keys of edges, and the names of their attributes.
_EDGES = {"edge_weight": "weight", "edge_attr": "edge_attr", "edge_time": "time", "time": "time"}


def is_data(edges: Any) -> bool:
    """Returns whether ``edges`` is torch_geometric's Data or HeteroData."""
    return hasattr(edges, "edge_index") or (hasattr(edges, "node_types") and hasattr(edges, "edge_types"))


def of_data(data: Any) -> dict[str, Any]:
    """Converts Data or HeteroData to arguments of ``ingest``. What is left out is said in one warning.

    Errors: ValueError, a vertex in two sets, masks or rows of different shapes, no edges.
    """
    left: list[str] = []
    result = _of_hetero(data, left) if hasattr(data, "node_types") else _of_homogeneous(data, left)
    if left:
        warnings.warn(f"rz.ingest leaves out of {type(data).__name__}: {'; '.join(left)}", UserWarning, stacklevel=4)
    return result


def _of_homogeneous(data: Any, left: list[str]) -> dict[str, Any]:
    edges = _ends(data, "data")
    count, many = int(data.num_nodes), len(edges[0])
    of_edges = {}
    for key, name in _EDGES.items():
        # Data has the times of vertices and of edges under one key, except where both have the same number.
        if _has(data, key) and (key != "time" or (len(data[key]) == many != count)):
            of_edges[key] = name
    arrays = {name: _plain(data[key]) for key, name, _ in _ARRAYS if _has(data, key) and key not in of_edges}
    columns = _columns(data, of_edges, left)
    masks = {key: _plain(data[key]) for key in _MASKS if _has(data, key)}
    _note_others(data, {"edge_index", *of_edges, *_MASKS, *(key for key, _, _ in _ARRAYS)}, "", left)
    splits = _splits(masks, count, "", left)
    return {"edges": edges, "arrays": {**arrays, **_further(splits)}, "edge_arrays": columns, "vertices": count,
            "split": splits[0] if splits else None}


def _of_hetero(data: Any, left: list[str]) -> dict[str, Any]:
    counts = {name: int(data[name].num_nodes) for name in data.node_types}
    edges = {tuple(name): _ends(data[name], name) for name in data.edge_types}
    arrays: dict[str, Any] = {}
    for key, name, missing in _ARRAYS:
        given = {of: _plain(data[of][key]) for of in counts if _has(data[of], key)}
        if given:
            arrays.update(by_type(name, given, counts, missing))
    splits: dict[str, list[np.ndarray]] = {}
    for of, count in counts.items():
        masks = {key: _plain(data[of][key]) for key in _MASKS if _has(data[of], key)}
        if masks:
            splits[of] = _splits(masks, count, f" of {of!r}", left)
        _note_others(data[of], {*_MASKS, *(key for key, _, _ in _ARRAYS)}, f" of {of!r}", left)
    _note_others(getattr(data, "_global_store", {}), (), "", left)
    whole = []
    for number in range(max(map(len, splits.values()), default=0)):
        given = {of: own[number] for of, own in splits.items() if number < len(own)}
        whole.append(joined("split", given, counts, 255))
    return {"edges": edges, "arrays": {**arrays, **_further(whole)}, "edge_arrays": _hetero_columns(data, edges, left),
            "vertex_types": counts, "split": whole[0] if whole else None}


def _hetero_columns(data: Any, edges: Mapping[Any, Any], left: list[str]) -> dict[str, np.ndarray]:
    """Returns the attributes of the edges of all types, in their order; types without one get its missing value."""
    parts: dict[str, dict[Any, np.ndarray]] = {}
    for kind in data.edge_types:
        keys = {key: name for key, name in _EDGES.items() if _has(data[kind], key)}
        for name, values in _columns(data[kind], keys, left, f" of {kind!r}").items():
            parts.setdefault(name, {})[tuple(kind)] = values
        _note_others(data[kind], {"edge_index", *keys}, f" of {kind!r}", left)
    many = {kind: len(ends[0]) for kind, ends in edges.items()}
    return {name: joined(name, given, many, 1 if name == "weight" else None) for name, given in parts.items()}


def _columns(data: Any, keys: Mapping[str, str], left: list[str], where: str = "") -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    for key, name in keys.items():
        values = _plain(data[key])
        if name in columns:
            left.append(f"{key!r}{where}, as there is another time")
        elif name == "weight" and values.ndim == 2 and values.shape[1] != 1:
            left.append(f"{key!r}{where}, as a weight is one number")
        else:
            columns[name] = values
    return columns


def _ends(data: Any, name: Any) -> tuple[np.ndarray, np.ndarray]:
    if not _has(data, "edge_index"):
        raise ValueError(f"{name!r} has no edge_index" + (": convert its adj_t" if _has(data, "adj_t") else ""))
    index = _plain(data["edge_index"])
    if index.ndim != 2 or index.shape[0] != 2:
        raise ValueError(f"{name!r}: edge_index must have shape [2, edges], not {list(index.shape)}")
    return index[0], index[1]


def _splits(masks: Mapping[str, np.ndarray], count: int, where: str, left: list[str]) -> list[np.ndarray]:
    """Returns the splits that masks [n], [n, 1] or [n, splits] define, each uint8 [n]."""
    if not masks:
        return []
    wide = {key: mask.reshape(len(mask), -1).astype(bool) for key, mask in masks.items()}
    shapes = {key: list(mask.shape) for key, mask in wide.items()}
    if any(mask.shape[0] != count for mask in wide.values()) or len({mask.shape[1] for mask in wide.values()}) > 1:
        raise ValueError(f"masks{where} must have a row for each of {count} vertices, and one number of splits: they have {shapes}")
    splits = []
    for number in range(next(iter(wide.values())).shape[1]):
        split = np.full(count, 255, np.uint8)
        for key, mask in wide.items():
            members = mask[:, number]
            twice = np.flatnonzero(members & (split != 255))
            if len(twice):
                raise ValueError(f"split: vertex {twice[0]}{where} is in {key} and in {_MASKS[split[twice[0]]]}")
            split[members] = _MASKS.index(key)
        splits.append(split)
    return splits


def _further(splits: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of all splits but the first, which is the array ``split``."""
    return {f"split_{number}": split for number, split in enumerate(splits) if number}


def _note_others(data: Any, taken: Iterable[str], where: str, left: list[str]) -> None:
    keys = data.keys() if callable(getattr(data, "keys", None)) else vars(data)
    others = sorted(str(key) for key in keys if key not in taken and data[key] is not None and key != "num_nodes" and
                    not isinstance(key, tuple))
    if others:
        left.append(", ".join(map(repr, others)) + where)


def _has(data: Any, key: str) -> bool:
    return key in data and data[key] is not None


def _plain(values: Any) -> np.ndarray:
    return column_of("data", values.detach().cpu() if hasattr(values, "detach") else values).array
