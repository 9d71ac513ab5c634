#!/usr/bin/env python3
"""Graphs of the package `rhizome` that are opened with topology="lazy": look-ups agree with NumPy, and what needs all
lists is refused."""
import sys

from package import SEED, Example, folder, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_look_ups():
    example = Example(RNG, edges=100_000)
    with folder() as path:
        example.ingest(path / "g.rz", partitions=3)
        with rz.open(path / "g.rz", topology="lazy") as graph:
            assert graph.topology_on_disk
            vertices = RNG.integers(0, example.vertices, 50)
            assert np.array_equal(graph["feat"][vertices], example.arrays["feat"][vertices])
            for direction in ("out", "in"):
                near = graph.neighbors(vertices, direction=direction)
                for i, vertex in enumerate(vertices.tolist()):
                    of_list = slice(near.offsets[i], near.offsets[i + 1])
                    found = sorted(zip(near.ids[of_list].tolist(), near.weights[of_list].tolist()))
                    assert found == example.targets(vertex, direction), (vertex, direction)
                ends = example.edges[0 if direction == "out" else 1]
                degrees = np.bincount(ends, minlength=example.vertices)
                assert np.array_equal(graph.degrees(vertices, direction), degrees[vertices])
            ids = [vertex for block in graph.scan_vertices() for vertex in block.ids]
            assert ids == list(range(example.vertices))


def test_refusals():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        with rz.open(path / "g.rz", "w", topology="lazy") as graph:
            def put():
                with graph.batch() as batch:
                    batch.put_edges([0], [1])

            for call in (lambda: graph.sampler([2]), put, lambda: next(iter(graph.scan_edges()))):
                with raises(rz.InvalidArgument, "topology"):
                    call()


if __name__ == "__main__":
    run(sys.modules[__name__])
