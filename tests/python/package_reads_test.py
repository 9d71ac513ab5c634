#!/usr/bin/env python3
"""Scans, degrees, types and nearest rows of the package `rhizome` against NumPy, before and after a
compaction."""
import gc
import os
import sys
import threading

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def written(path, example):
    """A graph of the example with a new vertex, a deleted one, edges and rows that were put; what it then holds."""
    graph = rz.open(path, mode="w")
    src, dst = example.edges
    weights = example.weights.copy()
    gone = int(src[0])
    with graph.batch() as batch:
        batch.delete_vertex(gone)
        batch.put_edge(1000, 2 if gone != 2 else 3, weight=0.5)
        batch.put_row("feat", 1000, np.arange(12))
        batch.put_rows("feat", [4 if gone != 4 else 5], np.full((1, 12), 7.0))
    kept = (src != gone) & (dst != gone)
    edges = sorted(zip(src[kept].tolist(), dst[kept].tolist(), weights[kept].tolist())) + [
        (1000, 2 if gone != 2 else 3, 0.5)]
    rows = {vertex: row for vertex, row in enumerate(example.arrays["feat"]) if vertex != gone}
    rows[1000] = np.arange(12, dtype=np.float32)
    rows[4 if gone != 4 else 5] = np.full(12, 7, np.float32)
    return graph, sorted(edges), rows


def test_scans():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        graph, edges, rows = written(path / "g.rz", example)
        for step in range(2):
            for most in (1, 7, 300, 65536):
                blocks = list(graph["feat"].batches(most))
                assert all(1 <= len(ids) <= most and len(block) == len(ids) for ids, block in blocks)
                ids, block = (np.concatenate(part) for part in zip(*blocks))
                assert sorted(graph.external_ids(ids)) == sorted(rows) and block.dtype == np.float32
                assert all(np.array_equal(row, rows[name]) for name, row in zip(graph.external_ids(ids), block))
                seen = list(graph.scan_vertices(most))
                assert [name for part in seen for name in part.ids] == sorted(rows)
                vertices = np.concatenate([part.vertices for part in seen])
                assert graph.external_ids(vertices) == sorted(rows) and max(len(part.ids) for part in seen) <= most
                assert not np.concatenate([part.types for part in seen]).any()
                found = []
                for src, dst, types, weights in graph.scan_edges(max(most, 50)):
                    assert types is None and len(src) <= max(most, 50)
                    found += zip(graph.external_ids(src), graph.external_ids(dst), weights.tolist())
                assert sorted(found) == edges
            assert np.array_equal(np.sort(graph.vertices_of("vertex")), np.sort(vertices))
            if step == 0:
                scan = graph["feat"].batches(10)
                first, _ = next(scan)
                graph.compact()
                rest = np.concatenate([first, *[ids for ids, _ in scan]])  # at the commit at which it began
                assert len(rest) == len(set(rest.tolist())) == len(rows)
        for wrong in (0, -1, 1.5, "a", None, True):
            for call in (graph["feat"].batches, graph.scan_vertices, graph.scan_edges):
                with raises((TypeError, ValueError), "rows"):
                    call(wrong)
        scans = graph["feat"].batches(5), graph.scan_vertices(5), graph.scan_edges(5)
        graph.close()
        for scan in scans:
            with raises(ValueError, "closed"):
                next(scan)


