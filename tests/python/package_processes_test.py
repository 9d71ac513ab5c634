#!/usr/bin/env python3
"""The package `rhizome` and processes: forks, interrupts, the command line."""
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import traceback

import package
from package import FOLDER, PATIENCE, SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def in_child(call):
    """Runs `call` in a forked child, which ends as a Python program does; its result is True or the test fails."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        os._exit(status)  # pylint: disable=protected-access
    deadline = time.monotonic() + 60 * PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the child hangs")


def test_fork():
    """A child reads what is in memory, is told what it cannot do, and harms neither store nor parent."""
    example = Example(RNG)
    feat = example.arrays["feat"]
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            sampler, array, snapshot = graph.sampler([3, 2]), graph["feat"], graph.snapshot()
            here = sampler.sample(range(10), batch=1)
            array[np.arange(20)]

            def child():
                there = sampler.sample(range(10), batch=1)
                assert np.array_equal(here.edge_index, there.edge_index)
                assert np.array_equal(graph.neighbors(5).ids, snapshot.neighbors(5).ids)
                with raises(rz.InvalidArgument, "fork"):
                    with graph.batch() as batch:
                        batch.put_edge(1, 2)
                with raises(rz.InvalidArgument, "fork"):
                    graph.compact()
                try:
                    rows = array[np.arange(example.vertices)]
                except rz.InvalidArgument as error:
                    assert "fork" in str(error)
                else:
                    assert np.array_equal(rows, feat)
                with rz.open(path / "g.rz") as own:
                    assert np.array_equal(own["feat"][np.arange(300)], feat)
                graph.close()

            for _ in range(3):
                in_child(child)
            in_child(lambda: None)
            assert np.array_equal(array[np.arange(300)], feat)
            with graph.batch() as batch:
                batch.put_edge(1, 2)
        with rz.open(path / "g.rz") as graph:
            assert graph.num_edges == 2001 and graph.verify().ok


def state_of(graph):
    """What two graphs of one state have in common, edge numbers included; a worker is asked for it."""
    sub = graph.sampler([3, 2], edge_ids=True, seed=4).sample([5, 6, 7])
    edges = [np.concatenate(column) for column in zip(*((block.src, block.dst, block.weights)
                                                        for block in graph.scan_edges()))]
    everyone = np.arange(graph.vertex_bound)
    columns = [*edges, *sub[:2], sub.edge_ids, graph.edge_rows("weight", sub.edge_ids), graph["feat"][everyone]]
    return graph.sequence, graph.num_vertices, graph.vertex_types, sorted(graph.arrays), [one.tobytes() for one in columns]


def write_to(path, seed, compactions):
    """Changes edges, rows and arrays of a store, in a process of its own, and compacts it."""
    rng = np.random.default_rng(seed)
    with rz.open(path, mode="w") as graph:
        for compaction in range(compactions + 1):
            for _ in range(2):
                with graph.batch(sync=False) as batch:
                    batch.put_edges(rng.integers(0, 300, 40), rng.integers(0, 300, 40))
                    batch.put_edge(int(rng.integers(0, 300)), f"{rng.integers(1 << 40)}")
                    batch.put_rows("feat", rng.permutation(300)[:20], rng.normal(size=(20, 12)))
            if compaction < compactions:
                graph.compact()
    name = f"emb{rng.integers(1 << 40)}"
    rz.add_array(path, name, rng.normal(size=(300, 2)).astype(np.float32))
    if seed % 2:
        rz.drop_array(path, name)
    return seed


def test_pickled_graphs():
    """Workers of every kind see the state that the parent has, whatever another process writes and compacts meanwhile."""
    for method in ("fork", "forkserver", "spawn"):
        example = Example(RNG)
        with (folder() as path, multiprocessing.get_context(method).Pool(2) as pool,
              multiprocessing.get_context("spawn").Pool(1) as writer):  # a fork of one that has a store open cannot write
            example.ingest(path / "g.rz")
            store = str(path / "g.rz")
            writer.apply(write_to, (store, int(RNG.integers(1 << 40)), 0))
            graph = rz.open(store, memory="64M")
            expected, data = state_of(graph), pickle.dumps(graph)
            assert len(data) < 1000
            writer.apply(write_to, (store, int(RNG.integers(1 << 40)), 1))
            assert pool.apply(state_of, (graph,)) == expected, method
            assert pool.apply(state_of, (graph.snapshot(),)) == expected, method
            assert all(one.get() == expected for one in [pool.apply_async(state_of, (graph,)) for _ in range(4)])
            with rz.open(store, at=graph.point) as again, rz.open(store) as now:
                assert state_of(again) == expected and again.point == graph.point
                assert now.sequence > graph.sequence and state_of(now) != expected
                with raises(ValueError, "never changes"):
                    again.refresh()
                with raises(rz.InvalidArgument):
                    again.batch()
            other = pickle.loads(data)
            graph.close()
            writer.apply(write_to, (store, int(RNG.integers(1 << 40)), 1))
            assert state_of(other) == expected  # it holds the state itself
            data, point = pickle.dumps(other), other.point
            other.close()
            writer.apply(write_to, (store, int(RNG.integers(1 << 40)), 1))
            for gone in (lambda: pickle.loads(data), lambda: rz.open(store, at=point),
                         lambda: pool.apply(pickle.loads, (data,))):
                with raises(rz.NotFound, "no longer exists"):
                    gone()
            with raises(rz.InvalidArgument, "point"):
                rz.ingest(path / "other.rz", example.edges)
                rz.open(path / "other.rz", at=point)
            assert rz.verify(store).ok


def test_points_of_copies():
    """Copies that were written to independently have other commits of the same numbers."""
    with folder() as path:
        Example(RNG).ingest(path / "a.rz")
        shutil.copytree(path / "a.rz", path / "b.rz")
        points = []
        for name, ends in (("a", (1, 2)), ("b", (2, 1))):
            with rz.open(path / f"{name}.rz", mode="w") as graph:
                with graph.batch() as batch:
                    batch.put_edge(*ends)
                points.append(graph.point)
                with graph.batch() as batch:
                    batch.put_edge(7, 8)
        a, b = points
        assert a[:6] == b[:6] and a.state != b.state
        with rz.open(path / "b.rz") as graph:
            assert next(graph.changes(after=b)).commit == b.sequence + 1
            with raises(rz.InvalidArgument, "diverged"):
                graph.changes(after=a)
        with raises(rz.InvalidArgument, "diverged"):
            rz.open(path / "b.rz", at=a)
        rz.open(path / "b.rz", at=b).close()
        rz.open(path / "b.rz", at=rz.Point(*b[:6])).close()  # of an older version
        for wrong in (b._replace(base=b.base + 1), rz.Point(*b[:6])._replace(base=b.base + 1)):
            with raises(rz.Error):
                rz.open(path / "b.rz", at=wrong)
        with raises(ValueError, "64"):
            rz.open(path / "b.rz", at=b._replace(state="no hash"))


INTERRUPTED = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, rhizome as rz
edges = np.random.default_rng(1).integers(0, 200_000, (2, 1_500_000))
said = []
def say(*_):
    if not said:
        said.append(print("begun", flush=True))
try:
    if sys.argv[3] == "ingest":
        rz.ingest(sys.argv[2], edges, arrays={"x": np.ones((200_000, 16))}, progress=say, threads=1)
    else:
        with rz.open(sys.argv[2], mode="w") as graph:
            graph.compact(repartition=True, progress=say, threads=1)
    print("done")
except KeyboardInterrupt:
    print("interrupted", time.monotonic())
"""


