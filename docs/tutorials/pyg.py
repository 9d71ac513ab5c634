"""From files to embeddings: creates a store of Debian's packages, and trains a PyG model out of core.

    python docs/tutorials/pyg.py DATA [PICTURES]

DATA is a folder with nodes.tsv.zst, edges.tsv.zst and features.npy.zst of 141,695 packages (tests find it in
RHIZOME_TEST_DATA). PICTURES is the folder for the two pictures. The script requires torch, torch_geometric, matplotlib
and networkx. Editors that support `# %%` run it cell by cell.
"""
# %% [markdown]
# A graph of Debian: binary packages, the sources they are built from, and the virtual packages that they provide.
# Labels are the sections of the archive ("python", "games", ...). Features are 128 numbers computed from a package's
# description.
# %%
import pathlib
import subprocess
import sys
import tempfile

import matplotlib
import networkx
import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GraphSAGE

import rhizome as rz
import rhizome.pyg as rzpyg

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "rhizome", "svg.fonttype": "none"})
from matplotlib import pyplot  # noqa: E402

data = pathlib.Path(sys.argv[1])
scratch = tempfile.TemporaryDirectory()  # removed at the end
work = pathlib.Path(scratch.name)
pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else work
store = work / "debian.rz"
torch.manual_seed(1)

# %% [markdown]
# ## Create a store
# Vertices are named by their type and name, as in "package:python3-numpy". `ingest` accepts edges as pairs of names,
# tables of pandas and pyarrow, arrays, or files. Each edge is stored in both directions, so that a package's neighbours
# include the packages that depend on it.
# %%


def lines(name):
    text = subprocess.run(["zstdcat", data / name], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


nodes = lines("nodes.tsv.zst")  # id, label, split, type, name
names = np.array([f"{kind}:{name}" for _, _, _, kind, name in nodes])
ends = np.array([line[:2] for line in lines("edges.tsv.zst")], dtype=np.int64)
subprocess.run(["zstd", "-dqf", data / "features.npy.zst", "-o", work / "features.npy"], check=True)
sets = {"train": 0, "valid": 1, "test": 2}
report = rz.ingest(
    store, (names[ends[:, 0]].tolist(), names[ends[:, 1]].tolist()), ids=names.tolist(), undirected=True,
    arrays={"feat": np.load(work / "features.npy").astype(np.float32),
            "label": np.array([int(label) if label.lstrip("-").isdigit() else -1 for _, label, *_ in nodes])},
    split=np.array([sets.get(split, 255) for _, _, split, *_ in nodes], np.uint8), memory="1G")
print(f"{report.vertices} vertices and {report.edges} edges in {report.seconds:.1f} s")

# %% [markdown]
# ## Look at the store
# %%
g = rz.open(store, memory="512M")
print(g.arrays["feat"])
print(g.neighbors_frame("package:python3-numpy").head())

# %% [markdown]
# ## Training
# The loader samples ahead. It reads the features of a superbatch with many direct reads at once, and keeps the rows
# that are needed soonest (Belady's rule), within `memory`. The loop is a usual PyG loop.
# %%
classes = int(max(rows.max() for _, rows in g["label"].batches())) + 1
model = GraphSAGE(128, 64, num_layers=2, out_channels=classes, dropout=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = rzpyg.Loader(g, [10, 10], x="feat", y="label", input_nodes="train", batch_size=1000, memory="256M")
losses = []
for epoch in range(4):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch.x, batch.edge_index)[:batch.batch_size], batch.y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    print(f"epoch {epoch + 1}: loss {np.mean(losses[-len(loader):]):.3f}")
figure, axes = pyplot.subplots(figsize=(6, 3))
axes.plot(losses)
axes.set(xlabel="minibatch", ylabel="loss", title="GraphSAGE on Debian's packages")
figure.savefig(pictures / "pyg_loss.svg", metadata={"Date": None}, bbox_inches="tight")

# %% [markdown]
# ## Scores of every vertex
# `infer` computes one layer after another for all vertices, from all their neighbours, and stores the result as an
# array.
# %%
rzpyg.infer(model, g, features="feat", out="score", memory="256M", live=True)
for name in ("train", "valid", "test"):
    ids = g.split(name)
    right = (g["score@live"][ids].argmax(1) == g["label"][ids][:, 0]).mean()
    print(f"{name}: {100 * right:.1f} % of {len(ids)} packages are classified correctly")
test_accuracy = right

# %% [markdown]
# ## Similar packages
# %%
for near in g.similar("package:python3-numpy", array="score", k=5):
    print(f"{near.score:.3f} {near.id}")
ego = g.to_networkx(g.sampler([6, 3]).sample(g.find(["package:python3-numpy"])))
figure, axes = pyplot.subplots(figsize=(7, 5))
networkx.draw_networkx(networkx.Graph(ego), networkx.spring_layout(networkx.Graph(ego), seed=1), ax=axes, node_size=30,
                       font_size=7, verticalalignment="bottom", labels={name: name.split(":", 1)[1] for name in ego})
axes.set_axis_off()
figure.savefig(pictures / "pyg_neighbourhood.svg", metadata={"Date": None}, bbox_inches="tight")

# %% [markdown]
# ## A live update
# A new package is added in one durable commit. Others that have the store open see it after a refresh. Its scores are
# computed from its current neighbours. A later compaction merges the writes, while readers continue.
# %%
with rz.open(store, mode="w") as writer, writer.batch() as batch:
    for name in ("package:python3-numpy", "package:python3-scipy"):
        batch.put_edges(["package:python3-mine", name], [name, "package:python3-mine"])
    batch.put_row("feat", "package:python3-mine", g["feat"]["package:python3-scipy"])
g.refresh()
sub = g.sampler([-1, -1]).sample(g.find(["package:python3-mine"]))
with torch.no_grad():
    model.eval()
    score = model(torch.from_numpy(g["feat"][sub.vertices]), torch.from_numpy(sub.edge_index))[0]
new_section = int(score.argmax())
like = int(g["label"]["package:python3-numpy"][0])
print(f"python3-mine is in section {new_section}; python3-numpy is in {like}")
with rz.open(store, mode="w") as writer:
    print(writer.compact())
g.close()
assert rz.verify(store).ok
