#!/usr/bin/env python3
"""rhizome.pyg: on a store, PyG's loaders and ours agree with NumPy, with and without worker
processes."""
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
from unittest import mock

from package import FOLDER, SEED, Example, folder, np, raises, run, rz
from pyg_package import torch
from torch_geometric.data import Data, EdgeAttr, HeteroData
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NodeSamplerInput

import rhizome.pyg as rzpyg
from rhizome._shared import _triple_of

RNG = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def pairs_of(edges):
    return set(map(tuple, np.asarray(edges).T.tolist()))


def check(example, data, seeds=None, whole_y=True):
    """The rows and the edges of a minibatch are those of the example."""
    ids = data.n_id.numpy()
    assert data.x.dtype == torch.float32 and np.array_equal(data.x.numpy(), example.arrays["feat"][ids])
    labelled = ids if whole_y else ids[:data.batch_size]
    assert data.y.dtype == torch.int64 and np.array_equal(data.y.numpy(), example.arrays["label"][labelled, 0])
    assert pairs_of(ids[data.edge_index.numpy()]) <= pairs_of(example.edges)
    assert sum(data.num_sampled_nodes) == len(ids) and sum(data.num_sampled_edges) == data.edge_index.shape[1]
    if seeds is not None:
        assert np.array_equal(ids[:data.batch_size], seeds)


def test_stores():
    example = Example(RNG)
    with folder() as path, warnings.catch_warnings():
        warnings.simplefilter("error")
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            fs, gs = rzpyg.backend(graph, x="feat", y="label", half="half")
            attrs = {attr.attr_name: attr for attr in fs.get_all_tensor_attrs()}
            assert set(attrs) == {"x", "y", "half"} and attrs["x"].group_name is None
            assert [fs.get_tensor_size(attrs[name]) for name in ("x", "y")] == [(300, 12), (300,)]
            for index in (torch.tensor([5, 2, 2]), torch.arange(300) % 3 == 0, slice(7, 20, 2), None):
                numbers = np.arange(300) if index is None else np.arange(300)[
                    index if isinstance(index, slice) else index.numpy()]
                x, y = fs.multi_get_tensor([_at(attrs["x"], index), _at(attrs["y"], index)])
                assert np.array_equal(x.numpy(), example.arrays["feat"][numbers])
                assert np.array_equal(y.numpy(), example.arrays["label"][numbers, 0]) and y.dtype == torch.int64
            half = fs.get_tensor(group_name=None, attr_name="half", index=torch.tensor([1]))
            assert half.dtype == torch.float16
            fs.put_tensor(torch.ones(2, 12), group_name=None, attr_name="x", index=torch.tensor([3, 4]))
            assert fs.get_tensor(None, "x", torch.tensor([3, 4, 5]))[:2].eq(1).all()
            with raises(KeyError, "backend"):
                fs.get_tensor(None, "z", None)
            with raises(rz.NotFound, "nothing"):
                rzpyg.backend(graph, x="nothing")
            assert fs.remove_tensor(None, "half", None) and len(fs.get_all_tensor_attrs()) == 2
            with raises(KeyError):
                gs.get_edge_index(EdgeAttr(("a", "b", "c"), "coo"))
            warnings.simplefilter("always")
            with warnings.catch_warnings(record=True) as told:
                row, col, _ = gs.coo()
            assert "bytes" in str(told[0].message)
            assert sorted(zip(row.tolist(), col.tolist())) == sorted(map(tuple, example.edges.T.tolist()))
            pointers, neighbors, _ = gs.csr()
            assert sorted(neighbors[pointers[9]:pointers[10]].tolist()) == [v for v, _ in example.targets(9, "out")]
            with raises(rz.OutOfMemory, "NeighborSampler"):
                rzpyg.backend(graph, memory="1K")[1].csc()
            with raises(NotImplementedError, "batch"):
                gs.put_edge_index((row, col), edge_type=None, layout="coo")


def _at(attr, index):
    attr.index = index
    return attr


def test_neighbor_loader():
    """PyG's own loader, without workers, and with those that are forked and spawned."""
    example = Example(RNG, vertices=1000, edges=10_000)
    with folder() as path:
        example.ingest(path / "g.rz")
        for memory in ("1G", "9M"):
            with rz.open(path / "g.rz", memory=memory) as graph:
                fs, gs = rzpyg.backend(graph, x="feat", y="label")
                seeds = RNG.permutation(1000)[:60]
                batches = {}
                for workers, method in ((0, None), (2, "fork"), (2, "spawn"))[:3 if memory == "1G" else 2]:
                    sampler = rzpyg.NeighborSampler(gs, [4, 3])
                    loader = NeighborLoader((fs, gs), [4, 3], neighbor_sampler=sampler, input_nodes=torch.tensor(seeds),
                                            batch_size=20, num_workers=workers, multiprocessing_context=method)
                    for _ in range(1 if method == "spawn" else 2):
                        torch.manual_seed(7)
                        batches[workers, method] = list(loader)
                        assert len(batches[workers, method]) == 3
                        for number, data in enumerate(batches[workers, method]):
                            check(example, data, seeds[20 * number:20 * number + 20])
                            assert data.batch is None and len(data.e_id) == data.edge_index.shape[1]
                if (2, "spawn") in batches:
                    assert all(torch.equal(a.n_id, b.n_id) for a, b in zip(batches[2, "fork"], batches[2, "spawn"]))
                assert graph.verify().ok


