#!/usr/bin/env bash
# Wrong inputs of full-graph training: each is refused with its exit code and a message that says
# what would be right, by both `train` and `plan train`.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --out demo --scale 8 --dim 8 --seed 5 >/dev/null || fail "generate"
ingest=(rhizome ingest --edges demo/edges.npy --array feat=demo/features.npy --node-columns id,label,split)
for directions in both in out; do
  "${ingest[@]}" $directions.rz --nodes demo/nodes.tsv --directions $directions >/dev/null || fail "ingest"
done

# refused CODE STORE FLAGS... -- WORDS...
refused() {
  local code=$1 flags=()
  shift
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  expect_exit "$code" rhizome plan train "${flags[@]}" --full-graph && expect_says "$@"
  expect_exit "$code" rhizome train "${flags[@]}" --full-graph --epochs 1 --out m.safetensors && expect_says "$@"
  [ ! -e m.safetensors ] || fail "${flags[*]} made a model"
}

# --- One direction is stored. To ingest the other one alone would not help.
refused 1 in.rz -- "no out-edges" "--directions both"
refused 1 out.rz -- "no in-edges" "--directions both"
grep -q "directions in or" err && fail "--directions in does not help"
refused 1 out.rz --direction out -- "no in-edges" "--directions both"
expect_exit 0 rhizome plan train in.rz --full-graph --no-edges

# --- Flags of minibatches
refused 1 both.rz --fanout 5,5 -- "--fanout is for minibatches"
refused 1 both.rz --batch-size 5 -- "--batch-size is for minibatches"

# --- A limit below the least names that, and the pass that needs it; with the least it trains.
refused 5 both.rz --memory 1M --layers 3 -- "needs at least"
refused 5 both.rz --memory 1M --layers 3 --model gat -- "needs at least"
least=$(sed -n 's/.*pass "[a-z]* [123][a-z, ]*" needs at least \([0-9]*\) MiB.*/\1/p' err)
[ -n "$least" ] || fail "no layer and no least in: $(cat err)"
refused 5 both.rz --memory $((least - 1))M --layers 3 --model gat -- "needs at least $least MiB"
expect_exit 0 rhizome train both.rz --full-graph --memory "${least}M" --layers 3 --model gat --epochs 1 --out m.safetensors
rm m.safetensors

# --- No training labels: no vertex, or one that has no label
awk 'BEGIN { FS = OFS = "\t" } { $3 = "test"; print }' demo/nodes.tsv >untrained.tsv
"${ingest[@]}" untrained.rz --nodes untrained.tsv >/dev/null || fail "ingest"
refused 1 untrained.rz -- "array split puts no vertex into the training set"
awk 'BEGIN { FS = OFS = "\t" } { $2 = -1; print }' demo/nodes.tsv >unlabelled.tsv
"${ingest[@]}" unlabelled.rz --nodes unlabelled.tsv >/dev/null || fail "ingest"
refused 1 unlabelled.rz -- "has no label" "training set"

# --- A batch norm over one row, that was asked for or that a network has anyway
printf '0\t0\n' >edge.tsv
printf '0\t0\ttrain\n' >node.tsv
printf '0\t0\t1.5\n' >row.tsv
rhizome ingest one.rz --edges edge.tsv --nodes node.tsv --node-columns id,label,split --array feat=row.tsv:4 >/dev/null || fail "ingest"
refused 1 one.rz --norm batch -- "more than one vertex"
expect_says "give --norm layer" # train says; for plan train it is a setting
refused 1 one.rz --model gin -- "more than one vertex" "another --model"
expect_exit 0 rhizome train one.rz --full-graph --norm layer --epochs 1

# --- What was written since is one more partition, not an error.
printf '5\t250\n7\t256\n256\t3\n' >put.tsv
expect_exit 0 rhizome put both.rz put.tsv
expect_exit 0 rhizome train both.rz --full-graph --epochs 2 --json
expect_json out 'j["planned_bytes"] == j["measured_bytes"]'
finish
