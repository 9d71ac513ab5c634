#!/usr/bin/env bash
# Full-graph training is killed before calls that change files, and reads and writes of its arrays
# fail, are cut short, or find the disk full: it ends with a clear error or continues, and --resume,
# with other threads and memory, produces the model of an undisturbed run. A damaged array is named
# and computed again.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"
test_seed
kills=${KILLS:-3} faults=${FAULTS:-3}
fail_library=$RHIZOME_BUILD/lib/librhizome_fail_at.so

rhizome generate planted --out demo --scale 11 --edge-factor 6 --dim 16 --seed 5 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split --undirected \
  --array feat=demo/features.npy --partitions 3 --chunk-rows 128 >/dev/null || fail "ingest"
model=(--full-graph --model gcn --layers 3 --hidden 96 --residual --norm batch --dropout 0.3 --epochs 2 --no-test)
base=("$RHIZOME" train g.rz "${model[@]}" --checkpoint-every 1 --checkpoint-seconds 0 --out m.safetensors)
again=("${base[@]}" --spill none --threads 1 --resume)
rhizome train g.rz "${model[@]}" --out wanted.safetensors >/dev/null 2>err || fail "train: $(cat err)"

# begin: the job as if it had never been begun.
begin() { rm -rf g.rz/scratch m.safetensors; }
# ends_well WHAT: the job that was stopped goes on to the same model.
ends_well() {
  expect_exit 0 "${again[@]}" || return
  cmp -s wanted.safetensors m.safetensors || fail "$1: another model comes of it"
}
# draw N M: N numbers of 1..M
draw() { python3 -c 'import random, sys; s, n, m = map(int, sys.argv[1:])
print(*random.Random(s * 31 + m).sample(range(1, m + 1), min(n, m)))' "$seed" "$1" "$2"; }

inside=0
for flags in "--spill none" "--spill lru --memory 110M --sums recompute" "--threads 2"; do
  read -ra some <<<"$flags"
  begin
  count_calls "${base[@]}" "${some[@]}"
  cmp -s wanted.safetensors m.safetensors || fail "$flags: another model"
  for moment in $(draw "$kills" "$calls"); do
    begin
    kill_at "$moment" KILL "${base[@]}" "${some[@]}"
    [ -e g.rz/scratch/train/CHECKPOINT-STEP ] && inside=$((inside + 1))
    # Another thread may have ended with one call less than was counted.
    [ $code -eq 137 ] || [ "$moment" -ge $((calls - 8)) ] || fail "$flags, call $moment: exits $code: $(cat err)"
    [ $code -eq 0 ] || ends_well "$flags, killed before call $moment"
  done
done
[ "$inside" -gt 0 ] || fail "no kill left an epoch in the middle"

# Maxima and attention keep more of a target than a sum.
for other in "sage --aggregator max" "sage --aggregator pool" "gat --heads 3"; do
  read -ra kind <<<"$other"
  of_kind=(--full-graph --model "${kind[@]}" --layers 3 --hidden 48 --dropout 0.3 --epochs 2 --no-test)
  begin
  rhizome train g.rz "${of_kind[@]}" --out wanted_other.safetensors >/dev/null 2>err || fail "train $other: $(cat err)"
  killed=("$RHIZOME" train g.rz "${of_kind[@]}" --checkpoint-every 1 --checkpoint-seconds 0 --out m.safetensors)
  count_calls "${killed[@]}" --spill none
  cmp -s wanted_other.safetensors m.safetensors || fail "$other: another model with checkpoints"
  for moment in $(draw "$kills" "$calls"); do
    begin
    kill_at "$moment" KILL "${killed[@]}" --spill none
    [ $code -eq 137 ] || [ "$moment" -ge $((calls - 8)) ] || fail "$other, call $moment: exits $code: $(cat err)"
    [ -e g.rz/scratch/train/CHECKPOINT-STEP ] && inside=$((inside + 1))
    expect_exit 0 "${killed[@]}" --spill lru --threads 3 --resume || continue
    cmp -s wanted_other.safetensors m.safetensors || fail "$other, killed before call $moment: another model"
  done
done

begin
arrays=$work/g.rz/scratch/train/arrays/
LD_PRELOAD=$fail_library RHIZOME_FAIL_PATH=$arrays RHIZOME_FAIL_COUNT=$work/calls \
  "${base[@]}" --spill none >/dev/null 2>err || fail "train: $(cat err)"
calls=$(cat calls)
refused=0
for how in EIO ENOSPC short; do
  for at in $(draw "$faults" "$calls"); do
    begin
    code=0
    LD_PRELOAD=$fail_library RHIZOME_FAIL_PATH=$arrays RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how \
      timeout $((100 * patience)) "${base[@]}" --spill none >out 2>err </dev/null || code=$?
    repeat="RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how"
    case $how$code in
      *0) [ $how = short ] || fail "$repeat: takes no note of it" ;;
      EIO2 | ENOSPC5) expect_says scratch/train/arrays/ && refused=$((refused + 1)) ;;
      *) fail "$repeat: exits $code: $(head -c 300 err)" ;;
    esac
    [ $code -eq 0 ] || ends_well "$repeat"
    cmp -s wanted.safetensors m.safetensors || fail "$repeat: another model"
  done
done
echo "$inside kills within an epoch; $refused of $calls reads and writes were refused"

begin
kill_at $((calls / 2)) KILL "${base[@]}" --spill none
for file in "$arrays"*; do
  python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(99); b = f.read(1); f.seek(99); f.write(bytes([b[0] ^ 1]))' "$file"
done
if expect_exit 3 "${again[@]}"; then expect_says scratch/train/arrays/ --resume; fi
ends_well "after damage"
finish