def test_workers_see_what_was_shared():
    """Whatever is written and compacted after backend() is in no minibatch, in the parent or in any worker."""
    example = Example(RNG, vertices=400, edges=4000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph, rz.open(path / "g.rz", mode="w") as writer:
            fs, gs = rzpyg.backend(graph, x="feat", y="label")
            for round_, (workers, method) in enumerate(((0, None), (2, "fork"), (1, "spawn"))):
                with writer.batch() as batch:
                    batch.put_rows("feat", np.arange(400), np.zeros((400, 12)))
                    batch.put_edges(RNG.integers(0, 400, 500), RNG.integers(0, 400, 500))
                    batch.delete_edge(*example.edges[:, round_].tolist())
                writer.compact()
                if round_ == 1:
                    graph.refresh()
                loader = rzpyg.NeighborLoader((fs, gs), [4, 3], input_nodes=torch.arange(60), batch_size=20,
                                              edge_attr="weight", num_workers=workers, multiprocessing_context=method)
                for number, data in enumerate(loader):
                    check(example, data, np.arange(20 * number, 20 * number + 20))
                    ends = zip(*data.n_id[data.edge_index].tolist(), data.edge_attr[:, 0].tolist())
                    assert set(ends) <= set(zip(*example.edges.tolist(), example.weights.tolist()))
            fs, gs = rzpyg.backend(graph, x="feat")
            assert not fs.get_tensor(None, "x", None).any()
            fs, gs = rzpyg.backend(writer, x="feat")  # what is put through a store is seen by it
            fs.put_tensor(torch.ones(2, 12), None, "x", index=torch.tensor([3, 9]))
            assert fs.get_tensor(None, "x", torch.tensor([3, 4])).sum(1).tolist() == [12, 0]


def test_samples():
    """Random numbers come from torch's; seeds are distinct; disjoint and induced subgraphs are what they say."""
    example = Example(RNG, vertices=500, edges=6000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            _, gs = rzpyg.backend(graph)
            seeds = NodeSamplerInput(None, torch.tensor([5, 9, 7]))

            def draw(fanouts, manual=1, **options):
                torch.manual_seed(manual)
                return rzpyg.NeighborSampler(gs, fanouts, **options).sample_from_nodes(seeds)

            once, again, other = draw([3, 2]), draw([3, 2]), draw([3, 2], manual=2)
            assert torch.equal(once.node, again.node) and torch.equal(once.row, again.row)
            assert not torch.equal(once.node, other.node)
            weights = dict(zip(range(6000), example.weights))
            assert once.edge.max() < 6000 and len(weights) == 6000
            out = draw([-1], direction="out")
            assert pairs_of(out.node.numpy()[torch.stack([out.row, out.col]).numpy()]) == {
                (a, b) for a, b in example.edges.T.tolist() if a in (5, 9, 7)}
            apart = draw([3, 2], disjoint=True)
            assert torch.equal(apart.batch[:3], torch.arange(3))
            assert torch.equal(apart.batch[apart.row], apart.batch[apart.col])
            induced = draw([3, 2], subgraph_type="induced")
            inside = np.isin(example.edges, induced.node.numpy()).all(0)
            assert induced.row.numel() == inside.sum()
            assert pairs_of(induced.node.numpy()[torch.stack([induced.row, induced.col]).numpy()]) == pairs_of(
                example.edges[:, inside])
            both = draw([3, 2], subgraph_type="bidirectional")
            edges = pairs_of(torch.stack([both.row, both.col]))
            assert edges == {(b, a) for a, b in edges}
            twice = NodeSamplerInput(None, torch.tensor([5, 9, 5]))
            with raises(ValueError, "seed twice"):
                rzpyg.NeighborSampler(gs, [3]).sample_from_nodes(twice)
            assert rzpyg.NeighborSampler(gs, [3], disjoint=True).sample_from_nodes(twice).node[:3].tolist() == [5, 9, 5]
            copy = pickle.loads(pickle.dumps(rzpyg.NeighborSampler(gs, [3, 2])))
            torch.manual_seed(1)
            assert torch.equal(copy.sample_from_nodes(seeds).node, once.node)
            with raises(ValueError, "fanout"):
                rzpyg.NeighborSampler(gs, [-7])


def test_link_neighbor_loader():
    example = Example(RNG, vertices=400, edges=5000)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            fs, gs = rzpyg.backend(graph, x="feat", y="label")
            links = example.edges[:, RNG.permutation(5000)[:64]]
            for negatives in (None, {"mode": "binary", "amount": 2.0}, {"mode": "triplet", "amount": 1}):
                loader = LinkNeighborLoader((fs, gs), [3, 3], neighbor_sampler=rzpyg.NeighborSampler(gs, [3, 3]),
                                            edge_label_index=(None, torch.tensor(links)), batch_size=16,
                                            neg_sampling=negatives)
                for number, data in enumerate(loader):
                    check(example, data)
                    want, ids = links[:, 16 * number:16 * number + 16], data.n_id.numpy()
                    if negatives is None or negatives["mode"] == "binary":
                        assert np.array_equal(ids[data.edge_label_index.numpy()[:, :16]], want)
                        assert data.edge_label_index.shape[1] == (16 if negatives is None else 48)
                    else:
                        assert np.array_equal(ids[[data.src_index.numpy(), data.dst_pos_index.numpy()]], want)


def test_own_loader():
    """Minibatches of our loader are those of our sampler, and a GNN on them computes what it does on the whole graph."""
    example = Example(RNG, vertices=600, edges=4000)
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(200), range(200, 300), range(300, 400)))
        with rz.open(path / "g.rz") as graph:
            for options in ({}, {"weighted": True, "edge_ids": True}, {"disjoint": True}, {"direction": "out"}):
                loader = rzpyg.Loader(graph, [4, 3], x="feat", y="label", batch_size=64, memory="16M", seed=3, **options)
                core = rz.Loader(graph, [4, 3], features="feat", split="train", batch_size=64, seed=3, **options)
                assert len(loader) == 4
                for data, batch in zip(loader, core, strict=True):
                    assert isinstance(data, Data) and data.x.data_ptr() % 8 == 0
                    check(example, data, batch.vertices[:batch.batch_size], whole_y=False)
                    edges = data.edge_index if options.get("direction") != "out" else data.edge_index.flip(0)
                    assert np.array_equal(edges.numpy(), batch.edge_index)
                    assert np.array_equal(data.edge_weight.numpy(), batch.weights)
                    assert ("e_id" in data) == ("edge_ids" in options) and ("batch" in data) == ("disjoint" in options)
            ranks = [rzpyg.Loader(graph, [4], x="feat", input_nodes="val", batch_size=30, rank=rank, world_size=2)
                     for rank in range(2)]
            seeds = torch.cat([data.n_id[:data.batch_size] for pair in zip(*ranks, strict=True) for data in pair])
            assert torch.equal(seeds.sort().values, torch.arange(200, 300))
            layers = [SAGEConv(12, 8), SAGEConv(8, 3)]
            with torch.no_grad():
                whole = torch.tensor(example.arrays["feat"])
                for layer in layers:
                    whole = layer(whole, torch.tensor(example.edges))
                loader = rzpyg.Loader(graph, [-1, -1], x="feat", input_nodes=torch.arange(600), batch_size=100,
                                      transform=lambda data: data.to("cpu"))
                for data in loader:
                    h = data.x
                    for layer in layers:
                        h = layer(h, data.edge_index)
                    assert torch.allclose(h[:100], whole[data.n_id[:100]], atol=1e-5)
            state = loader.state_dict()
            assert state["position"] == 6 and loader.report().minibatches == 6 and loader.memory.total
            loader.load_state_dict({**state, "position": 4})
            assert len(list(loader)) == 2


