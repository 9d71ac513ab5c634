#!/usr/bin/env bash
# put and delete: formats, refusals that leave nothing behind, a second writer, readers beside a
# writer, and kill -9 at random moments: each batch is there completely or not at all, and every
# acknowledged one is there.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '0\t1\n1\t2\n2\t0\n' >e.tsv
printf '0\t0\t1\n1\t1\t2\n2\t0\t3\n' >x.txt
rhizome ingest g.rz --edges e.tsv --array x=x.txt:2 >/dev/null || fail "ingest"
printf 'a\tb\tx\t1\t5\nb\tc\ty\t2\t6\n' >s.tsv
rhizome ingest s.rz --edges s.tsv --columns src,dst,type,weight,time --partitions 2 >/dev/null || fail "ingest"

# --- What one store was told, told to another; metrics of a run and of a store
cp -r s.rz leader.rz; cp -r s.rz follower.rz
printf '%s\n' '{"src":"a","dst":"c","type":"new","weight":0.5,"time":9}' '{"op":"delete","id":"b"}' \
  '{"op":"upsert","src":"c","dst":"d\te","type":"y","weight":2}' >u.jsonl
expect_exit 0 rhizome put leader.rz u.jsonl --create-types --metrics put.prom
grep -q '^rhizome_writes_total{store="leader.rz"} 1$' put.prom || fail "metrics of put: $(head -3 put.prom)"
expect_exit 0 rhizome changes leader.rz --out changes.jsonl --json
expect_json out 'j["changes"] == 4' 'j["last"] > j["after"]' 'j["seconds"] > 0'
expect_exit 0 rhizome put follower.rz changes.jsonl --create-types
for id in a c; do
  rhizome neighbors leader.rz $id --direction both --json >leader.txt
  rhizome neighbors follower.rz $id --direction both --json >follower.txt
  cmp -s leader.txt follower.txt || fail "the follower says of $id: $(cat follower.txt), not $(cat leader.txt)"
done
# Edge attributes may be called like fields of JSON lines.
printf 'src,dst,op,id,rows,attributes\n1,2,3,4,5,6\n' >named.csv
expect_exit 0 rhizome ingest named.rz named.csv
cp -r named.rz replica.rz
printf '%s\n' '{"src":1,"dst":3,"op":"upsert","id":7,"rows":8,"attributes":9}' \
  '{"src":1,"dst":4,"attributes":{"op":10,"id":11,"attributes":12},"rows":13}' >named.jsonl
expect_exit 0 rhizome put named.rz named.jsonl
printf '1,5,14,15,16,17\n' >more.csv
expect_exit 0 rhizome put named.rz more.csv --columns src,dst,op,id,rows,attributes
expect_exit 0 rhizome changes named.rz --out named.out.jsonl
expect_exit 0 rhizome put replica.rz named.out.jsonl
for store in named replica; do
  rhizome export $store.rz --edges --out - | sort >$store.edges
done
printf '1\t2\t3\t4\t5\t6\n1\t3\t0\t7\t8\t9\n1\t4\t10\t11\t13\t12\n1\t5\t14\t15\t16\t17\n' >wanted
python3 - named.edges wanted <<'PY' || fail "edge attributes called op, id, rows, attributes: $(cat named.edges)"
import sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
(head,) = [row for row in rows if "src" in row]
order = [head.index(name) for name in ("src", "dst", "op", "id", "rows", "attributes")]
found = sorted("\t".join(row[place] for place in order) for row in rows if row != head)
sys.exit(found != open(sys.argv[2]).read().splitlines())
PY
cmp named.edges replica.edges || fail "changes lose such attributes: $(cat named.out.jsonl)"
for line in '{"src":1,"dst":2,"op":3}' '{"src":1,"dst":2,"attributes":{"no":3}}' \
  '{"src":1,"dst":2,"rows":1,"attributes":{"rows":3}}'; do
  echo "$line" >bad.jsonl
  expect_exit 1 rhizome put named.rz bad.jsonl
done
expect_says "bad.jsonl:1" "'rows' twice"
echo '{"src":"a","dst":"b","id":3}' >bad.jsonl
expect_exit 1 rhizome put leader.rz bad.jsonl
expect_says "either an edge"
expect_exit 1 rhizome changes leader.rz --out x.jsonl --after 900
expect_exit 1 rhizome export leader.rz --edges --out edges.tsv
expect_says "line break" ".csv"
expect_exit 1 rhizome export leader.rz --out edges.tsv
expect_says "--array" "--edges"
expect_exit 0 rhizome compact leader.rz --metrics compact.prom
grep -q '^rhizome_compactions_total{store="leader.rz"} 1$' compact.prom || fail "metrics of compact"
expect_exit 2 rhizome changes leader.rz --out x.jsonl --after 1
expect_says "read the graph at a snapshot"
expect_exit 0 rhizome export s.rz --edges --out edges.tsv --json
expect_json out 'j["files"][0]["rows"] == 2' 'j["files"][0]["columns"] == "src,dst,type,weight,time"'
[ "$(tail -n +2 edges.tsv | sort)" = "$(printf 'a\tb\tx\t1\t5\nb\tc\ty\t2\t6')" ] || fail "export --edges: $(cat edges.tsv)"
rhizome ingest again.rz --edges edges.tsv >/dev/null || fail "ingest what was exported"
expect_exit 0 rhizome info s.rz --metrics
grep -q '^rhizome_vertices{store="s.rz"} 3$' out || fail "info --metrics: $(grep -c . out) lines"

