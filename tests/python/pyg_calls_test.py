#!/usr/bin/env python3
"""The usual calls of PyG's loaders and of infer work as PyG documents them, or say what is wrong."""
import logging
import sys
import warnings

from package import SEED, Example, folder, np, raises, run, rz
from pyg_package import torch
from torch_geometric.loader import LinkNeighborLoader as PygLinkNeighborLoader
from torch_geometric.nn import SAGEConv

import rhizome.pyg as rzpyg

RNG = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def links_of(batch, kind=None):
    """The links of a minibatch by the graph's numbers."""
    if kind is None:
        return batch.n_id[batch.edge_label_index].numpy()
    rows, cols = batch[kind].edge_label_index
    return np.stack([batch[kind[0]].n_id[rows].numpy(), batch[kind[2]].n_id[cols].numpy()])


def test_link_loaders():
    example = Example(RNG, vertices=100, edges=500)
    stamps = RNG.integers(0, 50, 500)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=100, edge_arrays={"stamp": stamps, "weight": example.weights},
                  arrays={"feat": example.arrays["feat"][:100], "born": RNG.integers(0, 50, 100)})
        with rz.open(path / "g.rz") as graph, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stores = rzpyg.backend(graph, x="feat")
            links = torch.tensor(example.edges[:, :60])
            times = torch.tensor(stamps[:60])

            def loaded(*arguments, **options):
                batches = list(rzpyg.LinkNeighborLoader(stores, [4, 2], *arguments, batch_size=25, **options))
                return np.concatenate([links_of(batch) for batch in batches], axis=1), batches

            for given in (links, links.numpy(), links.tolist(), (None, links), [None, links.numpy()], (links[0], links[1])):
                found, batches = loaded(edge_label_index=given)
                assert np.array_equal(found, links.numpy())
                assert all(batch.x.shape == (len(batch.n_id), 12) for batch in batches)
            assert np.array_equal(loaded(links)[0], links.numpy())  # by its place
            for given in (None, (None, None)):  # all edges
                found, _ = loaded(edge_label_index=given)
                assert sorted(map(tuple, found.T.tolist())) == sorted(map(tuple, example.edges.T.tolist()))
            # Times: of edges by a sampler or by name, or of vertices.
            for options in ({"time_attr": "stamp"}, {"time_attr": "born"}, {"time_attr": "stamp", "temporal_strategy": "last"},
                            {"neighbor_sampler": rzpyg.NeighborSampler(stores[1], [4, 2], times="stamp")}):
                found, batches = loaded(edge_label_index=links, edge_label_time=times, edge_attr={"stamp": "stamp"}, **options)
                assert np.array_equal(found, links.numpy())
                assert torch.equal(torch.cat([batch.edge_label_time for batch in batches]), times)
                for batch in batches if options.get("time_attr") != "born" else ():
                    latest = torch.cat([batch.edge_label_time, batch.edge_label_time])[batch.batch[batch.edge_index[1]]]
                    assert (batch.stamp <= latest).all() and len(batch.stamp)
            weighted, _ = loaded(edge_label_index=links, weight_attr="weight")
            assert np.array_equal(weighted, links.numpy())
            for options, text in (({"edge_label_time": times}, "time_attr"), ({"weight_attr": "stamp"}, "weight"),
                                  ({"edge_label_index": ("edge", None)}, "links"), ({"edge_label_index": links[0]}, "shape"),
                                  ({"edge_label_index": (("a", "b", "c"), links)}, "no types")):
                with raises(ValueError, text):
                    loaded(**{"edge_label_index": links, **options})
            plain = PygLinkNeighborLoader(stores, [4], neighbor_sampler=rzpyg.NeighborSampler(stores[1], [4]),
                                          edge_label_index=(None, links), edge_label_time=times, time_attr="stamp")
            with raises(ValueError, "times="):
                next(iter(plain))


