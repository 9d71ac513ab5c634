#!/usr/bin/env python3
"""Compares `rhizome.graphbolt` with GraphBolt's own graph and features: pipelines, layers, typed
graphs, datasets."""
import pathlib
import sys
import tempfile

import cpu_torch
from package import SEED, folder, np, raises, run, rz

try:
    with tempfile.TemporaryDirectory() as stand_ins:
        torch = cpu_torch.import_torch(stand_ins)
    import dgl
    import dgl.graphbolt as gb
except (ImportError, OSError, AttributeError) as error:
    print(f"skipped: no DGL ({error})")
    sys.exit(77)

import rhizome.graphbolt as rzgb  # noqa: E402

RNG = np.random.default_rng(SEED)
torch.manual_seed(SEED)
VERTICES, EDGES = 300, 3000


def small_store(path, **more):
    edges = RNG.integers(0, VERTICES, (2, EDGES))
    arrays = {"feat": RNG.normal(size=(VERTICES, 8)).astype(np.float32), "label": RNG.integers(0, 5, VERTICES)}
    order = RNG.permutation(VERTICES)
    rz.ingest(path, edges, arrays=arrays, split=(order[:200], order[200:250], order[250:]), **more)
    return edges, arrays, order


def peers_graph(edges):
    """The same graph in GraphBolt's memory."""
    order = np.argsort(edges[1], kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=VERTICES))])
    return gb.fused_csc_sampling_graph(torch.from_numpy(pointers), torch.from_numpy(edges[0][order]))


def pairs_of(layer):
    """The edges of a layer as pairs of ids, sorted."""
    csc = layer.sampled_csc
    dst = torch.repeat_interleave(torch.arange(len(csc.indptr) - 1), csc.indptr.diff())
    return sorted(zip(layer.original_row_node_ids[csc.indices].tolist(), layer.original_column_node_ids[dst].tolist()))


def test_layers():
    """With all neighbours, layers are GraphBolt's own; with few, they are some of the edges, each at most so often."""
    with folder() as path:
        edges, _, _ = small_store(path / "g.rz")
        peers = peers_graph(edges)
        in_degree = np.bincount(edges[1], minlength=VERTICES)
        with rz.open(path / "g.rz") as graph:
            ours = rzgb.SamplingGraph(graph)
            assert ours.num_nodes == VERTICES and ours.num_edges == EDGES
            items = gb.ItemSet(torch.from_numpy(RNG.permutation(VERTICES)[:60]), names="seed_nodes")
            pipe = lambda: gb.ItemSampler(items, batch_size=20)
            whole = list(pipe().sample_rhizome(ours, [-1, -1]))
            theirs = list(pipe().sample_neighbor(peers, [-1, -1]))
            assert len(whole) == len(theirs) == 3
            for mine, its in zip(whole, theirs):
                assert sorted(mine.input_nodes.tolist()) == sorted(its.input_nodes.tolist())
                for layer, other in zip(mine.sampled_subgraphs, its.sampled_subgraphs):
                    assert pairs_of(layer) == pairs_of(other)
            known = set(map(tuple, edges.T.tolist()))
            for mine in pipe().sample_rhizome(ours, [3, 2]):
                outer, inner = mine.sampled_subgraphs
                assert torch.equal(inner.original_column_node_ids, mine.seed_nodes)
                assert torch.equal(outer.original_column_node_ids, inner.original_row_node_ids)
                assert torch.equal(outer.original_row_node_ids, mine.input_nodes)
                for layer, fanout in ((outer, 3), (inner, 2)):
                    assert set(pairs_of(layer)) <= known
                    drawn = layer.sampled_csc.indptr.diff().numpy()
                    assert np.array_equal(drawn, np.minimum(in_degree[layer.original_column_node_ids], fanout))
            torch.manual_seed(3)
            once = [minibatch.input_nodes for minibatch in pipe().sample_rhizome(ours, [3, 2])]
            torch.manual_seed(3)
            again = [minibatch.input_nodes for minibatch in pipe().sample_rhizome(ours, [3, 2])]
            assert all(map(torch.equal, once, again))
            twice = gb.ItemSampler(gb.ItemSet(torch.tensor([1, 1]), names="seed_nodes"), batch_size=2)
            with raises(ValueError, "twice"):
                list(twice.sample_rhizome(ours, [2]))


