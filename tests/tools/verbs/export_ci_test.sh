#!/usr/bin/env bash
# What goes in comes out: relation names of well-known files, tables of edges and vertices with all
# of their values, and a whole store as a folder.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# --- Names of types
names=(/location/country/form_of_government DRUGBANK::treats::Compound:Disease 'has part' '<isMarriedTo>' naît_à 'a,"b"')
for name in "${names[@]}"; do
  printf 'a\t%s\tb\nb\t_hypernym\tc\n' "$name" >t.txt
  rm -rf t.rz
  expect_exit 0 rhizome ingest t.rz --edges t.txt --columns src,type,dst
  rhizome export t.rz --edges --out - | grep -qF "$name" || fail "$name is not exported"
  expect_exit 0 rhizome neighbors t.rz a --type "$name" --json
  NAME=$name expect_json out 'j["neighbors"][0]["type"] == __import__("os").environ["NAME"]'
  printf '{"src": "c", "dst": "a", "type": "%s, too"}\n' "${name//\"/\\\"}" >u.jsonl
  expect_exit 0 rhizome put t.rz u.jsonl --create-types
  expect_exit 0 rhizome info t.rz --json
  NAME=$name expect_json out '__import__("os").environ["NAME"] + ", too" in j["edge_type_names"]'
  expect_exit 0 rhizome verify t.rz
  expect_exit 0 rhizome compact t.rz
  expect_exit 0 rhizome export t.rz --edges --out t.csv
  NAME=$name python3 - <<'PY' || fail "$name in CSV: $(cat t.csv)"
import csv, os
name = os.environ["NAME"]
assert [r["type"] for r in csv.DictReader(open("t.csv", newline="")) if r["src"] == "c"] == [name + ", too"]
PY
done
printf 'a\tx\001y\tb\n' >t.txt
expect_exit 1 rhizome ingest bad.rz --edges t.txt --columns src,type,dst
expect_says "t.txt:1" "control characters"

# --- Tables
cat >edges.tsv <<'TSV'
1	2	likes	0.5	17	0.25
2	3	has part	2	-4	1e-30
3	3	likes	1	9007199254740993	-7
TSV
printf '3\t1\ttrain\t10\n1\t-1\tnone\t20\n2\t0\ttest\t30\n9\t2\tvalid\t-1\n' >nodes.tsv
python3 - <<'PY'
import array
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }"
head += b" " * (-(len(head) + 11) % 64) + b"\n"
with open("x.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + array.array("f", range(8)).tobytes())
PY
expect_exit 0 rhizome ingest s.rz --edges edges.tsv --columns src,dst,type,weight,time,score --nodes nodes.tsv \
  --node-columns id,label,split,age --array x=x.npy --partitions 2
expect_exit 0 rhizome export s.rz --edges --out out.tsv --json
expect_json out 'j["files"][0]["columns"] == "src,dst,type,weight,score,time"' 'j["files"][0]["rows"] == 3'
[ "$(head -1 out.tsv)" = "$(printf 'src\tdst\ttype\tweight\tscore\ttime')" ] || fail "header: $(head -1 out.tsv)"
python3 - <<'PY' || fail "export --edges: $(cat out.tsv)"
rows = [line.rstrip("\n").split("\t") for line in open("out.tsv")][1:]
def key(r): return (r[0], r[1], r[2], float(r[3]), int(r[5]), float(r[4]))
want = [line.rstrip("\n").split("\t") for line in open("edges.tsv")]
assert sorted(map(key, rows)) == sorted((w[0], w[1], w[2], float(w[3]), int(w[4]), float(w[5])) for w in want), rows
PY
expect_exit 0 rhizome export s.rz --vertices --out v.csv --json
expect_says "x: export it with --array"
expect_json out 'j["left_out"] == ["x"]' 'j["files"][0]["columns"] == "id,label,split,age"'
[ "$(cat v.csv)" = "$(printf 'id,label,split,age\n3,1,train,10\n1,-1,none,20\n2,0,test,30\n9,2,valid,-1')" ] ||
  fail "export --vertices: $(cat v.csv)"
expect_exit 0 rhizome export s.rz --vertices --no-header --out -
[ "$(wc -l <out)" -eq 4 ] || fail "vertices on standard output: $(cat out)"

# --- A folder
expect_exit 0 rhizome export s.rz --store folder --json
expect_json out 'sorted(f["path"].split("/", 1)[1] for f in j["files"])[0] is not None' 'j["notes"] == []'
for file in rhizome.json vertices.csv edges.csv arrays/x.npy arrays/label.npy edge_attributes/time.npy; do
  [ -s folder/$file ] || fail "folder/$file is missing"
done
expect_exit 1 rhizome export s.rz --store folder
expect_says "folder" "exists already"
expect_exit 1 rhizome export s.rz --store other --out x.tsv && expect_says "--out"
expect_exit 1 rhizome export s.rz --edges && expect_says "--out"
expect_exit 1 rhizome export s.rz --array x --no-header --out x.npy && expect_says "--no-header"
expect_exit 1 rhizome export s.rz --edges --vertices --out x.tsv && expect_says "--vertices"
# Ingested and exported again, it has the same content; edges may be in another order.
expect_exit 0 rhizome ingest back.rz folder --partitions 3
expect_exit 0 rhizome verify back.rz
expect_exit 0 rhizome export back.rz --store again
for file in rhizome.json vertices.csv arrays/x.npy arrays/label.npy arrays/split.npy arrays/age.npy; do
  cmp -s folder/$file again/$file || fail "$file differs: $(cat again/$file | head -c 300)"
done
[ "$(sort folder/edges.csv)" = "$(sort again/edges.csv)" ] || fail "edges differ: $(cat again/edges.csv)"
expect_exit 0 rhizome export back.rz --edges --out back.tsv
[ "$(sort out.tsv)" = "$(sort back.tsv)" ] || fail "edge attributes differ: $(cat back.tsv)"
expect_exit 1 rhizome ingest x.rz folder --columns src,dst && expect_says "folder" "columns"
expect_exit 1 rhizome ingest x.rz folder edges.tsv && expect_says "folder"
expect_exit 0 rhizome ingest x.rz folder --dry-run
grep -qF -- "--columns src,dst,type,weight --nodes folder/vertices.csv" out || fail "the plan of a folder: $(cat out)"
[ ! -e x.rz ] || fail "--dry-run wrote a store"
sed -i 's/"dim": 2/"dim": 3/' again/rhizome.json
expect_exit 1 rhizome ingest x.rz again && expect_says "x.npy"
printf '{' >again/rhizome.json
expect_exit 1 rhizome ingest x.rz again && expect_says "rhizome.json"
[ ! -e x.rz ] || fail "a store from a damaged folder"
# Tables are read back without a word about their columns.
expect_exit 0 rhizome ingest table.rz out.tsv v.csv
expect_exit 0 rhizome export table.rz --edges --out table.tsv
[ "$(sort out.tsv)" = "$(sort table.tsv)" ] || fail "the table of edges is read differently: $(cat table.tsv)"
[ -z "$(find . -name '.folder*' -o -name '.other*')" ] || fail "parts of folders remain"
finish
