#!/usr/bin/env python3
"""Data and HeteroData of PyTorch Geometric: all that has a place in a store gets there, and one warning names the rest."""
import contextlib
import importlib.util
import sys
import warnings

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


class Store(dict):
    """What of torch_geometric's Data, and of a part of its HeteroData, `ingest` uses."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


class Hetero(Store):
    node_types = property(lambda self: [key for key in self if isinstance(key, str)])
    edge_types = property(lambda self: [key for key in self if isinstance(key, tuple)])


@contextlib.contextmanager
def said(*texts):
    """The block warns once, of all texts; or never, without texts."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        yield
    assert len(records) == bool(texts), [str(one.message) for one in records]
    for text in texts:
        assert text in str(records[0].message), (text, str(records[0].message))
        assert records[0].filename == __file__


def attributes_of(graph, *names):
    """(source, target, value of each attribute) of all edges, sorted."""
    found = []
    for src, dst, *_ in graph.scan_edges():
        found += zip(src.tolist(), dst.tolist())
    assert len(found) == graph.num_edges
    lists = graph.sampler([-1], direction="in", edge_ids=True).sample(np.arange(graph.vertex_bound))
    ends = lists.vertices[lists.edge_index]
    values = [graph.edge_rows(name, lists.edge_ids).tolist() for name in names]
    return sorted(zip(*ends.tolist(), *values))


def masks_of(sets, wide=None):
    made = {f"{name}_mask": sets == number for number, name in enumerate(("train", "val", "test"))}
    return {name: mask if wide is None else np.stack([mask] * wide, 1) for name, mask in made.items()}


def test_data():
    count, edges = 50, RNG.integers(0, 50, (2, 300))
    x, times, stamps = RNG.normal(size=(count, 3)).astype(np.float32), RNG.integers(0, 9, count), RNG.integers(0, 9, 300)
    weights, rows = RNG.random(300, dtype=np.float32), RNG.normal(size=(300, 2)).astype(np.float32)
    sets = RNG.integers(0, 4, count)
    base = {"edge_index": edges, "x": x, "num_nodes": count}
    with folder() as path:
        with said():
            rz.ingest(path / "g.rz", Store(base, time=times, edge_time=stamps, edge_weight=weights, edge_attr=rows,
                                           **masks_of(sets)))
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(graph["time"][np.arange(count)][:, 0], times)
            want = sorted(zip(*edges.tolist(), [[stamp] for stamp in stamps.tolist()], rows.tolist(), weights[:, None].tolist()))
            assert attributes_of(graph, "time", "edge_attr", "weight") == want
            assert [graph.split(name).tolist() for name in ("train", "val", "test")] == [
                np.flatnonzero(sets == number).tolist() for number in range(3)]
        with said():
            rz.ingest(path / "edge_time.rz", Store(base, time=stamps))  # as many as edges
        with rz.open(path / "edge_time.rz") as graph:
            assert "time" not in graph.arrays and "time" in graph.edge_attributes
        with said("'pos'", "'name'"):
            rz.ingest(path / "left.rz", Store(base, pos=x, name="cora", y=None))
        for wide in (1, 4):
            rz.ingest(path / f"{wide}.rz", Store(base, **masks_of(sets, wide)))
            with rz.open(path / f"{wide}.rz") as graph:
                assert sorted(graph.arrays) == ["feat", "split"] + [f"split_{number}" for number in range(1, wide)]
                for name in ["split"] + [f"split_{number}" for number in range(1, wide)]:
                    assert graph.split("train", array=name).tolist() == np.flatnonzero(sets == 0).tolist()
        two = masks_of(sets)
        del two["val_mask"]
        rz.ingest(path / "two.rz", Store(base, **two))
        with rz.open(path / "two.rz") as graph:
            assert graph.split("train").tolist() == np.flatnonzero(sets == 0).tolist() and not len(graph.split("val"))
            assert graph.split("test").tolist() == np.flatnonzero(sets == 2).tolist()
        both = masks_of(sets)
        both["val_mask"][np.flatnonzero(sets == 0)[0]] = True
        for wrong, text in ((Store(base, **both), "is in val_mask and in train_mask"),
                            (Store(base, train_mask=np.ones(3, bool)), "50 vertices"),
                            (Store({**base, "edge_index": None}), "edge_index"),
                            (Store(base, **{**masks_of(sets), **{"test_mask": masks_of(sets, 2)["test_mask"]}}), "number of splits")):
            with raises(ValueError, text):
                rz.ingest(path / "wrong.rz", wrong)


