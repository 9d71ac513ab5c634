#!/usr/bin/env python3
"""Training, inference and imports as child processes: `rhizome.train`, `infer` and `import_`."""
import inspect
import json
import logging
import os
import re
import subprocess
import sys

from package import SEED, folder, interrupted, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def planted(path):
    """A store whose labels say which of its rows' columns is large, and whose edges mostly keep within a class."""
    label = RNG.integers(0, 4, 400)
    rows = RNG.normal(size=(400, 8)).astype(np.float32)
    rows[np.arange(400), label] += 2
    src = RNG.integers(0, 400, 4000)
    same = np.array([RNG.choice(np.flatnonzero(label == label[v])) for v in src])
    dst = np.where(RNG.random(4000) < 0.8, same, RNG.integers(0, 400, 4000))
    order = RNG.permutation(400)
    rz.ingest(path, np.array([src, dst]), arrays={"feat": rows, "label": label}, undirected=True,
              split=(order[:200], order[200:300], order[300:]))
    return label


def can_train(path):
    try:
        rz.train(path, epochs=1, fanout=[2], layers=1)
    except rz.Unsupported as error:
        print("skipped:", error)
        return False
    return True


def test_train_and_infer():
    with folder() as path:
        label = planted(path / "g.rz")
        if not can_train(path / "g.rz"):
            return
        notes, phases = [], set()
        handler = logging.Handler()
        handler.emit = lambda record: notes.append(record.getMessage())
        logging.getLogger("rhizome").addHandler(handler)
        model = path / "g.safetensors"
        told = rz.train(path / "g.rz", model="sage", layers=2, fanout=[5, 5], hidden=16, epochs=20, out=model, seed=3,
                        progress=lambda phase, done, total: phases.add(phase))
        logging.getLogger("rhizome").removeHandler(handler)
        assert told["ignored"] == [] and told["warnings"] == [], told
        assert told["test_accuracy"] > 0.8 and model.exists() and "train" in phases, (told["test_accuracy"], phases)
        made = rz.infer(path / "g.rz", model_file=model, out="emb", scores=True, memory="256M")
        with rz.open(path / "g.rz") as graph:
            scores = graph["emb"][np.arange(400)]
            assert (scores.argmax(1) == label).mean() > 0.8, made
        rz.infer(path / "g.rz", model_file=model, out="emb", new_version=True, live=True)
        with rz.open(path / "g.rz") as graph:
            assert graph["emb@live"].shape == (400, 16)
        with raises(rz.AlreadyExists, "choose another name for out=, or set new_version=True"):
            rz.infer(path / "g.rz", model_file=model, out="emb")


def test_values():
    """Values of each type reach the command line: choices, numbers, sizes, lists, paths, flags, options of models."""
    with folder() as path:
        planted(path / "g.rz")
        if not can_train(path / "g.rz"):
            return
        said = rz.train(path / "g.rz", model="gat", heads=2, no_self_loops=True, norm="layer", hidden=8, epochs=1,
                        fanout=("all", 3), lr=1e-3, dropout=0, memory=1 << 30, optimizer="adamw", superbatch="auto",
                        curves=path / "curves.csv", no_test=True, weighted=False, labels=None)
        network = said["network"]
        assert (network["kind"], network["layers"], network["hidden"], network["dropout"]) == ("gat", 2, 8, 0), network
        options = network["options"]
        assert (options["heads"], options["no-self-loops"], options["norm"]) == ("2", "true", "layer"), options
        assert said["epochs"][0]["learning_rate"] == 1e-3 and not said["tested"]
        assert (path / "curves.csv").exists()
        assert rz.train(path / "g.rz", fanout=range(3, 6), epochs=1, steps=1)["network"]["layers"] == 3
        assert rz.train(path / "g.rz", fanout="3,all", epochs=1, steps=1)["network"]["layers"] == 2


def parameter(option):
    name = option["name"].lower().replace("-", "_")
    return name + "_" if name == "from" else name