def test_own_loader_of_links():
    """Each link once, with its negatives after all links; no link is among the edges of its minibatch."""
    example = Example(RNG, vertices=200, edges=900)
    links = example.edges[:, RNG.permutation(900)[:100]]
    with folder() as path:
        example.ingest(path / "g.rz", directions="both")
        with rz.open(path / "g.rz") as graph:
            for negatives in (0, 2):
                loader = rzpyg.Loader(graph, [-1, 2], x="feat", edge_label_index=torch.tensor(links), negatives=negatives,
                                      batch_size=30, direction="both")
                seen = []
                for data in loader:
                    m = data.batch_size
                    ids, index = data.n_id.numpy(), data.edge_label_index.numpy()
                    assert index.shape == (2, m + 2 * m * negatives)
                    assert data.edge_label.tolist() == [1] * m + [0] * (2 * m * negatives)
                    assert np.array_equal(data.x.numpy(), example.arrays["feat"][ids])
                    for side, first in ((0, m), (1, m + m * negatives)):
                        part = index[:, first:first + m * negatives]
                        assert np.array_equal(part[1 - side], np.repeat(index[1 - side, :m], negatives))
                        assert (part[side] != np.repeat(index[side, :m], negatives)).all()
                    ends = {frozenset(pair) for pair in index[:, :m].T.tolist()}
                    assert not any(frozenset(edge) in ends for edge in data.edge_index.T.tolist())
                    seen.append(ids[index[:, :m]])
                assert np.array_equal(np.sort(np.concatenate(seen, 1).T @ [200, 1]), np.sort(links.T @ [200, 1]))
            with raises(ValueError, "[2, n]"):
                rzpyg.Loader(graph, [2], x="feat", edge_label_index=torch.tensor(links.T))


def test_loader_on_a_device():
    """What comes to a device is what comes without one, errors too; a loop that ends early leaves no thread."""
    example = Example(RNG, vertices=600, edges=4000)
    options = {"x": "feat", "y": "label", "batch_size": 64, "memory": "16M", "seed": 3}
    with folder() as path:
        example.ingest(path / "g.rz", split=(range(200), range(200, 300), range(300, 400)))
        with rz.open(path / "g.rz") as graph:
            here = rzpyg.Loader(graph, [4, 3], **options)
            there = rzpyg.Loader(graph, [4, 3], device="cpu", transform=lambda data: data.clone(), **options)
            for _ in range(2):
                for data, same in zip(there, here, strict=True):
                    assert set(data.keys()) == set(same.keys())
                    for name, value in same:
                        assert torch.equal(data[name], value) if torch.is_tensor(value) else data[name] == value
            assert there.report().minibatches == 4
            for data in rzpyg.Loader(graph, [4, 3], device="meta", **options):
                assert data.x.is_meta and data.edge_index.is_meta
                break
            del data
            gc.collect()
            assert not [thread for thread in threading.enumerate() if thread.name == "rhizome-device-feed"]
            with raises(RuntimeError, "no_such_device"):
                rzpyg.Loader(graph, [4, 3], device="no_such_device", **options)
            with mock.patch.object(there, "_data", side_effect=ZeroDivisionError("none left")):
                with raises(ZeroDivisionError, "none left"):
                    list(there)