def test_typed_inputs():
    writes = np.stack([RNG.integers(0, 20, 50), RNG.integers(0, 30, 50)])
    kind = ("author", "writes", "paper")
    with folder() as path:
        rz.ingest(path / "t.rz", {kind: writes}, vertex_types={"paper": 30, "author": 20},
                  arrays={"feat": RNG.normal(size=(50, 4)).astype(np.float32)})
        with rz.open(path / "t.rz") as graph, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stores = rzpyg.backend(graph, x="feat")
            some = RNG.permutation(30)[:7]
            mask = np.isin(np.arange(30), some)
            for given, want in ((("paper", None), range(30)), ("paper", range(30)), (("paper", some), some),
                                (("paper", mask), np.flatnonzero(mask)), (("paper", torch.tensor(some)), some)):
                loader = rzpyg.NeighborLoader(stores, [3], given, batch_size=4)
                assert np.array_equal(torch.cat([batch["paper"].n_id[:batch["paper"].batch_size] for batch in loader]), list(want))
            for given in (None, some, list(some)):
                with raises(ValueError, "paper, author"):
                    rzpyg.NeighborLoader(stores, [3], given)
            for given in (kind, (kind, None), (kind, torch.tensor(writes)), (kind, writes)):
                loader = rzpyg.LinkNeighborLoader(stores, [3], given, batch_size=20)
                found = np.concatenate([links_of(batch, kind) for batch in loader], axis=1)
                assert sorted(map(tuple, found.T.tolist())) == sorted(map(tuple, writes.T.tolist()))
            for given in (None, writes, ("paper", "cites", "paper")):
                with raises(ValueError, "('author', 'writes', 'paper')"):
                    rzpyg.LinkNeighborLoader(stores, [3], given)


def test_backend_without_x():
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    floats = np.ones((3, 2), np.float32)
    for arrays, served, text in (({"feat": floats, "label": [0, 1, 2]}, {"x"}, "'feat' as x"), ({"label": [0, 1, 2]}, set(), None),
                                 ({"a": floats, "b": floats}, set(), "'a', 'b'")):
        with folder() as path:
            rz.ingest(path / "g.rz", edges, arrays=arrays)
            with rz.open(path / "g.rz") as graph, warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                fs, _ = rzpyg.backend(graph)
                assert {attr.attr_name for attr in fs.get_all_tensor_attrs()} == served
                assert len(said) == (text is not None) and all(text in str(one.message) for one in said)
                assert not rzpyg.backend(graph, x={})[0].get_all_tensor_attrs() and len(said) == (text is not None)


class Closing(logging.Handler):
    """Closes a writer when it is said that one is waited for."""

    def __init__(self, writers):
        super().__init__()
        self.writers, self.said = writers, []

    def emit(self, record):
        if "waiting for a writer" in record.getMessage():
            self.said.append(record.getMessage())
            self.writers.pop().close()


def test_infer_waits_for_a_writer():
    """Before the work and at its end; what was computed is not lost."""
    example = Example(RNG, vertices=100, edges=500)
    layer = SAGEConv(12, 4)
    with folder() as path:
        rz.ingest(path / "g.rz", example.edges, vertices=100, arrays={"feat": example.arrays["feat"][:100]})
        writers, calls = [], []
        closing = Closing(writers)
        logging.getLogger("rhizome").addHandler(closing)

        def progress(*words):
            calls.append(words)
            if len(calls) == 1:
                writers.append(rz.open(path / "g.rz", mode="w"))

        try:
            with rz.open(path / "g.rz") as graph:
                writers.append(rz.open(path / "g.rz", mode="w"))
                with raises(rz.Busy):
                    rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch", progress=progress)
                assert not calls and not closing.said
                rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch", progress=progress, wait=600)
                assert len(closing.said) == 2 and not writers and calls
                with torch.no_grad():
                    want = layer(torch.tensor(example.arrays["feat"][:100]), torch.tensor(example.edges)).numpy()
                assert np.allclose(np.asarray(graph["emb"]), want, atol=1e-5)
        finally:
            logging.getLogger("rhizome").removeHandler(closing)


if __name__ == "__main__":
    run(sys.modules[__name__])
