#!/usr/bin/env bash
# For any content of an external id, files that verbs write are read back as the same id, or the id
# is refused by name; `-` is standard output.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# Ids with commas, quotes, tabs, line breaks, blanks and a byte order mark.
python3 - <<'PY'
import json
ids = ["plain", "a,b", 'say "so"', "tab\there", "line\nbreak", "cr\rhere", " blank ", "\ufeffmark"]
with open("edges.jsonl", "w") as f:
    for a, b in zip(ids, ids[1:] + ids[:1]):
        print(json.dumps({"src": a, "dst": b, "weight": len(a) / 4}), file=f)
PY
printf 'x\ty\t1\n' >seed.tsv
expect_exit 0 rhizome ingest s.rz --edges seed.tsv --columns src,dst,weight
expect_exit 0 rhizome put s.rz edges.jsonl

# --- CSV: quoted, and read back
expect_exit 0 rhizome export s.rz --edges --out e.csv
python3 - <<'PY' || fail "export --edges --out e.csv"
import csv, json
wanted = sorted([e["src"], e["dst"], e["weight"]] for e in map(json.loads, open("edges.jsonl"))) + [["x", "y", 1.0]]
head, *rows = csv.reader(open("e.csv", newline="", encoding="utf-8"))
assert head == ["src", "dst", "weight"], head
got = [[r[0], r[1], float(r[2])] for r in rows]
assert sorted(got) == sorted(wanted), (got, wanted)
PY
expect_exit 0 rhizome ingest again.rz --edges e.csv --columns src,dst,weight --header
expect_exit 0 rhizome export again.rz --edges --out again.csv
[ "$(sort e.csv)" = "$(sort again.csv)" ] || fail "edges differ after a round by CSV"

# --- Tabs: refused by name, and nothing is left
expect_exit 1 rhizome export s.rz --edges --out e.tsv
expect_says "line break" ".csv"
[ ! -e e.tsv ] || fail "a refused export leaves a file"

# --- Standard output
expect_exit 0 rhizome changes s.rz --out -
python3 - out <<'PY' || fail "changes --out -: $(head -c 300 out)"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert sum("src" in line for line in lines) == 8, lines
PY
[ ! -e ./- ] || fail "a file is named -"
expect_exit 0 rhizome changes s.rz --out changes.jsonl
rhizome changes s.rz --out - | cmp -s - changes.jsonl || fail "changes --out - is not what a file gets"
expect_exit 1 rhizome changes s.rz --out - --json
expect_says "standard output"
printf '1\t2\n2\t3\n' >n.tsv
expect_exit 0 rhizome ingest n.rz --edges n.tsv
rhizome export n.rz --edges --no-header --out - | sort | cmp -s - n.tsv || fail "export --edges --out -"
if [ -c /dev/full ]; then
  code=0
  rhizome changes s.rz --out - >/dev/full 2>err || code=$?
  [ $code -eq 5 ] || fail "changes to a full standard output exits $code: $(cat err)"
fi

# --- A line of ids is one id
printf '0.5\n' | tee row.txt >/dev/null
python3 -c 'print("\n".join("%d\t%d" % (i, i) for i in range(10)))' >rows.txt
expect_exit 0 rhizome compact s.rz
python3 - <<'PY'
import json, struct
n = 10
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1), }" % n
header += " " * (117 - len(header)) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % n, *range(n)))
PY
expect_exit 0 rhizome array add s.rz x=x.npy
expect_exit 1 rhizome export s.rz --array x --out x1.npy
expect_says "line break" ".csv"
expect_exit 0 rhizome export s.rz --array x --out x2.npy --ids x2.csv
[ "$(python3 -c 'import csv; print(len(list(csv.reader(open("x2.csv", newline="")))))')" = 10 ] || fail "ids in x2.csv"