def test_edge_attributes():
    """Minibatches have the attributes of their edges, of PyG's loaders and of ours, in workers too, and with any e_id."""
    vertices, count = 300, 4000
    edges, times = RNG.integers(0, vertices, (2, count)), RNG.integers(0, 1 << 40, count)
    vectors, weights = RNG.normal(size=(count, 3)).astype(np.float32), RNG.random(count, dtype=np.float32)
    feat = RNG.normal(size=(vertices, 4)).astype(np.float32)
    served = {"edge_attr": "vector", "edge_time": "time", "place": "place"}

    def check_edges(data):
        places = data.place.numpy()
        assert data.edge_attr.dtype == torch.float32 and data.edge_time.shape == (data.edge_index.shape[1],)
        assert np.array_equal(data.edge_attr.numpy(), vectors[places])
        assert np.array_equal(data.edge_time.numpy(), times[places])
        assert np.array_equal(data.n_id.numpy()[data.edge_index.numpy()], edges[:, places])

    with folder() as path:
        rz.ingest(path / "g.rz", edges, arrays={"feat": feat}, partitions=2,
                  edge_arrays={"vector": vectors, "time": times, "weight": weights, "place": np.arange(count)})
        with rz.open(path / "g.rz") as graph:
            for e_id in (None, "place"):
                fs, gs = rzpyg.backend(graph, x="feat", e_id=e_id)
                for workers, method in ((0, None), (2, "fork")):
                    loader = rzpyg.NeighborLoader((fs, gs), [4, 3], input_nodes=torch.arange(100), batch_size=50,
                                                  edge_attr=served, num_workers=workers, multiprocessing_context=method,
                                                  transform=lambda data: data.to("cpu"))
                    assert len(loader) == 2
                    for data in loader:
                        check_edges(data)
                        assert e_id is None or torch.equal(data.e_id, data.place)
                induced = rzpyg.NeighborSampler(gs, [3, 2], subgraph_type="induced", edge_ids=True)
                for data in rzpyg.NeighborLoader((fs, gs), [3, 2], input_nodes=torch.arange(60), batch_size=30,
                                                 edge_attr=served, neighbor_sampler=induced):
                    check_edges(data)
                links = rzpyg.LinkNeighborLoader((fs, gs), [3, 3], edge_label_index=(None, torch.tensor(edges[:, :40])),
                                                 batch_size=20, neg_sampling="binary", edge_attr=served)
                for data in links:
                    check_edges(data)
            for data in rzpyg.Loader(graph, [4, 3], x="feat", input_nodes=torch.arange(90), batch_size=45, memory="16M",
                                     edge_attr=served):
                check_edges(data)
            for data in rzpyg.Loader(graph, [4], x="feat", input_nodes=torch.arange(90), edge_attr="weight"):
                assert torch.equal(data.edge_attr[:, 0], data.edge_weight)
            with raises(rz.NotFound, "place, time, vector, weight, type"):
                rzpyg.Loader(graph, [4], x="feat", input_nodes=torch.arange(90), edge_attr="color")
            with raises(rz.NotFound, "color"):
                rzpyg.NeighborLoader((fs, gs), [4], input_nodes=torch.arange(90), edge_attr={"edge_attr": "color"})


def test_own_loader_is_neighbor_loader():
    """For the same seeds and random numbers both give the same minibatch, whole or of a rank, temporal or not."""
    example = Example(RNG, vertices=500, edges=5000)
    stamps, born = RNG.integers(0, 100, 5000), RNG.integers(0, 100, 500)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=500, edge_arrays={"stamp": stamps},
                  arrays={"feat": example.arrays["feat"], "label": example.arrays["label"], "born": born})
        with rz.open(path / "g.rz") as graph:
            fs, gs = rzpyg.backend(graph, x="feat", y="label")
            seeds = torch.tensor(RNG.permutation(500)[:300])
            for options in ({}, {"disjoint": True}, {"vertex_times": "born"}, {"times": "stamp", "seed_times": "born"},
                            {"times": "stamp", "seed_times": "born", "pick": "last", "direction": "out"}):
                alike = {"seed": 11, **options}
                for world_size in (1, 3):
                    for rank in range(world_size):
                        loader = rzpyg.Loader(graph, [4, 3], x="feat", y="label", input_nodes=seeds, batch_size=40,
                                              rank=rank, world_size=world_size, **alike)
                        ours = list(loader)
                        core = rz.Loader(graph, [1], features="feat", seeds=seeds, batch_size=40, rank=rank,
                                         world_size=world_size, seed=11)  # has the tags
                        tags = iter([batch.tag for batch in core])
                        sampler = rzpyg.NeighborSampler(gs, [4, 3], **alike)
                        with mock.patch.object(torch, "randint", lambda *_: next(tags)):
                            for data in ours:
                                index = data.n_id[:data.batch_size]
                                theirs = next(iter(NeighborLoader((fs, gs), [4, 3], neighbor_sampler=sampler,
                                                                  input_nodes=index, batch_size=40)))
                                for name in ("x", "n_id", "edge_index", "batch"):
                                    assert torch.equal(data[name], theirs[name]) if name in data else name not in theirs
                                assert torch.equal(data.y, theirs.y[:data.batch_size])
                                assert data.num_sampled_nodes == theirs.num_sampled_nodes
                                assert data.num_sampled_edges == theirs.num_sampled_edges
                                if "times" in options or "vertex_times" in options:
                                    assert np.array_equal(data.seed_time.numpy(), born[index.numpy()])
            given = torch.tensor(RNG.integers(0, 100, 300))
            loader = rzpyg.Loader(graph, [3], x="feat", input_nodes=seeds, times="stamp", seed_times=given, shuffle=False)
            assert torch.equal(next(iter(loader)).seed_time, given)