def layers_of(minibatch):
    """Pairs of each layer with how often each is there; rows that follow the columns; columns that are the rows within."""
    within = None
    made = []
    for layer in reversed(minibatch.sampled_subgraphs):
        columns = layer.original_column_node_ids
        assert torch.equal(layer.original_row_node_ids[:len(columns)], columns)
        assert within is None or torch.equal(columns, within)
        within = layer.original_row_node_ids
        made.append(pairs_of(layer))
    return made


def test_without_deduplication():
    """With all neighbours these are GraphBolt's own layers, edge by edge as often; seeds may repeat."""
    with folder() as path:
        edges, _, _ = small_store(path / "g.rz", edge_arrays={"any": np.arange(EDGES)})
        peers = peers_graph(edges)
        with rz.open(path / "g.rz") as graph:
            items = gb.ItemSet(torch.from_numpy(RNG.integers(0, VERTICES, 12)), names="seed_nodes")
            pipe = lambda: gb.ItemSampler(items, batch_size=6)
            ours = list(pipe().sample_rhizome(graph, [-1, -1], deduplicate=False, edge_ids=True))
            for mine, its in zip(ours, pipe().sample_neighbor(peers, [-1, -1], deduplicate=False), strict=True):
                assert layers_of(mine) == layers_of(its)
                for layer in mine.sampled_subgraphs:
                    assert len(layer.original_edge_ids) == len(layer.sampled_csc.indices)
            (few,) = list(gb.ItemSampler(items, batch_size=12).sample_rhizome(graph, [2, 3], deduplicate=False))
            for layer, fanout in zip(few.sampled_subgraphs, (2, 3)):
                degrees = np.bincount(edges[1], minlength=VERTICES)[layer.original_column_node_ids]
                assert np.array_equal(layer.sampled_csc.indptr.diff().numpy(), np.minimum(degrees, fanout))
            with raises(ValueError, "no fanouts"):
                list(pipe().sample_rhizome(graph, [], deduplicate=False))


def test_times():
    """Edges earlier than the seed's timestamp, as GraphBolt's own sampler draws them."""
    with folder() as path:
        times = RNG.integers(0, 20, EDGES)
        edges, _, _ = small_store(path / "g.rz", edge_arrays={"time": times})
        peers = peers_graph(edges)
        order = np.argsort(edges[1], kind="stable")
        peers.edge_attributes = {"timestamp": torch.from_numpy(times[order])}
        with rz.open(path / "g.rz") as graph:
            items = gb.ItemSet((torch.from_numpy(RNG.permutation(VERTICES)[:20]),
                                torch.from_numpy(RNG.integers(0, 21, 20))), names=("seed_nodes", "timestamp"))
            pipe = lambda: gb.ItemSampler(items, batch_size=10)
            ours = list(pipe().sample_rhizome(graph, [-1, -1], times="time"))
            theirs = pipe().temporal_sample_neighbor(peers, [-1, -1], edge_timestamp_attr_name="timestamp")
            for mine, its in zip(ours, theirs, strict=True):
                assert layers_of(mine) == layers_of(its)


def test_features():
    with folder() as path:
        _, arrays, _ = small_store(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            feature = rzgb.Feature(graph, "feat")
            peer = gb.TorchBasedFeature(torch.from_numpy(arrays["feat"]))
            ids = torch.from_numpy(RNG.integers(0, VERTICES, 50))
            assert torch.equal(feature.read(ids), peer.read(ids)) and torch.equal(feature.read(), peer.read())
            assert feature.size() == peer.size() and feature.count() == VERTICES
            (reading,) = feature.read_async(ids)
            assert torch.equal(reading.wait(), peer.read(ids))
            new = torch.randn(3, 8)
            feature.update(new, torch.tensor([5, 1, 9]))
            peer.update(new, torch.tensor([5, 1, 9]))
            assert torch.equal(feature.read(), peer.read())
            wide = rzgb.Feature(graph, "feat", shape=(2, 4))
            assert torch.equal(wide.read(ids), peer.read(ids).reshape(50, 2, 4)) and wide.size() == (2, 4)
            with raises(ValueError, "[3, 3]"):
                rzgb.Feature(graph, "feat", shape=(3, 3))
            with raises(ValueError, "[2, 7]"):
                feature.update(torch.zeros(2, 7), torch.tensor([1, 2]))
            with raises(rz.NotFound):
                rzgb.feature_store(graph, ["none"])
            with raises(IndexError):
                feature.read(torch.tensor([VERTICES]))


def epoch_of(dataset, workers):
    """Trains a network for an epoch through GraphBolt's loader; returns the seeds seen."""
    layers = torch.nn.ModuleList([dgl.nn.SAGEConv(8, 16, "mean"), dgl.nn.SAGEConv(16, 5, "mean")])
    pipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=50, shuffle=True)
    pipe = pipe.sample_rhizome(dataset.graph, [4, 4]).fetch_feature(dataset.feature, node_feature_keys=["feat"])
    seen = []
    for minibatch in gb.DataLoader(pipe, num_workers=workers):
        seen.append(minibatch.seed_nodes)
        assert torch.equal(minibatch.node_features["feat"], dataset.feature.read("node", None, "feat",
                                                                                   minibatch.input_nodes))
        hidden = minibatch.node_features["feat"]
        for layer, block in zip(layers, minibatch.blocks):
            hidden = layer(block, hidden)
        torch.nn.functional.cross_entropy(hidden, minibatch.labels).backward()
    assert layers[0].fc_self.weight.grad.abs().sum() > 0
    return torch.cat(seen)


