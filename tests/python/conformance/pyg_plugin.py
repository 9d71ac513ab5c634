"""A pytest plugin that runs PyG's own tests on Rhizome: their graphs become stores, served by
rhizome.pyg.

PyG's tests are not part of this repository: README.md says how to get them, which files they are,
and which tests pass.

`torch_geometric.testing.MyFeatureStore` and `MyGraphStore` become stores on disk.
`NeighborSampler`, in all places from which PyG's loaders and samplers import it, ingests the graph
that it is given and samples from the store. Tests that are skipped for lack of a sampler are
enabled.
"""
import atexit
import itertools
import pathlib
import shutil
import tempfile
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")

import torch_geometric.typing as typing  # noqa: E402

typing.WITH_PYG_LIB = typing.WITH_WEIGHTED_NEIGHBOR_SAMPLE = typing.WITH_EDGE_TIME_NEIGHBOR_SAMPLE = True

import torch_geometric  # noqa: E402
import torch_geometric.loader.link_neighbor_loader  # noqa: E402
import torch_geometric.sampler.neighbor_sampler as neighbor_sampler  # noqa: E402
from torch_geometric.data import Data, EdgeAttr, HeteroData, TensorAttr  # noqa: E402
from torch_geometric.sampler.base import NumNeighbors, SubgraphType  # noqa: E402
from torch_geometric.testing import decorators  # noqa: E402

import rhizome as rz  # noqa: E402
import rhizome.pyg as rzpyg  # noqa: E402
from rhizome._shared import SharedGraph  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="rhizome-conformance-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
NUMBER = itertools.count()
WITHOUT_TYPE = "node"


class Graph:
    """What a test gives, as the arguments of ingest: nodes by type, and edges by triple."""

    def __init__(self, typed):
        self.typed = typed
        self.counts = {}
        self.edges = {}  # triple or None -> [2, n]
        self.columns = {}  # name -> triple -> values
        self.node_times = {}  # type -> values
        self.arrays = {}  # (type, name) -> rows

    def ingest(self):
        """Returns the graph as a store that is open, and the names of the store's arrays."""
        path = FOLDER / f"{next(NUMBER)}.rz"
        arrays = {}
        for (kind, name), rows in self.arrays.items():
            rows = np.asarray(rows)
            whole = np.zeros((sum(self.counts.values()), *rows.shape[1:]), rows.dtype)
            whole[self._places(kind)][:len(rows)] = rows
            arrays[_array_name(kind, name)] = whole
        if self.node_times:
            arrays["time"] = np.concatenate([self.time_of(kind) for kind in self.counts])
        columns = {"eid": self._column(lambda triple, count: np.arange(count))}
        for name, by_triple in self.columns.items():
            columns[name] = self._column(lambda triple, count: np.asarray(by_triple.get(triple, np.zeros(count))))
        edges = {_stored(triple): np.asarray(pair, np.int64) for triple, pair in self.edges.items()}
        if self.typed:
            rz.ingest(path, edges, vertex_types=self.counts, arrays=arrays, edge_arrays=columns, threads=1)
        else:
            rz.ingest(path, edges.get("", np.zeros((2, 0), np.int64)), vertices=self.counts[None], arrays=arrays,
                      edge_arrays=columns, threads=1)
        return rz.open(path)

    def time_of(self, kind):
        """The times of nodes; those that have none are there from the beginning."""
        return np.asarray(self.node_times.get(kind, np.zeros(self.counts[kind], np.int64)))

    @property
    def e_id(self):
        return "eid" if self.edges else None

    def shared(self):
        names = {_stored(triple)[1]: triple for triple in self.edges} if self.typed else None
        return SharedGraph(self.ingest(), "1G", names)

    def _places(self, kind):
        first = 0
        for name, count in self.counts.items():
            if name == kind:
                return slice(first, first + count)
            first += count
        raise KeyError(kind)

    def _column(self, values_of):
        return np.concatenate([values_of(triple, np.shape(pair)[1]) for triple, pair in self.edges.items()]
                              or [np.zeros(0, np.int64)])


def _stored(triple):
    """Edge types of their own for triples that share a name."""
    return "" if triple is None else (triple[0], "__".join(triple), triple[2])


def _array_name(kind, name):
    return f"{name}.of.{kind}"