class Typed:
    """A random graph of papers and authors, whose vertices are mixed, in files."""

    def __init__(self, path):
        self.papers, self.authors = 120, 70
        self.edges = {
            ("paper", "cites", "paper"): RNG.integers(0, 120, (2, 900)),
            ("author", "writes", "paper"): np.stack([RNG.integers(0, 70, 500), RNG.integers(0, 120, 500)]),
        }
        names = [f"paper{i}" for i in range(120)] + [f"author{i}" for i in range(70)]
        order = RNG.permutation(190)
        (path / "nodes.tsv").write_text("".join(f"{names[i]}\t{names[i].rstrip('0123456789')}\n" for i in order))
        with open(path / "edges.tsv", "w") as file:
            for (src, kind, dst), edges in self.edges.items():
                file.writelines(f"{src}{a}\t{dst}{b}\t{kind}\t{i}\n" for i, (a, b) in enumerate(edges.T))
        self.feat = RNG.normal(size=(190, 6)).astype(np.float32)
        self.label = RNG.integers(0, 4, 190)
        rz.ingest(path / "g.rz", path / "edges.tsv", columns=["src", "dst", "type", "time"], nodes=path / "nodes.tsv",
                  node_columns=["id", "type"], arrays={"feat": self.feat, "label": self.label})
        self.place = {names[v]: i for i, v in enumerate(order)}

    def check(self, data, schema_names):
        for kind in ("paper", "author"):
            names = schema_names(kind, data[kind].n_id)
            rows = [self.place[name] for name in names]
            assert all(name.startswith(kind) for name in names)
            assert np.array_equal(data[kind].x.numpy(), self.feat[rows])
        for (src, kind, dst), edges in self.edges.items():
            index = data[src, kind, dst].edge_index
            a, b = (schema_names(end, data[end].n_id[index[i]]) for i, end in ((0, src), (1, dst)))
            got = {(int(x.lstrip("paerutho")), int(y.lstrip("paerutho"))) for x, y in zip(a, b)}
            assert got <= pairs_of(edges), kind


def test_typed():
    with folder() as path:
        example = Typed(path)
        with rz.open(path / "g.rz") as graph:
            assert sorted(graph.vertex_types) == ["author", "paper"]
            fs, gs = rzpyg.backend(graph, x="feat", y={"paper": "label"})
            assert {attr.edge_type for attr in gs.get_all_edge_attrs()} == set(example.edges)
            assert {(a.group_name, a.attr_name) for a in fs.get_all_tensor_attrs()} == {
                ("paper", "x"), ("author", "x"), ("paper", "y")}
            vertices = gs.shared.schema.vertices

            def names(kind, numbers):
                return graph.external_ids(vertices(kind, numbers))

            for kind, edges in gs.coo()[0].items():
                assert len(edges) == example.edges[kind].shape[1]
            for fanouts in ([3, 2], {kind: [2, 2] for kind in example.edges}):
                loader = NeighborLoader((fs, gs), fanouts, neighbor_sampler=rzpyg.NeighborSampler(gs, fanouts),
                                        input_nodes=("paper", torch.arange(40)), batch_size=10)
                for number, data in enumerate(loader):
                    assert isinstance(data, HeteroData) and data["paper"].batch_size == 10
                    assert torch.equal(data["paper"].n_id[:10], torch.arange(10 * number, 10 * number + 10))
                    example.check(data, names)
                    assert sum(data["author"].num_sampled_nodes) == len(data["author"].n_id)
            numbers = {kind: set() for kind in example.edges}
            for data in rzpyg.Loader(graph, [-1], x="feat", input_nodes=("paper", None), batch_size=60, device="cpu",
                                     edge_attr={"time": "time", "edge_attr": "type"}):
                example.check(data, names)
                for kind, edges in example.edges.items():
                    ends = [names(end, data[end].n_id[data[kind].edge_index[i]]) for i, end in ((0, kind[0]), (1, kind[2]))]
                    for a, b, at in zip(*ends, data[kind].time.tolist()):
                        assert (a, b) == (f"{kind[0]}{edges[0, at]}", f"{kind[2]}{edges[1, at]}")
                        numbers[kind].add(at)
                    assert (data[kind].edge_attr == graph.edge_types.index(kind[1])).all()
            assert all(len(numbers[kind]) == edges.shape[1] for kind, edges in example.edges.items())
            links = ("author", "writes", "paper")
            # Numbers within types are those of the store, so the links are read from it.
            row, col, _ = gs.coo([links])
            index = torch.stack([row[links], col[links]])[:, :30]
            loader = LinkNeighborLoader((fs, gs), [2, 2], neighbor_sampler=rzpyg.NeighborSampler(gs, [2, 2]),
                                        edge_label_index=(links, index), batch_size=10, neg_sampling_ratio=1.0)
            for data in loader:
                example.check(data, names)
                assert data[links].edge_label_index.shape == (2, 20)
            of_links = rzpyg.Loader(graph, [3, 2], x="feat", edge_label_index=(links, index), negatives=1, batch_size=10)
            seen = []
            for data in of_links:
                example.check(data, names)
                store = data[links]
                assert store.edge_label.tolist() == [1] * 10 + [0] * 20 and store.batch_size == 10
                assert (store.edge_label_index.amax(dim=1) < torch.tensor([len(data[end].n_id) for end in links[::2]])).all()
                seen += zip(*(data[end].n_id[store.edge_label_index[i, :10]].tolist() for i, end in ((0, "author"), (1, "paper"))))
            assert sorted(seen) == sorted(map(tuple, index.T.tolist()))
            with raises(ValueError, "edge type"):
                rzpyg.Loader(graph, [2], x="feat", edge_label_index=(("paper", "writes", "paper"), index))
            own = rzpyg.Loader(graph, [3, 2], x="feat", y="label", input_nodes=("paper", None), batch_size=50)
            total = 0
            for data in own:
                example.check(data, names)
                total += data["paper"].batch_size
                seeds = [example.place[name] for name in names("paper", data["paper"].n_id[:data["paper"].batch_size])]
                assert np.array_equal(data["paper"].y.numpy(), example.label[seeds])
            assert total == 120
            times = torch.tensor(RNG.integers(0, 500, 120))
            own = rzpyg.Loader(graph, [3], x="feat", input_nodes=("paper", None), batch_size=50, times="time",
                               seed_times=times)
            for data in own:
                assert torch.equal(data["paper"].seed_time, times[data["paper"].n_id[:data["paper"].batch_size]])
                example.check(data, names)
            mixed = {"writes": ("paper", "writes", "author"), "cites": ("paper", "cites", "paper")}
            fs, gs = rzpyg.backend(graph, edge_types=mixed)
            with raises(ValueError, "'writes'"):
                rzpyg.NeighborSampler(gs, [3]).sample_from_nodes(NodeSamplerInput(None, torch.arange(120), None, "paper"))


