"""A recommender: from a file of ratings to movies that a user may like, with an honest evaluation.

    python docs/examples/recommender.py [--seed N] [--user ID] [RATINGS.csv]

RATINGS.csv has the columns userId, movieId, rating (0.5 to 5) and timestamp, as those of MovieLens; without it, the
example makes a small one. The last fifth of the ratings by time is for the evaluation: `hold_out` keeps it out of the
store. Four ways to recommend are compared, none of which suggests a movie that the user has rated:

- popularity: the movies with the most high ratings, the baseline;
- walks: common neighbours, sampled: movies of users who rated the same movies. A walk counts as the product of its ratings,
  from which 3 is subtracted. Nothing is trained, so a rating counts as soon as it is written;
- factors: a truncated SVD of the matrix of ratings, whose rows are stored as arrays and compared by `similar`;
- links: a table with a row for each user and movie, trained to tell the movies that a user likes, or just rates, from others.
  It may be larger than memory. `top_links` finds the movies that a user most likely likes.

The hit rate is the share of users for whom one of ten suggestions is a movie that they rated 4 or more later. It requires
SciPy and rhizome-store-gnn.
"""
import argparse
import collections
import csv
import functools
import pathlib
import subprocess
import tempfile

import numpy as np
from scipy.sparse.linalg import svds

import rhizome as rz

LIKED, NEUTRAL, SUGGESTED = 4, 3, 10


def make_ratings(path, rng, users=500, movies=600, genres=10, each=40):
    """Writes ratings by users who mostly watch, and like, movies of one or two genres; some movies are more popular."""
    genre = rng.integers(0, genres, movies)
    fame = 1 / np.arange(1, movies + 1) ** .6
    lines = []
    for user in range(users):
        liked = np.isin(genre, rng.choice(genres, 2))
        chance = fame * np.where(liked, 8, 1)
        for movie in rng.choice(movies, each, replace=False, p=chance / chance.sum()):
            rating = np.clip(rng.normal(4.2 if liked[movie] else 2.8, .7), .5, 5)
            lines.append((user, movie, round(2 * rating) / 2, 1_700_000_000 + rng.integers(0, 10**7)))
    write_ratings(path, lines)


def write_ratings(path, lines):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("userId", "movieId", "rating", "timestamp"), *lines])


def add_types(ratings, path):
    """Writes the ratings with a column for the type of the edge: `likes` for high ratings, otherwise `rates`."""
    with open(ratings, newline="") as file, open(path, "w", newline="") as typed:
        rows = csv.DictReader(file)
        writer = csv.DictWriter(typed, [*rows.fieldnames, "relation"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "relation": "likes" if float(row["rating"]) >= LIKED else "rates"} for row in rows)


def read_held_out(path):
    """Returns the edges of a file that `hold_out` wrote, as dicts."""
    with subprocess.Popen(["zstdcat", path], stdout=subprocess.PIPE, text=True) as lines:
        return list(csv.DictReader(lines.stdout, delimiter="\t"))


def by_popularity(g, users):
    """Returns the movies with the most high ratings, the best first: the same for all users."""
    movies = g.vertices_of("movie")
    votes = (g.to_scipy()[movies] >= LIKED).sum(axis=1)
    return [movies[np.argsort(-votes, kind="stable")].tolist()] * len(users)


def by_walks(g, users, fanouts=(-1, 20, 20)):
    """Returns for each user the movies at the end of walks user - movie - user - movie, the best first."""
    sub = g.sampler(list(fanouts), disjoint=True).sample(users)
    value = np.zeros(len(sub.vertices))  # of all walks to a vertex
    value[sub.seeds] = 1
    ends = np.cumsum(sub.edge_hops)
    for hop in map(slice, ends - sub.edge_hops, ends):
        neighbor, vertex = sub.edge_index[:, hop]
        np.add.at(value, neighbor, value[vertex] * (sub.weights[hop] - NEUTRAL))
    found = np.arange(sub.hops[:3].sum(), len(value))  # the first hop has all movies that the user rated
    order = found[np.lexsort((-value[found], sub.seed_of[found]))]
    parts = np.cumsum(np.bincount(sub.seed_of[found], minlength=len(users)))
    return [part.tolist() for part in np.split(sub.vertices[order], parts[:-1])]