class MyFeatureStore(rzpyg.FeatureStore):
    """Tensors that are put become arrays of a store, which is made when one is asked for."""

    def __init__(self):
        super().__init__(None, {})
        self.__dict__["put"] = {}

    def _put_tensor(self, rows, attr):
        key = attr.group_name, str(attr.attr_name)
        values = rows.numpy()
        index = np.arange(len(values)) if not isinstance(attr.index, torch.Tensor) else attr.index.numpy()
        whole = np.zeros((int(index.max()) + 1, *values.shape[1:]), values.dtype)
        whole[index] = values
        self.put[key] = whole
        self.__dict__["shared"] = None
        return True

    def _remove_tensor(self, attr):
        self.__dict__["shared"] = None
        return self.put.pop((attr.group_name, str(attr.attr_name)), None) is not None

    def _make(self):
        if self.shared is None:
            arrays = {(_node_type(of), name): rows for (of, name), rows in self.put.items()}
            groups = dict.fromkeys(group for group, _ in arrays)
            graph = Graph(typed=set(groups) != {None})
            graph.counts = {group: max(len(rows) for (of, _), rows in arrays.items() if of == group) for group in groups}
            if graph.typed:  # a typed store has an edge type
                some = next(iter(groups))
                graph.edges = {(some, "none", some): np.zeros((2, 0))}
            graph.arrays = arrays
            self.__dict__["shared"] = graph.shared()
            self.__dict__["_served"] = {key: _array_name(*key) for key in arrays}

    def _get_tensor(self, attr):
        if (attr.group_name, str(attr.attr_name)) not in self.put:
            raise KeyError(attr)
        self._make()
        return super()._get_tensor(TensorAttr(_node_type(attr.group_name), str(attr.attr_name), attr.index))

    def _get_tensor_size(self, attr):
        self._make()
        return super()._get_tensor_size(TensorAttr(_node_type(attr.group_name), str(attr.attr_name), None))

    def get_all_tensor_attrs(self):
        attrs = []
        for group, name in self.put:
            attrs.append(self._tensor_attr_cls())
            attrs[-1].group_name, attrs[-1].attr_name = group, name
        return attrs


def _node_type(group):
    """Tensors of edges, by triple, are those of a node type here: only that they come back is asked."""
    return "__".join(group) if isinstance(group, tuple) else group


class MyGraphStore(rzpyg.GraphStore):
    """An edge_index that is put becomes the edges of a store; each type is served in the layouts that it was put in."""

    def __init__(self):
        super().__init__(None)
        self.__dict__["put"], self.__dict__["served"] = {}, []

    def _put_edge_index(self, edge_index, attr):
        self.served.append(attr)
        self.put.setdefault(attr.edge_type, (_coo(edge_index, attr), attr.size))
        self.__dict__["shared"] = None
        return True

    def _remove_edge_index(self, attr):
        found = [one for one in self.served if _key(one) == _key(attr)]
        self.__dict__["served"] = [one for one in self.served if one not in found]
        return bool(found)

    def _get_edge_index(self, attr):
        if _key(attr) not in map(_key, self.served):
            return None
        if self.shared is None:
            self._make()
        return super()._get_edge_index(attr)

    def _make(self):
        graph = self.graph()
        self.__dict__.update(shared=graph.shared(), e_id=graph.e_id, _e_id_of=None)

    def get_all_edge_attrs(self):
        return [EdgeAttr(*_key(attr), attr.is_sorted, attr.size) for attr in self.served]

    def graph(self, counts=None):
        graph = Graph(typed=None not in self.put)
        graph.counts = dict(counts or {})
        for kind, (pair, size) in self.put.items():
            size = size or (pair.max() + 1, pair.max() + 1)
            for end, count in zip((kind[0], kind[2]) if graph.typed else (None, None), size):
                graph.counts[end] = max(graph.counts.get(end, 0), int(count))
            graph.edges[kind] = pair
        return graph


def _key(attr):
    return attr.edge_type, attr.layout


def _coo(edge_index, attr):
    """Returns an edge_index of any layout as [2, n]."""
    row, col = (np.asarray(part) for part in edge_index)
    if attr.layout.value == "csr":
        row = np.repeat(np.arange(len(row) - 1), np.diff(row))
    elif attr.layout.value == "csc":
        col = np.repeat(np.arange(len(col) - 1), np.diff(col))
    return np.stack([row, col])


def _of_data(data, time, weight):
    graph = Graph(typed=False)
    graph.counts = {None: data.num_nodes}
    if data.edge_index is not None:
        graph.edges = {None: data.edge_index.cpu().numpy()}
    if weight is not None:
        graph.columns["weight"] = {None: data[weight]}
    if time is not None:
        if data.is_node_attr(time):
            graph.node_times = {None: data[time]}
        elif data.is_edge_attr(time):
            graph.columns["stamp"] = {None: data[time]}
        else:
            raise ValueError(f"The time attribute '{time}' is neither a node-level or edge-level attribute")
    return graph


def _of_hetero(data, time, weight):
    graph = Graph(typed=True)
    graph.counts = {kind: data[kind].num_nodes for kind in data.node_types}
    for kind in data.edge_types:
        graph.edges[kind] = data[kind].edge_index.numpy()
    if weight is not None:
        graph.columns["weight"] = data.collect(weight)
    if time is not None:
        of_nodes = any(time in store for store in data.node_stores)
        of_edges = any(time in store for store in data.edge_stores)
        if of_nodes == of_edges:
            raise ValueError(f"The time attribute '{time}' " + ("holds both node-level and edge-level information"
                             if of_nodes else "is neither a node-level or edge-level attribute"))
        if of_nodes:
            graph.node_times = data.collect(time)
        else:
            graph.columns["stamp"] = data.collect(time)
    return graph