# --- Changes carry every value bit by bit: NaN, infinities, halves, edge attributes
printf '0\t1\n1\t2\n' >p.tsv
python3 - <<'PY'
import struct
def npy(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
npy("zf.npy", "<f4", (3, 2), bytes(24))
npy("zh.npy", "<f2", (3, 2), bytes(12))
npy("ea.npy", "<f4", (2, 1), struct.pack("<2f", 1, 2))
PY
for store in leader follower; do
  expect_exit 0 rhizome ingest $store.rz --edges p.tsv --array f=zf.npy --array h=zh.npy --edge-array score=ea.npy
done
cat >odd.jsonl <<'J'
{"id": 1, "rows": {"f": ["NaN", "Infinity"], "h": ["-Infinity", "NaN"]}}
{"id": 2, "rows": {"f": ["NaN(0xffc00000)", "NaN(0x7f800001)"], "h": ["NaN(0x7c01)", -0.0]}}
{"id": 0, "rows": {"f": [1e-45, -0.0], "h": [6e-8, 65504]}}
{"src": 0, "dst": 2, "score": "Infinity"}
{"src": 2, "dst": 0, "score": "NaN"}
{"src": 2, "dst": 1, "score": 0.1}
J
expect_exit 0 rhizome put leader.rz odd.jsonl
expect_exit 0 rhizome changes leader.rz --out odd2.jsonl
expect_exit 0 rhizome put follower.rz odd2.jsonl
for store in leader follower; do
  for array in f h; do
    expect_exit 0 rhizome export $store.rz --array $array --out $store.$array.npy
  done
done
cmp leader.f.npy follower.f.npy && cmp leader.h.npy follower.h.npy || fail "the follower's rows are others"
python3 - <<'PY' || fail "rows of the leader: $(od -An -tx4 leader.f.npy | tail -n 3)"
import struct
assert open("leader.f.npy", "rb").read()[-24:] == struct.pack(
    "<6I", 1, 0x80000000, 0x7FC00000, 0x7F800000, 0xFFC00000, 0x7F800001)
assert open("leader.h.npy", "rb").read()[-12:] == struct.pack("<6H", 1, 0x7BFF, 0xFC00, 0x7E00, 0x7C01, 0x8000)
PY
expect_exit 0 rhizome changes follower.rz --out odd3.jsonl
# Their first and last lines name the store that they are of.
for changes in odd2 odd3; do
  [ "$(grep -c '\$changes' $changes.jsonl)" = 2 ] || fail "$changes.jsonl does not begin and end with a mark"
  grep -v '\$changes' $changes.jsonl >$changes.bare.jsonl
done
[ -s odd2.bare.jsonl ] && cmp odd2.bare.jsonl odd3.bare.jsonl || fail "the follower's changes are others"
grep -q '"score":"Infinity"' odd3.jsonl && grep -q '"score":"NaN"' odd3.jsonl || fail "edge attributes: $(cat odd3.jsonl)"
expect_exit 0 rhizome get leader.rz 1 --array f
grep -q 'NaN  *Infinity' out || fail "get shows $(cat out)"
expect_exit 0 rhizome get leader.rz 2 --array h --json
expect_json out 'j["values"] == ["NaN(0x7c01)", 0]'
# null is NaN among floats.
printf '{"id": 1, "rows": {"f": [null, 1]}}\n' >null.jsonl
expect_exit 0 rhizome put follower.rz null.jsonl
expect_exit 0 rhizome get follower.rz 1 --array f --json
expect_json out 'j["values"] == ["NaN", 1]'
for value in '"nan"' '"1"' '"NaN(0x7fc00000"' true; do
  printf '{"id": 1, "rows": {"f": [%s, 1]}}\n' "$value" >bad.jsonl
  expect_exit 1 rhizome put follower.rz bad.jsonl && expect_says "bad.jsonl:1" "float32"
done
printf '{"src": 0, "dst": 1, "weight": "NaN"}\n' >bad.jsonl
expect_exit 1 rhizome put s.rz bad.jsonl && expect_says "bad.jsonl:1" "finite"

# --- What a person reads stays in its line
expect_exit 0 rhizome neighbors s.rz "$(printf 'line\nbreak')"
grep -q 'line\\nbreak' out || fail "neighbors prints a line break: $(cat out)"
finish
