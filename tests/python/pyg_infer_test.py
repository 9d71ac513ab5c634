#!/usr/bin/env python3
"""rhizome.pyg.infer: block by block and layer by layer, it equals the model applied to the whole
graph at once."""
import itertools
import logging
import os
import signal
import subprocess
import sys

from package import FOLDER, SEED, Example, folder, logged, np, raises, run, rz
from pyg_package import torch
from torch import nn
from torch_geometric.nn import (
    GAT, GCN, GIN, MLP, GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, GraphSAGE, LayerNorm, PNAConv, SAGEConv,
)

import rhizome.pyg as rzpyg
from rhizome.pyg._networks import OtherModel, network_of

RNG = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def close(a, b):
    return np.allclose(np.asarray(a), b.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_models():
    example = Example(RNG, vertices=500, edges=4000)
    x, edges = torch.tensor(example.arrays["feat"]), torch.tensor(example.edges)
    weights = torch.tensor(example.weights)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=2)
        with rz.open(path / "g.rz") as graph:
            model = GraphSAGE(12, 16, num_layers=3, out_channels=5, dropout=0.5, norm="batch_norm")
            model.train()
            said = []
            report = rzpyg.infer(model, graph, features="feat", out="emb", memory="60K", live=True, engine="torch",
                                 progress=lambda *words: said.append(words))
            assert model.training and report.rows_given == 500
            model.eval()
            assert close(graph["emb"], model(x, edges)) and close(graph["emb@live"], model(x, edges))
            assert len(said) > 6 and said[-1] == ("layer 3 of 3", 500, 500), said[-1]

            convs = [SAGEConv(12, 8), GATConv(8, 4, heads=2), SAGEConv(8, 3)]
            layers = [lambda x, e: convs[0](x, e).relu(), lambda x, e: convs[1](x, e).relu(), convs[2]]
            whole = x
            for layer in layers:
                whole = layer(whole, edges)
            rzpyg.infer(layers, graph, features="feat", out="emb", memory="1K")
            assert graph.arrays["emb"].versions == (1, 2) and graph["emb@1"].shape == (500, 5)
            assert close(graph["emb@2"], whole) and graph["emb@live"].shape == (500, 5)

            weighted = GraphConv(12, 4)
            rzpyg.infer([weighted], graph, features="feat", out="sums", edge_weight=True)
            assert close(graph["sums"], weighted(x, edges, weights))
            back = SAGEConv(12, 4)
            rzpyg.infer([back], graph, features="feat", out="back", direction="out", engine="torch")
            assert close(graph["back"], back(x, edges.flip(0)))
            assert not [name for name in os.listdir(path) if name.startswith(".infer")]


def test_forms():
    """A layer gets blocks in the cheapest form that it takes, and computes the same from each."""
    example = Example(RNG, vertices=300, edges=3000)
    loops = np.arange(0, 300, 7)
    example.edges = np.concatenate([example.edges, [loops, loops], example.edges[:, :200]], axis=1)  # and parallel ones
    example.weights = RNG.random(example.edges.shape[1], dtype=np.float32)
    x, edges = torch.tensor(example.arrays["feat"]), torch.tensor(example.edges)
    conv, gat = SAGEConv(12, 4), GATConv(12, 4)
    seen = []

    def any_form(x, e):
        seen.append((isinstance(x, tuple), e.layout == torch.sparse_csr))
        return conv(x, e)

    def plain_alone(x, e):
        return conv(x.clone(), e[:, :])

    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for layer, want in ((any_form, conv), (plain_alone, conv), (gat, gat)):
                rzpyg.infer([layer], graph, features="feat", out="emb", memory="100K", engine="torch")
                versions = graph.arrays["emb"].versions
                assert close(graph[f"emb@{versions[-1]}"], want(x, edges)), layer
            assert seen[-1] == (True, True)