def interrupted(store, job, after):
    """Starts a job, sends SIGINT `after` seconds since its first report; returns whether it ended, and how late."""
    words, status, sent = package.interrupted(INTERRUPTED, store, job, after=after)
    if words == ["done"] or status == -signal.SIGINT:  # the signal came when the job was done
        return False, 0.0
    assert status == 0, status
    assert words[0] == "interrupted", words
    return True, float(words[1]) - sent


def test_interrupts():
    """Ctrl-C becomes KeyboardInterrupt soon; a job that had not begun to publish leaves what was before, whole."""
    ended, late = 0, []
    with folder() as path:
        for after in (0, *RNG.uniform(0, 0.8, 3)):
            stopped, seconds = interrupted(path / "g.rz", "ingest", after)
            if (path / "g.rz").exists():  # published before the signal came
                with rz.open(path / "g.rz") as graph:
                    assert graph.num_edges == 1_500_000
                break
            assert stopped and not os.listdir(path), os.listdir(path)
            ended, late = ended + 1, late + [seconds]
        if not (path / "g.rz").exists():
            edges = RNG.integers(0, 200_000, (2, 1_500_000))
            rz.ingest(path / "g.rz", edges)
        with rz.open(path / "g.rz", mode="w") as graph, graph.batch() as batch:
            batch.put_edge(1, 2)
        before = sorted(os.listdir(path / "g.rz/generations"))
        for after in RNG.uniform(0, 0.3, 2):
            stopped, seconds = interrupted(path / "g.rz", "compact", after)
            if not stopped:
                break
            ended, late = ended + 1, late + [seconds]
            with rz.open(path / "g.rz", mode="w") as graph:  # which removes what a killed job leaves
                assert graph.num_edges == 1_500_001 and graph.verify().ok
            if sorted(os.listdir(path / "g.rz/generations")) != before:  # it was being published when the signal came
                break
    print(f"{ended} jobs were interrupted, the slowest {max(late, default=0):.2f} s after the signal")
    assert ended >= 1 and max(late) < 5 * PATIENCE, late  # 0.5 s on a machine that does nothing else


