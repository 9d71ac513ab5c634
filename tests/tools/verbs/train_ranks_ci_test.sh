#!/usr/bin/env bash
# Training over ranks: the same model for any number of ranks, threads or processes; it moves what
# its plan says; if a rank is killed, the training ends, and other ranks resume it to the same
# model. Without mpirun or librhizome_mpi, only threads are tested.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
flags=(--fanout 5,5 --batch-size 60 --superbatch 3 --cache-bytes 64K --threads 1 --seed 7)

expect_exit 0 rhizome generate planted --out d --scale 11 --dim 16
expect_exit 0 rhizome ingest s.rz --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
  --array feat=d/features.npy --partitions 8 --homes edgecut

# same_model FILE: it is that of the first training.
same_model() { cmp -s first.st "$1" || fail "$1 is another model"; }

# --- Threads: the same bits, and what the plan says, to the row, message and byte.
for ranks in 1 2 3 8; do
  expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 2 --ranks $ranks --out "m$ranks.st" --json
  [ $ranks = 1 ] && cp m1.st first.st
  same_model "m$ranks.st"
  cp out "trained$ranks"
  expect_json out 'j["complete"] is True' "len(j['ranks']) == $ranks" 'j["test_accuracy"] > 0.2'
done
# as_planned PLAN: each of its plans is what trained<ranks> says was done.
as_planned() {
  python3 - "$1" <<'PY' || fail "$1 is not what was done"
import json, sys
for plan in json.load(open(sys.argv[1]))["plans"]:
    done = json.load(open(f"trained{plan['ranks']}"))["ranks"]
    for planned, one in zip(plan["shares"], done, strict=True):
        for name in ("homes", "rows", "training_vertices", "minibatches", "edges", "rows_requested",
                     "remote_rows_requested", "disk_rows_fetched", "remote_rows_fetched", "served_rows", "requests",
                     "served_requests", "bytes_in", "bytes_out"):
            if planned[name] != one[name]:
                sys.exit(f"{plan['ranks']} ranks, rank {one['rank']}: {name} {one[name]}, planned {planned[name]}")
PY
}
expect_exit 0 rhizome plan train s.rz "${flags[@]}" --epochs 2 --ranks 1,2,3,8 --json
cp out plan && as_planned plan
fetched() { python3 -c 'import json; print(sum(r["remote_rows_fetched"] for r in json.load(open("trained3"))["ranks"]))'; }
fewest=$(fetched)

# Rows in the page cache cost less beside those of others: of these it fetches fewer, and what its plan says.
expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 2 --ranks 3 --out mapped.st --json --io mmap
same_model mapped.st
cp out trained3
expect_exit 0 rhizome plan train s.rz "${flags[@]}" --epochs 2 --ranks 3 --json --io mmap
cp out plan && as_planned plan
[ "$(fetched)" -lt "$fewest" ] || fail "--io mmap fetched $(fetched) rows, and the disk $fewest"

# --- The policies of others: the same model, what their plans say, and never fewer rows of other ranks than belady.
for how in "scored --gamma .9" vip epoch static "lru --remote-memory 20K" none "none --overlap none"; do
  with=("${flags[@]}" --epochs 2)
  [ "$how" = epoch ] && with=(--fanout 5,5 --batch-size 60 --cache-bytes 64K --threads 1 --seed 7 --epochs 2)
  # shellcheck disable=SC2086
  expect_exit 0 rhizome train s.rz "${with[@]}" --ranks 3 --out other.st --json --prefetch $how
  same_model other.st
  cp out trained3
  expect_json out "j['prefetch'] == '${how%% *}'"
  # shellcheck disable=SC2086
  expect_exit 0 rhizome plan train s.rz "${with[@]}" --ranks 3 --json --prefetch $how
  cp out plan && as_planned plan
  [ "$(fetched)" -ge "$fewest" ] || fail "--prefetch $how fetched $(fetched) rows, and belady $fewest"
done

# --- What is refused.
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 9
expect_says "9 ranks: the store has 8 homes"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 64
expect_says "64 ranks: the store has 8 homes"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 999
expect_says "'999' is not a number of ranks, from 1 to" "mpirun starts more"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 2 --link none
expect_says "--link 'none'"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 2 --cache lru
expect_says "over ranks, --prefetch selects the policy of the pool"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 2 --prefetch epoch
expect_says "--prefetch epoch schedules" "cannot be combined with --set superbatch=VALUE"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 2 --prefetch none --remote-memory 1M
expect_says "--set remote-memory=VALUE: --prefetch none reserves"
expect_exit 1 rhizome train s.rz "${flags[@]}" --ranks 2 --prefetch static --topology direct
expect_says "omit --set topology=direct"
expect_exit 1 rhizome train s.rz "${flags[@]}" --prefetch lru
expect_says "--prefetch is for a training over ranks"
expect_exit 1 rhizome train s.rz --full-graph --ranks 2
expect_says "omit --full-graph"

need_mpirun
job() { timeout -k 5 $((100 * patience)) mpirun --oversubscribe "$@"; }

# --- Processes.
for ranks in 1 2 4; do
  expect_exit 0 job -n $ranks "$RHIZOME" train s.rz "${flags[@]}" --epochs 2 --out "p$ranks.st" --json
  same_model "p$ranks.st"
  expect_json out 'j["complete"] is True' "len(j['ranks']) == $ranks" # one process has printed
done

# --- Ranks that were told different things do not begin.
expect_exit 1 job -n 1 "$RHIZOME" train s.rz "${flags[@]}" --epochs 2 : \
  -n 1 "$RHIZOME" train s.rz "${flags[@]}" --epochs 3
expect_says "rank 1" "--epochs 3" "rank 0" "--epochs 2"

# --- A rank that is killed: the job ends, and other ranks go on where it was.
expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 12 --ranks 2 --out long.st
cp long.st first.st
job -n 4 "$RHIZOME" train s.rz "${flags[@]}" --epochs 12 --checkpoint-every 2 --peer-timeout $((5 * patience)) --out killed.st \
  --progress plain >killed 2>&1 &
running=$!
wait_for 30 test -s s.rz/scratch/train/CHECKPOINT
victim=$(pgrep -f "^$RHIZOME train s.rz .* --out killed.st" | tail -n 1)
kill -9 "$victim"
wait $running && fail "a job whose rank was killed said that all went well"
left() { pgrep -f "^$RHIZOME train s.rz .* --out killed.st"; }
none_left() { ! left >/dev/null; }
wait_for 10 none_left || fail "ranks are left: $(left)"
expect_exit 0 job -n 2 "$RHIZOME" train s.rz "${flags[@]}" --epochs 12 --checkpoint-every 2 --resume --out killed.st --json
expect_json out 'j["resumed_minibatches"] > 0'
same_model killed.st

# --- The same binaries on the other Open MPI: the same model.
if other_mpi; then
  cp m1.st first.st
  for ranks in 2 4; do
    expect_exit 0 job -n $ranks "$RHIZOME" train s.rz "${flags[@]}" --epochs 2 --out "o$ranks.st" --json
    same_model "o$ranks.st"
  done
else
  echo "skipped: the other Open MPI (tools/install_deps.sh --tests)"
fi
[ $failures -eq 0 ]