def _of_stores(stores, time, weight):
    features, edges = stores
    if weight is not None:
        raise NotImplementedError("'weight_attr' argument not yet supported")
    counts = {} if None in edges.put else {
        attr.group_name: features.get_tensor_size(attr)[0] for attr in features.get_all_tensor_attrs()
        if isinstance(attr.group_name, str)}
    graph = edges.graph(counts)
    if time is not None:
        for attr in edges.get_all_edge_attrs():
            if attr.layout.value == "csr":
                raise ValueError("Temporal sampling requires that edges are stored in either COO or CSC layout")
            if not attr.is_sorted:
                raise ValueError("Temporal sampling requires that edges are sorted by destination")
        found = {group: rows for (group, name), rows in features.put.items() if name == time}
        if not graph.typed:
            found = {None: next(iter(found.values()))}
        if time == "time" and not any(isinstance(group, tuple) for group in found):
            graph.node_times = found
        else:
            graph.columns["stamp"] = found
    return graph


class NeighborSampler(rzpyg.NeighborSampler, neighbor_sampler.NeighborSampler):
    """PyG's sampler in name and arguments, and ours in what it does."""

    def __init__(self, data, num_neighbors, subgraph_type="directional", replace=False, disjoint=False,
                 temporal_strategy="uniform", time_attr=None, weight_attr=None, is_sorted=False, share_memory=False,
                 directed=True, sample_direction="forward"):
        if sample_direction == "backward" and time_attr is not None:
            raise NotImplementedError("Temporal Sampling not yet supported for backward sampling")
        make = _of_data if isinstance(data, Data) else _of_hetero if isinstance(data, HeteroData) else _of_stores
        graph = make(data, time_attr, weight_attr)
        self.sample_direction = sample_direction
        self._triples = list(graph.edges)
        fanouts = num_neighbors if isinstance(num_neighbors, NumNeighbors) else NumNeighbors(num_neighbors)
        if not directed:
            subgraph_type = SubgraphType.induced
        self.keep_orig_edges = False
        self.node_time, self.edge_time = graph.node_times or None, None
        self._made = {
            "store": rzpyg.GraphStore(graph.shared(), graph.e_id), "replace": replace, "weighted": weight_attr is not None,
            "times": "stamp" if "stamp" in graph.columns else None,
            "vertex_times": "time" if graph.node_times else None, "pick": temporal_strategy,
            "direction": "in" if sample_direction == "forward" else "out",
        }
        self._start(fanouts, disjoint, subgraph_type)

    def _start(self, fanouts, disjoint, subgraph_type):
        rzpyg.NeighborSampler.__init__(self, fanouts=fanouts, disjoint=disjoint, subgraph_type=subgraph_type, **self._made)

    # BidirectionalNeighborSampler sets these of the samplers that it has.
    @property
    def num_neighbors(self):
        return self._fanouts

    @num_neighbors.setter
    def num_neighbors(self, fanouts):
        self._start(fanouts if isinstance(fanouts, NumNeighbors) else NumNeighbors(fanouts), self.disjoint,
                    self.subgraph_type)

    @property
    def disjoint(self):
        return rzpyg.NeighborSampler.disjoint.fget(self)

    @disjoint.setter
    def disjoint(self, disjoint):
        self._start(self._fanouts, disjoint, self.subgraph_type)

    @property
    def is_hetero(self):
        return self._store.shared.schema.typed

    @property
    def num_nodes(self):
        schema = self._store.shared.schema
        return schema.counts if schema.typed else schema.bound


def _install():
    original = neighbor_sampler.NeighborSampler
    bidirectional = neighbor_sampler.BidirectionalNeighborSampler
    for module in (neighbor_sampler, torch_geometric.sampler, torch_geometric.loader.neighbor_loader,
                   torch_geometric.loader.link_neighbor_loader):
        module.NeighborSampler = NeighborSampler
    assert issubclass(bidirectional, original)  # it makes samplers by the name that was replaced
    torch_geometric.testing.MyFeatureStore = MyFeatureStore
    torch_geometric.testing.MyGraphStore = MyGraphStore
    has_package = decorators.has_package
    decorators.has_package = lambda package: package == "pyg_lib" or has_package(package)


_install()


def pytest_collection_modifyitems(items):
    """Induced subgraphs need no torch-sparse here; its name in a test's module says only whether they are tried."""
    for item in items:
        if "subgraph_type" in getattr(item, "fixturenames", ()) and hasattr(item.module, "WITH_TORCH_SPARSE"):
            item.module.WITH_TORCH_SPARSE = True
