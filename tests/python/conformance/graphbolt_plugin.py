"""A pytest plugin that runs GraphBolt's own tests on Rhizome: their graphs and features become
stores.

GraphBolt's tests are not part of this repository: README.md says how to get them, which files they
are, and which tests pass.

`NeighborSampler` and `TemporalNeighborSampler` ingest the graph that they are given and sample from
the store; `TorchBasedFeature` and `DiskBasedFeature` become arrays of a store. The tests depend on
the order in which GraphBolt stores the neighbours of a vertex, so neighbour lists from the engine
are put into that order.
"""
import atexit
import itertools
import pathlib
import shutil
import tempfile

import dgl.graphbolt as gb
import numpy as np
import torch

import rhizome as rz
import rhizome.graphbolt as rzgb

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="rhizome-conformance-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
NUMBER = itertools.count()

TORCH_BASED = gb.TorchBasedFeature


def _path():
    return FOLDER / f"{next(NUMBER)}.rz"


class TorchBasedFeature(rzgb.Feature):
    """A tensor as an array of a store that has a vertex for each row. Metadata stays as it was given."""

    def __init__(self, rows, metadata=None):
        self._given = dict(metadata or {})
        self._keep(rows)

    def _keep(self, rows):
        path = _path()
        rz.ingest(path, np.zeros((2, 0), np.int64), vertices=len(rows), threads=1,
                  arrays={"feat": rows.numpy().reshape(len(rows), -1)})
        super().__init__(rz.open(path, mode="w"), "feat", shape=rows.shape[1:] or (1,))

    def update(self, value, ids=None):
        if ids is None and len(value) != self.count():
            self._keep(value)  # a store has as many rows as vertices
        else:
            super().update(value, ids)

    def metadata(self):
        return dict(self._given)

    @property
    def _tensor(self):
        return self.read()


class DiskBasedFeature(TorchBasedFeature):
    """A file as an array of a store."""

    def __init__(self, path, metadata=None):
        rows = np.load(path)
        assert rows.flags["C_CONTIGUOUS"], "DiskBasedFeature only supports C_CONTIGUOUS array."
        super().__init__(torch.from_numpy(rows), metadata)

    def read_into_memory(self):
        return TORCH_BASED(self.read())


class _InTheirOrder:
    """A sampler whose lists are in the order of GraphBolt's memory, and whose edges have their numbers there."""

    def __init__(self, sampler, graph):
        self._sampler, self._graph = sampler, graph

    def sample(self, *args):
        sub = self._sampler.sample(*args)
        places = self._graph.edge_rows("place", sub.edge_ids)[:, 0]
        lists = np.repeat(np.arange(len(sub.offsets) - 1), np.diff(sub.offsets))
        order = np.lexsort((places, lists))
        return sub._replace(edge_index=np.ascontiguousarray(sub.edge_index[:, order]), edge_ids=places[order],
                            types=None if sub.types is None else sub.types[order])


class Sampler(rzgb.NeighborSampler):
    """GraphBolt's arguments, on a store of the graph that is given."""

    def __init__(self, datapipe, graph, fanouts, replace, weights, times, deduplicate):
        super().__init__(datapipe, _store_of(graph, weights, times), fanouts, replace=replace, weighted=weights is not None,
                         times=None if times is None else "time", deduplicate=deduplicate, edge_ids=True)

    def _use(self):
        graph = self._graph.shared.graph
        return [_InTheirOrder(sampler, graph) for sampler in super()._use()]


class NeighborSampler(Sampler):
    def __init__(self, datapipe, graph, fanouts, replace=False, prob_name=None, deduplicate=True):
        weights = None if prob_name is None else graph.edge_attributes[prob_name].numpy()
        super().__init__(datapipe, graph, fanouts, replace, weights, None, deduplicate)


class TemporalNeighborSampler(Sampler):
    def __init__(self, datapipe, graph, fanouts, replace=False, prob_name=None, node_timestamp_attr_name=None,
                 edge_timestamp_attr_name=None):
        weights = None if prob_name is None else graph.edge_attributes[prob_name].numpy()
        times = np.full(graph.total_num_edges, np.iinfo(np.int64).min)
        if node_timestamp_attr_name:  # an edge is as late as the node that it comes from
            times = graph.node_attributes[node_timestamp_attr_name].numpy().astype(np.int64)[graph.indices.numpy()]
        if edge_timestamp_attr_name:
            times = np.maximum(times, graph.edge_attributes[edge_timestamp_attr_name].numpy().astype(np.int64))
        super().__init__(datapipe, graph, fanouts, replace, weights, times, False)


def _store_of(graph, weights, times):
    """Ingests a graph of GraphBolt's; the attribute `place` has the number of each edge there."""
    pointers, src = graph.csc_indptr.numpy().astype(np.int64), graph.indices.numpy().astype(np.int64)
    dst = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    columns = {"place": np.arange(len(src)), "time": times, "weight": weights}
    columns = {name: values for name, values in columns.items() if values is not None}
    path = _path()
    if graph.node_type_to_id is None:
        rz.ingest(path, np.stack([src, dst]), vertices=len(pointers) - 1, edge_arrays=columns, threads=1)
        return rzgb.SamplingGraph(rz.open(path))
    first = graph.node_type_offset.numpy()
    names = sorted(graph.node_type_to_id, key=graph.node_type_to_id.get)
    kinds, edges, orders = graph.type_per_edge.numpy(), {}, []
    for name in sorted(graph.edge_type_to_id, key=graph.edge_type_to_id.get):
        triple = tuple(name.split(":"))
        of_kind = np.flatnonzero(kinds == graph.edge_type_to_id[name])
        ends = np.stack([src[of_kind] - first[names.index(triple[0])], dst[of_kind] - first[names.index(triple[2])]])
        edges[triple[0], "__".join(triple), triple[2]] = ends
        orders.append(of_kind)
    order = np.concatenate(orders)
    rz.ingest(path, edges, vertex_types={name: int(first[kind + 1] - first[kind]) for kind, name in enumerate(names)},
              edge_arrays={name: values[order] for name, values in columns.items()}, threads=1)
    return rzgb.SamplingGraph(rz.open(path))


def _put(name, made):
    """Replaces a class wherever GraphBolt's modules have it, and the functional form of a sampler."""
    import sys
    old = getattr(gb, name, None)
    for module in [one for key, one in sys.modules.items() if key.startswith("dgl.graphbolt")]:
        if old is not None and getattr(module, name, None) is old:
            setattr(module, name, made)
    setattr(gb, name, made)


if not hasattr(torch.ops.graphbolt, "detect_io_uring"):  # the test of DiskBasedFeature is of a later version
    torch.ops.graphbolt.detect_io_uring = lambda: True
for _name, _made in (("TorchBasedFeature", TorchBasedFeature), ("DiskBasedFeature", DiskBasedFeature),
                     ("NeighborSampler", NeighborSampler), ("TemporalNeighborSampler", TemporalNeighborSampler)):
    _put(_name, _made)
for _function, _made in (("sample_neighbor", NeighborSampler), ("temporal_sample_neighbor", TemporalNeighborSampler)):
    torch.utils.data.IterDataPipe.functions.pop(_function, None)
    torch.utils.data.functional_datapipe(_function)(_made)
