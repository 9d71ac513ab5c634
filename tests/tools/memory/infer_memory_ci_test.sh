#!/usr/bin/env bash
# Inference respects --memory: it runs in a control group with this limit plus the memory of the
# bare process, page cache included, and would be killed if it exceeded it. Its arrays are several
# times as large as the memory left for sums. The embedding does not depend on the limit.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/memory/memory_group.bash
. ./memory_group.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"

# 128 MiB of features, and as much between the layers.
rhizome generate planted --scale 16 --dim 512 --classes 4 --out data >/dev/null || fail "generate"
rhizome ingest g.rz --edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split \
  --array feat=data/features.npy --chunk-rows 2048 --partitions 4 >/dev/null || fail "ingest"
rhizome train g.rz --layers 2 --fanout 3,3 --hidden 512 --batch-size 100 --epochs 1 --steps 2 --no-test \
  --out model.safetensors >/dev/null || fail "train"
infer=(infer g.rz --model-file model.safetensors --threads 2 --chunk-rows 2048 --json)
expect_exit 0 rhizome "${infer[@]}" --out free
cp out free.json
limit_memory $((4 << 30))  # ends the script here where no group can be made
base=$(python3 -c 'import json; print(json.load(open("free.json"))["base_memory_bytes"])')
hashes() { (cd "$(ls -d g.rz/generations/*/arrays/"$1" | tail -n 1)" && find . -name 'c*' -type f -print0 | sort -z | xargs -0 sha256sum); }

for variant in "" "--fanout 10,10" "--topology direct" "--layout references"; do
  memory=180
  [ -n "$variant" ] || memory=140 # the variants need more
  limit_memory $((base + (memory << 20)))
  # shellcheck disable=SC2086
  limited "${infer[@]}" --out limited --memory ${memory}M $variant >out 2>err \
    || fail "under $memory MiB $variant: $(cat err)"
  python3 - $memory <<'PYTHON' || fail "the report under $memory MiB $variant: $(cat out)"
import json, sys
limit = int(sys.argv[1]) << 20
limited = json.load(open("out"))
assert limited["peak_memory_bytes"] - limited["base_memory_bytes"] <= limit
assert all(layer["blocks"] > 1 for layer in limited["layers"]), "all sums fitted: nothing was shown"
PYTHON
  if [ "$variant" != "--fanout 10,10" ]; then
    [ "$(hashes free | wc -l)" -eq 32 ] && diff <(hashes free) <(hashes limited) >/dev/null || fail "the bytes differ under $memory MiB $variant"
  fi
  rhizome array drop g.rz limited >/dev/null || fail "drop"
done

echo "inferred the same bytes within 140 and 180 MiB beyond $((base >> 20)) MiB of bare process"
# The least that is named works, whichever limit was too small.
for little in 1M 52M; do
  expect_exit 5 rhizome "${infer[@]}" --out little --memory $little
  least=$(grep -ohE "at least [0-9]+ MiB" err out | head -1 | grep -oE "[0-9]+")
  [ -n "$least" ] || fail "the refusal does not say how much is needed"
  rhizome "${infer[@]}" --out little --memory "${least}M" >/dev/null 2>err ||
    fail "$least MiB are named for $little, and are too few: $(cat err)"
  rhizome array drop g.rz little >/dev/null || fail "drop"
done
finish