def test_signatures():
    """The functions have the options of the command line as parameters, and explain each."""
    program = rz.cli.program()
    for function, verb in ((rz.train, "train"), (rz.infer, "infer"), (rz.import_, "import")):
        said = json.loads(subprocess.run([program, "help", verb, "--json"], check=True, capture_output=True).stdout)
        parameters = dict(inspect.signature(function).parameters)
        assert parameters.pop("progress").default is None
        for argument in said["arguments"]:
            found = parameters.pop(parameter(argument))
            assert found.kind == found.POSITIONAL_OR_KEYWORD and found.default is found.empty, found
        by_name = {parameter(option): option for option in said["options"]}
        # Options of models are absent where there is no librhizome_gnn.
        assert set(by_name) <= set(parameters), set(by_name) - set(parameters)
        if verb != "train" or "heads" in by_name:
            assert set(by_name) == set(parameters), set(by_name) ^ set(parameters)
        for name, option in by_name.items():
            found = parameters[name]
            omitted = found.empty if option["required"] else False if option["kind"] == "flag" else None
            assert found.kind == found.KEYWORD_ONLY and found.default is omitted, found
            assert f"\n    ``{name}``: " in function.__doc__, name
            assert all(repr(choice) in found.annotation for choice in option["choices"]), found


def test_errors():
    with folder() as path:
        planted(path / "g.rz")
        if can_train(path / "g.rz"):
            with raises(rz.InvalidArgument, "model sage has no option heads"):
                rz.train(path / "g.rz", heads=2)
            with raises(rz.InvalidArgument, "'-1' is not a number that is above 0"):
                rz.train(path / "g.rz", lr=-1)
            with raises(rz.InvalidArgument, "batch_size is for minibatches: omit it with full_graph"):
                rz.train(path / "g.rz", full_graph=True, batch_size=5)
            try:
                rz.train(path / "g.rz", epochs="many")
                raise AssertionError("epochs='many' was accepted")
            except rz.InvalidArgument as error:
                assert "epochs" in error.message and "--epochs" not in error.message, error.message
            told = rz.train(path / "g.rz", epochs=1, fanout=[2], layers=1)
            assert told["warnings"] == ["out= is not set: the model is measured and not saved"], told["warnings"]
            with raises(rz.StoreNotFound, "none.rz"):
                rz.train(path / "none.rz")
            for wrong in ({"features": "gone"}, {"split": "gone"}, {"labels": "gone"}):
                try:
                    rz.train(path / "g.rz", **wrong)
                    raise AssertionError(wrong)
                except rz.NotFound as error:
                    assert "gone" in error.message and not isinstance(error, FileNotFoundError), repr(error)
            with rz.open(path / "g.rz") as graph:
                kind = graph.vertex_types[0]
            with raises(rz.InvalidArgument, "no vertex type has features; name an array for at least one type"):
                rz.train(path / "g.rz", features={kind: None})
            with raises(rz.InvalidArgument, "nobody"):
                rz.train(path / "g.rz", features={"nobody": "feat", kind: None})
            rz.train(path / "g.rz", epochs=1, fanout=[2], layers=1, out=path / "m")
            try:
                rz.infer(path / "g.rz", model_file=path / "m", out="emb", features="gone")
                raise AssertionError("features='gone' were found")
            except rz.NotFound as error:
                assert "gone" in error.message and not isinstance(error, FileNotFoundError), repr(error)
            os.remove(path / "m")
            with raises(rz.StoreNotFound, "none.st"):
                rz.infer(path / "g.rz", model_file=path / "none.st", out="emb")
        with raises(TypeError, "nonsense"):
            rz.train(path / "g.rz", nonsense=3)
        with raises(TypeError, "model_file"):
            rz.infer(path / "g.rz", out="emb")
        with raises(rz.Error, "wordnet"):
            rz.import_("wordnet", path / "w.rz", from_=path)
        assert sorted(os.listdir(path)) == ["g.rz"]


