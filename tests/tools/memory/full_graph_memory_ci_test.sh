#!/usr/bin/env bash
# Full-graph training respects --memory: it runs in a control group with this limit plus the memory
# of the bare process, page cache included, and would be killed if it exceeded it. It moves what
# `plan train` says, and what it learns does not depend on the limit.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/memory/memory_group.bash
. ./memory_group.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --scale 15 --edge-factor 8 --dim 64 --classes 4 --out data >/dev/null || fail "generate"
rhizome ingest g.rz --edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split --undirected \
  --array feat=data/features.npy --partitions 4 >/dev/null || fail "ingest"
flags=(g.rz --full-graph --model sage --aggregator pool --layers 3 --hidden 128 --threads 2 --json)
train=(train "${flags[@]}" --epochs 1 --no-test)
expect_exit 0 rhizome "${train[@]}" --out free.safetensors
cp out free.json
limit_memory $((4 << 30))  # ends the script here where no group can be made
base=$(python3 -c 'import json; print(json.load(open("free.json"))["base_memory_bytes"])')
expect_exit 5 rhizome "${train[@]}" --memory 30M
least=$(grep -oh "at least [0-9]* MiB" err out | head -1 | grep -o "[0-9]*")
[ -n "$least" ] || fail "the refusal does not say how much is needed: $(cat err)"

for memory in "$least" $((least + 60)); do
  rhizome plan train "${flags[@]}" --memory "${memory}M" >plan.json || fail "plan under $memory MiB"
  limit_memory $((base + (memory << 20)))
  limited "${train[@]}" --memory "${memory}M" --out limited.safetensors >out 2>err || fail "under $memory MiB: $(cat err)"
  python3 - "$memory" <<'PYTHON' || fail "the report under $memory MiB: $(cat out)"
import json, sys
limit = int(sys.argv[1]) << 20
free, limited, plan = (json.load(open(name)) for name in ("free.json", "out", "plan.json"))
assert sum(limited["memory"].values()) <= limit, limited["memory"]
assert limited["peak_memory_bytes"] - limited["base_memory_bytes"] <= limit
assert plan["planned_bytes"] == limited["planned_bytes"] == limited["measured_bytes"] > 0
assert plan["plan"] == limited["plan"]
assert [e["loss"] for e in limited["epochs"]] == [e["loss"] for e in free["epochs"]]
PYTHON
  cmp -s free.safetensors limited.safetensors || fail "the model differs under $memory MiB"
done
echo "trained to the same model within $least and $((least + 60)) MiB beyond $((base >> 20)) MiB of bare process"
finish
