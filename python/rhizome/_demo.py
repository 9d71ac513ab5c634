"""A tour on a small graph that is made here: from files to a store, neighbours, predictions and a picture."""

from __future__ import annotations

import csv
import logging
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._demo_picture import Circle, picture
from ._graph import Graph
from ._graph import open as open_graph
from ._ingest import ingest
from ._verbs import train
from .cli import program
from .errors import Unsupported

_USAGE = """usage: python -m rhizome demo [FOLDER]

Makes a small graph of notes about six subjects, which link to each other, as files in FOLDER (default: rhizome-demo);
ingests it; looks at neighbours and similar notes; trains a model that predicts the subjects; and draws a picture.
Training needs the wheel rhizome-store-gnn, or a build with libtorch; the rest does not."""

SUBJECTS = ("astronomy", "botany", "cooking", "geology", "music", "sailing")
_NOTES, _LINKS, _COLUMNS = 100, 4, 16  # of a subject; links of a note; numbers that describe a note
_LOOKED_AT = "music 007"


def main(words: Sequence[str]) -> int:
    """Runs the tour; returns the exit status."""
    if len(words) > 1 or words and words[0].startswith("-"):
        print(_USAGE, file=sys.stdout if words[0] in ("-h", "--help") else sys.stderr)
        return 0 if words[0] in ("-h", "--help") else 2
    folder = pathlib.Path(words[0] if words else "rhizome-demo")
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("rhizome").setLevel(logging.ERROR)  # the notes of the verbs are no part of the tour
    _files(folder)
    _store(folder)
    with open_graph(folder / "notes.rz") as graph:
        _look(graph)
        predicted = _predictions(folder, graph)
        _picture(folder, graph, predicted)
    print("\nNext: docs/PYTHON.md is the guide; `rhizome --help` lists the verbs of the command line, such as\n"
          f"    rhizome info {folder / 'notes.rz'}")
    return 0


def make(seed: int = 1) -> tuple[list[str], np.ndarray, list[tuple[int, int]], np.ndarray, np.ndarray]:
    """Makes the graph: names, subjects [n], links, features [n, columns] and sets [n] (0 train, 1 valid, 2 test).

    Four of five links of a note lead to notes of its subject. The features are numbers around those of the subject, with
    so much noise that a note alone says less about its subject than it does together with its neighbours.
    """
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(len(SUBJECTS)), _NOTES)
    names = [f"{SUBJECTS[subject]} {number % _NOTES:03}" for number, subject in enumerate(subjects)]
    links = set()
    for note, subject in enumerate(subjects.tolist()):
        for _ in range(_LINKS):
            chosen = subject if rng.random() < 0.75 else rng.integers(len(SUBJECTS))
            other = int(chosen * _NOTES + rng.integers(_NOTES))
            if other != note:
                links.add((min(note, other), max(note, other)))
    means = rng.normal(size=(len(SUBJECTS), _COLUMNS))
    features = (means[subjects] + 2.5 * rng.normal(size=(len(subjects), _COLUMNS))).astype(np.float32)
    sets = rng.choice(3, len(subjects), p=[0.5, 0.2, 0.3])
    return names, subjects, sorted(links), features, sets


def _step(title: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}")


def _code(text: str) -> None:
    print("".join(f"    >>> {line}\n" for line in text.splitlines()), end="")


