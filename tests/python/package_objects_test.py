#!/usr/bin/env python3
"""The package's objects behave as Python's own: arrays as sequences, texts that are none, what closing closes."""
import os
import sys
import threading

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_snapshots_close_by_themselves():
    """A snapshot closes itself and what was made from it; the graph closes all snapshots, whichever goes first."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        graph = rz.open(path / "g.rz", mode="w")
        array, sampler, other = graph["feat"], graph.sampler([2]), graph.snapshot()
        with graph.snapshot() as snapshot:
            inner, its = snapshot.snapshot(), (snapshot["feat"], snapshot.sampler([2]))
            scan, loader = snapshot.scan_edges(), rz.Loader(snapshot, [2], features="feat", seeds=[1, 2, 3])
            assert next(scan) and snapshot.num_edges == 2000 and not snapshot.closed
        assert snapshot.closed and inner.closed and loader.graph.closed and "closed" in repr(snapshot)
        for call in (lambda: snapshot.num_edges, lambda: snapshot["feat"], lambda: its[0][[1]], lambda: list(its[0]),
                     lambda: its[1].sample([1]), lambda: list(scan), lambda: list(loader), snapshot.snapshot,
                     lambda: snapshot.point, lambda: snapshot.path, lambda: inner.find(1)):
            with raises(ValueError, "the snapshot is closed"):
                call()
        snapshot.close()
        # Nothing else is closed, for this thread and others.
        assert not graph.closed and not other.closed
        seen = []
        thread = threading.Thread(target=lambda: seen.append(sampler.sample([1]).vertices[0] + array[[3]].shape[1]))
        thread.start()
        thread.join()
        assert seen == [13] and other.num_edges == graph.num_edges == 2000
        with graph.batch() as batch:
            batch.put_edge(1, 2)
        assert (graph.num_edges, other.num_edges) == (2001, 2000)
        with raises(rz.Busy):
            rz.open(path / "g.rz", mode="w")
        # A graph that is closed before its snapshots.
        last = graph.snapshot()
        graph.close()
        for one in (other, last):
            assert one.closed
            with raises(ValueError, "the store is closed"):
                one.find(1)
            one.close()
        with raises(ValueError, "closed"):
            other.snapshot()
        # A snapshot keeps the store while the graph that it is of was only dropped.
        with rz.open(path / "g.rz", mode="w").snapshot() as kept:
            assert kept.num_edges == 2001
            with raises(rz.Busy):
                rz.open(path / "g.rz", mode="w")
        del kept
        rz.open(path / "g.rz", mode="w").close()


def test_snapshots_that_are_closed_hold_no_files():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", mode="w") as graph:
            snapshot = graph.snapshot()
            with graph.batch() as batch:
                batch.put_edge(1, 2)
            graph.compact(keep_generations=0)
            assert len(os.listdir(path / "g.rz" / "generations")) == 2
            snapshot.close()
            with graph.batch() as batch:
                batch.put_edge(1, 2)
            graph.compact(keep_generations=0)
            assert len(os.listdir(path / "g.rz" / "generations")) == 1


if __name__ == "__main__":
    run(sys.modules[__name__])
