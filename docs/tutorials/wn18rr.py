"""From triples to a ranked completion: trains ComplEx on WordNet within 64 MiB, ranks test edges, and finds new links.

    python docs/tutorials/wn18rr.py DATA [EPOCHS] [DIM]

DATA is a folder with edges.tsv.zst, edges.valid.tsv.zst, edges.test.tsv.zst and nodes.tsv.zst of wn18rr (tests find it in
RHIZOME_TEST_DATA). 20 epochs of 128 numbers take a minute or two on two cores, and reach MRR .439. Editors that support
`# %%` run it cell by cell. Each step is a command, too: see docs/LINKS.md.
"""
# %% [markdown]
# wn18rr has 93,003 triples (head, relation, tail) about 40,943 senses of words: "dog.n.01 _hypernym canine.n.02". A model
# that completes it answers questions such as: which senses are hypernyms of a sense, beside the known ones?
# %%
import pathlib
import sys
import tempfile

import rhizome as rz

data = pathlib.Path(sys.argv[1])
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
dim = int(sys.argv[3]) if len(sys.argv) > 3 else 128
scratch = tempfile.TemporaryDirectory()  # removed at the end
work = pathlib.Path(scratch.name)
store = work / "wn.rz"

# %% [markdown]
# ## Create a store
# The store has the training edges alone: the edges of the two other files must not be known to a model. Senses that only
# these files name are vertices as well, because the nodes file lists them. Ids have leading zeros, so that they are texts.
# Several partitions let a table be larger than memory: batches visit one partition after another.
#
# Without such files, `hold_out={"valid": .03, "test": .03}` would make them.
# %%
valid, test = data / "edges.valid.tsv.zst", data / "edges.test.tsv.zst"
report = rz.ingest(store, data / "edges.tsv.zst", columns=["src", "dst", "type"], nodes=data / "nodes.tsv.zst",
                   node_columns=["id", "label", "split", "name"], partitions=16)
print(f"{report.vertices:,} senses, {report.edges:,} triples in {report.partitions} partitions")

# %% [markdown]
# ## Train
# Each sense has a row of 64 complex numbers and the state of Adagrad: 42 MB in all. `memory` limits the whole process, so
# rows move between memory and the job's folder; `rows_read` counts them. The rows do not depend on the limit. Each triple
# is two questions, one for each end, with `negatives` wrong answers; half of these come from the current partition.
# `reciprocal` gives each relation a second row, for its inverse; `n3` penalises large rows.
# %%
training = rz.train(store, task="link", model="table", dim=dim, decoder="complex", reciprocal=True, negatives=512, n3=.06,
                    optimizer="adagrad", lr=.3, batch_size=512, epochs=epochs, memory="64M", out_array="ent",
                    out=work / "complex.safetensors")
for number, epoch in enumerate(training["epochs"], 1):
    print(f"epoch {number}: loss {epoch['loss']:.3f}, {epoch['rows_read']:,} rows read, {epoch['seconds']:.1f} s")
print(f"{training['cached_rows']:,} of {training['rows']:,} rows fitted in memory")

# %% [markdown]
# ## Rank
# The true ends of each test triple are ranked among all senses. Other true answers do not count: triples of the store and
# of both files are known. A rank is 1 + better + equal / 2. MRR is the mean of 1 / rank.
# %%
decoder = work / "complex.safetensors"
figures = rz.evaluate(store, array="ent", decoder=decoder, test=test, valid=valid, memory="256M")
print(f"MRR {figures['mrr']:.3f}, Hits@10 {figures['hits']['10']:.3f}; {figures['unseen_ends']} of {figures['edges']} test "
      f"triples have an end without a training triple; without them {figures['without_unseen']['mrr']:.3f}")
for relation, one in sorted(figures["by_relation"].items(), key=lambda item: -item[1]["ranks"])[:4]:
    print(f"  {relation}: MRR {one['mrr']:.3f} of {one['ranks']} ranks")

# %% [markdown]
# ## Complete
# `top_links` finds the best new ends of edges of one relation: `known="drop"` leaves out those that the graph has. They
# are suggestions for someone who edits the graph, best first.
# %%


def completed(names, relation, k=5):
    """Returns the names of the best new ends of edges of the relation, for each of the senses."""
    with rz.open(store) as g:
        vertex_of = dict(zip(g["name"].texts(g.vertices_of()), g.vertices_of()))
        found = g.top_links([vertex_of[name] for name in names], array="ent", decoder=decoder, type=relation, k=k, known="drop")
        return {name: g["name"].texts(g.find([link.id for link in links])) for name, links in zip(names, found)}


answers = completed(["dog.n.01", "whisper.v.01", "poodle.n.01"], "_hypernym")
for name, ends in answers.items():
    print(f"{name} _hypernym: {', '.join(ends)}")
