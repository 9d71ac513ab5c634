#!/usr/bin/env python3
"""Ctrl-C at 200 moments of ingestions, compactions and additions of arrays: the result is complete
or absent."""
import os
import shutil
import signal
import time

import package
from package import FOLDER, SEED, folder, np, rz

RNG = np.random.default_rng(SEED)
VERTICES, EDGES, MOMENTS = 50_000, 400_000, 200

JOB = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, rhizome as rz
path, job = sys.argv[2:]
rng = np.random.default_rng(1)
said = []
def say(*_):
    if not said:
        said.append(print("begun", flush=True))
try:
    if job == "ingest":
        rz.ingest(path, rng.integers(0, 50_000, (2, 400_000)), arrays={"x": np.ones((50_000, 16))}, progress=say, threads=1)
    elif job == "array":
        rz.add_array(path, "more", rng.normal(size=(50_000, 64)).astype(np.float32), progress=say)
    else:
        with rz.open(path, mode="w") as graph:
            graph.compact(repartition=True, progress=say, threads=1)
    print("done")
except KeyboardInterrupt:
    print("interrupted", time.monotonic())
"""


def store(path):
    """Makes what a job begins with; `x` is 1 for all."""
    shutil.rmtree(path / "g.rz", ignore_errors=True)
    rz.ingest(path / "g.rz", np.random.default_rng(2).integers(0, VERTICES, (2, EDGES)), arrays={"x": np.ones((VERTICES, 16))})
    with rz.open(path / "g.rz", mode="w") as graph, graph.batch() as batch:
        batch.put_edge(1, 2)


def check(path, job, done):
    """What is there is whole; if the job was done, all of it."""
    assert set(os.listdir(path)) <= {"g.rz"}, os.listdir(path)
    if job == "ingest" and not done and not (path / "g.rz").exists():
        return
    with rz.open(path / "g.rz", mode="w") as graph:  # which removes what a killed job leaves
        assert graph.verify().ok
        assert graph.num_edges == EDGES + (job != "ingest")
        assert (graph["x"][RNG.integers(0, VERTICES, 100)] == 1).all()
        assert not done or job != "array" or graph["more"].shape == (VERTICES, 64)


def length_of(path, job):
    """Returns how many seconds a job takes after its first report."""
    words, status, began = package.interrupted(JOB, path / "g.rz", job, after=0, signalled=False)
    assert words == ["done"] and status == 0
    return time.monotonic() - began


def main():
    late, ended, whole = [], 0, 0
    with folder() as path:
        for job, prepare in (("ingest", lambda: shutil.rmtree(path / "g.rz", ignore_errors=True)),
                             ("compact", lambda: store(path)), ("array", lambda: store(path))):
            prepare()
            length = length_of(path, job)
            for after in RNG.uniform(0, length, MOMENTS // 3 + 1):
                prepare()
                words, status, sent = package.interrupted(JOB, path / "g.rz", job, after=after)
                if words == ["done"] or status == -signal.SIGINT:  # the signal came when the job was done
                    whole += 1
                else:
                    assert status == 0 and words[0] == "interrupted", (status, words)
                    ended, late = ended + 1, late + [float(words[1]) - sent]
                check(path, job, words == ["done"])
    assert ended >= MOMENTS // 2, (ended, whole)
    late.sort()
    print(f"{ended} jobs were interrupted, {whole} were done before: half of them ended within {late[len(late) // 2]:.2f} s of "
          f"the signal, 95 of 100 within {late[len(late) * 95 // 100]:.2f}, the slowest within {late[-1]:.2f}")
    assert late[-1] < 5, late[-5:]  # 0.5 s on a machine that does nothing else


if __name__ == "__main__":
    print("the package is in", FOLDER, flush=True)
    main()