# --- Every format, and what is read afterwards
printf '0\t7\n7\t8\n' | rhizome put g.rz - --json >out || fail "put from stdin"
expect_json out 'j["applied"] == 2' 'j["vertices_added"] == 2' 'j["commit"] == 1 + 1' 'j["seconds"] > 0'
printf 'src,dst\n"0",9\n' | python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read()))' >e.csv.xz
expect_exit 0 rhizome put g.rz e.csv.xz --header --json
expect_json out 'j["applied"] == 1' 'j["vertices_added"] == 1'
printf '7\t0.5\t1.5\n1\t-1\t4\n' >rows.tsv
expect_exit 0 rhizome put g.rz rows.tsv --array x --json
expect_json out 'j["applied"] == 2' 'j["vertices_added"] == 0'
printf '40\n41\n' >v.tsv
expect_exit 0 rhizome put g.rz v.tsv --vertices --json
expect_json out 'j["vertices_added"] == 2'
expect_exit 0 rhizome neighbors g.rz 0 --json
expect_json out 'sorted(n["id"] for n in j["neighbors"]) == [1, 7, 9]'
expect_exit 0 rhizome get g.rz 7 --array x --json
expect_json out 'j["values"] == [0.5, 1.5]'
expect_exit 0 rhizome get g.rz 1 --array x --json
expect_json out 'j["values"] == [-1, 4]'
expect_exit 0 rhizome get g.rz 41 --array x --json
expect_json out 'j["values"] == [0, 0]'
cat >u.jsonl <<'J'
{"src": "a", "dst": "b", "type": "x", "weight": 3.5, "time": 11}
{"op": "upsert", "src": "b", "dst": "c", "type": "y", "weight": 9}

{"id": "new", "type": "vertex"}
{"op": "delete", "src": "nobody", "dst": "c"}
J
expect_exit 0 rhizome put s.rz u.jsonl --json
expect_json out 'j["applied"] == 4' 'j["vertices_added"] == 1' 'j["batches"] == 1'
expect_exit 0 rhizome neighbors s.rz a --json
expect_json out '[(n["id"], n["weight"]) for n in j["neighbors"]] == [("b", 1), ("b", 3.5)]'
expect_exit 0 rhizome neighbors s.rz b --json
expect_json out '[(n["id"], n["weight"], n["type"]) for n in j["neighbors"]] == [("c", 9, "y")]'
printf 'a\tb\tx\n' >d.tsv
expect_exit 0 rhizome delete s.rz d.tsv --columns src,dst,type --json
expect_json out 'j["applied"] == 1'
expect_exit 0 rhizome neighbors s.rz a --json
expect_json out 'j["neighbors"] == []'
printf '9\n' >gone.tsv
expect_exit 0 rhizome delete g.rz gone.tsv --vertices
expect_exit 2 rhizome neighbors g.rz 9
expect_exit 0 rhizome neighbors g.rz 0 --json
expect_json out 'sorted(n["id"] for n in j["neighbors"]) == [1, 7]'
: >empty.tsv
expect_exit 0 rhizome put g.rz empty.tsv --json
expect_json out 'j["applied"] == 0' 'j["commit"] == 6'
expect_exit 0 rhizome verify g.rz
expect_exit 0 rhizome verify s.rz

expect_exit 0 rhizome info g.rz --json
expect_json out 'j["delta_entries"] > 0' 'j["commit"] == 6' 'j["base_sequence"] == 0' 'j["delta_runs"] >= 1' \
  'j["generations"] == [1]' 'j["vertices"] == 3 + 4' 'j["edges"] == 3 + 2' 'j["generation_vertices"] == 3'
expect_exit 0 rhizome info s.rz

expect_exit 0 rhizome export g.rz --array x --out x.npy --json
expect_json out 'j["files"][0]["rows"] == 7'
[ "$(tr '\n' ' ' <x.ids.tsv)" = "0 1 2 7 8 40 41 " ] || fail "exported ids: $(cat x.ids.tsv)"
python3 - <<'P' || fail "exported rows"
rows = memoryview(open("x.npy", "rb").read()[-7 * 8:]).cast("f", (7, 2)).tolist()
assert rows == [[1, 0], [-1, 4], [3, 0], [0.5, 1.5], [0, 0], [0, 0], [0, 0]], rows
P
expect_exit 0 rhizome similar g.rz 7 --array x --k 9 --json
expect_json out '[n["id"] for n in j["similar"]] == [1, 0, 2]' 'abs(j["similar"][0]["score"] - 0.8437) < 1e-3'

