"""PyTorch Geometric on a Rhizome store: its FeatureStore and GraphStore, a sampler for its loaders, and a separate
loader.

    import rhizome as rz, rhizome.pyg as rzpyg

    g = rz.open("g.rz")
    fs, gs = rzpyg.backend(g, x="feat", y="label")
    loader = NeighborLoader((fs, gs), [10, 10], neighbor_sampler=rzpyg.NeighborSampler(gs, [10, 10]), input_nodes=ids)
    loader = rzpyg.Loader(g, [10, 10], x="feat", y="label", input_nodes="train", memory="1536M")   # prefetches

It requires torch and torch_geometric. The guide is docs/PYTHON.md.
"""

from ._edges import LinkNeighborLoader, NeighborLoader
from ._infer import infer
from ._loader import Loader
from ._sampler import NeighborSampler
from ._stores import FeatureStore, GraphStore, backend

__all__ = ["FeatureStore", "GraphStore", "LinkNeighborLoader", "Loader", "NeighborLoader", "NeighborSampler", "backend",
           "infer"]