def test_dataset_of_a_store():
    with folder() as path:
        _, arrays, order = small_store(path / "g.rz")
        dataset = rzgb.Dataset(path / "g.rz")
        assert dataset.dataset_name == "g" and len(dataset.tasks) == 1
        task = dataset.tasks[0]
        assert task.metadata == {"name": "node_classification", "num_classes": 5}
        for items, wanted in ((task.train_set, order[:200]), (task.validation_set, order[200:250]),
                              (task.test_set, order[250:])):
            ids, labels = zip(*items)
            assert sorted(map(int, ids)) == sorted(wanted.tolist())
            assert [int(label) for label in labels] == arrays["label"][[int(one) for one in ids]].tolist()
        assert len(dataset.all_nodes_set) == VERTICES
        for workers in (0, 2):
            assert sorted(epoch_of(dataset, workers).tolist()) == sorted(order[:200].tolist())


def write_dataset(root, typed):
    """Writes a dataset as gb.OnDiskDataset reads it; returns the yaml's features."""
    rows = {"paper": RNG.normal(size=(40, 6)).astype(np.float32), "author": RNG.normal(size=(25, 6)).astype(np.float32)}
    edges = {"author:writes:paper": RNG.integers(0, (25, 40), (90, 2)), "paper:cites:paper": RNG.integers(0, 40, (120, 2))}
    kinds = ["paper", "author"] if typed else ["paper"]
    lines = ["dataset_name: small", "graph:", "  nodes:"]
    lines += [f"  - {{{f'type: {kind}, ' if typed else ''}num: {len(rows[kind])}}}" for kind in kinds]
    lines += ["  edges:"]
    for name, pairs in edges.items():
        if typed or name == "paper:cites:paper":
            file = name.replace(":", "_") + ".csv"
            np.savetxt(root / file, pairs, "%d", delimiter=",")
            kind = f'type: "{name}", ' if typed else ""
            lines.append(f"  - {{{kind}format: csv, path: {file}}}")
    lines += ["feature_data:"]
    for kind in kinds:
        np.save(root / f"{kind}.npy", rows[kind].reshape(-1, 2, 3))
        lines.append(f"- {{domain: node, {f'type: {kind}, ' if typed else ''}name: feat, format: numpy, path: {kind}.npy}}")
    np.save(root / "edge.npy", np.arange(240.).reshape(120, 2))
    kind = 'type: "paper:cites:paper", ' if typed else ""
    lines.append(f"- {{domain: edge, {kind}name: age, format: numpy, path: edge.npy}}")
    np.save(root / "ids.npy", np.arange(0, 40, 2))
    np.save(root / "labels.npy", np.arange(20) % 3)
    lines += ["tasks:", "- name: classes", "  num_classes: 3", "  train_set:", f"  - {'type: paper' if typed else 'data:'}"]
    lines += ["    data:"] if typed else []
    lines += ["    - {name: seed_nodes, format: numpy, path: ids.npy}", "    - {name: labels, format: numpy, path: labels.npy}"]
    (root / "metadata.yaml").write_text("\n".join(lines) + "\n")
    return rows, edges


def ends_of(layer, name=None):
    """The edges of a layer as ids [edges, 2]."""
    csc, rows, columns = layer.sampled_csc, layer.original_row_node_ids, layer.original_column_node_ids
    if name is not None:
        csc, rows, columns = csc[name], rows[name.split(":")[0]], columns[name.split(":")[2]]
    dst = torch.repeat_interleave(torch.arange(len(csc.indptr) - 1), csc.indptr.diff())
    return torch.stack([rows[csc.indices], columns[dst]], 1).numpy()


