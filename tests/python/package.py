"""Shared by the tests of the Python package: the package as built, graphs, and their NumPy
equivalents."""
import contextlib
import logging
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(os.environ["RHIZOME_BUILD"]) / "python"
if not list((FOLDER / "rhizome").glob("_core*.so")):
    print("the Python module was not built (tools/install_deps.sh --tests): nothing to test")
    sys.exit(77)
sys.path.insert(0, str(FOLDER))

import numpy as np  # noqa: E402
import rhizome as rz  # noqa: E402

SEED = int(os.environ.get("RHIZOME_TEST_SEED", random.randrange(1 << 31)))
print(f"RHIZOME_TEST_SEED={SEED}", flush=True)

# How many times as long as on an idle machine is waited.
PATIENCE = int(os.environ.get("RHIZOME_TEST_PATIENCE", 1))


@contextlib.contextmanager
def raises(kind, text=""):
    """The block raises `kind`, and its message holds `text`."""
    try:
        yield
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error!s}"
        return
    raise AssertionError(f"no {kind.__name__} was raised")


@contextlib.contextmanager
def logged():
    """The messages that the package logs in the block, a list."""
    said, handler = [], logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("rhizome").addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger("rhizome").removeHandler(handler)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


class Example:
    """A random graph with arrays, in NumPy: what a store made of it has to give back."""

    def __init__(self, rng, vertices=300, edges=2000):
        self.vertices = vertices
        self.edges = rng.integers(0, vertices, (2, edges))
        self.weights = rng.random(edges, dtype=np.float32)
        self.arrays = {
            "feat": rng.normal(size=(vertices, 12)).astype(np.float32),
            "half": rng.normal(size=(vertices, 3)).astype(np.float16),
            "label": rng.integers(0, 7, (vertices, 1)),
            "small": rng.integers(0, 99, (vertices, 2)).astype(np.int32),
            "plain": rng.integers(0, 99, (vertices, 1)).astype(np.uint32),
            "bytes": rng.integers(0, 99, (vertices, 5)).astype(np.uint8),
        }

    def ingest(self, path, **options):
        arrays = dict(self.arrays, small=self.arrays["small"].astype(">i4"))  # any order of bytes is taken
        return rz.ingest(path, self.edges, arrays=arrays, edge_arrays={"weight": self.weights},
                         vertices=self.vertices, **options)

    def targets(self, vertex, direction):
        """The neighbours of a vertex with their weights, sorted: parallel edges as often as they are."""
        src, dst = self.edges if direction == "out" else self.edges[::-1]
        return sorted(zip(dst[src == vertex].tolist(), self.weights[src == vertex].tolist()))


def interrupted(code, *arguments, after, signalled=True):
    """Runs Python that prints "begun" and, `after` seconds later, gets SIGINT; returns its next words, status, and when."""
    # A shell has SIGINT ignored by what it starts in the background, and Python would leave it so.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", heard + code, FOLDER, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        sent = time.monotonic()
        if signalled:
            process.send_signal(signal.SIGINT)
        return process.stdout.read().split(), process.wait(), sent


def run(module):
    """Calls every function of `module` whose name begins with test_."""
    for name, test in list(vars(module).items()):
        if name.startswith("test_"):
            test()
            print("ok", name, flush=True)