def test_other_signals():
    """A handler of the user's own runs while a job runs, and what it raises arrives."""
    example = Example(RNG, edges=100_000)

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    with folder() as path:
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        try:
            example.ingest(path / "g.rz")
            time.sleep(5)
            raise AssertionError("no alarm")
        except Alarm:
            pass
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


#: Each an endless loop of a daemon thread, with a graph of its own: the calls that a program may end in.
DAEMONS = {
    "loader": "for batch in rz.Loader(g, [3, 3], features='feat', seeds=ids, batch_size=8): yield",
    "lent rows": "for batch in rz.Loader(g, [3], features='feat', seeds=ids, batch_size=8, zero_copy=True): yield",
    "sampler": "s = g.sampler([5, 5])\nwhile True: yield s.sample(ids[:100])",
    "rows": "while True: yield g['feat'][ids]",
    "rows by a list": "some = ids[:50].tolist()\nwhile True: yield g['feat'][some]",
    "one row": "while True: yield g['feat'][7]",
    "all rows": "while True: yield list(g['feat'])",
    "neighbours": "while True: yield g.neighbors(ids)",
    "scans": "while True: yield from g.scan_edges(100)",
    "batches": "while True: yield from g['feat'].batches(20)",
    "changes": "while True: yield list(g.changes(0))",
    "near rows": "while True: yield g.similar(1, 'feat', progress=lambda *words: sum(range(500)))",
    "snapshots": "while True:\n with g.snapshot() as s: yield s['feat'][[1]]",
    "writes": "while True:\n with g.batch(sync=False) as b: b.put_edges(ids[:20], ids[20:40])\n yield",
    "compaction": "while True:\n with g.batch(sync=False) as b: b.put_edge(1, 2)\n yield g.compact(threads=1)",
    "verification": "while True: yield g.verify(progress=lambda *words: sum(range(500)))",
    "errors": "while True:\n try: g.find(-5)\n except rz.NotFound: yield",
    "wrong arguments": "while True:\n try: g['feat'].batches(0)\n except ValueError: yield",
    "names": "class Number:\n def __index__(self): return sum(range(50)) - 1220\n"
             "some = [Number() for _ in range(20)]\nwhile True: yield g.find(n for n in some)",
    "opening": "while True:\n with rz.open(path, log=lambda line: sum(range(500)), log_level='debug'): yield",
    "ingestion": "for n in range(10**9): yield rz.ingest(f'{path}.{after}.{n}', np.stack([ids, ids[::-1]]), threads=1)",
}

ENDS = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import numpy as np, rhizome as rz
sys.setswitchinterval(1e-5)
after = int(sys.argv[2])
begun = [threading.Semaphore(0) for _ in sys.argv[3::2]]
def work(calls, path, begun):
    g = rz.open(path, mode="w")
    names = {"rz": rz, "np": np, "g": g, "ids": np.arange(g.vertex_bound), "path": path, "after": after}
    exec("def loop():\\n" + "".join(f" {line}\\n" for line in calls.split("\\n")), names)
    for _ in names["loop"](): begun.release()
for calls, path, one in zip(sys.argv[3::2], sys.argv[4::2], begun):
    threading.Thread(target=work, args=(calls, path, one), daemon=True).start()
for one in begun:
    for _ in range(after): one.acquire()
"""


def test_the_end_with_threads_in_the_engine():
    """A program ends as it would, whatever its daemon threads are in."""
    example = Example(RNG, vertices=200, edges=1500)
    with folder() as path:
        stores = {what: path / f"{number}.rz" for number, what in enumerate(DAEMONS)}
        for store in stores.values():
            example.ingest(store)
        for after in (1, 4):
            order = RNG.permutation(list(DAEMONS))
            for kinds in (order[:7], order[7:14], order[14:]):
                words = [word for what in kinds for word in (DAEMONS[what], stores[what])]
                done = subprocess.run([sys.executable, "-c", ENDS, FOLDER, str(after), *words], capture_output=True,
                                      text=True, timeout=300, check=False)
                assert done.returncode == 0 and not done.stderr, (kinds, done.returncode, done.stderr)


def test_command_line():
    program = rz.errors.__file__.replace("errors.py", "bin/rhizome")
    code = (f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import _rhizome_cli\n"
            "assert 'numpy' not in sys.modules; _rhizome_cli.main()")
    told = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"rhizome {rz.__version__}\n", told
    assert os.access(program, os.X_OK)


if __name__ == "__main__":
    run(sys.modules[__name__])