def check_ages(ends, ages, pairs):
    """The ages of edges, [2 n, 2 n + 1] of the n-th, say which edges they are."""
    ages = ages.numpy()
    assert ages.shape == (len(ends), 2) and np.array_equal(ages[:, 1], ages[:, 0] + 1)
    assert np.array_equal(pairs[(ages[:, 0] / 2).astype(np.int64)], ends)


def test_metadata():
    with folder() as path:
        rows, edges = write_dataset(path, typed=False)
        dataset = rzgb.Dataset(path)
        assert dataset.dataset_name == "small" and dataset.tasks[0].metadata == {"name": "classes", "num_classes": 3}
        assert torch.equal(dataset.feature.read("node", None, "feat"), torch.from_numpy(rows["paper"]).reshape(-1, 2, 3))
        pipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=20).sample_rhizome(dataset.graph, [-1])
        (minibatch,) = list(pipe)
        cites = edges["paper:cites:paper"]
        assert pairs_of(minibatch.sampled_subgraphs[0]) == sorted(
            (src, dst) for src, dst in cites.tolist() if dst % 2 == 0)
        again = rzgb.Dataset(path)  # the store is there now
        assert again.graph.num_edges == 120
        pipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=7).sample_rhizome(dataset.graph, [-1, 2], edge_ids=True)
        for minibatch in pipe.fetch_feature(dataset.feature, ["feat"], ["age"]):
            for layer, ages in zip(minibatch.sampled_subgraphs, minibatch.edge_features):
                check_ages(ends_of(layer), ages["age"], cites)
        assert dataset.feature.size("edge", None, "age") == (2,)
        with raises(NotImplementedError, "put_edges"):
            dataset.feature.update("edge", None, "age", torch.zeros(1, 2), torch.tensor([0]))


def test_typed():
    with folder() as path:
        rows, edges = write_dataset(path, typed=True)
        dataset = rzgb.Dataset(path)
        assert dataset.graph.num_nodes == {"paper": 40, "author": 25}
        assert dataset.graph.num_edges == {"author:writes:paper": 90, "paper:cites:paper": 120}
        for kind in rows:
            assert torch.equal(dataset.feature.read("node", kind, "feat").reshape(-1, 6), torch.from_numpy(rows[kind]))
        pipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=20)
        pipe = pipe.sample_rhizome(dataset.graph, [-1, -1], edge_ids=True)
        (minibatch,) = list(pipe.fetch_feature(dataset.feature, {"paper": ["feat"], "author": ["feat"]},
                                               {"paper:cites:paper": ["age"]}))
        for layer, ages in zip(minibatch.sampled_subgraphs, minibatch.edge_features):
            check_ages(ends_of(layer, "paper:cites:paper"), ages["paper:cites:paper", "age"], edges["paper:cites:paper"])
        outer, inner = minibatch.sampled_subgraphs
        for layer in (outer, inner):
            columns = layer.original_column_node_ids["paper"]
            for name, pairs in edges.items():
                csc, src = layer.sampled_csc[name], name.split(":")[0]
                dst = torch.repeat_interleave(torch.arange(len(csc.indptr) - 1), csc.indptr.diff())
                got = zip(layer.original_row_node_ids[src][csc.indices].tolist(), columns[dst].tolist())
                assert sorted(got) == sorted(map(tuple, pairs[np.isin(pairs[:, 1], columns)].tolist())), name
        assert torch.equal(inner.original_column_node_ids["paper"], minibatch.seed_nodes["paper"])
        for kind in rows:
            assert torch.equal(minibatch.node_features[kind, "feat"].reshape(-1, 6),
                               torch.from_numpy(rows[kind])[minibatch.input_nodes[kind]])


def test_negatives():
    with folder() as path:
        small_store(path / "g.rz")
        dataset = rzgb.Dataset(path / "g.rz")
        items = gb.ItemSet(torch.from_numpy(RNG.integers(0, VERTICES, (30, 2))), names="node_pairs")
        pipe = gb.ItemSampler(items, batch_size=10).sample_uniform_negative(dataset.graph, 2)
        for minibatch in pipe.sample_rhizome(dataset.graph, [2]):
            assert minibatch.negative_dsts.shape == (10, 2) and len(minibatch.sampled_subgraphs) == 1


def test_absent():
    """Neither torch nor DGL is imported by the package itself."""
    assert pathlib.Path(rz.__file__).exists()
    import subprocess
    code = f"import sys; sys.path[:0] = {sys.path!r}; import rhizome; print('torch' in sys.modules, 'dgl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


if __name__ == "__main__":
    run(sys.modules[__name__])
