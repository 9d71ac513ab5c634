"""Fraud among payments: a model that knows of each account only what was known when the account was reviewed.

    python docs/examples/fraud.py [--seed N]

Accounts have features, a time of review and, if that is over, a label; payments have a time and an amount. The data is
synthetic: fraudulent accounts, one in 20, receive large payments from accounts of a certain kind, and look almost like
others themselves. Once an account is found to be fraudulent, its money is moved to an account of the bank. A model that
sees these payments knows the answer, but learns nothing for accounts that are still to be reviewed.

So the edges of a minibatch are sampled with times: none is later than the review of the account that it is sampled for.
The weight of a payment is its amount. Labels are rare, so classes are balanced in the loss, and the measure is average
precision, which is the share of fraudulent accounts (0.05) for a random order. The baseline is the same model without
edges. Training, validation and test follow each other in time.

It requires pandas, pyarrow and rhizome-store-gnn.
"""
import argparse
import pathlib
import tempfile

import numpy as np
import pandas as pd

import rhizome as rz

ACCOUNTS, DAYS, COLUMNS = 4000, 200, 6
TEMPORAL = {"time_attribute": "time", "seed_times": "reviewed", "fanout": [20, 10]}


def times(days):
    return pd.Timestamp("2026-01-01") + pd.to_timedelta(np.round(days * 86_400), "s")


def make_tables(rng):
    """Returns the accounts with their features, and the payments."""
    fraud = rng.random(ACCOUNTS) < .05
    exposed = rng.random(ACCOUNTS) < .2  # accounts that are likely to pay to fraudulent ones
    feat = rng.normal(size=(ACCOUNTS, COLUMNS)).astype(np.float32)
    feat[:, 0] += .7 * fraud
    feat[:, 1] += 2 * exposed
    review = rng.uniform(20, 1.2 * DAYS, ACCOUNTS)
    sets = np.select([review < .6 * DAYS, review < .75 * DAYS, review < DAYS], [0, 1, 2], 255)
    names = np.array([f"account-{i}" for i in range(ACCOUNTS)])
    accounts = pd.DataFrame({"id": names, "label": np.where(sets == 255, -1, fraud), "split": sets.astype(np.uint8),
                             "reviewed": times(np.minimum(review, DAYS))})  # or today
    payer, payee = rng.integers(0, ACCOUNTS, (2, 40_000))
    amount, day = rng.lognormal(3, 1, len(payer)), rng.uniform(0, DAYS, len(payer))
    payer_of_fraud = rng.choice(np.flatnonzero(exposed), (fraud.sum(), 6))
    payee_of_fraud = np.repeat(np.flatnonzero(fraud), 6)
    seized = np.flatnonzero(fraud & (sets != 255))
    payments = pd.DataFrame({
        "payer": np.r_[names[payer], names[payer_of_fraud.ravel()], np.full(len(seized), "bank")],
        "payee": np.r_[names[payee], names[payee_of_fraud], names[seized]],
        "amount": np.r_[amount, rng.lognormal(5, 1, len(payee_of_fraud)), rng.lognormal(8, 1, len(seized))].round(2),
        "time": times(np.r_[day, rng.uniform(0, DAYS, len(payee_of_fraud)), review[seized] + 1])})
    return accounts, feat, payments[payments.time <= times(DAYS)]


def check_no_future(g, seeds):
    """Samples as the training does, and checks that no payment is later than the review that it is sampled for."""
    reviewed = g["reviewed"][seeds][:, 0]
    sub = g.sampler([20, 10], disjoint=True, times="time", edge_ids=True).sample(seeds, times=reviewed)
    paid = g.edge_rows("time", sub.edge_ids)[:, 0]
    late = paid > reviewed[sub.seed_of[sub.edge_index[1]]]
    print(f"a minibatch of {len(seeds)} accounts has {len(paid)} payments, {late.sum()} of them later than the review")


def train(store, **options):
    return rz.train(store, task="binary", class_weights="balanced", norm="batch", hidden=32, epochs=15, batch_size=200,
                    monitor="average_precision", **options)


def tested(store, **options):
    """Trains a model without times, and returns its average precision for the test accounts."""
    return train(store, **options)["metrics"]["test"]["average_precision"]


def average_precision(scores, labels):
    right = labels[np.argsort(-scores)]
    return (np.cumsum(right) / np.arange(1, len(right) + 1))[right == 1].mean()


def report(g, baseline, leak):
    """Prints the quality of the scores for the test accounts, and the accounts to be reviewed with the highest ones."""
    test = g.split("test")
    quality = average_precision(g["score"][test][:, 0], g["label"][test][:, 0])
    print(f"average precision: {quality:.3f} with earlier payments, {baseline:.3f} from features alone")
    print(f"(with later payments, which nobody has at the time of a review: {leak:.3f})")
    accounts = g.to_pandas().vertices
    waiting = accounts[(accounts.label < 0) & (accounts.id != "bank")]
    for account in waiting.nlargest(3, "score").itertuples():
        print(f"{account.id}, score {account.score:.2f}, has received")
        payments = g.neighbors_frame(account.id, direction="in").rename(columns={"id": "payer", "weight": "amount"})
        print(payments.nlargest(4, "amount").to_string(index=False, float_format="%.2f"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    accounts, feat, payments = make_tables(np.random.default_rng(parser.parse_args().seed))
    with tempfile.TemporaryDirectory() as scratch:
        store, model = pathlib.Path(scratch, "payments.rz"), pathlib.Path(scratch, "fraud.safetensors")
        rz.ingest(store, payments, columns={"src": "payer", "dst": "payee", "weight": "amount"}, nodes=accounts,
                  arrays={"feat": feat})
        with rz.open(store) as g:
            check_no_future(g, g.split("train")[:200])
        baseline, leak = tested(store, no_edges=True), tested(store)
        # The measurement at the end of a training uses all edges, so it is left out here.
        train(store, out=model, no_test=True, **TEMPORAL)
        rz.infer(store, model_file=model, out="score", scores=True, mode="samplewise", **TEMPORAL)
        with rz.open(store) as g:
            report(g, baseline, leak)


if __name__ == "__main__":
    main()
