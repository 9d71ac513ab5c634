"""GraphBolt on a Rhizome store: trains DGL's layers on Debian's packages, with GraphBolt's pipeline.

    python docs/tutorials/graphbolt.py DATA

DATA is a folder with nodes.tsv.zst, edges.tsv.zst and features.npy.zst of 141,695 packages, as for pyg.py. The script
requires torch and dgl. Editors that support `# %%` run it cell by cell.
"""
# %%
import pathlib
import subprocess
import sys
import tempfile

import dgl.graphbolt as gb
import numpy as np
import torch
import torch.nn.functional as F
from dgl.nn import SAGEConv

import rhizome as rz
import rhizome.graphbolt as rzgb

data = pathlib.Path(sys.argv[1])
scratch = tempfile.TemporaryDirectory()  # removed at the end
work = pathlib.Path(scratch.name)
torch.manual_seed(1)

# %% [markdown]
# ## Create a store from files
# `ingest` reads compressed text directly. Columns of the files are named; "-" skips one.
# %%
subprocess.run(["zstd", "-dqf", data / "features.npy.zst", "-o", work / "features.npy"], check=True)
report = rz.ingest(work / "debian.rz", data / "edges.tsv.zst", columns=["src", "dst", "-", "-"], undirected=True,
                   nodes=data / "nodes.tsv.zst", node_columns=["id", "label", "split", "-", "-"],
                   arrays={"feat": work / "features.npy"}, memory="1G")
print(f"{report.vertices} vertices and {report.edges} edges in {report.seconds:.1f} s")

# %% [markdown]
# ## The pipeline
# `Dataset` contains the tasks, the graph and the features of the store; `sample_rhizome` replaces `sample_neighbor`.
# Edges and rows are read from the store on demand.
# %%
dataset = rzgb.Dataset(work / "debian.rz", features=["feat"], memory="512M")
task = dataset.tasks[0]
print(task.metadata, dataset.graph)


def minibatches(items, shuffle):
    pipe = gb.ItemSampler(items, batch_size=1000, shuffle=shuffle)
    pipe = pipe.sample_rhizome(dataset.graph, [10, 10])
    return gb.DataLoader(pipe.fetch_feature(dataset.feature, node_feature_keys=["feat"]))


# %% [markdown]
# ## Training
# %%
layers = torch.nn.ModuleList([SAGEConv(128, 64, "mean"), SAGEConv(64, task.metadata["num_classes"], "mean")])
optimizer = torch.optim.Adam(layers.parameters(), lr=0.01)


def scores(minibatch):
    rows = minibatch.node_features["feat"].float()
    for number, (layer, block) in enumerate(zip(layers, minibatch.blocks)):
        rows = layer(block, rows if number == 0 else F.relu(rows))
    return rows


for epoch in range(3):
    losses = []
    for minibatch in minibatches(task.train_set, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(scores(minibatch), minibatch.labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}")
with torch.no_grad():
    found = [(scores(minibatch).argmax(1) == minibatch.labels) for minibatch in minibatches(task.test_set, shuffle=False)]
test_accuracy = float(torch.cat(found).float().mean())
print(f"test: {100 * test_accuracy:.1f} % of {len(torch.cat(found))} packages are classified correctly")