def test_threads_share_a_scan():
    """Each row, vertex and edge comes to one of the threads that ask for them."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            for make, count, total in ((lambda: graph["feat"].batches(3), lambda block: block[0].tolist(), 300),
                                       (lambda: graph.scan_vertices(3), lambda block: block.ids, 300),
                                       (lambda: graph.scan_edges(9), lambda block: block.src.tolist(), 2000)):
                scan, found = make(), []
                threads = [threading.Thread(target=lambda: [found.append(count(block)) for block in scan])
                           for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert len(sum(found, [])) == total


def test_undirected_pairs():
    edges = np.unique(np.sort(RNG.integers(0, 50, (2, 80)), axis=0), axis=1)
    with folder() as path:
        rz.ingest(path / "g.rz", edges, vertices=50, undirected=True)
        with rz.open(path / "g.rz") as graph:
            once = np.concatenate([np.stack(block[:2]) for block in graph.scan_edges(pairs_once=True)], axis=1)
            assert sorted(map(tuple, once.T.tolist())) == sorted(map(tuple, edges.T.tolist()))
            both = np.concatenate([np.stack(block[:2]) for block in graph.scan_edges()], axis=1)
            assert both.shape[1] == graph.num_edges


def test_degrees_and_arrays():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            ids = RNG.integers(0, 300, 100)
            for direction, end in (("out", 0), ("in", 1)):
                want = np.bincount(example.edges[end], minlength=300)[ids]
                assert np.array_equal(graph.degrees(ids, direction), want)
            assert np.array_equal(graph.degrees(ids), graph.degrees(ids, "in"))
            assert np.array_equal(graph.degrees(ids, "both"), graph.degrees(ids, "in") + graph.degrees(ids, "out"))
            assert not graph.types_of(ids).any() and graph.types_of(ids).dtype == np.uint16
            for call in (graph.degrees, graph.types_of):
                for bad, kind in (([300], IndexError), ([-1], IndexError), ([0.5], TypeError), (["a"], TypeError)):
                    with raises(kind):
                        call(bad)
            for name, values in example.arrays.items():
                assert np.array_equal(np.asarray(graph[name]), values) and len(graph[name]) == 300
                assert np.asarray(graph[name], dtype=np.float64).dtype == np.float64
            with raises(ValueError, "copied"):
                np.array(graph["feat"], copy=False)
            assert list(graph.arrays) == sorted(example.arrays) == graph._ipython_key_completions_()
            # A graph contains its vertices, by external id.
            assert list(graph) == list(range(300)) and 3 in graph and "3" in graph and np.int32(299) in graph
            assert not any(other in graph for other in (300, -1, "feat", 3.0, None, True, [3], 1 << 70))


def test_similar():
    example = Example(RNG)
    feat = example.arrays["feat"]
    feat[13] = 0
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            with np.errstate(invalid="ignore"):
                unit = feat.astype(np.float64) / np.linalg.norm(feat.astype(np.float64), axis=1, keepdims=True)
            for to in (3, 200):
                score = np.nan_to_num(unit @ unit[to], nan=-2)
                score[to] = -2
                best = np.argsort(-score, kind="stable")[:7]
                found = graph.similar(to, array="feat", k=7)
                assert [one.id for one in found] == best.tolist()
                assert np.allclose([one.score for one in found], score[best])
                assert [one.label for one in found] == example.arrays["label"][best, 0].tolist()
                for row in (feat[to], feat[to].astype(np.float64), feat[to].tolist()):
                    assert graph.similar(row, "feat", k=1)[0].id == to
            assert len(graph.similar(3, "feat", k=1000)) == 298
            # Many at once are as many calls, by vertex ids and by rows.
            several = RNG.permutation(np.delete(np.arange(300), 13))[:40]
            for k in (1, 7, 1000):
                for found, one in zip(graph.similar(several, "feat", k), several.tolist(), strict=True):
                    want = graph.similar(one, "feat", k)
                    assert [near.id for near in found] == [near.id for near in want]
                    assert np.allclose([near.score for near in found], [near.score for near in want])
                    assert [near.label for near in found] == [near.label for near in want]
                for found, one in zip(graph.similar(feat[several], "feat", k), several.tolist(), strict=True):
                    assert [near.id for near in found] == [near.id for near in graph.similar(feat[one], "feat", k)]
            assert graph.similar(np.empty((0, 12)), "feat") == []
            seen = []
            graph.similar(3, "feat", progress=lambda *report: seen.append(report))
            for wrong, kind in ((dict(to=13, array="feat"), rz.InvalidArgument),
                                (dict(to=3, array="none"), rz.NotFound),
                                (dict(to=999, array="feat"), rz.NotFound),
                                (dict(to=[1.0], array="feat"), rz.InvalidArgument),
                                (dict(to=3, array="feat", k=0), ValueError), (dict(to=["a"], array="feat"), rz.NotFound),
                                (dict(to=None, array="feat"), TypeError), (dict(to=True, array="feat"), TypeError),
                                (dict(to=[[[1.0] * 12]], array="feat"), TypeError),
                                (dict(to=[[1.0] * 11], array="feat"), rz.InvalidArgument),
                                (dict(to=[[1.0] * 12, [0.0] * 12], array="feat"), rz.InvalidArgument),
                                (dict(to=np.array([3, 13]), array="feat"), rz.InvalidArgument),
                                (dict(to=np.array([3, 999]), array="feat"), IndexError)):
                with raises(kind):
                    graph.similar(**wrong)
        rz.ingest(path / "plain.rz", example.edges, vertices=300, arrays={"x": feat})
        with rz.open(path / "plain.rz") as graph:
            assert graph.similar(3, "x", k=1)[0].label is None


def test_nothing_leaks():
    """Calls leave no references behind, whether they work or raise."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz") as graph:
            ids, bad, sampler, feat = np.arange(10), np.array([-1]), graph.sampler([2]), graph["feat"]
            out = np.empty((10, 12), np.float32)

            def refused(call, *arguments):
                try:
                    call(*arguments)
                except (IndexError, LookupError):
                    pass

            for call in (lambda: feat[ids], lambda: feat[5], lambda: feat.read(ids, out), lambda: graph.find(5),
                         lambda: graph.find(ids), lambda: sampler.sample(ids), lambda: graph.neighbors(3),
                         lambda: graph.neighbors(ids), lambda: graph.degrees(ids), lambda: next(feat.batches(5)),
                         lambda: refused(feat.read, bad), lambda: refused(graph.find, 5000), lambda: graph.arrays,
                         lambda: graph.edge_rows("weight", ids), lambda: refused(graph.edge_rows, "none", ids),
                         lambda: graph.point):
                call()
                gc.collect()
                before = [*map(sys.getrefcount, (ids, None, np.dtype(np.int64))), len(gc.get_objects())]
                for _ in range(int(os.environ.get("RHIZOME_CALLS", "500"))):
                    call()
                gc.collect()
                after = [*map(sys.getrefcount, (ids, None, np.dtype(np.int64))), len(gc.get_objects())]
                assert all(b - a < 50 for a, b in zip(before, after)), (before, after)


if __name__ == "__main__":
    run(sys.modules[__name__])
