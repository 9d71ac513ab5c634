#!/usr/bin/env bash
# train --prior: carrying the pool from one superbatch to the next changes what is read, but not
# what is learnt.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --scale 12 --dim 32 --classes 4 --out data >/dev/null || fail "generate"
rhizome ingest g.rz --edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split \
  --array feat=data/features.npy >/dev/null || fail "ingest"
train=(train g.rz --fanout 5,5 --hidden 8 --batch-size 50 --epochs 2 --no-test --cache-bytes 96K --superbatch 3 --threads 1)
for prior in none uses; do
  expect_exit 0 rhizome "${train[@]}" --prior $prior --out $prior.safetensors --json
  cp out $prior.json
done
cmp none.safetensors uses.safetensors || fail "the model depends on the prior"
expect_exit 0 rhizome "${train[@]}"
grep -q 'prior uses' out || fail "uses is not the default: $(cat out)"
python3 - <<'PYTHON' || fail "the reports"
import json
none, uses = json.load(open("none.json")), json.load(open("uses.json"))
assert none["prior"] == "none" and uses["prior"] == "uses", (none["prior"], uses["prior"])
read = lambda report: sum(epoch["rows_read"] for epoch in report["epochs"])
assert 0 < read(uses) < read(none), (read(uses), read(none))
PYTHON

# Prefilled rows count as hits, so that a pool can have all of its hits and have read more: rows_read comes first.
expect_exit 0 rhizome "${train[@]/96K/1M}" --cache static --json
cp out static.json
expect_exit 0 rhizome "${train[@]}"
grep -q 'rows requested *rows read *bytes read *hits, with prefill' out || fail "the table: $(cat out)"
python3 - <<'PYTHON' || fail "hits and reads"
import json
for name in ("static.json", "uses.json"):
    for epoch in json.load(open(name))["epochs"]:
        names = [key for key in epoch if key in ("rows_read", "pool_hits", "hit_rate")]
        assert names == ["rows_read", "pool_hits", "hit_rate"], names
        assert epoch["hit_rate"] == epoch["pool_hits"] / epoch["rows_requested"]
static = json.load(open("static.json"))["epochs"]
# All hits, though the store has 4,096 rows, which all fit into the pool.
assert all(epoch["hit_rate"] == 1 for epoch in static) and static[0]["rows_read"] > 4096, static
PYTHON

# Where nothing is handed on there is no prior: caches that take turns, and policies that know no future.
expect_exit 0 rhizome "${train[@]}" --overlap changeset --topology direct --json
grep -q '"prior": *"none"' out || fail "with turns: $(cat out)"
expect_exit 0 rhizome "${train[@]}" --cache lru --json
grep -q '"prior": *"none"' out || fail "with LRU: $(cat out)"
expect_exit 1 rhizome train g.rz --full-graph --prior none
expect_exit 1 rhizome train g.rz --prior vip
