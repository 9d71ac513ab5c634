"""GraphBolt datasets, from a store or from a metadata.yaml that describes a dataset on disk."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Union

import dgl.graphbolt as gb
import numpy as np
import torch

from .. import _graph, _ingest
from .._graph import Graph
from .._shared import SharedGraph, tensor
from .._types import IngestReport, PathLike, Progress
from ._features import EdgeFeature, Feature, Features, feature_store
from ._sampler import SamplingGraph

_STORE = "rhizome.rz"  #: next to the metadata.yaml that it was created from
_SETS = ("train_set", "validation_set", "test_set")
#: The key of a minibatch's seeds in GraphBolt's pipelines.
_SEEDS = "seed_nodes" if "seed_nodes" in gb.MiniBatch.__dataclass_fields__ else "seeds"

Items = Union[gb.ItemSet, gb.ItemSetDict, None]


class Task(gb.Task):
    """The sets of one task; a missing set is None."""

    def __init__(self, metadata: Mapping[str, Any], sets: Mapping[str, Items]) -> None:
        super().__init__()
        self._metadata = dict(metadata)
        self._sets = dict(sets)

    @property
    def metadata(self) -> dict[str, Any]:
        return self._metadata

    @property
    def train_set(self) -> Items:
        return self._sets.get("train_set")

    @property
    def validation_set(self) -> Items:
        return self._sets.get("validation_set")

    @property
    def test_set(self) -> Items:
        return self._sets.get("test_set")


class Dataset(gb.Dataset):
    """A store, or a folder with a metadata.yaml, as a dataset. Features and edges remain on disk.

    For a folder with a metadata.yaml, as read by gb.OnDiskDataset, the first use creates a store in it, ``rhizome.rz``
    (``ingest_dataset``); its tasks are taken from the file.
    A store has one task, ``node_classification``: the sets of its array ``split`` with their labels.
    """

    def __init__(self, source: PathLike | Graph, *, features: Features | None = None,
                 edge_features: Features | None = None, labels: str | None = "label", split: str = "split", memory: int | str = "1G",
                 progress: Progress | None = None) -> None:
        """``features``, ``edge_features``: as for ``feature_store``; None: all, except labels and split.

        ``memory``: memory of the graph. ``labels``: an array with one column; None: the sets have no labels. Errors: as
        for ``rhizome.open``; NotFound, no such array.
        """
        super().__init__()
        self._meta: dict[str, Any] | None = None
        path = None if isinstance(source, Graph) else pathlib.Path(source)
        if path is not None and (path / "metadata.yaml").exists():
            self._folder, self._meta = path, _read_meta(path)
            path = path / _STORE
            if not path.exists():
                ingest_dataset(self._folder, progress=progress)
        graph = source if path is None else _graph.open(path, memory=memory)
        self.name = self._meta.get("dataset_name", "") if self._meta else pathlib.Path(graph.path).stem
        self._shared = SharedGraph(graph, memory, None)
        self._graph = SamplingGraph(self._shared)
        if self._meta is not None:
            self._features = _features_of_meta(self._meta, self._folder, self._shared)
            self._tasks = [_task_of_meta(task, self._folder) for task in self._meta.get("tasks") or []]
            return
        if features is None:
            features = [name for name in graph.arrays if name not in (labels, split)]
        if edge_features is None:
            edge_features = list(graph.edge_attributes)
        self._features = feature_store(self._shared, features, edge_features)
        self._tasks = [_task_of_store(self._shared, labels, split)] if split in graph.arrays else []

    @property
    def tasks(self) -> list[Task]:
        return self._tasks

    @property
    def graph(self) -> SamplingGraph:
        return self._graph

    @property
    def feature(self) -> gb.BasicFeatureStore:
        return self._features

    @property
    def dataset_name(self) -> str:
        return self.name

    @property
    def all_nodes_set(self) -> gb.ItemSet | gb.ItemSetDict:
        schema = self._shared.schema
        if not schema.typed:
            return gb.ItemSet(schema.bound, names=_SEEDS)
        return gb.ItemSetDict({name: gb.ItemSet(count, names=_SEEDS) for name, count in schema.counts.items()})

    def load(self) -> Dataset:
        """Returns the dataset itself, as gb.OnDiskDataset.load does."""
        return self


def _task_of_store(shared: SharedGraph, labels: str | None, split: str) -> Task:
    graph, schema = shared.graph, shared.schema
    names = (_SEEDS,) if labels is None else (_SEEDS, "labels")

    def items(vertices: np.ndarray, numbers: np.ndarray) -> gb.ItemSet:
        columns = [tensor(numbers)]
        if labels is not None:
            columns.append(tensor(np.ma.filled(graph[labels][vertices][:, 0].astype(np.int64), -1)))
        return gb.ItemSet(tuple(columns), names=names)

    def of_set(name: Any) -> Items:
        vertices = graph.split(name, split)
        if not schema.typed:
            return items(vertices, vertices)
        types = schema.types_of(vertices)
        numbers = schema.numbers(vertices, types)
        return gb.ItemSetDict({schema.node_types[kind]: items(vertices[types == kind], numbers[types == kind])
                               for kind in np.unique(types)})

    metadata = {"name": "node_classification"}
    if labels is not None and graph[labels].dtype.kind in "iu":
        highest = max((int(rows.max()) for _, rows in graph[labels].batches() if np.ma.count(rows)), default=-1)
        metadata["num_classes"] = highest + 1
    return Task(metadata, dict(zip(_SETS, map(of_set, ("train", "valid", "test")))))


# --- metadata.yaml ---


def ingest_dataset(folder: PathLike, store: PathLike | None = None, *, memory: int | str = 0,
                   progress: Progress | None = None) -> IngestReport:
    """Creates a store from the dataset described by ``folder``/metadata.yaml; None: ``folder``/rhizome.rz.

    Node features become arrays under their names, and edge features become attributes of edges. If features of the same
    name differ in width or type between types, or some types lack them, they are named "TYPE.NAME" (for edges,
    "SRC__NAME__DST.NAME"). Features that the file lists under the graph, for its sampler, are treated in the same way.
    Errors: as for ``rhizome.ingest``; ValueError, a required entry is missing in the file; ImportError, no PyYAML.
    """
    root = pathlib.Path(folder)
    meta = _read_meta(root)
    counts = _node_counts(meta)
    edges = _edges(meta, root)
    edge_counts = {":".join(kind): len(ends[0]) for kind, ends in edges.items()} if isinstance(edges, dict) else {None: 0}
    columns = lambda domain, by_type: {name: _column(root, parts, by_type)
                                       for name, parts in _arrays(root, meta, domain, by_type).items()}
    target = root / _STORE if store is None else store
    size: dict[str, Any] = {"vertices": counts[None]} if list(counts) == [None] else {"vertex_types": counts}
    return _ingest.ingest(target, edges, arrays=columns("node", counts), edge_arrays=columns("edge", edge_counts),
                          memory=memory, progress=progress, **size)


def _read_meta(folder: pathlib.Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("metadata.yaml needs PyYAML: pip install pyyaml", name="yaml") from error
    path = folder / "metadata.yaml"
    meta = yaml.safe_load(path.read_text())
    if not isinstance(meta, dict) or not isinstance(meta.get("graph"), dict):
        raise ValueError(f"{path}: there is no 'graph' with its 'nodes' and 'edges'")
    return meta


def _node_counts(meta: Mapping[str, Any]) -> dict[Any, int]:
    return {one.get("type"): int(one["num"]) for one in meta["graph"]["nodes"]}


def _edges(meta: Mapping[str, Any], root: pathlib.Path) -> Any:
    listed = meta["graph"]["edges"]
    if listed[0].get("type") is None:
        return [str(root / one["path"]) for one in listed]
    made = {}
    for one in listed:
        path = root / one["path"]
        csv = one.get("format", "csv") == "csv"
        pairs = np.loadtxt(path, np.int64, delimiter=",", ndmin=2).T if csv else np.load(path)
        made[tuple(one["type"].split(":"))] = (pairs[0], pairs[1])
    return made


def _features(meta: Mapping[str, Any], domain: str) -> list[dict[str, Any]]:
    """Returns the entries of the file for features of nodes or edges."""
    listed = [*(meta["graph"].get("feature_data") or []), *(meta.get("feature_data") or [])]
    return list({(one.get("type"), one["name"]): one for one in listed if one["domain"] == domain}.values())


def _load(root: pathlib.Path, data: Mapping[str, Any]) -> np.ndarray:
    path = root / data["path"]
    if data.get("format", "numpy") == "torch":
        return torch.load(path).numpy()
    return np.load(path, mmap_mode="r")  # the shape of features is needed more often than their rows


def _arrays(root: pathlib.Path, meta: Mapping[str, Any], domain: str,
            types: Iterable[Any]) -> dict[str, dict[Any, Mapping[str, Any]]]:
    """Returns the source features of each array or edge attribute, by type."""
    by_name: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for one in _features(meta, domain):
        by_name.setdefault(one["name"], {})[one.get("type")] = one
    made = {}
    for name, parts in by_name.items():
        forms = {(_load(root, one).shape[1:], _load(root, one).dtype) for one in parts.values()}
        if len(forms) == 1 and set(parts) == set(types):
            made[name] = parts
        else:
            made.update({f"{kind.replace(':', '__')}.{name}": {kind: one} for kind, one in parts.items()})
    return made


def _column(root: pathlib.Path, parts: Mapping[Any, Mapping[str, Any]], counts: Mapping[Any, int]) -> np.ndarray:
    """Returns the rows of an array, for all types in the order of the file; zeros for types without features."""
    first = _load(root, next(iter(parts.values())))
    if list(counts) == [None]:
        return first.reshape(len(first), -1)
    rows = np.zeros((sum(counts.values()), int(np.prod(first.shape[1:]))), first.dtype)
    begin = 0
    for kind, count in counts.items():
        if kind in parts:
            rows[begin:begin + count] = _load(root, parts[kind]).reshape(count, -1)
        begin += count
    return rows


def _features_of_meta(meta: Mapping[str, Any], root: pathlib.Path, shared: SharedGraph) -> gb.BasicFeatureStore:
    made: dict[Any, gb.Feature] = {}
    for array, parts in _arrays(root, meta, "node", _node_counts(meta)).items():
        for kind, one in parts.items():
            made["node", kind, one["name"]] = Feature(shared, array, kind, shape=_load(root, one).shape[1:] or (1,))
    kinds = [one.get("type") for one in meta["graph"]["edges"]]
    for attribute, parts in _arrays(root, meta, "edge", kinds).items():
        for kind, one in parts.items():
            made["edge", kind, one["name"]] = EdgeFeature(shared, attribute, shape=_load(root, one).shape[1:] or (1,))
    return gb.BasicFeatureStore(made)


def _task_of_meta(task: Mapping[str, Any], root: pathlib.Path) -> Task:
    def items(data: list[Mapping[str, Any]]) -> gb.ItemSet:
        names = tuple(one["name"] for one in data)
        return gb.ItemSet(tuple(torch.from_numpy(np.array(_load(root, one))) for one in data), names=names)

    def of_set(listed: list[Mapping[str, Any]] | None) -> Items:
        if not listed:
            return None
        if listed[0].get("type") is None:
            return items(listed[0]["data"])
        return gb.ItemSetDict({one["type"]: items(one["data"]) for one in listed})

    metadata = {key: value for key, value in task.items() if key not in _SETS}
    return Task(metadata, {name: of_set(task.get(name)) for name in _SETS})