def by_factors(g, users, most=100):
    """Returns for each user the movies with the nearest rows."""
    return [[g.find(one.id) for one in near] for near in g.similar(g["user"][users], array="movie", k=most)]


def add_factors(store, dim=16):
    """Adds the arrays `user` and `movie`: a row for each user, or movie, and zeros for others, which `similar` omits."""
    with rz.open(store) as g:
        users, movies = g.vertices_of("user"), g.vertices_of("movie")
        matrix = g.to_scipy()[users][:, movies].astype(float)
        scale = [1 / np.sqrt(g.degrees(ids))[:, None] for ids in (users, movies)]  # popular movies weigh less
        left, values, right = svds(matrix.multiply(scale[0]).multiply(scale[1].T), k=dim, random_state=1)
        rows = {"user": (users, left * values), "movie": (movies, right.T)}
        for name, (ids, factors) in rows.items():
            rz.add_array(store, name, factors.astype(np.float32), ids=g.external_ids(ids))


def by_links(g, users, links):
    """Returns for each user the new movies that the user most likely likes, the best first."""
    with rz.open(links.with_suffix(".rz")) as learned:
        found = learned.top_links(g.external_ids(users), array="ent", decoder=links.with_suffix(".safetensors"), k=60,
                                  known="drop", type="likes")
        return [[g.find(link.id) for link in best] for best in found]


def suggestions(g, way, users, block=500):
    """Returns the first suggestions for each user, without the movies that the user has rated."""
    result = []
    for first in range(0, len(users), block):
        part = users[first:first + block]
        rated = g.neighbors(part)
        for i, movies in enumerate(way(g, part)):
            known = set(rated.ids[rated.offsets[i]:rated.offsets[i + 1]].tolist())
            result.append([movie for movie in movies if movie not in known][:SUGGESTED])
    return result


def hit_rate(found, later):
    return np.mean([bool(set(movies) & liked) for movies, liked in zip(found, later)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ratings", nargs="?", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--user")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        if options.ratings is None:
            options.ratings = folder / "made.csv"
            make_ratings(options.ratings, np.random.default_rng(options.seed))
        add_types(options.ratings, folder / "ratings.csv")
        print(rz.sniff(folder / "ratings.csv"))
        past = {"columns": ["src", "dst", "weight", "time", "type"], "end_types": ["user", "movie"], "hold_out": {"test": .2},
                "hold_out_by": "time"}
        held = rz.ingest(folder / "movies.rz", folder / "ratings.csv", undirected=True, **past).held_out
        add_factors(folder / "movies.rz")
        # Links go from users to movies, so that their suggestions are movies. The same ratings are held out.
        rz.ingest(folder / "links.rz", folder / "ratings.csv", **past)
        rz.train(folder / "links.rz", task="link", model="table", decoder="distmult", dim=16, negatives=512, n3=.03, lr=.03,
                 optimizer="adagrad", batch_size=256, epochs=10, seed=options.seed, out_array="ent",
                 out=folder / "links.safetensors")
        with rz.open(folder / "movies.rz") as g:
            report(g, read_held_out(held["test"]["path"]), folder / "links", options.user)


def report(g, later, links, user):
    """Prints the hit rates for all users who liked a movie of the store later, and the suggestions for one of them."""
    liked = collections.defaultdict(set)
    for edge in later:
        if edge["type"] == "likes":
            liked[edge["src"]].add(g.find(edge["dst"]))
    users = g.find(list(liked))
    print(f"{len(users)} users liked movies later")
    one = f"user:{user}" if user else next(iter(liked))
    ways = {"popularity": by_popularity, "walks": by_walks, "factors": by_factors,
            "links": functools.partial(by_links, links=links)}
    for name, way in ways.items():
        rate = hit_rate(suggestions(g, way, users), liked.values())
        best = suggestions(g, way, g.at([one]))[0]
        print(f"hit rate of {name}: {rate:.3f}; for {one}: {', '.join(g.external_ids(best))}")


if __name__ == "__main__":
    main()
