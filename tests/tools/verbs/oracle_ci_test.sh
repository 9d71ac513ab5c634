#!/usr/bin/env bash
# A random history of put, upsert, delete and compact through the command line, compared with a
# model in Python: export, get, neighbors, similar and score agree with the model before and after
# each compaction. (rows_test.sh covers rows in files.)
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
scores=$(has_gnn && echo yes)
[ -n "$scores" ] || echo "skipped: score, this build has no librhizome_gnn"
export scores
python3 - "${RHIZOME_TEST_SEED:-}" <<'PY' || fail "a history"
import json, os, random, struct, subprocess, sys
from collections import Counter

seed = int(sys.argv[1] or random.randrange(1 << 32))
print(f"RHIZOME_TEST_SEED={seed}")
rng = random.Random(seed)
rhizome, types = os.environ["RHIZOME"], ["likes", "cites"]
undirected = rng.random() < 0.5

def run(*args, stdin="", code=0):
    done = subprocess.run([rhizome, *args], input=stdin, capture_output=True, text=True)
    assert done.returncode == code, f"exit code {done.returncode}, not {code}: {args}: {done.stderr}"
    return json.loads(done.stdout) if "--json" in args and code == 0 else done.stdout

# --- The model: ids in the order in which the store came to know them, and edges as they were put
rows, edges, gone = {}, [], set()

def touch(v):
    rows.setdefault(v, [0.0, 0.0])
    gone.discard(v)

def same(edge, s, d, t):
    return edge[2] == t and (edge[:2] == (s, d) or undirected and edge[:2] == (d, s))

def put(s, d, t, w):
    touch(s)
    touch(d)
    edges.append((s, d, t, w))

def delete_edge(s, d, t):
    before = len(edges)
    edges[:] = [e for e in edges if not same(e, s, d, t)]
    return len(edges) < before

def delete_vertex(v):
    edges[:] = [e for e in edges if v not in e[:2]]
    gone.add(v)
    return rows.pop(v, None) is not None

def neighbors(v, direction):
    """Of a self-loop of an undirected graph one entry, of any other both."""
    out = [(d, t, w) for s, d, t, w in edges if s == v]
    into = [(s, t, w) for s, d, t, w in edges if d == v and not (undirected and s == d)]
    if undirected:
        return Counter(out + into)
    return Counter({"out": out, "in": into, "both": out + into}[direction])

def in_order(edge):
    return tuple(sorted(edge[:2])) + tuple(edge[2:]) if undirected else tuple(edge)

def cosine(a, b):
    norm = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b)) / norm if norm else None

def dot(s, d):
    return sum(x * y for x, y in zip(rows[s], rows[d]))

# --- The store
for i in range(14):
    rows[f"v{i}"] = [float(rng.randrange(-9, 10)) for _ in range(2)]
for i in range(40):
    put(f"v{rng.randrange(14)}", f"v{rng.randrange(14)}", rng.choice(types), float(rng.randrange(1, 9)))
with open("n.tsv", "w") as out:
    out.writelines(f"{v}\n" for v in rows)
with open("e.tsv", "w") as out:
    out.writelines(f"{s}\t{d}\t{t}\t{w}\n" for s, d, t, w in edges)
with open("f.txt", "w") as out:
    for i, row in enumerate(rows.values()):
        out.writelines(f"{i}\t{c}\t{x}\n" for c, x in enumerate(row))
run("ingest", "s.rz", "--edges", "e.tsv", "--columns", "src,dst,type,weight", "--nodes", "n.tsv",
    "--array", "feat=f.txt:2", "--layout", rng.choice(["row", "chunk"]), "--partitions", str(rng.randrange(1, 4)),
    "--topology-codec", rng.choice(["none", "elias-fano"]), *(["--undirected"] if undirected else []))

def anybody(step):
    if gone and rng.random() < 0.15:
        return rng.choice(sorted(gone))
    return f"n{step}" if rng.random() < 0.15 else rng.choice(list(rows))

