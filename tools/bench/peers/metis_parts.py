"""Computes an edge cut with METIS, for comparing the balance of sampling.

    metis_parts.py EDGES.npy VERTICES PARTS OUT.npy [edges|rows]

Run by sampling.py in its own virtual environment. Reads edges (int64 [m, 2]) and writes the part of each vertex
(int32 [vertices]). The weight of a vertex is 1 plus its degree, as in DistDGL, which balances its servers by edges;
with "rows" it is 1, for `rhizome partition --rows --beside`.
"""

import sys

import numpy
import pymetis


def main():
    edges_path, vertices, parts, out, balanced = (sys.argv[1:] + ["edges"])[:5]
    vertices, parts = int(vertices), int(parts)
    edges = numpy.load(edges_path)
    edges = edges[edges[:, 0] != edges[:, 1]]
    low, high = edges.min(axis=1), edges.max(axis=1)
    pairs = numpy.unique(low * vertices + high)
    low, high = pairs // vertices, pairs % vertices
    source = numpy.concatenate([low, high])
    target = numpy.concatenate([high, low])
    order = numpy.argsort(source, kind="stable")
    degrees = numpy.bincount(source, minlength=vertices)
    offsets = numpy.concatenate([[0], numpy.cumsum(degrees)])
    adjacency = pymetis.CSRAdjacency(adj_starts=offsets, adjacent=target[order])
    weights = 1 + degrees if balanced == "edges" else numpy.ones_like(degrees)
    _, membership = pymetis.part_graph(parts, adjacency=adjacency, vweights=weights)
    numpy.save(out, numpy.asarray(membership, dtype=numpy.int32))


if __name__ == "__main__":
    main()
