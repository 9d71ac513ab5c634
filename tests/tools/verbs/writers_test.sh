#!/usr/bin/env bash
# Whatever an external id holds, what verbs write to files is read back as the same id, or refused by name; and `-` is standard output.
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
got = [[r[0], r[1], float(r[2])] for r in csv.reader(open("e.csv", newline="", encoding="utf-8"))]
assert sorted(got) == sorted(wanted), (got, wanted)
PY
expect_exit 0 rhizome ingest again.rz --edges e.csv --columns src,dst,weight
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
rhizome export n.rz --edges --out - | sort | cmp -s - n.tsv || fail "export --edges --out -"
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

# --- What a person reads stays in its line
expect_exit 0 rhizome neighbors s.rz "$(printf 'line\nbreak')"
grep -q 'line\\nbreak' out || fail "neighbors prints a line break: $(cat out)"
finish