def test_features_by_type():
    """Node types with arrays of their own: other widths, or no x, in our loader and in PyG's."""
    with folder() as path:
        example = Typed(path)
        wide = RNG.normal(size=(190, 9)).astype(np.float32)
        rz.add_array(path / "g.rz", "wide", wide)
        with rz.open(path / "g.rz") as graph:
            x = {"paper": "feat", "author": "wide"}
            fs, gs = rzpyg.backend(graph, x=x)
            vertices = gs.shared.schema.vertices
            pyg = NeighborLoader((fs, gs), [3, 2], neighbor_sampler=rzpyg.NeighborSampler(gs, [3, 2]),
                                 input_nodes=("paper", torch.arange(120)), batch_size=30)
            own = {device: rzpyg.Loader(graph, [3, 2], x=x, y="label", input_nodes=("paper", None), batch_size=30, device=device)
                   for device in (None, "cpu")}
            for loader in (pyg, *own.values()):
                for data in loader:
                    assert data["paper"].x.shape[1] == 6 and data["author"].x.shape[1] == 9
                    assert set(data.x_dict) == {"paper", "author"}
                    for kind, array in x.items():
                        rows = graph[array][vertices(kind, data[kind].n_id)]
                        assert np.array_equal(data[kind].x.numpy(), rows)
            assert set(own[None].memory.caches) == {"feat", "wide"}
            for served in ({"paper": "feat"}, {"paper": "feat", "author": None}):
                for data in rzpyg.Loader(graph, [3, 2], x=served, input_nodes=("paper", None), batch_size=30):
                    assert set(data.x_dict) == {"paper"} and data["author"].num_nodes == len(data["author"].n_id)
                stores = rzpyg.backend(graph, x=served)
                assert [attr.group_name for attr in stores[0].get_all_tensor_attrs()] == ["paper"]
            with raises(ValueError, "'book'"):
                rzpyg.Loader(graph, [3], x={"book": "feat"}, input_nodes=("paper", None))
            with raises(ValueError, "'book'"):
                rzpyg.backend(graph, x={"book": "feat"})
            with raises(rz.NotFound, "nothing"):
                rzpyg.Loader(graph, [3], x={"paper": "nothing"}, input_nodes=("paper", None))
        plain = Example(RNG)
        plain.ingest(path / "plain.rz")
        with rz.open(path / "plain.rz") as graph:  # one node type: a Data
            for data in rzpyg.Loader(graph, [3], x={graph.vertex_types[0]: "feat"}, input_nodes=torch.arange(30)):
                assert isinstance(data, Data) and np.array_equal(data.x.numpy(), plain.arrays["feat"][data.n_id.numpy()])


