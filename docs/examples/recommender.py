"""A recommender: from a file of ratings to movies that a user may like, with an honest evaluation.

    python docs/examples/recommender.py [--seed N] [--user ID] [RATINGS.csv]

RATINGS.csv has the columns userId, movieId, rating (0.5 to 5) and timestamp, as those of MovieLens; without it, the
example makes a small one. The last fifth of the ratings by time is for the evaluation, and is not in the store. Three
ways to recommend are compared, none of which suggests a movie that the user has rated:

- popularity: the movies with the most high ratings, the baseline;
- walks: common neighbours, sampled: movies of users who rated the same movies. A walk counts as the product of its ratings,
  from which 3 is subtracted. Nothing is trained, so a rating counts as soon as it is written;
- factors: a truncated SVD of the matrix of ratings, whose rows are stored as arrays and compared by `similar`.

The hit rate is the share of users for whom one of ten suggestions is a movie that they rated 4 or more later. It requires
SciPy.
"""
import argparse
import collections
import csv
import pathlib
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


def read_ratings(path):
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        return [(row["userId"], row["movieId"], float(row["rating"]), int(row["timestamp"])) for row in rows]


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


def suggestions(g, way, users, block=50):
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
            options.ratings = folder / "ratings.csv"
            make_ratings(options.ratings, np.random.default_rng(options.seed))
        lines = sorted(read_ratings(options.ratings), key=lambda line: line[3])
        cut = len(lines) * 4 // 5
        write_ratings(folder / "past.csv", lines[:cut])
        print(rz.sniff(folder / "past.csv"))
        rz.ingest(folder / "movies.rz", folder / "past.csv", columns=["src", "dst", "weight", "time"],
                  end_types=["user", "movie"], undirected=True)
        add_factors(folder / "movies.rz")
        with rz.open(folder / "movies.rz") as g:
            report(g, lines[cut:], options.user)


def report(g, later, user):
    """Prints the hit rates for all users who liked a movie of the store later, and the suggestions for one of them."""
    liked = collections.defaultdict(set)
    for reader, movie, rating, _ in later:
        if rating >= LIKED and f"user:{reader}" in g and f"movie:{movie}" in g:
            liked[f"user:{reader}"].add(g.find(f"movie:{movie}"))
    users = g.find(list(liked))
    print(f"{len(users)} users liked movies later")
    one = f"user:{user}" if user else next(iter(liked))
    for name, way in (("popularity", by_popularity), ("walks", by_walks), ("factors", by_factors)):
        rate = hit_rate(suggestions(g, way, users), liked.values())
        best = suggestions(g, way, g.at([one]))[0]
        print(f"hit rate of {name}: {rate:.3f}; for {one}: {', '.join(g.external_ids(best))}")


if __name__ == "__main__":
    main()
