#!/usr/bin/env bash
# Edge attributes on the command line: rows beside .npy edges, several values for each edge,
# updates, compaction.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

python3 - <<'PY'
import struct
def npy(path, kind, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % ({"q": "<i8", "f": "<f4", "d": "<f8"}[kind], shape)
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), kind), *values))
edges = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 1)]
npy("a.npy", "q", (4, 2), [v for e in edges[:4] for v in e])
npy("b.npy", "q", (1, 2), [v for e in edges[4:] for v in e])
npy("feat.npy", "d", (5, 3), [s * 10 + d + c / 4 for s, d in edges for c in range(3)])
npy("time.npy", "q", (5,), [100 + i for i in range(5)])
npy("weight.npy", "f", (5, 1), [1.5 + i for i in range(5)])
npy("short.npy", "f", (4,), [0] * 4)
npy("long.npy", "f", (6,), [0] * 6)
PY
input=(--edges a.npy b.npy --vertices 4 --partitions 2)
expect_exit 0 rhizome ingest g.rz "${input[@]}" --edge-array feat=feat.npy --edge-array time=time.npy \
  --edge-array weight=weight.npy
expect_exit 0 rhizome verify g.rz
expect_exit 0 rhizome neighbors g.rz 0 --direction out --json
expect_json out 'sorted((n["id"], n["weight"]) for n in j["neighbors"]) == [(1, 1.5), (3, 4.5)]'
expect_exit 0 rhizome plan ingest "${input[@]}" --edge-array feat=feat.npy

# --- What does not fit
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array feat=short.npy
expect_says "short.npy" "4 rows, but there are more edges"
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array feat=long.npy
expect_says "long.npy" "6 rows, but there are 5 edges"
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array src=feat.npy
expect_says "'src'" "in use"
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array time=feat.npy
expect_says "'time'" "one int64 per edge"
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array feat=feat.npy --edge-array feat=time.npy
expect_says "'feat'" "repeated"
expect_exit 1 rhizome ingest x.rz "${input[@]}" --edge-array feat=feat.npy --max-bad-lines 1
expect_says "bad lines"
expect_exit 2 rhizome ingest x.rz "${input[@]}" --edge-array feat=absent.npy
[ -e x.rz ] && fail "a refused ingestion left something"

# --- Updates: lists in JSON lines, as `changes` writes them
printf '%s\n' '{"src": 3, "dst": 0, "feat": [0.5, -1, 2], "time": 7, "weight": 2}' '{"src": 2, "dst": 3}' >u.jsonl
expect_exit 0 rhizome put g.rz u.jsonl
expect_exit 0 rhizome changes g.rz --out c.jsonl
python3 - <<'PY' || fail "changes: $(cat c.jsonl)"
import json
lines = {(j["src"], j["dst"]): j for j in map(json.loads, open("c.jsonl"))}
assert lines[3, 0]["feat"] == [0.5, -1, 2] and lines[3, 0]["time"] == 7 and lines[3, 0]["weight"] == 2
assert lines[2, 3]["feat"] == [0, 0, 0] and lines[2, 3]["time"] == 0
PY
printf '%s\n' '{"src": 3, "dst": 0, "feat": [0.5, -1]}' >u.jsonl
expect_exit 1 rhizome put g.rz u.jsonl
expect_says "u.jsonl:1" "'feat'" "3 numbers"
printf '%s\n' '{"src": 3, "dst": 0, "time": [1, "x"]}' >u.jsonl
expect_exit 1 rhizome put g.rz u.jsonl
expect_says "'time'"
printf '1\t3\t0.5\n' >u.tsv
expect_exit 1 rhizome put g.rz u.tsv --columns src,dst,feat
expect_says "'feat'" "JSON lines"

# --- Lost chunks while commits have values: repair keeps the attributes, with nulls
# keeps_commits STORE: the commits have the values that were put.
keeps_commits() {
  expect_exit 0 rhizome verify "$1"
  expect_exit 0 rhizome changes "$1" --out - && cmp -s out c.jsonl || fail "repair changed commits: $(cat out)"
  expect_exit 0 rhizome export "$1" --edges --out edges.csv
  python3 - <<'PY' || fail "edges of $1: $(cat edges.csv)"
import csv
times = {(int(row["src"]), int(row["dst"])): int(row["time"]) for row in csv.DictReader(open("edges.csv"))}
right = dict(zip([(0, 1), (1, 2), (2, 0), (0, 3), (3, 1)], range(100, 105)))
assert times.pop((3, 0)) == 7 and times.pop((2, 3)) == 0 and set(times) == set(right)
lost = {edge for edge in right if times[edge] == 0}
assert 0 < len(lost) < 5 and all(times[edge] == right[edge] for edge in set(right) - lost), lost
PY
}
for fill in "" --fill-holes; do
  rm -rf lost.rz && cp -r g.rz lost.rz
  rm lost.rz/generations/000001/arrays/time.p0000/c.0.0 lost.rz/generations/000001/arrays/feat.p0001/c.0.0
  expect_exit 3 rhizome repair lost.rz --dry-run
  # shellcheck disable=SC2086
  expect_exit 0 rhizome repair lost.rz $fill --json
  expect_json out "sorted(n['what'] for n in j['lost']) == ['array \'feat.p0001\'', 'array \'time.p0000\'']" \
    'all("no value" in n["how"] for n in j["lost"])'
  keeps_commits lost.rz
  expect_exit 0 rhizome export lost.rz --array feat.p0001 --out feat.out.npy
  python3 -c 'import struct, sys, math
data = open("feat.out.npy", "rb").read()[128:]
sys.exit(not all(map(math.isnan, struct.unpack("<%dd" % (len(data) // 8), data))))' || fail "feat.p0001 is not NaN"
  expect_exit 0 rhizome compact lost.rz
  expect_exit 0 rhizome verify lost.rz
done
expect_exit 0 rhizome compact g.rz
expect_exit 0 rhizome verify g.rz
# Without commits the attribute is dropped, unless its holes are to be filled.
cp -r g.rz dropped.rz
folder=dropped.rz/generations/000002/arrays
rm "$folder/time.p0000/c.0.0"
cp -r dropped.rz filled.rz
expect_exit 0 rhizome repair dropped.rz
expect_exit 0 rhizome export dropped.rz --edges --out edges.csv
grep -q time edges.csv && fail "time was not dropped: $(head -n 2 edges.csv)"
expect_exit 0 rhizome repair filled.rz --fill-holes
expect_exit 0 rhizome export filled.rz --edges --out edges.csv
grep -q time edges.csv || fail "time was dropped: $(head -n 2 edges.csv)"
expect_exit 0 rhizome verify filled.rz
expect_exit 0 rhizome info g.rz --json
expect_json out 'j["edges"] == 7'
finish