def stacks():
    """Models that the engine has, with every option that is looked at, and whether they may meet loops."""
    for aggr, normalize, project, act, norm, layers in itertools.islice(zip(
            itertools.cycle(["mean", "max"]), itertools.cycle([False, True, False]), itertools.cycle([False, True]),
            itertools.cycle(["relu", "tanh", None, "elu", "gelu"]),
            itertools.cycle([None, "batch_norm", LayerNorm(16, mode="node"), nn.LayerNorm(16)]),
            itertools.cycle([2, 3, 1])), 8):
        yield GraphSAGE(12, 16, layers, 5, aggr=aggr, normalize=normalize, project=project and aggr == "max", act=act,
                        norm=norm if layers > 1 else None), True
    yield GraphSAGE(12, 16, 2, 16, root_weight=False, bias=False), True
    yield GCN(12, 16, 3, 5, norm="batch_norm", dropout=0.5), False
    yield GIN(12, 16, 2, 5, train_eps=True, norm="batch_norm"), True
    yield GIN(12, 16, 2, 5, eps=0.25), True
    yield GAT(12, 16, 2, 6, heads=4), False
    yield GAT(12, 16, 2, 6, heads=4, negative_slope=0.1, add_self_loops=False, act="elu"), True
    yield GAT(12, 16, 2, 6, heads=2, v2=True), False
    yield [SAGEConv(12, 8), SAGEConv(8, 3)], True
    yield [GCNConv(12, 4)], False
    mlps = [nn.Sequential(nn.Linear(a, 8), nn.BatchNorm1d(8, eps=1e-3), nn.ReLU(), nn.Linear(8, 8)) for a in (12, 8)]
    yield [GINConv(mlp, train_eps=True) for mlp in mlps], True
    yield [GATConv(12, 4, heads=2, bias=False), GATConv(8, 5, heads=3, concat=False)], False
    yield [GATv2Conv(12, 6, share_weights=True)], False


def trained(model):
    """Gives all weights and statistics of a model random values."""
    with torch.no_grad():
        for part in [model] if isinstance(model, nn.Module) else model:
            for value in [*part.parameters(), *part.buffers()]:
                if value.is_floating_point():
                    value.copy_(torch.rand_like(value) * 0.6 + 0.1 if value.dim() == 1 else torch.randn_like(value) * 0.3)
    return model


def whole_of(model, x, edges):
    with torch.no_grad():
        if isinstance(model, nn.Module):
            return model.eval()(x, edges)
        for layer in model:
            x = layer.eval()(x, edges)
        return x


