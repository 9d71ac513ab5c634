#!/usr/bin/env python3
"""A store that is moved away, or replaced by another, while it is open or while a job works on it: what is open says
"was moved", and the other store keeps every byte."""
import hashlib
import os
import subprocess
import sys
import time

from package import PATIENCE, SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)
RHIZOME = os.environ["RHIZOME"]
MOVED = "was moved"


def make(path, seed):
    n = 3000
    rng = np.random.default_rng(seed)
    rz.ingest(path, rng.integers(0, n, (2, 3 * n)), vertices=n, arrays={"feat": np.full((n, 16), seed, "f4")})


def state(path):
    """All files of a store with their bytes, except for the texts of locks."""
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(path.rglob("*")) if file.is_file() and file.name != "LOCK"}


def swap(path):
    """Moves the open store away, and puts the other one in its place."""
    (path / "g.rz").rename(path / "away.rz")
    (path / "other.rz").rename(path / "g.rz")


def test_handles():
    for mode in "rw":
        with folder() as path:
            make(path / "g.rz", 1)
            make(path / "other.rz", 2)
            before = state(path / "other.rz")
            graph = rz.open(path / "g.rz", mode=mode, memory="24M")
            snapshot = graph.snapshot()
            swap(path)
            with raises(rz.IoError, MOVED):
                graph.refresh()
            for one in (graph, snapshot):
                with raises(rz.IoError, MOVED):
                    one["feat"][np.arange(0, 3000, 7)]
            if mode == "w":
                with raises(rz.Error, MOVED):
                    graph.compact()
                    with graph.batch() as batch:
                        batch.put_edge(1, 2)
                    graph.compact()
            snapshot.close()
            graph.close()
            assert state(path / "g.rz") == before, "the other store was changed"
            assert rz.verify(path / "g.rz").ok and rz.verify(path / "away.rz").ok


def test_moved_away_and_back():
    with folder() as path:
        make(path / "g.rz", 1)
        with rz.open(path / "g.rz", mode="w") as graph:
            (path / "g.rz").rename(path / "away.rz")
            with raises(rz.Error, MOVED):
                graph["feat"][[1, 2]]
            (path / "away.rz").rename(path / "g.rz")
            assert (graph["feat"][[1, 2]] == 1).all()
            with graph.batch() as batch:
                batch.put_edge(1, 2)
            assert graph.compact().compacted
        assert rz.verify(path / "g.rz").ok


def stopped_in(path, arguments, reached):
    """Starts a command and stops it (SIGSTOP) once `reached` holds; returns the process."""
    job = subprocess.Popen([RHIZOME, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60 * PATIENCE
    while not reached() and job.poll() is None and time.monotonic() < end:
        time.sleep(.001)
    if job.poll() is None:
        job.send_signal(19)
    return job


def test_jobs_of_other_processes():
    """The store is swapped under each job as soon as the job has begun to write. The job fails and says why, or it
    was done before; in both cases the other store keeps its bytes."""
    for arguments, made in (
            (["array", "add", "g.rz", "x=x.npy"], "g.rz/scratch/*/*"),
            (["compact", "g.rz", "--repartition"], "g.rz/generations/000002/*"),
            (["backup", "create", "g.rz", "b"], "b/*/*"),
            (["alter", "g.rz", "--weights"], "g.rz/generations/000002/*"),
            (["put", "g.rz", "more.tsv", "--batch", "1"], None)):  # None: once a writer has the catalogue open
        with folder() as path:
            make(path / "g.rz", 1)
            make(path / "other.rz", 2)
            before = state(path / "other.rz")
            np.save(path / "x.npy", RNG.normal(size=(3000, 400)))
            (path / "more.tsv").write_text("".join(f"{i}\t{i + 1}\n" for i in range(2000)))
            subprocess.run([RHIZOME, "put", path / "g.rz", path / "more.tsv"], check=True, capture_output=True)
            command = [one if "." not in one or "=" in one else path / one for one in arguments]
            command = [f"x={path / 'x.npy'}" if one == "x=x.npy" else path / "b" if one == "b" else one
                       for one in command]
            seal = path / "g.rz" / "catalog" / "SEAL"
            job = stopped_in(path, command, lambda: not seal.exists() if made is None else any(path.glob(made)))
            swap(path)
            if job.poll() is None:
                job.send_signal(18)
            _, said = job.communicate()
            assert job.returncode == 0 or MOVED in said or "another store" in said, (arguments, said)
            assert state(path / "g.rz") == before, (arguments, "the other store was changed", said)
            assert rz.verify(path / "g.rz").ok and rz.verify(path / "away.rz").ok, arguments


if __name__ == "__main__":
    run(sys.modules[__name__])
