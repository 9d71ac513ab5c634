#!/usr/bin/env bash
# Look-ups on the command line: get, neighbors, and the map of repeated seeds of sample, compared
# with a model in Python, on random stores of several kinds, before and after updates.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

python3 - "${RHIZOME_TEST_SEED:-}" <<'PY' || fail "look-ups and the model"
import json, math, os, random, struct, subprocess, sys, zipfile

seed = int(sys.argv[1] or random.randrange(1 << 32))
print(f"RHIZOME_TEST_SEED={seed}")
rng = random.Random(seed)
rhizome = os.environ["RHIZOME"]

def run(*args, stdin="", fails=False):
    done = subprocess.run([rhizome, *map(str, args)], input=stdin, capture_output=True, text=True)
    assert (done.returncode in (1, 2)) if fails else (done.returncode == 0), (done.returncode, args, done.stderr)
    return done.stderr if fails else done.stdout

def ask(*args):
    return json.loads(run(*args, "--json"))

def npy(path, shape, values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)).ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%df" % len(values), *values))

def numbers(archive, name):
    data = archive.read(name + ".npy")
    size = struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack("<%dq" % ((len(data) - 10 - size) // 8), data[10 + size:]))

class Model:
    def __init__(self, text, undirected, partitions, count):
        self.undirected = undirected
        self.ids = [f"v{i}" if text else i for i in range(count)]
        self.labels = [rng.randrange(4) for _ in self.ids]
        self.splits = [rng.choice(["train", "valid", "test"]) for _ in self.ids]
        self.rows = [[rng.choice([1.5, -2, 0, math.inf, -math.inf, math.nan]) for _ in range(10)] for _ in self.ids]
        self.edges = []
        for _ in range(count * 4):
            src, dst = rng.choice(self.ids[:max(3, count // 2)]), rng.choice(self.ids)
            self.edges.append((src, dst, rng.choice(["likes", "knows"]), rng.randrange(8) / 4, rng.randrange(-5, 100)))
        with open("e.tsv", "w") as f:
            f.writelines("\t".join(map(str, edge)) + "\n" for edge in self.edges)
        with open("n.tsv", "w") as f:
            f.writelines(f"{i}\t{l}\t{s}\n" for i, l, s in zip(self.ids, self.labels, self.splits))
        npy("x.npy", (count, 10), [v for row in self.rows for v in row])
        run("ingest", "g.rz", "--edges", "e.tsv", "--columns", "src,dst,type,weight,time", "--nodes", "n.tsv",
            "--node-columns", "id,label,split", "--array", "x=x.npy", "--partitions", partitions,
            *(["--undirected"] if undirected else []))

    def lists(self, vertex, direction):
        """The entries of the lists: direction, type, neighbour, weight, time."""
        found = []
        for src, dst, kind, weight, time in self.edges:
            if self.undirected:
                ends = [(src, dst)] + ([(dst, src)] if src != dst else [])
                found += [("both", kind, b, weight, time) for a, b in ends if a == vertex]
            else:
                if src == vertex and direction != "in":
                    found.append(("out", kind, dst, weight, time))
                if dst == vertex and direction != "out":
                    found.append(("in", kind, src, weight, time))
        return found

def shown(neighbor):
    return (neighbor["direction"], neighbor["type"], neighbor["id"], neighbor["weight"], neighbor["attributes"]["time"])

def value(number):
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return "NaN" if math.isnan(number) else names.get(number, number)

def check_neighbors(model, vertex):
    direction = rng.choice(["out", "in", "both"])
    expected = model.lists(vertex, direction)
    args = ["neighbors", "g.rz", vertex, "--direction", direction]
    answer = ask(*args)
    assert answer["total"] == len(expected)
    assert sorted(map(shown, answer["neighbors"])) == sorted(expected), (vertex, direction)
    limit = rng.randrange(6)
    some = ask(*args, "--limit", limit)
    assert some["total"] == len(expected) and some["neighbors"] == answer["neighbors"][:limit]
    for column, place in (("weight", 3), ("time", 4)):
        keys = sorted((edge[place] for edge in expected), reverse=True)
        for options, count in ([], len(expected)), (["--limit", limit], limit):
            ordered = [shown(n) for n in ask(*args, "--sort", column, *options)["neighbors"]]
            assert [edge[place] for edge in ordered] == keys[:count], (vertex, direction, column)
            assert all(edge in expected for edge in ordered)
    typed = ask(*args, "--type", "likes")
    assert sorted(map(shown, typed["neighbors"])) == sorted(e for e in expected if e[1] == "likes")
    text = run(*args, "--limit", 1)
    assert text.startswith(f"{vertex}: {len(expected)} neighbour"), text

def check_card(model, vertex):
    at = model.ids.index(vertex)
    card = ask("get", "g.rz", vertex)
    assert (card["id"], card["label"], card["split"]) == (vertex, model.labels[at], model.splits[at]), card
    counts = {}
    for direction, kind, *_ in model.lists(vertex, "both"):
        counts[direction, kind] = counts.get((direction, kind), 0) + 1
    assert {(d["direction"], d["type"]): d["count"] for d in card["degrees"]} == counts, card
    array, = card["arrays"]
    assert (array["name"], array["dtype"], array["dim"]) == ("x", "float32", 10)
    assert array["values"] == [value(v) for v in model.rows[at][:8]], card
    row = ask("get", "g.rz", vertex, "--array", "x")
    assert row["id"] == vertex and row["values"] == [value(v) for v in model.rows[at]]
    text = run("get", "g.rz", vertex)
    assert text.startswith(f"{vertex}  (") and model.splits[at] in text
    assert ("Infinity" in text) == any(math.isinf(v) for v in model.rows[at][:8])

for kind in range(4):
    subprocess.run(["rm", "-rf", "g.rz"], check=True)
    text, undirected = kind % 2 == 1, kind >= 2
    model = Model(text, undirected, rng.choice([1, 3]), rng.randrange(4, 40))
    for update in range(2):
        for vertex in rng.sample(model.ids, 3):
            check_neighbors(model, vertex)
            check_card(model, vertex)
        several = ask("get", "g.rz", *model.ids[:3])["vertices"]
        assert several == [ask("get", "g.rz", i) for i in model.ids[:3]]
        # Put an edge, and delete one with all that are parallel to it.
        src, dst, kind_of = model.edges[0][:3]
        def same(edge):
            ends = edge[:2]
            return edge[2] == kind_of and (ends == (src, dst) or (undirected and ends == (dst, src)))
        model.edges = [edge for edge in model.edges if not same(edge)]
        model.edges.append((model.ids[1], model.ids[2], "likes", 0.75, 1000 + update))
        run("delete", "g.rz", "-", "--format", "json",
            stdin=json.dumps({"src": src, "dst": dst, "type": kind_of}) + "\n")
        run("put", "g.rz", "-", "--format", "json",
            stdin=json.dumps({"src": model.ids[1], "dst": model.ids[2], "type": "likes", "weight": 0.75,
                              "time": 1000 + update}) + "\n")
    # --- What does not exist
    assert "no such" in run("get", "g.rz", model.ids[0], "no such", fails=True)
    assert "time" in run("neighbors", "g.rz", model.ids[0], "--sort", "color", fails=True)
    assert "knows" in run("neighbors", "g.rz", model.ids[0], "--type", "hates", fails=True)
    # --- Repeated seeds have one position, which `seeds` names.
    seeds = [rng.choice(model.ids[:4]) for _ in range(9)]
    run("sample", "g.rz", "--seeds", "-", "--fanout", 2, "--out", "s.npz", "--batch-size", 9,
        stdin="".join(f"{s}\n" for s in seeds))
    archive = zipfile.ZipFile("s.npz")
    vertices, places = numbers(archive, "b0_vertex_ids"), numbers(archive, "b0_seeds")
    assert len(places) == 9 and len(set(vertices)) == len(vertices)
    of_seed = {}
    for s, place in zip(seeds, places):
        assert of_seed.setdefault(s, vertices[place]) == vertices[place]
    assert len(set(of_seed.values())) == len(of_seed) and max(places) < len(of_seed)
PY

# A store with one edge and a seed without any: the members of the archive are sound.
printf '1\t0\n' >e.tsv
rhizome ingest one.rz --edges e.tsv >/dev/null || fail "ingest"
echo 1 | rhizome sample one.rz --seeds - --fanout 5 --out one.npz >/dev/null || fail "sample"
python3 -c 'import zipfile, sys; sys.exit(zipfile.ZipFile("one.npz").testzip())' || fail "a checksum of one.npz"
expect_exit 0 rhizome get one.rz 1
grep -q "out-edges" out || fail "the card of vertex 1: $(cat out)"

finish
