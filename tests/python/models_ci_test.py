#!/usr/bin/env python3
"""Compares every registered model with PyTorch Geometric, given the same weights: equal scores and
gradients.

Scores come from `rhizome infer --scores`. A gradient is (before - after) / rate of a model's
weights after one step of plain SGD over all training vertices with all neighbours.
A new model needs an entry in COUNTERPARTS of pyg_net.py and a row in docs/LIBRARY.md, "Models in
other programs".
"""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from numcodecs import Zstd

import cpu_torch

RHIZOME = os.environ["RHIZOME"]
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "LIBRARY.md"
SPLITS = {"train": 0, "valid": 1, "test": 2}
RATE = 4

# What surrounds the layers, in turns for the options that the kinds have of their own.
SURROUNDINGS = [[], ["--norm", "layer", "--residual"], ["--head", "mlp", "--activation", "gelu"],
                ["--norm", "batch", "--residual", "--activation", "elu", "--layers", 3], ["--head", "none"],
                ["--jump", "concat", "--activation", "tanh", "--layers", 3],
                ["--feed-forward", "--norm", "layer", "--activation", "gelu"],
                ["--jump", "max", "--activation", "none", "--layers", 3],
                ["--feed-forward", "--norm", "batch", "--layers", 3], ["--norm", "batch", "--head", "none"]]
# Values to try of options that are numbers. Attention's dropout is drawn at random in training, and is nothing else.
VALUES = {"eps": [0.5], "heads": [2], "out-heads": [3], "negative-slope": [0.05], "attention-dropout": [],
          "bases": [2], "blocks": [2]}


