#!/usr/bin/env python3
"""Signals are handled while a single long call runs, such as Ctrl-C during a read of many rows."""
import signal
import sys
import threading

from package import SEED, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)
VERTICES = 60_000


class Stop(Exception):
    """Raised by the handler of a signal."""


def handled(call, raise_after=None):
    """Calls `call` while signals arrive every few milliseconds; returns how many were handled in it, and its result."""
    count = 0

    def handler(*_):
        nonlocal count
        count += 1
        if count == raise_after:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        result = call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return count, result
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_long_calls():
    """Each call handles signals before it ends, returns the same as without, and ends when a handler raises."""
    edges = RNG.integers(0, VERTICES, (2, 10 * VERTICES))
    rows = RNG.random((VERTICES, 8), dtype=np.float32)
    with folder() as path:
        rz.ingest(path / "g.rz", edges, arrays={"x": rows}, edge_arrays={"n": np.arange(10 * VERTICES)})
        with rz.open(path / "g.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_rows("x", np.arange(VERTICES), rows + 1)
            ids = RNG.permutation(VERTICES)
            every = np.concatenate([ids] * 8)
            snapshot = graph.snapshot()
            separate = graph.sampler([10, 5], disjoint=True)
            numbers = RNG.integers(0, 10 * VERTICES, 20 * VERTICES)
            calls = {"rows": lambda: graph["x"][every], "rows of a snapshot": lambda: snapshot["x"][every],
                     "a sample": lambda: separate.sample(ids).edge_index,
                     "neighbours": lambda: graph.neighbors(every)[0], "edges": lambda: graph.edge_rows("n", numbers),
                     "all rows": lambda: np.asarray(graph["x"])}
            seen = {}
            for name, call in calls.items():
                want = call()
                seen[name], got = handled(call)
                assert np.array_equal(got, want), name
                if seen[name] > 2:
                    with raises(Stop):
                        handled(call, raise_after=2)
                    assert np.array_equal(call(), want), name  # nothing is broken
            print("signals handled within a call:", seen)
            # A signal that came in a call without checks would be handled once, when the call is over.
            for name in ("rows", "rows of a snapshot", "a sample"):
                assert seen[name] > 2, seen
        assert threading.active_count() == 1
        rz.open(path / "g.rz", mode="w").close()


if __name__ == "__main__":
    run(sys.modules[__name__])
