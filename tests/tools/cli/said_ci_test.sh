#!/usr/bin/env bash
# Training and inference report what they ignore and did not measure, that a job was already
# published, and the memory of their workers; verbs that read an embedding report that it is stale.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --out demo --scale 9 --edge-factor 4 --dim 8 --seed 5 >/dev/null || fail "generate"
rhizome ingest plain.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 2 >/dev/null || fail "ingest"
expect_exit 0 rhizome export plain.rz --edges --no-header --out edges.tsv
awk -F'\t' -v OFS='\t' '{ print $1, $2, (NR % 2 ? "likes" : "cites"), NR % 7 + 1, NR }' edges.tsv >rich.tsv
rhizome ingest rich.rz --edges rich.tsv --columns src,dst,type,weight,time --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 2 >/dev/null || fail "ingest of a graph with types and weights"
train=(--epochs 1 --fanout 4,4 --hidden 8 --threads 1)

# --- What is ignored
expect_exit 0 rhizome train rich.rz "${train[@]}" --out m.safetensors --json
expect_says "not used" "edge types (likes, cites)" "time" "out-edges"
expect_json out 'len(j["ignored"]) == 3' 'j["test_accuracy"] is not None' 'j["edge_weights"] is True and j["direction"] == "in"'
expect_exit 0 rhizome train rich.rz "${train[@]}" --edge-weights ignore --direction both --json
expect_says "not used" "edge weights"
expect_json out 'len(j["ignored"]) == 3' 'j["edge_weights"] is False and j["direction"] == "both"'
expect_exit 0 rhizome infer rich.rz --model-file m.safetensors --edge-weights ignore --out emb --json
expect_says "not used" "edge weights" "out-edges"
expect_json out 'len(j["ignored"]) == 4' 'j["worker_peak_memory_bytes"] == []' 'j["peak_memory_bytes"] == j["own_peak_memory_bytes"]'
expect_exit 0 rhizome train plain.rz "${train[@]}" --out p.safetensors --json
expect_json out 'len(j["ignored"]) == 1 and j["ignored"][0].startswith("out-edges")'
rhizome ingest mutual.rz --edges demo/edges.npy --undirected --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 2 >/dev/null || fail "ingest of an undirected graph"
expect_exit 0 rhizome train mutual.rz "${train[@]}" --out mutual.safetensors --json
expect_json out 'j["ignored"] == []'
[ ! -s err ] || fail "a plain graph gets a note: $(cat err)"
for verb in train infer; do rhizome $verb --help | grep -q "Models ignore" || fail "$verb --help does not say what is ignored"; done

# --- What was not measured is not 0
expect_exit 0 rhizome train plain.rz "${train[@]}" --no-test
grep -q 'no-test' out || fail "train --no-test: $(cat out)"
grep -q 'validation 0.0 %' out && fail "train --no-test prints 0.0 %"
expect_exit 0 rhizome train plain.rz "${train[@]}" --no-test --json
expect_json out 'j["test_accuracy"] is None and j["valid_accuracy"] is None'

# --- Likely mistakes, contradictions, several seeds
expect_exit 0 rhizome train plain.rz "${train[@]}" --no-test --json
expect_says "--out is not set"
expect_json out 'len(j["warnings"]) == 1' 'j["metrics"] == {"train": None, "valid": None, "test": None}'
expect_exit 1 rhizome train plain.rz "${train[@]}" --task regression
expect_says "array label is int64" "not for the task regression" "--task"
expect_exit 1 rhizome train plain.rz "${train[@]}" --monitor roc_auc
expect_says "multiclass has accuracy, f1_micro, f1_macro and loss"
expect_exit 1 rhizome train plain.rz "${train[@]}" --monitor auc
expect_exit 2 rhizome train plain.rz "${train[@]}" --class-weights nowhere.txt
expect_says "nowhere.txt" "balanced"
expect_exit 1 rhizome train plain.rz --epochs 1 --fanout 4,4 --hidden 4 --init p.safetensors
expect_says "p.safetensors" "head.weight has shape [8, 8]" "[8, 4]"
expect_exit 0 rhizome train plain.rz "${train[@]}" --init p.safetensors --seeds 2 --out q.safetensors
grep -q 'test accuracy over 2 seeds: .* ± ' out || fail "train --seeds 2: $(cat out)"
grep -q 'f1_macro' out || fail "train prints no metrics: $(cat out)"
expect_exit 0 rhizome train plain.rz --epochs 50 --fanout 4,4 --hidden 8 --patience 1 --out q.safetensors
grep -q '^stopped after epoch' out || fail "train --patience 1: $(cat out)"

# --- A job that had published
infer=("$RHIZOME" infer plain.rz --model-file p.safetensors --out emb)
expect_exit 0 "${infer[@]}" --resume --json
expect_json out 'j["published_before"] is False'
expect_exit 0 "${infer[@]}" --resume --json
expect_json out 'j["published_before"] is True' 'j["array"] == "emb"'
expect_exit 0 "${infer[@]}" --resume
grep -q 'published by an earlier run' out || fail "infer --resume of a published job: $(cat out)"
expect_exit 1 "${infer[@]}"
expect_exit 1 "${infer[@]}" --resume --scores
expect_exit 1 "${infer[@]}" --resume --fanout 3,3
expect_exit 0 "$RHIZOME" infer plain.rz --model-file p.safetensors --out v --new-version --live --resume
expect_exit 0 "$RHIZOME" infer plain.rz --model-file p.safetensors --out v --new-version --live --resume --json
expect_json out 'j["published_before"] is True' 'j["array"] == "v@1"'
expect_exit 0 "$RHIZOME" infer plain.rz --model-file p.safetensors --out v --new-version --json
expect_json out 'j["published_before"] is False' 'j["array"] == "v@2"'

# --- Workers' memory
expect_exit 0 "$RHIZOME" infer plain.rz --model-file p.safetensors --out w --workers 2 --json
expect_json out 'len(j["worker_peak_memory_bytes"]) == 2 and min(j["worker_peak_memory_bytes"]) > 2**20' \
  'j["peak_memory_bytes"] == j["own_peak_memory_bytes"] + sum(j["worker_peak_memory_bytes"])'

# --- Stale rows
expect_exit 0 rhizome get plain.rz 0 --array emb --json
expect_json out '"stale" not in j'
[ ! -s err ] || fail "a fresh embedding gets a note: $(cat err)"
printf '0\t5\n' >put.tsv
expect_exit 0 rhizome put plain.rz put.tsv
reads() { # says...
  expect_exit 0 rhizome get plain.rz 0 --array emb --json
  expect_json out 'j["stale"][0]["array"] == "emb"'
  expect_says "$@"
  expect_exit 0 rhizome similar plain.rz 0 --array emb --json
  expect_json out 'len(j["stale"]) == 1'
  expect_says "$@"
  expect_exit 0 rhizome export plain.rz --array emb --out emb.npy --json
  expect_json out 'len(j["stale"]) == 1'
  expect_says "$@"
  printf '0\t1\n' >pairs.tsv
  expect_exit 0 rhizome score plain.rz --array emb --pairs pairs.tsv --out s.tsv --json
  expect_json out 'len(j["stale"]) == 1'
  expect_says "$@"
}
reads "written to since"
expect_exit 0 rhizome compact plain.rz
reads "stale"
expect_exit 0 rhizome get plain.rz 5 --array emb --json
expect_json out 'j["stale"][0]["row_marked"] is True and j["stale"][0]["marked_rows"] > 0'
finish