def change(step):
    lines = []
    for _ in range(rng.randrange(3, 9)):
        s, d, t, w = anybody(step), anybody(step), rng.choice(types), float(rng.randrange(1, 9))
        kind = rng.random()
        if kind < 0.5:
            lines.append({"src": s, "dst": d, "type": t, "weight": w})
            put(s, d, t, w)
        elif kind < 0.65:
            lines.append({"op": "upsert", "src": s, "dst": d, "type": t, "weight": w})
            delete_edge(s, d, t)
            put(s, d, t, w)
        else:
            touch(s)
            rows[s] = [float(rng.randrange(-9, 10)) for _ in range(2)]
            lines.append({"id": s, "rows": {"feat": rows[s]}})
    run("put", "s.rz", "-", "--format", "json", stdin="".join(json.dumps(line) + "\n" for line in lines))
    doomed = {in_order(e)[:3] for e in rng.sample(edges, min(3, len(edges)))} | {("v0", "v1", "likes")}
    absent = sum(not delete_edge(*e) for e in sorted(doomed))
    said = run("delete", "s.rz", "-", "--columns", "src,dst,type", "--json",
               stdin="".join("\t".join(e) + "\n" for e in sorted(doomed)))
    assert (said["applied"], said["absent"]) == (len(doomed), absent), said  # all lines, and those of nothing
    if rng.random() < 0.7 and len(rows) > 6:
        doomed = rng.sample(list(rows), 2)
        for v in doomed:
            delete_vertex(v)
        said = run("delete", "s.rz", "-", "--vertices", "--json", stdin="\n".join(doomed) + "\n")
        assert (said["applied"], said["absent"]) == (2, 0), said

def lines_of(path):
    return [line.split("\t") for line in open(path).read().splitlines()]

def check(when):
    run("export", "s.rz", "--edges", "--no-header", "--out", "edges.tsv")
    said = Counter(in_order((s, d, t, float(w))) for s, d, t, w in lines_of("edges.tsv"))
    assert said == Counter(map(in_order, edges)), f"edges {when}: {said - Counter(map(in_order, edges))}"
    run("export", "s.rz", "--array", "feat", "--out", "feat.fbin")
    data = open("feat.fbin", "rb").read()
    assert struct.unpack("<2I", data[:8]) == (len(rows), 2), f"shape {when}"
    assert list(struct.unpack(f"<{2 * len(rows)}f", data[8:])) == sum(rows.values(), []), f"rows {when}"
    assert open("feat.ids.tsv").read().splitlines() == list(rows), f"ids {when}"
    for v in rng.sample(list(rows), 3):
        direction = rng.choice(["out", "in", "both"])
        near = run("neighbors", "s.rz", v, "--direction", direction, "--json")["neighbors"]
        said = Counter((n["id"], n["type"], n["weight"]) for n in near)
        assert said == neighbors(v, direction), f"neighbors {direction} of {v} {when}: {said}"
        t = rng.choice(types)
        near = run("neighbors", "s.rz", v, "--direction", direction, "--type", t, "--json")["neighbors"]
        wanted = Counter({n: k for n, k in neighbors(v, direction).items() if n[1] == t})
        assert Counter((n["id"], n["type"], n["weight"]) for n in near) == wanted, f"{t} of {v} {when}"
        assert run("get", "s.rz", v, "--array", "feat", "--json")["values"] == rows[v], f"get {v} {when}"
    if any(rows[v]):
        near = run("similar", "s.rz", v, "--array", "feat", "--k", "999", "--json")["similar"]
        wanted = {o: c for o in rows if o != v and (c := cosine(rows[v], rows[o])) is not None}
        assert {n["id"] for n in near} == set(wanted), f"whom similar names {when}"
        assert all(abs(n["score"] - wanted[n["id"]]) < 1e-5 for n in near), f"scores of similar {when}"
    for v in sorted(gone)[:1]:
        for verb in (["neighbors", "s.rz", v], ["get", "s.rz", v, "--array", "feat"],
                     ["similar", "s.rz", v, "--array", "feat"]):
            run(*verb, code=2)
    assert run("info", "s.rz", "--json")["vertices"] == len(rows), f"info {when}"
    if os.environ["scores"]:
        check_scores(when)

def check_scores(when):
    run("score", "s.rz", "--array", "feat", "--all-edges", "--out", "scores.tsv")
    said = Counter(in_order((f[0], f[1])) + (float(f[-1]),) for f in lines_of("scores.tsv"))
    wanted = Counter(in_order(e[:2]) + (dot(e[0], e[1]),) for e in edges)
    assert said == wanted, f"scores {when}: {said - wanted}"
    pairs = [(rng.choice(list(rows)), rng.choice(list(rows))) for _ in range(5)]
    said = run("score", "s.rz", "--array", "feat", "--pairs", "-", "--out", "-",
               stdin="".join(f"{s}\t{d}\n" for s, d in pairs))
    assert [float(line.split("\t")[-1]) for line in said.splitlines()] == [dot(*p) for p in pairs], f"pairs {when}"

check("at first")
for step in range(3):
    change(step)
    check(f"after step {step}")
    run("compact", "s.rz", *rng.choice([[], ["--repartition"]]))
    check(f"after compaction {step}")
run("verify", "s.rz")
PY
finish
