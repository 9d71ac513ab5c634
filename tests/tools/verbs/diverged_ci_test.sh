#!/usr/bin/env bash
# Copies of a store that were written to independently have equal commit numbers but different
# commits. Everything that compares states (resumed jobs, changes for a follower, backups) refuses
# one copy for the other, and says what to do.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

expect_exit 0 rhizome generate planted --out d --scale 10 --dim 8
expect_exit 0 rhizome ingest s.rz --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
  --array feat=d/features.npy --partitions 2
printf '1\t2\n' >one.tsv
printf '2\t3\n' >other.tsv
printf '5\t6\n' >more.tsv
# copies A B: copies of s.rz that have grown apart by one commit each.
copies() {
  rm -rf "$1" "$2"
  cp -r s.rz "$1"
  cp -r s.rz "$2"
  expect_exit 0 rhizome put "$1" one.tsv
  expect_exit 0 rhizome put "$2" other.tsv
}

# --- Changes of a leader that was restored from a backup and went on: its follower refuses them.
cp -r s.rz leader.rz
cp -r s.rz follower.rz
expect_exit 0 rhizome put leader.rz more.tsv
expect_exit 0 rhizome backup leader.rz backups
expect_exit 0 rhizome put leader.rz one.tsv
expect_exit 0 rhizome changes leader.rz --out c1.jsonl --json
expect_json out 'j["changes"] == 2' 'len(j["last_hash"]) == 32'
last=$(python3 -c 'import json; print(json.load(open("out"))["last"])')
expect_exit 0 rhizome put follower.rz c1.jsonl
mv leader.rz lost.rz
expect_exit 0 rhizome restore backups leader.rz
expect_exit 0 rhizome put leader.rz other.tsv
expect_exit 0 rhizome put leader.rz more.tsv
expect_exit 0 rhizome changes leader.rz --after "$last" --out c2.jsonl
commits() { rhizome info "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["commits_hash"])'; }
before=$(commits follower.rz)
expect_exit 1 rhizome put follower.rz c2.jsonl
expect_says "commit $last" "restored from a backup" "create this store again" "c2.jsonl:1"
[ -n "$before" ] && [ "$before" = "$(commits follower.rz)" ] || fail "refused changes left something"
# Those of the leader as it was go on, in order, each once, and whole.
expect_exit 0 rhizome put lost.rz other.tsv
expect_exit 0 rhizome put lost.rz more.tsv
expect_exit 1 rhizome put follower.rz c1.jsonl
expect_says "changes --after $last"
expect_exit 0 rhizome changes lost.rz --after "$last" --out c3.jsonl --json
expect_json out 'j["changes"] == 2'
head -n 1 c3.jsonl >cut.jsonl
expect_exit 1 rhizome put follower.rz cut.jsonl
expect_says "cut off"
expect_exit 0 rhizome put follower.rz one.tsv # its own
expect_exit 0 rhizome compact follower.rz
expect_exit 0 rhizome put follower.rz c3.jsonl --batch 1
expect_exit 1 rhizome put follower.rz c3.jsonl
# Commits that come to nothing are followed, too.
after=$((last + 2))
printf '{"id": 77777}\n{"op": "delete", "id": 77777}\n' >nothing.jsonl
expect_exit 0 rhizome put lost.rz nothing.jsonl
expect_exit 0 rhizome changes lost.rz --after $after --out c4.jsonl --json
expect_json out 'j["changes"] == 0'
expect_exit 0 rhizome put follower.rz c4.jsonl
expect_exit 0 rhizome put lost.rz one.tsv
expect_exit 0 rhizome changes lost.rz --after $((after + 1)) --out c5.jsonl
expect_exit 0 rhizome put follower.rz c5.jsonl --json
expect_json out 'j["applied"] == 1'
expect_exit 0 rhizome verify follower.rz
# A copy that has followed nobody yet is told by its own history.
copies a.rz b.rz
expect_exit 0 rhizome put a.rz more.tsv
expect_exit 0 rhizome changes a.rz --after 2 --out c6.jsonl
expect_exit 1 rhizome put b.rz c6.jsonl
expect_says "create this store again"
printf '{"src": 1, "dst": 2, "$changes": 7}\n' >bad.jsonl
expect_exit 1 rhizome put b.rz bad.jsonl
expect_says "bad.jsonl:1" "rhizome changes"

# --- A folder of backups is that of one of the copies.
expect_exit 0 rhizome backup s.rz both
copies a.rz b.rz
expect_exit 0 rhizome backup a.rz both
expect_exit 1 rhizome backup b.rz both
expect_says "diverged" "another folder"
expect_exit 0 rhizome backup b.rz b-alone

has_gnn || finish

# --- A training and an inference that were begun on one copy are not resumed on the other.
train=(--fanout 5,5 --batch-size 64 --epochs 2 --threads 1 --seed 3 --checkpoint-every 2 --no-test --scratch X --out m.st)
for how in minibatches full-graph; do
  options=("${train[@]}")
  [ $how = full-graph ] && options=(--full-graph --epochs 9 --threads 1 --seed 3 --checkpoint-every 2 --no-test --scratch X --out m.st)
  copies a.rz b.rz
  rm -rf X && mkdir X
  count_calls "$RHIZOME" train a.rz "${options[@]}"
  # All of these moments are after the first checkpoint. On a busy machine a run may make fewer calls than the first one
  # did, and end before it is killed.
  for percent in 90 70 50; do
    rm -rf X/*
    kill_at $((calls * percent / 100)) KILL "$RHIZOME" train a.rz "${options[@]}"
    [ $code -ne 137 ] || break
  done
  [ -n "$(find X -name CHECKPOINT)" ] || fail "$how: no checkpoint was left"
  expect_exit 1 rhizome train b.rz "${options[@]}" --resume
  expect_says "diverged" "CHECKPOINT" "--resume"
  expect_exit 0 rhizome train a.rz "${options[@]}" --resume --json
  expect_json out 'j["resumed_minibatches"] > 0'
done

expect_exit 0 rhizome train s.rz --fanout 5,5 --epochs 1 --threads 1 --no-test --out m.st
infer=(--model-file m.st --out emb --threads 1 --chunk-rows 128 --scratch X)
copies a.rz b.rz
cp -r a.rz counted.rz
count_calls "$RHIZOME" infer counted.rz "${infer[@]}"
rm -rf X/*
kill_at $((calls * 3 / 4)) KILL "$RHIZOME" infer a.rz "${infer[@]}"
[ -n "$(find X -name LOG)" ] || fail "no log of the inference was left"
expect_exit 1 rhizome infer b.rz "${infer[@]}" --resume
expect_says "diverged" "--resume"
expect_exit 0 rhizome infer a.rz "${infer[@]}" --resume
finish