# --- Refused, with file and line, and nothing of the batch is applied
before=$(rhizome info g.rz --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["delta_entries"])')
refused() { # FILE-CONTENT LINE WORD FLAGS...
  printf "$1" >bad.tsv
  expect_exit 1 rhizome put "$4" bad.tsv "${@:5}"
  expect_says "bad.tsv:$2" "$3"
}
refused '1\t2\n1\n' 2 "fields" g.rz
refused '1\t2\n1\tx\n' 2 "not an integer" g.rz
refused '1\t2\t3\t4\n' 1 "fields" g.rz --array x
refused '1\t2\tnone\n' 1 "'none', is not a float32" g.rz --array x
refused 'a\tb\tq\n' 1 "With --create-types it is added" s.rz --columns src,dst,type
refused 'a\tb\tnan\n' 1 "finite" s.rz --columns src,dst,weight
refused 'a\tb\t1.5\n' 1 "int64" s.rz --columns src,dst,time
refused '\377\tb\n' 1 "UTF-8" s.rz
expect_exit 2 rhizome put g.rz e.tsv --array nonsense
expect_says nonsense
expect_exit 1 rhizome put g.rz e.tsv --columns src,dst,nonsense
expect_exit 1 rhizome put g.rz e.tsv --columns src
printf '1\t99\n' >unknown.tsv
expect_exit 2 rhizome put g.rz unknown.tsv --no-create-vertices
expect_says "unknown.tsv:1" 99
for line in '[1]' '{"src": 1}' '{"id": 1, "src": 2, "dst": 3}' '{"src": 1.5, "dst": 2}' '{"src": 1, "dst": 2, "wieght": 3}' \
  '{"id": 1, "rows": {"x": [1]}}' '{"id": 1, "rows": {"nope": [1]}}' '{"id": 1, "op": "drop"}' '{"id": 1'; do
  printf '{"id": 1}\n%s\n' "$line" >bad.jsonl
  expect_exit 1 rhizome put g.rz bad.jsonl
  expect_says "bad.jsonl:2"
done
printf '5\t6\n5\t6\n5\t6\nbad\n' >four.tsv
expect_exit 1 rhizome put g.rz four.tsv --batch 2
expect_says "four.tsv:4" "2 lines"
expect_exit 2 rhizome put nowhere.rz e.tsv
expect_exit 2 rhizome put g.rz nowhere.tsv
after=$(rhizome info g.rz --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["delta_entries"])')
[ "$after" = "$((before + 2 + 2))" ] || fail "refused batches left something: $before entries, then $after"
printf 'a\tb\tq\n' >q.tsv
expect_exit 0 rhizome put s.rz q.tsv --columns src,dst,type --create-types
expect_exit 0 rhizome neighbors s.rz a --type q --json
expect_json out 'len(j["neighbors"]) == 1'

# --- A second writer is told who holds the store
mkfifo pipe
"$RHIZOME" put g.rz - --json <pipe >holder.out 2>holder.err &
holder=$!
exec 9>pipe
wait_for 10 grep -qs "$holder" g.rz/LOCK
expect_exit 4 rhizome put g.rz e.tsv
expect_says "$holder"
printf '2\t1\n' >&9
exec 9>&-
wait "$holder" || fail "the first writer: $(cat holder.err)"
expect_json holder.out 'j["applied"] == 1'

# --- kill -9: 40 batches of 2,000 edges from one vertex each. A reader looks on meanwhile.
batch() { awk -v k="$1" 'BEGIN { for (i = 0; i < 2000; i++) print (1000 + k) "\t" i }'; }
count() {
  rhizome neighbors g.rz "$1" --json 2>/dev/null >count.out || { echo 0; return; }
  python3 -c 'import json; print(len(json.load(open("count.out"))["neighbors"]))'
}
batch 0 >b.tsv
count_calls "$RHIZOME" put g.rz b.tsv
test_seed
killed=0 there=0
for k in $(seq 40); do
  batch "$k" >b.tsv
  kill_at $((1 + RANDOM % calls)) KILL "$RHIZOME" put g.rz b.tsv --json
  [ $code -eq 0 ] || [ $code -eq 137 ] || fail "put exits $code: $(cat err)"
  [ $code -eq 137 ] && killed=$((killed + 1))
  found=$(count $((1000 + k)))
  case $found in
    0) [ -s out ] && fail "batch $k was acknowledged and is not there" ;;
    2000) there=$((there + 1)) ;;
    *) fail "batch $k is there in part: $found edges" ;;
  esac
done
echo "40 puts, $killed killed, $there there"
[ $killed -gt 0 ] || fail "no kill hit a put while it worked"
expect_exit 0 rhizome verify g.rz
[ "$(count 1000)" = 2000 ] || fail "the first batch is gone"
finish