def test_native():
    """The engine's own networks compute what PyG does; where they would not, torch does, and the log says so."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    log = logging.getLogger("rhizome")
    log.addHandler(handler)
    log.setLevel("INFO")
    try:
        with folder() as path:
            for name, loops in (("plain", False), ("loops", True)):
                example = Example(RNG, vertices=200, edges=1500)
                own = example.edges[0] == example.edges[1]
                example.edges = np.concatenate([example.edges[:, ~own], example.edges[:, :40][:, ~own[:40]]], axis=1)
                if loops:
                    example.edges = np.concatenate([example.edges, np.arange(9).repeat(2).reshape(9, 2).T], axis=1)
                example.weights = RNG.random(example.edges.shape[1], dtype=np.float32)
                example.ingest(path / f"{name}.rz", split=(range(100), [], []))
                x, edges = torch.tensor(example.arrays["feat"]), torch.tensor(example.edges)
                with rz.open(path / f"{name}.rz") as graph:
                    some = [(GraphSAGE(12, 8, 2, 3), True), (GCN(12, 8, 2, 3), False)]
                    if not loops:  # each run takes some of them: a network is a process, twice
                        every = list(stacks())
                        some = [every[i] for i in RNG.permutation(len(every))[:6]]
                    for model, may in some:
                        trained(model)
                        try:
                            report = rzpyg.infer(model, graph, features="feat", out="emb", engine="native", live=True)
                        except rz.Unsupported as error:
                            assert "rhizome-store-gnn" in str(error)
                            rzpyg.infer([SAGEConv(12, 3)], graph, features="feat", out="emb")
                            assert "in torch" in said[-1] and graph["emb"].shape == (200, 3)
                            print("skipped:", error)
                            return
                        except ValueError as error:
                            assert loops and not may and "themselves" in str(error), (model, error)
                            with raises(ValueError, "GCNConv"):  # by torch
                                rzpyg.infer(model, graph, features="feat", out="emb")
                            assert "in torch: vertices have edges to themselves" in said[-1]
                            continue
                        assert may or not loops
                        assert "native" in said[-1], said[-1]
                        versions = graph.arrays["emb"].versions
                        assert report.name == f"emb@{versions[-1]}" and report.rows_given == 200
                        made, want = np.asarray(graph["emb@live"]), whole_of(model, x, edges).numpy()
                        assert np.allclose(made, want, rtol=1e-5, atol=1e-5), (model, np.abs(made - want).max())
                    if not loops:
                        model = trained(GraphSAGE(12, 8, 2, 3))
                        rzpyg.infer(model, graph, features="feat", out="back", direction="out")
                        assert "native" in said[-1]
                        assert np.allclose(graph["back"], whole_of(model, x, edges.flip(0)), rtol=1e-5, atol=1e-5)
                        before = graph.arrays["back"].versions
                        rzpyg.infer(model, graph, features="feat", out="back", direction="out", engine="native", resume=True)
                        assert graph.arrays["back"].versions == before  # it was done
                        rzpyg.infer(model, graph, features="feat", out="back", memory="60K")
                        assert "in torch" in said[-1] and graph.arrays["back"].versions[-1] == before[-1] + 1
    finally:
        log.removeHandler(handler)
        log.setLevel("NOTSET")


def test_native_weights():
    """The engine's GCN weighs edges as PyG's does, and computes on the state that it is given, whatever came since."""
    example = Example(RNG, vertices=150, edges=1500)
    example.edges = example.edges[:, example.edges[0] != example.edges[1]]
    example.weights = RNG.random(example.edges.shape[1], dtype=np.float32)
    x, edges, weights = torch.tensor(example.arrays["feat"]), torch.tensor(example.edges), torch.tensor(example.weights)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=2)
        rz.ingest(path / "plain.rz", example.edges, vertices=150, arrays={"feat": example.arrays["feat"]})
        options = {"features": "feat", "out": "emb", "engine": "native", "edge_weight": True}
        model = trained(GCN(12, 8, 2, 3, norm="batch_norm")).eval()
        with rz.open(path / "plain.rz") as plain, raises(ValueError, "no weights of edges"):
            rzpyg.infer(model, plain, **options)
        with rz.open(path / "g.rz") as graph:
            for other in ([SAGEConv(12, 4)], [GATConv(12, 4)]):
                with raises(ValueError, "take no weights of edges"):
                    rzpyg.infer(other, graph, **options)
            with raises(TypeError, "GraphSAGE take no weights"):
                rzpyg.infer(GraphSAGE(12, 8, 2, 3), graph, **options)
            held = graph.snapshot()
            try:
                rzpyg.infer(model, graph, **options)
            except rz.Unsupported as error:
                assert "rhizome-store-gnn" in str(error)
                print("skipped:", error)
                return
            want = model(x, edges, weights).detach().numpy()
            assert np.allclose(graph["emb@1"], want, rtol=1e-5, atol=1e-5)
            assert not np.allclose(want, model(x, edges).detach().numpy(), rtol=1e-2, atol=1e-2)
            # Edges, a new vertex and a compaction, and a state from before them: its rows, and those of no other.
            with rz.open(path / "g.rz", mode="w") as writer:
                with writer.batch() as batch:
                    batch.put_edges(list(range(50)), list(range(50, 100)), weights=[5.0] * 50)
                    batch.put_edge(3, 150, weight=2.0)
                    batch.put_row("feat", 150, np.ones(12))
                if RNG.integers(2):
                    writer.compact()
            with rz.open(path / "g.rz", at=held.point) as fixed:
                for state in (held, fixed):
                    report = rzpyg.infer(model, state, **options)
                    with rz.open(path / "g.rz") as now:
                        assert np.allclose(now[report.name][np.arange(150)], want, rtol=1e-5, atol=1e-5)
            rzpyg.infer(model, held, resume=True, **options)  # it was done
            graph.refresh()
            assert graph.arrays["emb"].versions == (1, 2, 3), graph.arrays["emb"].versions
            rzpyg.infer(model, graph, **options)
            new = torch.tensor([[*range(50), 3], [*range(50, 100), 150]])
            want = model(torch.cat([x, torch.ones(1, 12)]), torch.cat([edges, new], 1),
                         torch.cat([weights, torch.tensor([5.0] * 50 + [2.0])]))
            assert np.allclose(graph["emb@4"], want.detach(), rtol=1e-5, atol=1e-5)
            # Normalised weights that a layer takes as they are, in torch.
            plain = GCN(12, 8, 2, 3, normalize=False, norm="batch_norm").eval()
            rzpyg.infer(plain, held, features="feat", out="sums", edge_weight=True)
            graph.refresh()
            assert close(graph["sums"][np.arange(150)], plain(x, edges, weights))


class Derived(SAGEConv):
    def forward(self, x, edge_index):
        return 2 * super().forward(x, edge_index)


def test_other_models():
    """What is not PyG's to the last option is no network of the engine."""
    hooked, patched = SAGEConv(4, 4), SAGEConv(4, 4)
    hooked.lin_l.register_forward_hook(lambda *_: None)
    patched.message = lambda x_j: -x_j
    for model, why in (([lambda x, e: x], "functions"), ([Derived(4, 4)], "Derived"), ([hooked], "hooks"),
                       ([patched], "of its own"), ([SAGEConv(4, 4), GCNConv(4, 4)], "kinds"),
                       ([SAGEConv(4, 4, aggr="sum")], "sum"), ([SAGEConv((4, 4), 4)], "two inputs"),
                       ([SAGEConv(4, 4, project=True)], "mean"), ([SAGEConv(4, 4), SAGEConv(5, 4)], "widths"),
                       ([SAGEConv(4, 4), SAGEConv(4, 5), SAGEConv(5, 4)], "hidden widths"),
                       ([SAGEConv(4, 4), SAGEConv(4, 4, aggr="max")], "aggregator"),
                       ([SAGEConv(4, 4, flow="target_to_source")], "against"),
                       (GraphSAGE(4, 4, 2, act="leaky_relu"), "activation"), (GraphSAGE(4, 4, 2, jk="last"), "jumping"),
                       (GraphSAGE(4, 4, 2, act="elu", act_kwargs={"alpha": 0.5}), "activation"),
                       (GraphSAGE(4, 4, 2, act_first=True, norm="batch_norm"), "before its norm"),
                       (GraphSAGE(4, 4, 2, norm="layer_norm"), "layer norm"), (GraphSAGE(4, 4, 2, norm="graph_norm"), "norm"),
                       (GraphSAGE(4, 4, 2, norm="batch_norm", norm_kwargs={"track_running_stats": False}), "norm"),
                       ([GCNConv(4, 4, improved=True)], "options"), ([GCNConv(4, 4, add_self_loops=False)], "options"),
                       ([GCNConv(4, 4, normalize=False)], "options"), ([GATConv(4, 4, edge_dim=2)], "options"),
                       ([GATConv(4, 4, residual=True)], "options"), ([GATConv(4, 4, heads=2)], "heads"),
                       ([GATConv(4, 4, heads=2, concat=False), GATConv(4, 4)], "heads"),
                       ([GINConv(MLP([4, 8, 4]))], "hidden width"), ([GINConv(MLP([4, 4, 4, 4]))], "MLP"),
                       ([GINConv(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)))], "MLP"),
                       ([GINConv(nn.Linear(4, 4))], "Linear"), ([GraphConv(4, 4)], "GraphConv"),
                       ([PNAConv(4, 4, ["mean"], ["identity"], torch.ones(3))], "PNAConv")):
        try:
            network_of(model)
        except OtherModel as other:
            assert why in str(other), (model, other)
        else:
            raise AssertionError(f"{model} was taken")


