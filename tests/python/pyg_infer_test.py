#!/usr/bin/env python3
"""rhizome.pyg.infer: block by block and layer by layer, what the model computes on the whole graph at once."""
import os
import sys

from package import SEED, Example, folder, np, raises, run, rz
from pyg_package import torch
from torch_geometric.nn import GATConv, GCNConv, GraphConv, GraphSAGE, SAGEConv

import rhizome.pyg as rzpyg

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
            report = rzpyg.infer(model, graph, features="feat", out="emb", memory="60K", live=True,
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
            rzpyg.infer([back], graph, features="feat", out="back", direction="out")
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
                rzpyg.infer([layer], graph, features="feat", out="emb", memory="100K")
                versions = graph.arrays["emb"].versions
                assert close(graph[f"emb@{versions[-1]}"], want(x, edges)), layer
            assert seen[-1] == (True, True)


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
            rzpyg.infer([layer], graph, features="feat", out="emb")
            x = torch.tensor(np.concatenate([example.arrays["feat"], np.ones((1, 12), np.float32)]))
            kept = (example.edges != 17).all(0)
            edges = torch.tensor(np.concatenate([example.edges[:, kept], [[3], [200]]], axis=1))
            want, ids = layer(x, edges), np.delete(np.arange(201), 17)
            assert close(graph["emb"][ids], want[ids])


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
                rzpyg.infer([layer], graph, features="feat", out="emb")
            layer = SAGEConv(12, 4)
            with raises(RuntimeError, "mat"):
                rzpyg.infer([SAGEConv(5, 4)], graph, features="feat", out="emb")
            assert "emb" not in graph
            with rz.open(path / "g.rz", mode="w"):
                with raises(rz.Busy, "process"):
                    rzpyg.infer([layer], graph, features="feat", out="emb")


if __name__ == "__main__":
    run(sys.modules[__name__])
