#!/usr/bin/env bash
# Training respects --memory: it runs in a control group with this limit plus the memory of the bare
# process, page cache included, and would be killed if it exceeded it. What it learns does not
# depend on the limit.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/memory/memory_group.bash
. ./memory_group.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --scale 16 --dim 256 --classes 4 --out data >/dev/null || fail "generate"
rhizome ingest g.rz --edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split \
  --array feat=data/features.npy --partitions 4 >/dev/null || fail "ingest"
train=(train g.rz --layers 2 --fanout 10,5 --hidden 32 --batch-size 100 --epochs 1 --steps 40 --no-test --threads 1 --json)
expect_exit 0 rhizome "${train[@]}" --out free.safetensors
cp out free.json
limit_memory $((4 << 30))  # ends the script here where no group can be made
base=$(python3 -c 'import json; print(json.load(open("free.json"))["base_memory_bytes"])')

for memory in 120 150; do
  limit_memory $((base + (memory << 20)))
  limited "${train[@]}" --memory ${memory}M --out limited.safetensors >out 2>err || fail "under $memory MiB: $(cat err)"
  python3 - $memory <<'PYTHON' || fail "the report under $memory MiB: $(cat out)"
import json, sys
limit = int(sys.argv[1]) << 20
free, limited = json.load(open("free.json")), json.load(open("out"))
parts = limited["memory"]
assert sum(parts.values()) <= limit, parts
assert parts["cache_bytes"] < 65536 * 1024, "the pool holds all rows: nothing was shown"
assert limited["peak_memory_bytes"] - limited["base_memory_bytes"] <= limit
assert [e["loss"] for e in limited["epochs"]] == [e["loss"] for e in free["epochs"]]
PYTHON
  cmp -s free.safetensors limited.safetensors || fail "the model differs under $memory MiB"
done

echo "trained to the same model within 120 and 150 MiB beyond $((base >> 20)) MiB of bare process"
expect_exit 5 rhizome "${train[@]}" --memory 30M
least=$(grep -ohE "at least [0-9]+ MiB" err out | head -1 | grep -oE "[0-9]+")
[ -n "$least" ] || fail "the refusal does not say how much is needed"
rhizome "${train[@]}" --memory "${least}M" >/dev/null 2>err || fail "$least MiB are named, and are too few: $(cat err)"
finish