def _files(folder: pathlib.Path) -> None:
    """Writes the input, as a user may have it."""
    _step("1. Files")
    names, subjects, links, features, sets = make()
    with open(folder / "notes.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("name", "label", "split"))
        rows.writerows((name, SUBJECTS[subject], ("train", "valid", "test")[kind])
                       for name, subject, kind in zip(names, subjects.tolist(), sets.tolist()))
    with open(folder / "links.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("source", "target"))
        rows.writerows((names[a], names[b]) for a, b in links)
    np.save(folder / "features.npy", features)
    print(f"{folder / 'notes.csv'}: {len(names)} notes: name, label (its subject), split (train, valid or test)\n"
          f"{folder / 'links.csv'}: {len(links)} links: source, target\n"
          f"{folder / 'features.npy'}: {features.shape[1]} numbers for each note")


def _store(folder: pathlib.Path) -> None:
    _step("2. A store")
    _code(f"""rz.ingest({str(folder / 'notes.rz')!r}, {str(folder / 'links.csv')!r}, undirected=True,
          nodes={str(folder / 'notes.csv')!r}, arrays={{"feat": {str(folder / 'features.npy')!r}}})""")
    report = ingest(folder / "notes.rz", folder / "links.csv", undirected=True, nodes=folder / "notes.csv",
                    arrays={"feat": folder / "features.npy"}, overwrite=True)
    print("".join(f"{note}\n" for note in report.notes), end="")
    print(f"{report.vertices} vertices and {report.edges} edges (each link in both directions) in {report.seconds:.2f} s")


def _look(graph: Graph) -> None:
    _step("3. Neighbours and similar notes")
    _code(f"graph.external_ids(graph.neighbors({_LOOKED_AT!r}).ids)")
    print(", ".join(map(str, graph.external_ids(graph.neighbors(_LOOKED_AT).ids))))
    _code(f"graph.similar({_LOOKED_AT!r}, array=\"feat\", k=5)   # by the numbers of the notes alone")
    print(", ".join(f"{other.id} ({other.score:.2f})" for other in graph.similar(_LOOKED_AT, array="feat", k=5)))
    _code(f"graph.sampler([5, 5]).sample(graph.find([{_LOOKED_AT!r}]))   # what a model would be trained on")
    sub = graph.sampler([5, 5]).sample(graph.find([_LOOKED_AT]))
    print(f"{len(sub.vertices)} vertices and {sub.edge_index.shape[1]} edges within two hops")


def _predictions(folder: pathlib.Path, graph: Graph) -> dict[str, tuple[str, float]]:
    """Trains a model; returns the predicted subject and its probability by note, or nothing without rhizome-store-gnn.
    """
    _step("4. A model, and its predictions")
    model = folder / "model.safetensors"
    _code(f"""rz.train({str(folder / 'notes.rz')!r}, model="sage", hidden=32, fanout=[10, 10], epochs=30,
         out={str(model)!r})""")
    try:
        report = train(graph.path, model="sage", hidden=32, fanout=[10, 10], epochs=30, threads=1, out=model)
    except Unsupported as missing:
        print(f"This step is left out: {missing}")
        return {}
    print(f"accuracy on the test notes: {report['mean']['accuracy']:.0%} (guessing would give {1 / len(SUBJECTS):.0%})")
    command = ["export", graph.path, "--predictions", str(model), "--out", str(folder / "predictions.csv")]
    print("    $ rhizome " + " ".join(command))
    subprocess.run([program(), *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(folder / "predictions.csv", newline="", encoding="utf-8") as file:
        predicted = {row["id"]: (row["class"], float(row["probability"])) for row in csv.DictReader(file)}
    for name in map(str, graph.external_ids(graph.split("test")[::40])):
        subject, probability = predicted[name]
        print(f"{name:15} predicted: {subject} ({probability:.0%})")
    return predicted


def _picture(folder: pathlib.Path, graph: Graph, predicted: dict[str, Any]) -> None:
    """Draws the notes within two links, in the colours of their subjects, or of those that are predicted."""
    _step("5. A picture")
    centre = int(graph.find(_LOOKED_AT))
    first = sorted(set(graph.neighbors(_LOOKED_AT).ids.tolist()) - {centre})
    near = graph.neighbors(np.array(first))
    second = sorted(set(near.ids.tolist()) - {centre, *first})
    names = [str(name) for name in graph.external_ids(np.array([centre, *first, *second]))]
    labels = graph["label"].texts(np.array([centre, *first, *second]))
    circles = [Circle(name, graph.class_names.index(predicted[name][0] if name in predicted else str(label)))
               for name, label in zip(names, labels)]
    place = {vertex: number for number, vertex in enumerate([centre, *first, *second])}
    owners = np.repeat(first, np.diff(near.offsets)).tolist()
    lines = [(0, place[vertex]) for vertex in first]
    lines += [(place[a], place[b]) for a, b in zip(owners, near.ids.tolist()) if place[a] < place[b]]
    what = "predicted subjects" if predicted else "subjects"
    file = folder / "neighbourhood.svg"
    file.write_text(picture(circles, len(first), lines, graph.class_names, f"{_LOOKED_AT} and the notes within two links: {what}"),
                    encoding="utf-8")
    print(f"{file}: {_LOOKED_AT}, its {len(first)} neighbours and {len(second)} notes next to these, by their {what}")
