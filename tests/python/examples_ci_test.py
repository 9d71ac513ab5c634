#!/usr/bin/env python3
"""The programs of docs/examples/ run unchanged, and do better than their baselines, for any seed.

service.cc and follower.cc are built and run by tests/tools/architecture/consumer_ci_test.sh.
"""
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys

from package import FOLDER, SEED, folder, np, rz

EXAMPLES = pathlib.Path(os.environ["RHIZOME_SOURCE"]) / "docs/examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(FOLDER)}


def said(example, *arguments):
    """Runs an example, and returns what it printed."""
    run = subprocess.run([sys.executable, EXAMPLES / example, "--seed", str(SEED), *map(str, arguments)], text=True,
                         capture_output=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def numbers(pattern, text):
    """Returns the numbers that the groups of `pattern` match, one list per match."""
    found = [[float(part) for part in match.groups()] for match in re.finditer(pattern, text)]
    assert found, f"{pattern} is not in {text}"
    return found


def features(path):
    text = said("features.py", path)
    (profiles,), = numbers(r"profiles alone: (\S+)", text)
    for way in ("minibatches with neighbours", "embeddings"):
        (share,), = numbers(rf"accuracy by {way}: (\S+)", text)
        assert share > profiles + .03, text
    # The last night is repeated: its visits are not added again.
    assert re.findall(r"(\d+) vertices, (\d+) pairs", text)[2:] == re.findall(r"(\d+) vertices, (\d+) pairs", text)[2:3] * 2
    computed = numbers(r"(\d+) rows computed, (\d+) kept", text)
    assert computed[0][1] == 0 and all(0 < new < kept for new, kept in computed[1:]), text
    check_embeddings(path)


def check_embeddings(path):
    """The Parquet file has the embeddings that a full inference computes."""
    import pyarrow.parquet
    rz.infer(path / "shop.rz", model_file=path / "shop.safetensors", out="full")
    table = pyarrow.parquet.read_table(path / "embeddings.parquet")
    with rz.open(path / "shop.rz") as g:
        assert len(table) == g.num_vertices
        ids = g.find(table["id"].to_pylist())
        assert np.array_equal(np.array(table["emb"].to_pylist(), np.float32), g["full"][ids])


def features_after_a_kill(path):
    """A job that was killed within its second night, and is run again, has the graph of one that was not."""
    whole, killed = path / "whole", path / "killed"
    for place in (whole, killed):
        place.mkdir()
    with subprocess.Popen([sys.executable, "-u", EXAMPLES / "features.py", "--seed", str(SEED), killed], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**ENVIRONMENT, "TMPDIR": str(path)}) as process:
        for line in process.stdout:
            if line == "night 1\n":
                process.send_signal(signal.SIGKILL)
    said("features.py", killed)
    said("features.py", whole)
    graphs = []
    for place in (whole, killed):
        check_embeddings(place)
        with rz.open(place / "shop.rz") as g:
            edges = g.edges_to_arrow().read_all().to_pydict()
            graphs.append((sorted(zip(*edges.values())), sorted(g)))
    assert graphs[0] == graphs[1]


def recommender(path):
    text = said("recommender.py")
    rates = {way: rate for way, rate in re.findall(r"hit rate of (\w+): (\S+);", text)}
    assert set(rates) == {"popularity", "walks", "factors", "links"}, text
    for way in ("walks", "factors", "links"):
        assert float(rates[way]) > float(rates["popularity"]), text
    suggestions_from_a_file(path / "ratings.csv")


def suggestions_from_a_file(file):
    """Users like movies whose number is even, or odd, as theirs. Suggestions follow that, and are not rated yet."""
    rng = np.random.default_rng(SEED)
    lines = [(user, movie, 5 if user % 2 == movie % 2 else 1, rng.integers(10**9)) for user in range(100)
             for movie in rng.choice(60, 20, replace=False)]
    file.write_text("userId,movieId,rating,timestamp\n" + "".join("%d,%d,%d,%d\n" % line for line in lines))
    rated = {f"movie:{movie}" for user, movie, _, _ in sorted(lines, key=lambda line: line[3])[:1600] if user == 2}
    found = dict(re.findall(r"hit rate of (\w+): .*; for user:2: (.*)", said("recommender.py", "--user", 2, file)))
    assert set(found) == {"popularity", "walks", "factors", "links"}, found
    for way, text in found.items():
        movies = text.split(", ")
        assert len(movies) == len(set(movies)) == 10 and not rated & set(movies), (way, text, rated)
        even = np.mean([int(movie.removeprefix("movie:")) % 2 == 0 for movie in movies])
        assert way not in ("walks", "links") or even >= .8, (way, text)


def fraud(_):
    text = said("fraud.py")
    (seen, late), = numbers(r"has (\d+) payments, (\d+) of them later", text)
    assert seen > 0 and late == 0, text
    (found, baseline), = numbers(r"precision: (\S+) with earlier payments, (\S+) from", text)
    (leak,), = numbers(r"later payments, .*: (\S+)\)", text)
    assert baseline * 1.3 < found < leak, text
    suspects = re.findall(r"^(account-\d+), score \S+, has received$", text, re.M)
    assert len(set(suspects)) == 3 and re.search(r"payer +amount +time", text), text


def main():
    done = 0
    for example, needs in ((features, "pandas,pyarrow,gnn"), (features_after_a_kill, "pandas,pyarrow,gnn"),
                           (recommender, "scipy,gnn"), (fraud, "pandas,pyarrow,gnn")):
        missing = [name for name in needs.split(",") if (
            not (FOLDER.parent / "lib/librhizome_gnn.so").exists() if name == "gnn" else importlib.util.find_spec(name) is None)]
        if missing:
            print(f"skipped: {example.__name__} needs {', '.join(missing)}", flush=True)
            continue
        with folder() as path:
            example(path)
        done += 1
        print("ok", example.__name__, flush=True)
    return 0 if done else 77


if __name__ == "__main__":
    sys.exit(main())
