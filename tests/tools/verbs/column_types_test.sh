#!/usr/bin/env bash
# Types of text columns on the command line: found and given (--types), nulls, times, and what is
# refused; updates of such arrays and attributes; an edge that expires has a time.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '1\t1600000001\t0.1\ttrue\t2024-05-01\n2\t\t1e-180\tNA\t2024-05-01T12:30:00+02:00\n3\t-5\tinf\tfalse\t\n' >nodes.tsv
printf '1\t2\t7\t2020-01-01\t0.5\n2\t3\t\t\t\n3\t1\t9\t2030-01-01\t1e-180\n' >edges.tsv
columns=(--node-columns id,count,real,flag,when --columns src,dst,amount,seen,score)
expect_exit 0 rhizome ingest s.rz --nodes nodes.tsv --edges edges.tsv "${columns[@]}"
value() { # STORE ID ARRAY: its value, as JSON
  rhizome get "$1" "$2" --array "$3" --json | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["values"][0]))'
}
expect() { # EXPECTED STORE ID ARRAY
  [ "$(value "${@:2}")" = "$1" ] || fail "$4 of $3 is $(value "${@:2}"), not $1"
}
expect 1600000001 s.rz 1 count
expect null s.rz 2 count
expect -5 s.rz 3 count
expect 1e-180 s.rz 2 real
expect '"Infinity"' s.rz 3 real
expect true s.rz 1 flag
expect null s.rz 2 flag
expect '"2024-05-01T10:30:00Z"' s.rz 2 when
expect null s.rz 3 when
rhizome get s.rz 3 --array real | grep -qi inf || fail "get does not show inf"
expect_exit 0 rhizome verify s.rz

# --- Updates: what changes writes is what put reads
cat >u.jsonl <<'J'
{"id": 1, "rows": {"count": [null], "real": [NaN], "flag": [false], "when": ["2001-02-03 04:05:06"]}}
{"op": "upsert", "src": 1, "dst": 2, "amount": null, "seen": "2019-01-01T00:00:00Z", "score": -Infinity}
J
cp -r s.rz follower.rz
expect_exit 0 rhizome put s.rz u.jsonl
expect_exit 0 rhizome changes s.rz --out c.jsonl
expect_exit 0 rhizome put follower.rz c.jsonl
for store in s.rz follower.rz; do
  expect null $store 1 count
  expect '"NaN"' $store 1 real
  expect false $store 1 flag
  expect '"2001-02-03T04:05:06Z"' $store 1 when
done
python3 - <<'PY' || fail "changes: $(cat c.jsonl)"
import json
edge = next(j for j in map(json.loads, open("c.jsonl")) if "amount" in j)
assert (edge["amount"], edge["seen"], edge["score"]) == (None, "2019-01-01T00:00:00Z", "-Infinity"), edge
PY
for line in '{"id": 1, "rows": {"count": [-9223372036854775808]}}' '{"id": 1, "rows": {"flag": [2.5]}}' \
  '{"id": 1, "rows": {"when": ["yesterday"]}}' '{"src": 1, "dst": 2, "amount": 1.5}' '{"src": 1, "dst": 2, "seen": true}'; do
  printf '%s\n' "$line" >bad.jsonl
  expect_exit 1 rhizome put s.rz bad.jsonl
  expect_says "bad.jsonl:1"
done

# --- Edges before 2025 expire; the edge without a time remains
expect_exit 0 rhizome compact s.rz --expire 'seen<2025-01-01'
expect_exit 0 rhizome info s.rz --json
expect_json out 'j["edges"] == 2'
expect_exit 0 rhizome verify s.rz

# --- Given types
expect_exit 0 rhizome ingest t.rz --nodes nodes.tsv --edges edges.tsv "${columns[@]}" --types count:float64,amount:int16 \
  --types when:timestamp
expect 1600000001.0 t.rz 1 count
refused() { # TYPES WORDS...
  expect_exit 1 rhizome ingest x.rz --nodes nodes.tsv --edges edges.tsv "${columns[@]}" --types "$1"
  expect_says "${@:2}"
  [ -e x.rz ] && fail "a refused ingestion left something"
}
refused count:int32x "--types" "'int32x'" "int16"
refused other:int8 "--types" "'other'" "count"
refused count "NAME:TYPE"
refused count:int8,count:int16 "two types"
refused count:int16 "nodes.tsv:1" "'1600000001'" "int16"
refused real:float32 "nodes.tsv:2" "1e-180" "too small for float32"
refused flag:int64 "nodes.tsv:1" "'true'"
finish
