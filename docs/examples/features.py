"""A nightly feature pipeline: tables of events come in, embeddings and minibatches go out.

    python docs/examples/features.py [--seed N] [FOLDER]

Each night brings a table of profiles and a table of visits of customers to products. The job

1. writes both to the store, in durable batches of upserts,
2. trains a model, if there is none,
3. computes the embeddings that the new rows can have changed, as the next version of the array `emb`,
4. writes them to a Parquet file, for a downstream service, and
5. hands minibatches of one snapshot to a trainer, which learns the segments of customers (here, with NumPy).

A job that was killed is simply run again: upserts of the same rows do not add to the graph, embeddings are those of the
graph, and the Parquet file appears when it is complete.

It requires pandas, pyarrow and rhizome-store-gnn. Without FOLDER it works in a temporary folder.
"""
import argparse
import pathlib
import tempfile

import numpy as np
import pandas as pd

import rhizome as rz

SEGMENTS, COLUMNS, PRODUCTS = 4, 8, 400


def tables_of(night, rng):
    """Makes the tables of a night: profiles of new customers (and at first of products), and visits of all customers.

    Customers visit products of their segment more often than others. A profile says little about the segment.
    """
    known = 1000 + 50 * night
    new = np.arange(known - 50 if night else 0, known)
    customers = rng.permutation(np.r_[np.repeat(new, 4 if night else 12), rng.integers(0, known, 50)])
    profiles = pd.DataFrame({"id": [f"customer-{i}" for i in new], "segment": new % SEGMENTS,
                             "split": rng.choice([0, 2], len(new))})  # 0: training, 2: test
    if night == 0:
        products = pd.DataFrame({"id": [f"product-{i}" for i in range(PRODUCTS)], "segment": -1, "split": 255})
        profiles = pd.concat([profiles, products], ignore_index=True)
        new = np.r_[new, np.arange(PRODUCTS)]
    profiles[[f"x{i}" for i in range(COLUMNS)]] = rng.normal(size=(len(new), COLUMNS)) + .7 * np.eye(COLUMNS)[new % SEGMENTS]
    visits = len(customers)
    products = rng.integers(0, PRODUCTS // SEGMENTS, visits) * SEGMENTS
    products += np.where(rng.random(visits) < .6, customers % SEGMENTS, rng.integers(0, SEGMENTS, visits))
    times = pd.Timestamp("2026-11-01") + pd.to_timedelta(86_400 * night + np.sort(rng.integers(0, 86_400, visits)), "s")
    return profiles, pd.DataFrame({"source": [f"customer-{i}" for i in customers],
                                   "target": [f"product-{i}" for i in products], "time": times})


def write(store, profiles, visits, rows=2000):
    """Writes the tables of a night. A visit replaces the last one of that customer to that product."""
    with rz.create(store, ids="text", undirected=True, edge_attributes={"time": "timestamp"},
                   arrays={"feat": ("float32", COLUMNS), "label": "int64", "split": "uint8"}, exist_ok=True) as g:
        ids = profiles["id"].tolist()
        with g.batch() as batch:
            batch.put_rows("feat", ids, profiles.filter(regex="^x"))
            batch.put_rows("label", ids, profiles["segment"])
            batch.put_rows("split", ids, profiles["split"])
        for first in range(0, len(visits), rows):
            with g.batch() as batch:
                batch.upsert_edges(visits[first:first + rows])
        print(f"  {g.num_vertices} vertices, {g.num_edges // 2} pairs with visits")


def embed(store, model):
    """Brings the embeddings up to date, with a model that is trained at first."""
    if not model.exists():
        rz.train(store, layers=1, norm="batch", hidden=32, epochs=15, batch_size=100, out=model)
    done = rz.infer(store, model_file=model, out="emb", incremental=True, live=True, keep=2)
    print(f"  {done['array']}: {done['vertices'] - done['kept']} rows computed, {done['kept']} kept")
    return done["test_accuracy"]


def inputs(batch, edges):
    """Returns the inputs of the seeds of a minibatch: their own rows and, if `edges`, the means of sampled neighbours."""
    own = batch.x[:batch.batch_size]
    neighbor, seed = batch.edge_index
    mean = np.zeros_like(own)
    np.add.at(mean, seed, batch.x[neighbor])
    mean /= np.maximum(np.bincount(seed, minlength=len(own)), 1)[:, None]
    return np.c_[own, mean * edges, np.ones(len(own))]


def learn(state, edges, epochs=20, rate=.2):
    """Trains a softmax regression on minibatches; returns its accuracy on the test customers."""
    weights = np.zeros((2 * COLUMNS + 1, SEGMENTS))
    common = {"features": "feat", "labels": "label", "batch_size": 100}
    loader = rz.Loader(state, [10], split="train", epochs=epochs, **common)
    for _ in range(epochs):
        for batch in loader:
            rows = inputs(batch, edges)
            chances = np.exp(rows @ weights)
            chances /= chances.sum(axis=1, keepdims=True)
            weights -= rate / len(rows) * rows.T @ (chances - np.eye(SEGMENTS)[batch.y])
    right = [(inputs(batch, edges) @ weights).argmax(axis=1) == batch.y
             for batch in rz.Loader(state, [10], split="test", **common)]
    return np.concatenate(right).mean()


def run(folder, night, profiles, visits):
    """Runs the job of a night. Returns test accuracies: of profiles alone, of the trainer, and of the embeddings."""
    print(f"night {night}")
    write(folder / "shop.rz", profiles, visits)
    embedded = embed(folder / "shop.rz", folder / "shop.safetensors")
    with rz.open(folder / "shop.rz") as g, g.snapshot() as state:  # the same state for all, whatever is written later
        rows = state["emb"].to_parquet(folder / "embeddings.parquet")
        print(f"  {rows} rows in embeddings.parquet")
        return learn(state, edges=False), learn(state, edges=True), embedded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for night in [0, 1, 2, 2]:  # the last one twice, as after a failure
            found = run(folder, night, *tables_of(night, np.random.default_rng([options.seed, night])))
    for share, what in zip(found, ("profiles alone", "minibatches with neighbours", "embeddings")):
        print(f"accuracy by {what}: {share:.3f}")


if __name__ == "__main__":
    main()
