"""Rhizome for DGL's GraphBolt: features, a sampler and datasets on a store that may be larger than memory.

    import dgl.graphbolt as gb, rhizome.graphbolt as rzgb

    dataset = rzgb.Dataset("g.rz", features=["feat"], labels="label")
    datapipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=1000, shuffle=True)
    datapipe = datapipe.sample_rhizome(dataset.graph, [10, 10])
    datapipe = datapipe.fetch_feature(dataset.feature, node_feature_keys=["feat"])
    for minibatch in gb.DataLoader(datapipe): ...

The guide is docs/PYTHON.md. DGL 2.1 and later versions of GraphBolt are supported.
"""

from ._dataset import Dataset, Task, ingest_dataset
from ._features import EdgeFeature, Feature, feature_store
from ._sampler import NeighborSampler, SamplingGraph

__all__ = ["Dataset", "EdgeFeature", "Feature", "NeighborSampler", "SamplingGraph", "Task", "feature_store",
           "ingest_dataset"]
