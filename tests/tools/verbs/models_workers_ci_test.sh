#!/usr/bin/env bash
# For every registered model, the bytes of the embeddings are the same with workers, with neighbour
# lists on disk, with little memory, and after a job that was killed half-way has been resumed.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"
kill_at_library="$RHIZOME_BUILD/lib/librhizome_kill_at.so"
[ -e "$kill_at_library" ] || fail "librhizome_kill_at.so is not built"

rhizome generate planted --out demo --scale 11 --edge-factor 6 --dim 16 --seed 5 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 3 --chunk-rows 128 >/dev/null || fail "ingest"
rhizome models --json >models.json || fail "models"
models=$(python3 -c 'import json; print(*(m["name"] for m in json.load(open("models.json"))["models"] if m["network"]))')
[ -n "$models" ] || fail "no model is registered"

for model in $models; do
  rhizome train g.rz --model "$model" --epochs 1 --fanout 4,4 --hidden 16 --threads 1 --no-test --out m.safetensors \
    >/dev/null || fail "train $model"
  infer=("$RHIZOME" infer g.rz --model-file m.safetensors --out emb --chunk-rows 128)
  wanted=""
  same_bytes() { # what
    rhizome export g.rz --array emb --out got.npy >/dev/null || fail "$model, $1: export"
    if [ -z "$wanted" ]; then
      wanted=wanted.npy
      cp got.npy $wanted
    else
      cmp -s $wanted got.npy || fail "$model, $1: other bytes than those of one process"
    fi
    rhizome array drop g.rz emb >/dev/null || fail "$model, $1: drop"
  }
  LD_PRELOAD=$kill_at_library RHIZOME_KILL_COUNT=count.txt expect_exit 0 "${infer[@]}" --threads 1
  same_bytes "one process"
  expect_exit 0 "${infer[@]}" --workers 2
  same_bytes "two workers"
  expect_exit 0 "${infer[@]}" --topology direct --block-rows 300
  same_bytes "lists on disk, blocks of 300 rows"
  LD_PRELOAD=$kill_at_library RHIZOME_KILL_AT=$(($(cat count.txt) / 2)) "${infer[@]}" >/dev/null 2>&1 &&
    fail "$model: the job was not killed"
  expect_exit 0 "${infer[@]}" --resume
  same_bytes "killed and resumed"
done
expect_exit 0 rhizome verify g.rz
finish