def test_messages_name_keywords():
    """Fields, in backticks in messages of the engine, are keywords that functions have; other text is unchanged."""
    from rhizome import _core, _spelling
    for message, here, command in (
            ("give more `memory_bytes`", "give more memory=", "give more memory="),
            ("with `directions=both`, or with `undirected`", "with directions='both', or with undirected=True",
             "with directions='both', or with undirected=True"),
            ("`columns=src,dst,time`", "columns=['src', 'dst', 'time']", "columns=['src', 'dst', 'time']"),
            ("`partitions=3`", "partitions=3", "partitions=3"),
            ("`fanouts=10,10`", "fanouts=[10, 10]", "fanout=[10, 10]"),
            ("`learning_rate=1e-05`", "`learning_rate=1e-05`", "lr=1e-05"),
            ("`init=/a b/m.st`: it", "`init=/a b/m.st`: it", "init='/a b/m.st': it"),
            ("`test=false`, `edge_weights=false`", "`test=false`, `edge_weights=false`",
             "no_test=True, edge_weights='ignore'"),
            ("`input-dropout`", "`input-dropout`", "input_dropout="),
            ("`dtype=float32`", "`dtype=float32`", "`dtype=float32`"),
            ("array 'a`b' and `c`: `resume`", "array 'a`b' and `c`: `resume`", "array 'a`b' and `c`: resume=True"),
            ("--edge-weights: 'a--b' in x--y, '--z'", "--edge-weights: 'a--b' in x--y, '--z'",
             "edge_weights: 'a--b' in x--y, '--z'"),
            ("--set: no `rhizome help --all` 'rhizome train --help'", "--set: no `rhizome help --all` 'rhizome train --help'",
             "no `rhizome help --all` 'rhizome train --help'")):
        assert _spelling.in_process(message) == here, (message, _spelling.in_process(message))
        assert _spelling.of_command(message) == command, (message, _spelling.of_command(message))

    functions = (rz.ingest, rz.open, rz.repair, rz.backup, rz.add_array, rz.Loader, rz.evaluate,
                 rz.Graph.sampler, rz.Graph.top_links, rz.Graph.batch)
    keywords = {name for function in functions for name in inspect.signature(function).parameters}
    assert _spelling._IN_PROCESS <= keywords, _spelling._IN_PROCESS - keywords
    helps = [subprocess.run([str(rz.cli.program()), verb, "--help-all"], capture_output=True, text=True, check=True).stdout
             for verb in ("train", "infer", "import")]
    flags = set(re.findall(r"^  (?:--)?([a-z][a-z0-9-]*)", "\n".join(helps), re.MULTILINE))
    if "heads" not in flags:
        print("skipped: options of models, which this build has not")
        flags |= {"norm", "input-dropout"}
    for field in _core.option_fields():
        spelled = _spelling.of_command(f"`{field}`")
        found = re.fullmatch(r"(\w+)=(True)?", spelled)
        if field in _spelling._WITHOUT_KEYWORD:
            assert spelled == f"`{field}`" and field.replace("_", "-") not in flags and field not in keywords, field
        elif field == "test":
            assert "no-test" in flags
        else:
            assert found and (found[1] in keywords or found[1].replace("_", "-") in flags), (field, spelled)


def test_errors_in_this_process():
    with folder() as path:
        (path / "e.tsv").write_text("a\tb\n")
        with raises(rz.InvalidArgument, "columns=['src', 'x'] must name src and dst"):
            rz.ingest(path / "g.rz", path / "e.tsv", columns=("src", "x"))
        rz.ingest(path / "g.rz", ([0, 1], [1, 2]), directions="out")
        with rz.open(path / "g.rz") as graph, raises(rz.InvalidArgument, "ingest it again with directions='both'"):
            graph.neighbors(np.array([0]), direction="in")


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
import rhizome as rz
said = []
def say(*words):
    if not said:
        said.append(print("begun", flush=True))
try:
    rz.train(sys.argv[2], epochs=100_000, out=sys.argv[2] + ".model", progress=say)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupt():
    """Ctrl-C ends the child, which leaves what it has learnt."""
    with folder() as path:
        planted(path / "g.rz")
        if not can_train(path / "g.rz"):
            return
        assert interrupted(INTERRUPTED, path / "g.rz", after=0)[:2] == (["interrupted"], 0)
        assert not [name for name in os.listdir("/proc") if name.isdigit() and (path / "g.rz").name.encode() + b".model"
                    in read(f"/proc/{name}/cmdline") and str(path).encode() in read(f"/proc/{name}/cmdline")]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    run(sys.modules[__name__])