def rhizome(*arguments):
    run = subprocess.run([RHIZOME, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr[-2000:]}"
    return run.stdout


def make_graph(folder, rng):
    """A directed graph with self-loops, parallel edges, a hub, and vertices without in-edges or any."""
    vertices, classes = 240, 4
    edges = rng.integers(0, vertices - 20, (700, 2))
    edges[:150, 1] = 7
    edges[150:180, 1] = edges[150:180, 0]
    edges = np.concatenate([edges[edges[:, 1] % 10 != 3], edges[100:200], edges[160:170]])
    labels = rng.integers(0, classes, vertices)
    features = rng.normal(size=(vertices, 12)).astype(np.float32)
    features[np.arange(vertices), labels] += 1
    split = rng.choice([0, 1, 2, 255], vertices).astype(np.uint8)
    arrays = {"feat": features, "label": labels[:, None], "split": split[:, None],
              "everyone": np.zeros((vertices, 1), np.uint8)}
    for name, values in {"edges": edges, **arrays}.items():
        np.save(folder / f"{name}.npy", values)
    rhizome("ingest", folder / "drawn.rz", "--edges", folder / "edges.npy", "--vertices", vertices, "--partitions", 2,
            *[f for name in arrays for f in ("--array", f"{name}={folder / name}.npy")])
    return folder / "drawn.rz", edges, features, labels, split, None


def both_ways(edges, types):
    """Returns the messages along edges of a directed graph, and along the reversed edges as further relations."""
    return np.concatenate([edges, edges[:, ::-1]]), np.concatenate([types, types + types.max() + 1])


def write_typed(folder, name, edges, types, vertex_types, features, labels, split, *more):
    """Ingests a typed graph whose vertices are numbered; returns the store."""
    with open(folder / f"{name}.tsv", "w") as out:
        out.writelines(f"{s}\t{d}\tr{t:03}\n" for (s, d), t in zip(edges, types))
    (folder / f"{name}.nodes.tsv").write_text("".join(f"{v}\tv{t:03}\n" for v, t in enumerate(vertex_types)))
    arrays = {"feat": features, "label": labels[:, None], "split": split[:, None].astype(np.uint8),
              "everyone": np.zeros((len(labels), 1), np.uint8)}
    for array, values in arrays.items():
        np.save(folder / f"{name}.{array}.npy", values)
    rhizome("ingest", folder / f"{name}.rz", "--edges", folder / f"{name}.tsv", "--columns", "src,dst,type", "--nodes",
            folder / f"{name}.nodes.tsv", "--node-columns", "id,ntype", "--partitions", 2, *more,
            *[f for array in arrays for f in ("--array", f"{array}={folder / f'{name}.{array}.npy'}")])
    return folder / f"{name}.rz"


def make_typed(folder, rng, drawn):
    """The graph `drawn` with types of vertices and edges; a few pairs of vertices have edges of several types."""
    _, edges, features, labels, split, _ = drawn
    types = rng.integers(0, 3, len(edges))
    types[:3] = range(3)  # each is there
    vertex_types = rng.choice(3, len(labels), p=[.6, .3, .1])
    store = write_typed(folder, "typed", edges, types, vertex_types, features, labels, split)
    messages, relations = both_ways(edges, types)
    return store, messages, features, labels, split, (relations, vertex_types)


def make_typed_cora(folder, cora):
    _, edges, features, labels, split, _ = cora
    half = edges[:len(edges) // 2]
    types, vertex_types = half.sum(1) % 4, np.arange(len(labels)) // 7 % 3
    store = write_typed(folder, "typed_cora", half, types, vertex_types, features, labels, split, "--undirected")
    return (store, np.concatenate([half, half[:, ::-1]]), features, labels, split,
            (np.concatenate([types, types]), vertex_types))


def read_wordnet(folder, data):
    """Returns edges, their types, vertex types, features, labels and split."""
    def text(name):
        return Zstd().decode((data / name).read_bytes()).decode().splitlines()

    nodes = [line.split("\t") for line in text("nodes.tsv.zst")]
    number = {node[0]: i for i, node in enumerate(nodes)}
    lines = [line.split("\t") for line in text("edges.tsv.zst")]
    names = {name: i for i, name in enumerate(dict.fromkeys(line[2] for line in lines))}
    edges = np.array([[number[line[0]], number[line[1]]] for line in lines])
    types = np.array([names[line[2]] for line in lines])
    (folder / "wordnet.npy").write_bytes(Zstd().decode((data / "features.npy.zst").read_bytes()))
    kinds = {name: i for i, name in enumerate(dict.fromkeys(node[3] for node in nodes))}
    return (edges, types, np.array([kinds[node[3]] for node in nodes]), np.load(folder / "wordnet.npy"),
            np.array([int(node[1]) for node in nodes]), np.array([SPLITS.get(node[2], 255) for node in nodes]))


def part_of(whole, rng, per_type):
    """Returns at most `per_type` edges of each type, with the vertices at their ends."""
    edges, types, vertex_types, *rows = whole
    chosen = np.concatenate([rng.permutation(np.flatnonzero(types == t))[:per_type] for t in range(types.max() + 1)])
    chosen.sort()
    vertices, ends = np.unique(edges[chosen], return_inverse=True)
    assert set(vertex_types[vertices]) == set(vertex_types)
    return ends.reshape(-1, 2), types[chosen], vertex_types[vertices], *[array[vertices] for array in rows]


def make_wordnet(folder, name, edges, types, vertex_types, features, labels, split):
    store = write_typed(folder, name, edges, types, vertex_types, features, labels, split)
    messages, relations = both_ways(edges, types)
    return store, messages, features, labels, split, (relations, vertex_types)


def make_cora(folder, data):
    def text(name):
        return Zstd().decode((data / name).read_bytes()).decode().splitlines()

    edges = np.array([line.split("\t") for line in text("edges.tsv.zst")], np.int64)
    nodes = [line.split("\t") for line in text("nodes.tsv.zst")]
    assert [int(node[0]) for node in nodes] == list(range(len(nodes)))
    (folder / "features.npy").write_bytes(Zstd().decode((data / "features.npy.zst").read_bytes()))
    np.save(folder / "everyone.npy", np.zeros((len(nodes), 1), np.uint8))
    rhizome("ingest", folder / "cora.rz", "--edges", data / "edges.tsv.zst", "--nodes", data / "nodes.tsv.zst",
            "--node-columns", "id,label,split", "--undirected", "--partitions", 2, "--array",
            f"feat={folder / 'features.npy'}", "--array", f"everyone={folder / 'everyone.npy'}")
    return (folder / "cora.rz", np.concatenate([edges, edges[:, ::-1]]), np.load(folder / "features.npy"),
            np.array([int(node[1]) for node in nodes]), np.array([SPLITS.get(node[2], 255) for node in nodes]), None)


def values_of(option):
    if option["type"] == "flag":
        return [True]
    if option["type"] == "choice":
        return [choice for choice in option["choices"] if choice != option["default"]]
    assert option["name"] in VALUES, f"say in VALUES which values of option {option['name']} to try"
    return VALUES[option["name"]]


def cases_of(models):
    """Yields kinds with arguments: each value of each option of the kind's own, and all surroundings in turn."""
    shared = set.intersection(*[{option["name"] for option in model["options"]} for model in models])
    turn = 0
    for model in models:
        own = [option for option in model["options"] if option["name"] not in shared]
        chosen = [(option, value) for option in own for value in values_of(option)]
        yield model["name"], []
        for option, value in chosen or [(None, None)]:
            arguments = [f"--{option['name']}"] + ([] if value is True else [value]) if option else []
            if option and option["name"] == "out-heads":  # they are those of a last layer without a head
                yield model["name"], ["--head", "none", *arguments]
                continue
            yield model["name"], [*SURROUNDINGS[turn % len(SURROUNDINGS)], *arguments]
            turn += 1
    assert turn >= len(SURROUNDINGS)
    yield "sage", ["--aggregator", "max", "--l2-normalize"]


class Oracle:
    # The step whose gradients are compared: down those of all training vertices, with all neighbours.
    STEP = ["--fanout", "all", "--batch-size", 1 << 20]

    def __init__(self, folder, torch, seed):
        import pyg_net
        self.torch, self.pyg_net, self.folder, self.seed = torch, pyg_net, folder, seed
        self.names = pyg_net.read_names(PAGE)
        self.worst = {"score": 0, "gradient": 0}

    def check_scores(self, store, graph, features, model, name):
        tensors, description = self.pyg_net.read_safetensors(model)
        net = self.pyg_net.Net(description, graph).load(tensors, self.names).eval()
        with self.torch.no_grad():
            want = net(features, graph).numpy()
        rhizome("infer", store, "--model-file", model, "--out", name, "--scores", "--threads", 1)
        rows = self.folder / f"{name}.npy"
        rhizome("export", store, "--array", name, "--out", rows)
        order = np.loadtxt(rows.with_suffix(".ids.tsv"), dtype=np.int64)
        error = (np.abs(np.load(rows) - want[order]) / np.maximum(1, np.abs(want[order]))).max()
        self.worst["score"] = max(self.worst["score"], error)
        assert error < 1e-4, f"scores differ by {error}"

    def check_gradients(self, graph, features, labels, members, before, after):
        tensors, description = self.pyg_net.read_safetensors(before)
        moved, _ = self.pyg_net.read_safetensors(after)
        net = self.pyg_net.Net(description, graph).load(tensors, self.names).train()
        loss = self.torch.nn.functional.cross_entropy(net(features, graph)[members], labels[members])
        loss.backward()
        gradients = {name: weight.grad for name, weight in net.named_parameters()}
        largest = max(gradient.abs().max() for gradient in gradients.values())
        state = net.state_dict()
        for ours, values in moved.items():
            theirs = net.name_of(ours, self.names)
            if theirs not in gradients:  # a statistic, or an eps that is kept
                start = float(description["options"]["eps"]) if theirs.endswith(".eps") else 0
                error = (state[theirs] - values - start).abs().max() / state[theirs].abs().max().clamp(min=1)
            else:
                want = gradients[theirs]
                got = net.form_of(ours, (tensors[ours] - values) / RATE).reshape(want.shape)
                # A bias before a batch norm has no gradient: what is left are roundings of the others.
                error = (got - want).abs().max() / max(want.abs().max(), 1e-2 * largest)
            self.worst["gradient"] = max(self.worst["gradient"], float(error))
            assert error < 1e-3, f"gradient of {ours} differs by {float(error)}"

    @staticmethod
    def number(types, names, letter):
        """Numbers types as the model does. `types`: numbers of the types r000, r001, ..., of opposite edges after all
        others."""
        order = np.array([names.index(f"{letter}{number:03}") for number in range(len(names))])
        return order[types % len(names)] + types // len(names) * len(names)

    def check(self, data, kind, arguments):
        store, edges, features, labels, split, types = data
        assert kind in self.pyg_net.COUNTERPARTS and kind in self.names, (
            f"model {kind} is new: add its layer of PyG to COUNTERPARTS in pyg_net.py, and the names of its weights to "
            "the table in docs/LIBRARY.md")
        features = self.torch.from_numpy(features.astype(np.float64))
        before, after = self.folder / "before.safetensors", self.folder / "after.safetensors"
        model = ["--model", kind, "--hidden", 12, "--dropout", 0, "--threads", 1, "--no-test", "--seed", self.seed,
                 *arguments]
        rhizome("train", store, "--epochs", 1, "--batch-size", 50, "--fanout", "all", "--out", before, *model)
        # In training a batch norm has the statistics of its minibatch: of the graph if that has all vertices.
        everyone = kind == "gin" or "batch" in arguments
        rhizome("train", store, "--init", before, "--epochs", 1, *self.STEP, "--optimizer", "sgd", "--momentum", 0,
                "--lr", RATE, "--out", after, "--split", "everyone" if everyone else "split", *model)
        if types is not None:
            description = self.pyg_net.read_safetensors(before)[1]
            types = (self.number(types[0], description["relations"], "r"),
                     self.number(types[1], description["vertex_types"], "v"))
        graph = self.pyg_net.Graph(len(labels), edges, types)
        members = self.torch.from_numpy(np.full(len(labels), True) if everyone else split == 0)
        name = f"s{len(list(self.folder.glob('s*.npy')))}"
        self.check_scores(store, graph, features, before, name)
        self.check_gradients(graph, features, self.torch.from_numpy(labels), members, before, after)


def main(whole=False):
    """`whole`: all of wordnet30, not only a part of it."""
    seed = int(os.environ.get("RHIZOME_TEST_SEED", "1"))
    print("RHIZOME_TEST_SEED", seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch = cpu_torch.import_torch(folder)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        oracle = Oracle(folder, torch, seed)
        models = [model for model in json.loads(rhizome("models", "--json"))["models"] if model["network"]]
        drawn = make_graph(folder, np.random.default_rng(seed))
        rng = np.random.default_rng(seed + 1)
        typed = {model["name"] for model in models if model["typed"]}
        graphs = {True: make_typed(folder, rng, drawn), False: drawn}
        cases = [(graphs[kind in typed], kind, arguments) for kind, arguments in cases_of(models)]
        data = os.environ.get("RHIZOME_TEST_DATA")
        if data:
            cora = make_cora(folder, pathlib.Path(data) / "cora")
            cases += [(cora, model["name"], []) for model in models if not model["typed"]]
            wordnet = read_wordnet(folder, pathlib.Path(data) / "wordnet30")
            # PyG's HGTConv multiplies all vertices for each of its triples, which takes minutes on all of wordnet30.
            part = make_wordnet(folder, "wordnet_part", *part_of(wordnet, rng, 150 if whole else 30))
            typed_cora = make_typed_cora(folder, cora)
            large = make_wordnet(folder, "wordnet", *wordnet) if whole else part
            cases += [(graph, "rgcn", arguments) for graph in (typed_cora, large)
                      for arguments in ([], ["--bases", 3], ["--bases", 0])]
            cases += [(typed_cora, "hgt", []), (typed_cora, "hgt", ["--heads", 3, "--layers", 3]), (part, "hgt", []),
                      (part, "hgt", ["--heads", 3, "--residual", "--layers", 3])]
        else:
            print("skipped: cora; RHIZOME_TEST_DATA is not set; it names a folder with cora")
        for graph, kind, arguments in cases:
            oracle.worst = dict.fromkeys(oracle.worst, 0)
            case = f"{graph[0].stem}: {kind} {' '.join(map(str, arguments))}"
            try:
                oracle.check(graph, kind, arguments)
            except AssertionError as error:
                raise AssertionError(f"{case}: {error}") from error
            print(f"{case}: scores within {oracle.worst['score']:.1e}, gradients within "
                  f"{oracle.worst['gradient']:.1e}", flush=True)


if __name__ == "__main__":
    main()