def test_bound_features():
    """HeteroData whose node types have features of their own goes into a store, and comes out in minibatches."""
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(120, 6), torch.randn(70, 9)
    data["venue"].num_nodes = 10
    ends = {"author": 70, "paper": 120, "venue": 10}
    for kind in (("author", "writes", "paper"), ("paper", "in", "venue"), ("paper", "cites", "paper")):
        data[kind].edge_index = torch.stack([torch.randint(ends[kind[0]], (500,)), torch.randint(ends[kind[2]], (500,))])
    with folder() as path:
        rz.ingest(path / "g.rz", data)
        with rz.open(path / "g.rz") as graph:
            x = {graph[name].vertex_type: name for name in graph.arrays if graph[name].vertex_type}
            assert set(x) == {"paper", "author"}
            fs, gs = rzpyg.backend(graph, x=x)
            sampler = rzpyg.NeighborSampler(gs, [4, 3])
            loaders = [NeighborLoader((fs, gs), [4, 3], neighbor_sampler=sampler, input_nodes=("paper", torch.arange(120)),
                                      batch_size=40),
                       rzpyg.Loader(graph, [4, 3], x=x, input_nodes=("paper", None), batch_size=40)]
            for loader in loaders:
                for batch in loader:
                    assert set(batch.x_dict) == {"paper", "author"}
                    for kind, rows in batch.x_dict.items():
                        assert torch.equal(rows, data[kind].x[batch[kind].n_id])
            core = rz.Loader(graph, [4, 3], features={"venue": None}, seeds=graph.vertices_of("paper"), batch_size=40)
            assert core.features == {**{name: x.get(name) for name in graph.vertex_types}}  # the defaults are bound arrays
            for batch in core:
                of_papers = batch.vertices[batch.vertex_types == graph.vertex_types.index("paper")]
                assert np.array_equal(batch.x["paper"], graph[x["paper"]][of_papers])
            for batch in rzpyg.Loader(graph, [4], x=x["paper"], input_nodes=("paper", None), batch_size=40):
                assert set(batch.x_dict) == {"paper"}
            for wrong in ({"author": x["paper"]}, {"venue": x["paper"]}):
                for make in (lambda: rzpyg.backend(graph, x=wrong), lambda: rzpyg.Loader(graph, [4], x=wrong,
                                                                                         input_nodes=("paper", None))):
                    with raises(ValueError, "'paper' alone"):
                        make()
                with raises(ValueError, "belongs to vertices of type paper"):
                    rz.Loader(graph, [4], features=wrong, seeds=[0])
            with raises(ValueError, "only for vertices of type paper"):
                rz.Loader(graph, [4], features=x["paper"], seeds=[0])


def test_temporal():
    """No edge is later than its seed."""
    with folder() as path:
        edges, times = RNG.integers(0, 200, (2, 3000)), RNG.integers(0, 100, 3000)
        rz.ingest(path / "g.rz", edges, edge_arrays={"time": times}, arrays={"x": np.eye(200, dtype=np.float32)})
        latest = {}
        for (a, b), time in zip(edges.T.tolist(), times.tolist()):
            latest.setdefault((a, b), []).append(time)
        with rz.open(path / "g.rz") as graph:
            fs, gs = rzpyg.backend(graph, x="x")
            sampler = rzpyg.NeighborSampler(gs, [5, 5], times="time")
            assert sampler.disjoint and sampler.is_temporal
            seed_times = torch.tensor(RNG.integers(0, 100, 50))
            loader = NeighborLoader((fs, gs), [5, 5], neighbor_sampler=sampler, input_nodes=torch.arange(50),
                                    input_time=seed_times, time_attr="time", batch_size=25)
            for data in loader:
                assert torch.equal(data.seed_time, seed_times[data.input_id])
                ends = data.n_id[data.edge_index].T.tolist()
                for (a, b), seed in zip(ends, data.batch[data.edge_index[1]].tolist()):
                    assert min(latest[a, b]) <= data.seed_time[seed]
        when = RNG.integers(0, 100, 200)
        rz.ingest(path / "v.rz", edges, arrays={"x": np.eye(200, dtype=np.float32), "when": when})
        with rz.open(path / "v.rz") as graph:
            fs, gs = rzpyg.backend(graph, x="x")
            sampler = rzpyg.NeighborSampler(gs, [-1, -1], vertex_times="when")  # seeds have the times of their vertices
            for data in NeighborLoader((fs, gs), [-1, -1], neighbor_sampler=sampler, input_nodes=torch.arange(50),
                                       batch_size=25):
                ends, batch = data.n_id[data.edge_index].numpy(), data.batch.numpy()
                limits = when[data.input_id.numpy()]
                assert (when[ends[0]] <= limits[batch[data.edge_index[1].numpy()]]).all()
                first = data.edge_index[1].numpy() < 25
                for seed in range(25):
                    near = edges[0][edges[1] == int(data.input_id[seed])]
                    got = ends[0][first & (data.edge_index[1].numpy() == seed)]
                    assert sorted(got.tolist()) == sorted(near[when[near] <= limits[seed]].tolist())


ENDS = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import rhizome as rz, rhizome.pyg as rzpyg
g = rz.open(sys.argv[2])
options = {"x": "feat", "input_nodes": torch.arange(200), "batch_size": 2, "device": "cpu"}
loops = [iter(rzpyg.Loader(g, [3, 3], **options)) for _ in range(3)]
for loop in loops:
    next(loop)
"""


def test_the_end_within_a_loop():
    """A program may end while threads read ahead."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", ENDS, FOLDER, path / "g.rz"], check=False,
                              timeout=600, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)