class Stop(BaseException):
    pass


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[1:3]
from pyg_package import torch
from torch_geometric.nn import SAGEConv
import rhizome as rz, rhizome.pyg as rzpyg
torch.manual_seed(5)
layers = [SAGEConv(12, 9), SAGEConv(9, 8), SAGEConv(8, 3)]
count = 0
def die(*words):
    global count
    count += 1
    if count == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
with rz.open(sys.argv[3]) as graph:
    rzpyg.infer(layers, graph, features="feat", out="emb", memory="40K", engine="torch", progress=die, resume=True)
"""


def test_resume():
    """An inference that was interrupted goes on with its blocks, and makes the same bytes."""
    example = Example(RNG, vertices=400, edges=3000)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=2)
        with rz.open(path / "g.rz") as graph:
            torch.manual_seed(5)
            layers = [SAGEConv(12, 9), SAGEConv(9, 8), SAGEConv(8, 3)]
            options = {"features": "feat", "memory": "40K", "engine": "torch"}

            def infer(stop=None, layers=layers, said=None, **more):
                said = [] if said is None else said
                stop = stop and len(said) + stop

                def progress(*words):
                    said.append(words)
                    if len(said) == stop:
                        raise Stop

                try:
                    rzpyg.infer(layers, graph, out="emb", progress=progress, **options, **more)
                except Stop:
                    assert stop is not None
                return said

            def newest():
                return np.asarray(graph[f"emb@{graph.arrays['emb'].versions[-1]}"]).tobytes()

            def leftovers():
                return [name for name in os.listdir(path) if name.startswith(".infer")]

            steps = infer()
            whole = newest()
            assert len(steps) > 12 and not leftovers()
            for stops in (1, len(steps) // 2, len(steps), sorted(RNG.integers(1, len(steps) // 3, 3))):
                done = []
                for stop in np.atleast_1d(stops).tolist():
                    infer(stop, said=done, resume=True)
                    assert leftovers()
                before = len(done)
                with rz.open(path / "g.rz", mode="w"), raises(rz.Busy, "process"):
                    infer(said=done, resume=True)  # before its work
                assert len(done) == before
                infer(said=done, resume=True)
                assert done == steps, (stops, len(done), len(steps))  # each block once
                assert newest() == whole and not leftovers()
            # A process that is killed.
            kill = int(RNG.integers(2, len(steps)))
            here = os.path.dirname(os.path.abspath(__file__))
            status = subprocess.run([sys.executable, "-c", KILLED, here, FOLDER, path / "g.rz", str(kill)], check=False)
            assert status.returncode == -signal.SIGKILL
            assert len(infer(resume=True)) == len(steps) - kill and newest() == whole
            # What is not on disk as it was written is computed again, from the beginning if need be.
            for stop in (3, len(steps) - 1):
                infer(stop, resume=True)
                files = [file for file in (path / leftovers()[0]).glob("*.npy")]
                data = bytearray(files[0].read_bytes())
                data[-5] ^= 255
                data[200] ^= 255
                files[0].write_bytes(data)
                infer(resume=True)
                assert newest() == whole
            # Other jobs, and a run that does not resume, begin anew.
            infer(5)
            assert len(infer()) == len(steps) and newest() == whole
            infer(5)
            others = [SAGEConv(12, 9), SAGEConv(9, 8), SAGEConv(8, 3)]
            assert len(infer(layers=others, resume=True)) == len(steps) and newest() != whole
            infer(5)
            with rz.open(path / "g.rz", mode="w") as writer, writer.batch() as batch:
                batch.put_row("feat", 3, np.ones(12))
            graph.refresh()
            assert len(infer(resume=True)) == len(steps) and newest() != whole
            # Nobody computes the same array meanwhile.
            def twice(*words):
                with raises(rz.Busy, "another"):
                    rzpyg.infer(layers, graph, out="emb", **options)
            rzpyg.infer(layers, graph, out="emb", progress=twice, **options)
            with raises(ZeroDivisionError):
                rzpyg.infer([lambda x, e: x / (1 // 0)], graph, out="emb", **options)
            assert not leftovers()


def test_deleted_and_new_vertices():
    """What was written since the ingestion counts, and deleted vertices have no row."""
    example = Example(RNG, vertices=200, edges=1500)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph, graph.batch() as batch:
            batch.delete_vertex(17)
            batch.put_edge(3, 200)
            batch.put_row("feat", 200, np.ones(12))
        with rz.open(path / "g.rz") as graph:
            layer = SAGEConv(12, 4)
            rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch")
            x = torch.tensor(np.concatenate([example.arrays["feat"], np.ones((1, 12), np.float32)]))
            kept = (example.edges != 17).all(0)
            edges = torch.tensor(np.concatenate([example.edges[:, kept], [[3], [200]]], axis=1))
            want, ids = layer(x, edges), np.delete(np.arange(201), 17)
            assert close(graph["emb"][ids], want[ids])


def test_rows_that_are_no_numbers():
    """NaN in the features of one vertex, or of all, which the tries of a layer then see as well: both engines report
    how many rows have it then, and where it came from."""
    example = Example(RNG, vertices=200, edges=600)
    for first, count in ((70, 1), (0, 200)):
        feat = example.arrays["feat"].astype(np.float32)
        feat[first : first + count, 3] = np.nan
        with folder() as path:
            rz.ingest(path / "g.rz", example.edges, vertices=200, arrays={"feat": feat})
            with rz.open(path / "g.rz") as graph:
                for engine in ("torch", "native"):
                    with logged() as said:
                        rzpyg.infer(GraphSAGE(12, 8, num_layers=2), graph, features="feat", out=engine, engine=engine)
                    bad = np.flatnonzero(~np.isfinite(graph[engine][np.arange(200)]).all(axis=1))
                    said = [line for line in said if "NaN" in line]
                    assert len(said) == 1, said
                    for words in (f"{len(bad)} of 200 rows", f"of vertex {bad[0]};",
                                  f"feat has such values for {count}", f"the first is {first}"):
                        assert words in said[0], said[0]
                with logged() as said:
                    rzpyg.infer([lambda x, e: torch.nan_to_num(x[:, :4])], graph, features="feat", out="good")
                assert not any("NaN" in line for line in said), said


def test_errors():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            layer = GCNConv(12, 4)
            with raises(rz.NotFound, "gone"):
                rzpyg.infer([layer], graph, features="gone", out="emb")
            for model in (layer, [], [layer, 5], torch.nn.Linear(2, 2)):
                with raises(TypeError, "layers"):
                    rzpyg.infer(model, graph, features="feat", out="emb")
            with raises(TypeError, "jumping"):
                rzpyg.infer(GraphSAGE(12, 8, 2, jk="cat"), graph, features="feat", out="emb")
            with raises(ValueError, "GCNConv"):
                rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch")
            with raises(ValueError, "'fast'"):
                rzpyg.infer([layer], graph, features="feat", out="emb", engine="fast")
            with raises(ValueError, "functions"):
                rzpyg.infer([lambda x, e: x], graph, features="feat", out="emb", engine="native")
            layer = SAGEConv(12, 4)
            with raises(RuntimeError, "mat"):
                rzpyg.infer([SAGEConv(5, 4)], graph, features="feat", out="emb")
            assert "emb" not in graph.arrays
            work = []
            with rz.open(path / "g.rz", mode="w") as writer:
                for engine in ("auto", "native", "torch"):
                    for open_graph in (graph, writer, writer.snapshot()):
                        with raises(rz.Busy, "process"):
                            rzpyg.infer([lambda x, e: work.append(x)], open_graph, features="feat", out="emb",
                                        engine=engine)
            assert not work
            # A writer who comes meanwhile: what was computed is there for the next run.
            writers = []
            with raises(rz.Busy, "process"):
                rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch", progress=lambda *words:
                            writers or writers.append(rz.open(path / "g.rz", mode="w")), resume=True)
            writers[0].close()
            rzpyg.infer([layer], graph, features="feat", out="emb", engine="torch", resume=True,
                        progress=lambda *words: work.append(words))
            assert "emb" in graph.arrays and len(work) <= 1, work


if __name__ == "__main__":
    run(sys.modules[__name__])
