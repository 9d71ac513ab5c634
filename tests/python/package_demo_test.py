#!/usr/bin/env python3
"""`python -m rhizome demo` shows what is in its files, with and without rhizome-store-gnn; other words are those of the
command line."""
import csv
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

from package import FOLDER, folder, np, run, rz

ENV = {**os.environ, "PYTHONPATH": str(FOLDER)}


def module(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "rhizome", *words], env=ENV, cwd=cwd, text=True, capture_output=True, check=False)


def test_demo():
    with folder() as path:
        for _ in range(2):  # again, over the files of the first time
            done = module("demo", cwd=path)
            assert done.returncode == 0, done.stderr
        made = path / "rhizome-demo"
        with open(made / "links.csv", newline="", encoding="utf-8") as file:
            links = list(csv.reader(file))[1:]
        with open(made / "notes.csv", newline="", encoding="utf-8") as file:
            notes = list(csv.reader(file))[1:]
        near = {b if a == "music 007" else a for a, b in links if "music 007" in (a, b)}
        shown = re.search(r"graph\.neighbors\('music 007'\)\.ids\)\n(.*)", done.stdout)
        assert set(shown[1].split(", ")) == near and near
        assert f"{len(notes)} vertices and {2 * len(links)} edges" in done.stdout
        with rz.open(made / "notes.rz") as graph:
            assert graph.num_vertices == len(notes) and graph.num_edges == 2 * len(links)
            some = graph.find([name for name, *_ in notes])
            assert graph["label"].texts(some) == [label for _, label, _ in notes]
            assert np.array_equal(graph["feat"][some], np.load(made / "features.npy"))
            similar = [(other.id, f"{other.score:.2f}") for other in graph.similar("music 007", array="feat", k=5)]
            assert ", ".join(f"{name} ({score})" for name, score in similar) in done.stdout
        svg = xml.etree.ElementTree.parse(made / "neighbourhood.svg").getroot()
        titles = {title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")}
        assert {"music 007", *near} <= titles
        if "This step is left out" in done.stdout:
            assert "rhizome-store-gnn" in done.stdout and not (made / "predictions.csv").exists()
            return
        accuracy = int(re.search(r"accuracy on the test notes: (\d+)%", done.stdout)[1])
        with open(made / "predictions.csv", newline="", encoding="utf-8") as file:
            predicted = {row["id"]: row["class"] for row in csv.DictReader(file)}
        tested = [(name, label) for name, label, split in notes if split == "test"]
        assert set(predicted) == {name for name, *_ in notes}
        right = np.mean([predicted[name] == label for name, label in tested])
        assert 100 * right > 50 and abs(100 * right - accuracy) < 15, (right, accuracy)


def test_words():
    wrong = module("demo", "a", "b")
    assert wrong.returncode == 2 and "usage: python -m rhizome demo" in wrong.stderr and not wrong.stdout
    assert "usage: python -m rhizome demo" in module("demo", "--help").stdout
    assert module("--version").stdout == f"rhizome {rz.__version__}\n"
    assert module("inform").returncode != 0


if __name__ == "__main__":
    run(sys.modules[__name__])