def test_arrays_as_tensors():
    """torch takes an array of a store as it takes NumPy's, whatever the ids are."""
    example = Example(RNG, vertices=40, edges=90)
    with folder() as path:
        example.ingest(path / "dense.rz")
        rz.ingest(path / "gaps.rz", 2 * example.edges + 1, ids=2 * np.arange(40) + 1, arrays=example.arrays)
        for store in ("dense", "gaps"):
            with rz.open(path / f"{store}.rz") as graph:
                for name in ("feat", "half", "label", "small", "bytes"):
                    want = torch.from_numpy(example.arrays[name])
                    for made in (torch.as_tensor(graph[name]), torch.tensor(graph[name]),
                                 torch.from_dlpack(graph[name]),
                                 torch.stack([torch.as_tensor(row) for row in graph[name]])):
                        assert made.dtype == want.dtype and torch.equal(made, want), (store, name)
        with rz.open(path / "dense.rz") as graph:
            for batch in rz.Loader(graph, [2], features="feat", seeds=range(5), zero_copy=True):
                assert torch.equal(torch.as_tensor(batch.x), torch.from_numpy(example.arrays["feat"][batch.vertices]))
                assert np.array_equal(np.stack(list(batch.x)), np.asarray(batch.x))
                with raises(IndexError):
                    batch.x[1, 2]
            del batch


def test_triples_in_names():
    """A name that joins three says a triple where both ends are node types, however many underscores they have."""
    first, second, third = ("a", "b_c"), ("_a", "b__c", "d"), ("a", "a__b", "c")
    cases = [(first, "a__r__b_c", ("a", "r", "b_c")), (first, "a___r___b_c", ("a", "r", "b_c")),
             (first, "b_c__has_r__a", ("b_c", "has_r", "a")), (first, "b_c___has_r___a", ("b_c", "has_r", "a")),
             (first, "a___r__a", ("a", "_r", "a")), (first, "a__b_c__a", ("a", "b_c", "a")),
             (second, "_a__r__b__c", ("_a", "r", "b__c")), (second, "_a___r_s___d", ("_a", "r_s", "d")),
             (second, "b__c___r___b__c", ("b__c", "r", "b__c")), (second, "d__r__s__d", ("d", "r__s", "d")),
             (third, "a__b__r__c", ("a__b", "r", "c")), (third, "c__r__a__b", ("c", "r", "a__b")),
             (("author", "paper"), "author___writes___paper", ("author", "writes", "paper")),
             (first, "x__y__a", None), (first, "a__", None), (first, "a____a", None), (second, "r", None)]
    for types, name, triple in cases:
        assert _triple_of(name, types) == triple, (name, _triple_of(name, types))


def test_names_of_edge_types():
    """The store records the ends of an edge type; its name, if it has these ends, only the relation."""
    first, second = {"a": 3, "b_c": 3}, {"_a": 3, "b__c": 3, "d": 3}
    cases = [(first, "a__r__b_c", ("a", "r", "b_c")), (first, "a___r___b_c", ("a", "r", "b_c")),
             (first, "b_c__has_r__a", ("a", "b_c__has_r__a", "b_c")), (first, "a__r__s__b_c", ("a", "r__s", "b_c")),
             (second, "_a__r__b__c", ("_a", "r", "b__c")), (second, "_a___r_s___d", ("_a", "_a___r_s___d", "b__c")),
             (first, "x__y__a", ("a", "x__y__a", "b_c")), (first, "a__b_c", ("a", "a__b_c", "b_c")),
             (second, "r", ("_a", "r", "b__c"))]
    with folder() as path:
        for number, (types, name, triple) in enumerate(cases):
            # The edges are between the first two types.
            src, dst = list(types)[:2]
            rz.ingest(path / f"{number}.rz", {(src, name, dst): [[0, 1], [1, 2]]}, vertex_types=types)
            with rz.open(path / f"{number}.rz") as graph:
                assert graph.edge_types == [name] and graph.edge_ends == {name: (src, dst)}
                _, gs = rzpyg.backend(graph)
                assert gs.shared.schema.edge_types == [triple], (name, gs.shared.schema.edge_types)
        # What imports name a repeated relation, and what older ones did.
        (path / "edges.tsv").write_text("".join(f"{a}{i}\t{b}{i}\t{name}\n" for i in range(4) for a, b, name in (
            ("author", "paper", "author__to__paper"), ("paper", "venue", "paper___to___venue"))))
        (path / "nodes.tsv").write_text("".join(f"{kind}{i}\t{kind}\n" for kind in ("author", "paper", "venue")
                                                for i in range(4)))
        rz.ingest(path / "t.rz", path / "edges.tsv", columns=["src", "dst", "type"], nodes=path / "nodes.tsv",
                  node_columns=["id", "type"])
        with rz.open(path / "t.rz") as graph:
            assert graph.vertex_types == ["author", "paper", "venue"]
            _, gs = rzpyg.backend(graph)
            assert gs.shared.schema.edge_types == [("author", "to", "paper"), ("paper", "to", "venue")]
            with raises(ValueError, "'author__to__paper', 'paper___to___venue' are the same"):
                rzpyg.backend(graph, x="feat", edge_types=dict.fromkeys(graph.edge_types, ("author", "to", "paper")))


if __name__ == "__main__":
    assert os.environ["PYTHONPATH"]
    run(sys.modules[__name__])