def test_hetero():
    writes, cites = np.stack([RNG.integers(0, 20, 40), RNG.integers(0, 30, 40)]), RNG.integers(0, 30, (2, 60))
    weights, stamps = RNG.random(40, dtype=np.float32), RNG.integers(0, 9, 60)
    sets = RNG.integers(0, 4, 30)
    data = Hetero({"paper": Store(x=RNG.normal(size=(30, 2)).astype(np.float32), num_nodes=30, time=RNG.integers(0, 9, 30),
                                  **masks_of(sets)),
                   "author": Store(num_nodes=20),
                   ("author", "writes", "paper"): Store(edge_index=writes, edge_weight=weights, name="w"),
                   ("paper", "cites", "paper"): Store(edge_index=cites, time=stamps)})
    with folder() as path:
        with said("'name' of ('author', 'writes', 'paper')"):
            rz.ingest(path / "g.rz", data)
        with rz.open(path / "g.rz") as graph:
            found = attributes_of(graph, "weight", "time")
            heavy = [(a + 30, b, [weight]) for a, b, weight in zip(*writes.tolist(), weights.tolist())]
            assert sorted(edge[:3] for edge in found if edge[0] >= 30) == sorted(heavy)
            plain = [(a, b, [1.0], [stamp]) for a, b, stamp in zip(*cites.tolist(), stamps.tolist())]
            assert sorted(edge for edge in found if edge[0] < 30) == sorted(plain)
            # What has no time has none: neither 0 nor any that an edge has.
            assert {edge[3][0] for edge in found if edge[0] >= 30} == {None}
            there = {int(one) for one in graph.edge_rows("time", np.arange(100)).compressed()}
            assert there <= set(range(9))
            # Only papers have a time: the array is bound to them.
            assert graph.arrays["time"].vertex_type == "paper"
            assert graph["time"][:30][:, 0].tolist() == data["paper"]["time"].tolist()
            with raises(rz.InvalidArgument, "'author'"):
                graph["time"][30]
            assert graph.split("train").tolist() == np.flatnonzero(sets == 0).tolist()
        data["paper"]["val_mask"] = data["paper"]["train_mask"]
        with raises(ValueError, "of 'paper' is in val_mask and in train_mask"):
            rz.ingest(path / "wrong.rz", data)


def test_of_torch():
    """The objects of PyTorch Geometric themselves."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_geometric") is None:
        print("skipped: no torch_geometric here")
        return
    try:
        import pyg_package  # noqa: F401
    except SystemExit:
        print("skipped: torch does not import")
        return
    import torch
    from torch_geometric.data import Data, HeteroData
    x = torch.randn(6, 3)
    edges = torch.tensor([[0, 1, 2, 5], [1, 2, 3, 4]])
    with folder() as path:
        with said("'pos'"):
            rz.ingest(path / "d.rz", Data(x=x.to(torch.bfloat16), edge_index=edges, edge_attr=torch.randn(4), pos=x,
                                          train_mask=torch.tensor([[True], [False]] * 3)))
        with rz.open(path / "d.rz") as graph:
            stored = graph["feat"][np.arange(6)]
            bits = x.to(torch.bfloat16).view(torch.int16).numpy()
            assert graph["feat"].dtype.itemsize == 2 and np.array_equal(stored.view(np.int16), bits)
            assert graph.split("train").tolist() == [0, 2, 4]
        hetero = HeteroData()
        hetero["a"].x, hetero["b"].num_nodes, hetero.title = x, 4, "t"
        hetero["a", "to", "b"].edge_index = torch.tensor([[0, 5], [3, 1]])
        hetero["a", "to", "b"].edge_weight = torch.tensor([0.5, 2.0])
        with said("'title'"):
            rz.ingest(path / "h.rz", hetero)
        with rz.open(path / "h.rz") as graph:
            assert attributes_of(graph, "weight") == [(0, 9, [0.5]), (5, 7, [2.0])]


if __name__ == "__main__":
    run(sys.modules[__name__])
