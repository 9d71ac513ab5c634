#!/usr/bin/env bash
# Empty stores: init, put --create, alter, array add --empty, clean and --wait, and every verb that reads
# a store with 0 vertices.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# field NAME: prints one field of the JSON on standard input.
field() {
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# --- init: nothing but a schema, which info prints and init reads
rhizome init empty.rz >/dev/null || fail "init"
cat >schema.json <<'JSON'
{"ids": "text", "weighted": true, "vertex_types": ["author", "paper"], "edge_types": ["cites"],
 "edge_attributes": [{"name": "amount", "dtype": "float32", "dim": 2}, {"name": "time"}],
 "arrays": [{"name": "feat", "dim": 3}, {"name": "codes", "dtype": "int64", "layout": "chunk"}]}
JSON
rhizome init full.rz --schema schema.json >/dev/null || fail "init --schema"
rhizome info full.rz --schema >printed.json || fail "info --schema"
rhizome init again.rz --schema printed.json >/dev/null || fail "init of a printed schema"
rhizome info again.rz --schema | cmp - printed.json || fail "the schema of a store made from it differs"
rhizome init stdin.rz --schema - <printed.json >/dev/null || fail "init --schema -"
python3 - <<'PY' || fail "the schema is not the given one: $(cat printed.json)"
import json
given, printed = json.load(open("schema.json")), json.load(open("printed.json"))
assert printed["ids"] == "text" and printed["weighted"] and printed["directions"] == "both"
assert printed["vertex_types"] == given["vertex_types"] and printed["edge_types"] == given["edge_types"]
assert printed["edge_attributes"] == [{"name": "amount", "dtype": "float32", "dim": 2}, {"name": "time", "dtype": "int64", "dim": 1}]
assert [(a["name"], a["dtype"], a["dim"], a["layout"]) for a in printed["arrays"]] == [
    ("codes", "int64", 1, "chunk"), ("feat", "float32", 3, "row")]
PY
expect_exit 1 rhizome init bad.rz --schema '{"weight": true}' && expect_says "weight" "weighted"
expect_exit 1 rhizome init bad.rz --schema '{"edge_attributes": [{"name": "time", "dtype": "float32"}]}'
[ ! -e bad.rz ] || fail "a refused schema left a folder"
rhizome init empty.rz >out 2>err && fail "init over a store"

# --- Every verb that reads a store reads an empty one, or says why it cannot
for store in empty.rz full.rz; do
  for verb in "info $store" "info $store --json" "info $store --metrics" "verify $store" "compact $store" \
    "array list $store" "changes $store --out -" "backup $store backups-$store" "clean $store" "repair $store"; do
    # shellcheck disable=SC2086
    rhizome $verb >out 2>err || fail "$verb: $(cat err)"
  done
  [ "$(rhizome info $store --json | field vertices)" = 0 ] || fail "$store has vertices"
  expect_exit 2 rhizome neighbors $store 7
  expect_exit 2 rhizome sample $store --seeds 7 --fanout 2
done
rhizome export full.rz --array feat --out feat.npy >/dev/null || fail "export of an empty array"
python3 - <<'PY' || fail "the exported array is not empty"
head = open("feat.npy", "rb").read(128).decode("latin1")
assert "(0, 3)" in head, head
PY
rhizome train empty.rz --epochs 1 >out 2>err && fail "train on an empty store"
grep -qi "vert\|array\|label\|gnn" err || fail "train says: $(cat err)"

# --- put fills it, and compaction keeps what is there
cat >lines.jsonl <<'JSON'
{"src": "a", "dst": "b", "type": "cites", "weight": 0.5, "amount": [1.5, NaN], "time": 17}
{"src": "a", "dst": "a", "type": "cites", "weight": 2, "amount": [-Infinity, null]}
{"id": "a", "type": "author", "rows": {"feat": [NaN, Infinity, null], "codes": [9007199254740993]}}
JSON
rhizome put full.rz lines.jsonl >/dev/null || fail "put"
for round in 1 2; do
  [ "$(rhizome info full.rz --json | field vertices)" = 2 ] || fail "vertices after put"
  rhizome get full.rz a --array feat --json >out || fail "get"
  grep -q '"NaN","Infinity","NaN"' out || fail "the row is not the one that was put: $(cat out)"
  rhizome get full.rz a --array codes --json | grep -q 9007199254740993 || fail "an integer was rounded"
  rhizome verify full.rz >out || fail "verify: $(cat out)"
  rhizome compact full.rz >/dev/null || fail "compact"
done
printf '{"id": NaN}\n' | rhizome put full.rz - --format json >out 2>err && fail "NaN as an id"
grep -q 'has NaN as "id", but a name is an integer or a text' err || fail "NaN as an id: $(cat err)"
printf '{"id": "a", "rows": {"codes": [null]}}\n' | rhizome put full.rz - --format json >out 2>err &&
  fail "null in an array of integers"
grep -q "is not an int64 number" err || fail "null in an array of integers: $(cat err)"

# --- put --create: the schema that the first batch fits
printf 'x\ty\t2\ny\tz\t1\n' >edges.tsv
rhizome put new.rz edges.tsv >out 2>err && fail "put into a store that is absent"
[ ! -e new.rz ] || fail "put without --create made a folder"
rhizome put new.rz edges.tsv --columns src,dst,weight --create --json >out 2>err || fail "put --create: $(cat err)"
grep -q "text ids, weights" err || fail "put --create does not say what it chose: $(cat err)"
[ "$(field created <out)" = True ] || fail "created: $(cat out)"
[ "$(rhizome info new.rz --json | field edges)" = 2 ] || fail "edges of a created store"
rhizome neighbors new.rz x --json | grep -q '"weight":2' || fail "the weight: $(rhizome neighbors new.rz x --json)"
rhizome put new.rz edges.tsv --columns src,dst,weight --create --json 2>err | grep -q '"created":false' || fail "put --create of a store"
printf '3\t8\n8\t3\n' | rhizome put numbers.rz - --create >/dev/null 2>err || fail "put --create -: $(cat err)"
grep -q "integer ids" err || fail "integers: $(cat err)"
rhizome info numbers.rz --schema | grep -q '"ids": "integer"' || fail "ids of numbers.rz"
printf '3\t8\n8\n' | rhizome put torn.rz - --create >/dev/null 2>&1 && fail "put --create of a bad file"
[ ! -e torn.rz ] || fail "a bad file left a store"
rhizome put given.rz lines.jsonl --create --schema schema.json >/dev/null || fail "put --create --schema"
# A bad line leaves the empty store, and the message says so; without a file there is none.
echo '{"src": "a"}' >bad.jsonl
expect_exit 1 rhizome put torn.rz bad.jsonl --create --schema schema.json
expect_says "'torn.rz' was created, and is empty" "run the command again" "bad.jsonl:1"
rhizome put torn.rz lines.jsonl --create --schema schema.json >/dev/null || fail "put into the empty store"
expect_exit 2 rhizome put absent.rz nofile.jsonl --create --schema schema.json
[ ! -e absent.rz ] || fail "a store remains without a file"
[ "$(rhizome info given.rz --json | field edges)" = 2 ] || fail "edges of given.rz"
expect_exit 1 rhizome put given.rz lines.jsonl --schema schema.json

# --- alter: weights and attributes of a store that has neither
rhizome alter numbers.rz --weights --edge-attribute time:int64 --edge-attribute v:float32:2 >out || fail "alter"
printf '{"src": 3, "dst": 8, "weight": 4, "time": 5, "v": [1, 2]}\n' | rhizome put numbers.rz - --format json >/dev/null || fail "put after alter"
rhizome neighbors numbers.rz 3 --json >out || fail "neighbors"
grep -q '"weight":1' out || fail "weight of an old edge: $(cat out)"
grep -q '"weight":4' out || fail "weight of a new edge: $(cat out)"
rhizome verify numbers.rz >/dev/null || fail "verify after alter"
expect_exit 1 rhizome alter numbers.rz
expect_exit 1 rhizome alter numbers.rz --edge-attribute time
expect_exit 1 rhizome alter numbers.rz --edge-attribute w:uint8
rhizome alter numbers.rz --weights >out 2>err && fail "weights twice"
grep -q "weights already" err || fail "weights twice: $(cat err)"

# --- array add --empty
rhizome array add numbers.rz later --empty 2 --dtype int64 >out || fail "array add --empty"
printf '3 7 9\n' | tr ' ' '\t' | rhizome put numbers.rz - --array later >/dev/null || fail "put --array"
rhizome get numbers.rz 3 --array later --json | grep -q '\[7,9\]' || fail "the row of an empty array"
expect_exit 1 rhizome array add numbers.rz x=feat.npy --empty 2

# --- --wait: put waits for the process that writes, and Busy names that process and the option
mkfifo pipe
"$RHIZOME" put numbers.rz pipe >/dev/null 2>&1 &
writer=$!
exec 9>pipe
refused() { ! rhizome put numbers.rz /dev/null 9>&- >/dev/null 2>busy; }
wait_for 60 refused || fail "no writer: $(cat busy)"
grep -q "process $writer" busy || fail "Busy does not name the writer $writer: $(cat busy)"
grep -q -- "--wait" busy || fail "Busy does not name --wait: $(cat busy)"
rhizome put numbers.rz /dev/null --wait 0.2 9>&- >out 2>err && fail "a wait that is over succeeds"
grep -q "after 0.2 s" err || fail "a wait that is over: $(cat err)"
printf '5\t6\n' >more.tsv
rhizome put numbers.rz more.tsv --wait 600 9>&- >/dev/null 2>err &
waiting=$!
printf '8\t9\n' >&9
exec 9>&-
wait $writer || fail "the writer"
wait $waiting || fail "the one that waited: $(cat err)"
rhizome neighbors numbers.rz 5 --json | grep -q '"id":6' || fail "the edge of the one that waited"

# --- clean
mkdir -p numbers.rz/scratch/killed
printf 'rhizome job 1\n' >numbers.rz/scratch/killed/LOCK
printf '0123456789' >numbers.rz/scratch/killed/spill
rhizome clean numbers.rz --dry-run >out || fail "clean --dry-run"
grep -q "killed" out || fail "clean --dry-run does not list the folder: $(cat out)"
[ -e numbers.rz/scratch/killed/spill ] || fail "clean --dry-run removed something"
[ "$(rhizome clean numbers.rz --json | field removed)" = 1 ] || fail "clean"
[ ! -e numbers.rz/scratch/killed ] || fail "clean left the folder"
expect_exit 2 rhizome clean none.rz

exit $((failures > 0))
