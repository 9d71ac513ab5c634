#!/usr/bin/env bash
# An ingestion under a kernel limit that kills a process that exceeds it: with --memory it succeeds,
# without it is killed; the store is byte for byte the one built in memory.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/memory/memory_group.bash
. ./memory_group.bash
cd "$work"

limit_memory $((72 << 20))

rhizome generate rmat --out g --scale 17 --edge-factor 20 --permute >/dev/null || fail "generate"
awk 'BEGIN { srand(5); for (i = 0; i < 300000; ++i)
  printf "w%d\tw%d\t%d\n", int(90000 * rand() * rand()), int(90000 * rand()), int(1e6 * rand()) }' >e.tsv
id=(--store-id 00112233445566778899aabbccddeeff)

# --- Dense ids, 2.6 M edges
input=(--edges g/edges.npy --vertices 131072)
code=0
limited ingest x.rz "${input[@]}" --undirected >out 2>err || code=$?  # each edge twice
[ $code -eq 137 ] || fail "the limit does not bite: exit code $code without --memory"
expect_exit 0 limited ingest s.rz "${input[@]}" --memory 48M "${id[@]}" --json
expect_json out 'j["spilled"] is True' 'j["partitioner"] == "hdrf"' 'j["edges"] == 20 << 17'
partitions=$(python3 -c 'import json; print(json.load(open("out"))["partitions"])')
expect_exit 0 rhizome verify s.rz
expect_exit 0 rhizome ingest h.rz "${input[@]}" --partitions "$partitions" --partitioner hdrf "${id[@]}"
diff -r s.rz/generations h.rz/generations >/dev/null || fail "other bytes than in memory"

# A little more, and the default partitioner passes over the spilled edges.
limit_memory $((88 << 20))
expect_exit 0 limited ingest a.rz "${input[@]}" --memory 64M "${id[@]}" --json
expect_json out 'j["spilled"] is True' 'j["partitioner"] == "refined"' 'j["vertex_balance"] <= 1.3'
partitions=$(python3 -c 'import json; print(json.load(open("out"))["partitions"])')
expect_exit 0 rhizome ingest b.rz "${input[@]}" --partitions "$partitions" "${id[@]}"
diff -r a.rz/generations b.rz/generations >/dev/null || fail "other bytes than in memory, with the partitioner refined"
limit_memory $((72 << 20))

# What the kill left is cleared by the next one.
expect_exit 0 rhizome ingest x.rz --edges g/edges.npy --vertices 131072

# --- String ids and a time stamp
input=(--edges e.tsv --columns src,dst,time)
expect_exit 0 limited ingest t.rz "${input[@]}" --memory 24M "${id[@]}" --json
expect_json out 'j["spilled"] is True' 'j["edges"] == 300000'
partitions=$(python3 -c 'import json; print(json.load(open("out"))["partitions"])')
partitioner=$(python3 -c 'import json; print(json.load(open("out"))["partitioner"])')
expect_exit 0 rhizome verify t.rz
expect_exit 0 rhizome ingest u.rz "${input[@]}" --partitions "$partitions" --partitioner "$partitioner" "${id[@]}"
diff -r t.rz/generations u.rz/generations >/dev/null || fail "other bytes than in memory, with string ids"

# --- What --memory says is held, whatever goes in; what cannot be held in it is refused
within() { expect_json out "j['peak_memory_bytes'] - j['base_memory_bytes'] <= $1 << 20"; }
python3 - <<'PY' || fail "write the arrays"
import array, struct
def npy(path, rows, dim):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, dim)
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        array.array("f", [i % 1009 for i in range(rows)] * dim).tofile(f)
npy("feat.npy", 131072, 64)
npy("values.npy", 20 << 17, 3)
PY
# Homes by an edge cut: held in the bound that was given, or refused; the plan says from where on.
homes=(rhizome ingest m.rz --edges e.tsv --columns src,dst,time --partitions 8 --homes edgecut --json)
rm -rf m.rz
expect_exit 5 "${homes[@]}" --memory 24M
expect_says "homes by an edge cut" "homes by owner"
rhizome plan ingest --edges e.tsv --columns src,dst,time --partitions 8 --homes edgecut --json >plan.json || fail "plan"
least=$(python3 -c 'import json; print((json.load(open("plan.json"))["least_memory_bytes"] >> 20) + 2)')
[ "$least" -gt 24 ] || fail "the plan says that homes fit in 24 MiB, where they were refused"
for megabytes in "$least" 64; do
  rm -rf m.rz
  expect_exit 0 "${homes[@]}" --memory ${megabytes}M --spill always && within "$megabytes"
  expect_json out 'j["homes"]["by"] == "edgecut"' 'j["homes_warning"] is None'
done

for megabytes in 20 30; do
  rm -rf m.rz
  expect_exit 0 rhizome ingest m.rz --edges g/edges.npy --vertices 131072 --memory ${megabytes}M --json && within $megabytes
  rm -rf m.rz
  expect_exit 0 rhizome ingest m.rz --edges e.tsv --columns src,dst,time --memory ${megabytes}M --json && within $megabytes
done
rm -rf m.rz
expect_exit 0 rhizome ingest m.rz --edges g/edges.npy --array feat=feat.npy --edge-array values=values.npy --memory 26M --json &&
  within 26
rm -rf m.rz
expect_exit 5 rhizome ingest m.rz --edges g/edges.npy --array feat=feat.npy --layout chunk --chunk-rows 65536 --memory 26M
expect_says "feat" "--set chunk-rows=VALUE" "limit"
expect_exit 0 rhizome ingest m.rz --edges g/edges.npy --array feat=feat.npy --layout chunk --chunk-rows 4096 \
  --memory 26M --json && within 26

# A million vertices with text ids and few edges: their ids are in scratch files.
awk 'BEGIN { for (i = 0; i < 500000; ++i)
  printf "member %d\tpost %d\n", i * 7919 % 500000, i * 104729 % 500000 }' >sparse.tsv
input=(--edges sparse.tsv --columns src,dst --partitions 4 --partitioner hdrf)
rm -rf m.rz
expect_exit 0 rhizome ingest m.rz "${input[@]}" "${id[@]}" --memory 36M --json && within 36
expect_json out 'j["spilled"] is True' 'j["vertices"] == 1000000'
expect_exit 0 rhizome ingest v.rz "${input[@]}" "${id[@]}"
diff -r m.rz/generations v.rz/generations >/dev/null || fail "other bytes than in memory, with many vertices"
expect_exit 5 rhizome ingest n.rz "${input[@]}" --memory 28M
expect_says "vertices" "limit" "--partitions"

expect_exit 5 rhizome ingest n.rz --edges e.tsv --columns src,dst,time --memory 19M
expect_says "--memory 19" "at least 20"
[ -e n.rz ] && fail "a refused ingestion left something"
finish
