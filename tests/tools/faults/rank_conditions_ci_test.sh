#!/usr/bin/env bash
# Training over ranks under bad conditions: a wrong store, state or disk at one rank, concurrent
# writers, an interrupt, few descriptors, more ranks than CPUs. Each training ends well, with the
# model that threads learn, or ends with an error on all ranks that names the one at fault. Skipped
# without mpirun or librhizome_mpi.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
need_mpirun
fail_library=$RHIZOME_BUILD/lib/librhizome_fail_at.so
flags=(--fanout 5,5 --batch-size 60 --superbatch 3 --cache-bytes 64K --threads 1 --seed 7)
job() { timeout -k 5 $((60 * patience)) mpirun --oversubscribe "$@"; }
# same_model FILE: it is that of first.st.
same_model() { cmp -s first.st "$1" || fail "$1 is another model"; }

expect_exit 0 rhizome generate planted --out d --scale 11 --dim 16
store() {
  expect_exit 0 rhizome ingest "$1" --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
    --array feat=d/features.npy --partitions 16 --homes edgecut
}
store s.rz
expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 2 --ranks 2 --out first.st

# --- More ranks than processors.
expect_exit 0 job -n 16 "$RHIZOME" train s.rz "${flags[@]}" --epochs 2 --out many.st
same_model many.st

# --- Few descriptors: a rank that does not get those that it needs says so; none hangs.
(ulimit -n 64 && expect_exit 0 job -n 2 "$RHIZOME" train s.rz "${flags[@]}" --epochs 2 --out few.st; exit $failures) ||
  fail "few descriptors"
same_model few.st

# --- Another store, or another state of it, at one rank: both sides are named, and nothing begins.
store other.rz
expect_exit 1 job -n 1 "$RHIZOME" train s.rz "${flags[@]}" : -n 1 "$RHIZOME" train other.rz "${flags[@]}"
expect_says "rank 0" "rank 1" "store"
printf '3\t8\n8\t3\n' >changes
cp -r s.rz written.rz
expect_exit 0 rhizome put written.rz changes
cp -r written.rz compacted.rz
expect_exit 0 rhizome compact compacted.rz
expect_exit 1 job -n 1 "$RHIZOME" train s.rz "${flags[@]}" : -n 1 "$RHIZOME" train compacted.rz "${flags[@]}"
expect_says "rank 0" "rank 1" "generation"
expect_exit 1 job -n 1 "$RHIZOME" train s.rz "${flags[@]}" : -n 1 "$RHIZOME" train written.rz "${flags[@]}"
expect_says "rank 0" "rank 1" "changes up to"
printf '3\t9\n8\t3\n' >others
cp -r s.rz diverged.rz
expect_exit 0 rhizome put diverged.rz others
expect_exit 1 job -n 1 "$RHIZOME" train written.rz "${flags[@]}" : -n 1 "$RHIZOME" train diverged.rz "${flags[@]}"
expect_says "rank 0" "rank 1" "state" "copies of one store that have diverged"
expect_exit 1 job -n 1 "$RHIZOME" doctor written.rz --ranks : -n 1 "$RHIZOME" doctor diverged.rz --ranks
expect_says "have diverged"

# --- A delta: what threads learn with it.
expect_exit 0 rhizome train written.rz "${flags[@]}" --epochs 2 --ranks 1 --out delta1.st
expect_exit 0 job -n 3 "$RHIZOME" train written.rz "${flags[@]}" --epochs 2 --out delta3.st
cmp -s delta1.st delta3.st || fail "another model with a delta"

# --- The store is written and compacted meanwhile: the ranks keep to the state that they began with.
expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 20 --ranks 1 --out first.st
cp -r s.rz busy.rz
job -n 2 "$RHIZOME" train busy.rz "${flags[@]}" --epochs 20 --out busy.st --progress plain >busy 2>&1 &
running=$!
wait_for 10 grep -q train busy
expect_exit 0 rhizome put busy.rz changes
expect_exit 0 rhizome compact busy.rz
wait $running || fail "with a writer beside it: $(tail -n 3 busy)"
same_model busy.st

# --- A disk that fails at one rank: no rank says that all went well, and it is named.
cat >failing.sh <<'S'
#!/usr/bin/env bash
LD_PRELOAD=$1 RHIZOME_FAIL_PATH=$2 RHIZOME_FAIL_AT=3 RHIZOME_FAIL_HOW=$3 RHIZOME_FAIL_STICKY=1 exec "${@:4}"
S
chmod +x failing.sh
for how in EIO ENOSPC; do
  path=/arrays/
  code=2
  [ $how = ENOSPC ] && path=superbatches code=5
  expect_exit $code job -n 1 "$RHIZOME" train s.rz "${flags[@]}" --topology direct --out bad.st : \
    -n 1 ./failing.sh "$fail_library" $path $how "$RHIZOME" train s.rz "${flags[@]}" --topology direct
  expect_says "rank 1"
  [ -e bad.st ] && fail "$how: a model was written"
done

# --- A damaged row: its owner and whoever asks for it end with 3, and name rows and file.
cp -r s.rz damaged.rz
file=$(find damaged.rz -path '*feat*' -type f -size +8k | sort | head -n 1)
python3 - "$file" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    for at in range(0, len(data), 64):
        data[at] ^= 1
    file.seek(0)
    file.write(data)
PY
expect_exit 3 job -n 4 "$RHIZOME" train damaged.rz "${flags[@]}" --epochs 2 --out damaged.st
expect_says "feat" "row"
[ -e damaged.st ] && fail "a model of damaged rows was written"

# --- Ctrl-C at mpirun, once there are weights to keep: all ranks stop after the same step, and a later job resumes. mpirun
# notifies the ranks after this timeout (one second by default), and kills them after another, which is too soon for a busy
# machine. The training must take longer. Each rank's messages go to a file, because mpirun mixes parts of lines.
cp -r s.rz stopped.rz
long=("${flags[@]}" --epochs 250 --checkpoint-every 2)
job --mca odls_base_sigkill_timeout $((2 + patience / 2)) -n 4 bash -c 'exec "$@" 2>"stopped.$OMPI_COMM_WORLD_RANK"' rank \
  "$RHIZOME" train stopped.rz "${long[@]}" --out stopped.st --progress json >stopped 2>&1 &
running=$!
wait_for 40 grep -qs "valid accuracy" stopped.0
kill -INT "$(pgrep -f "^mpirun .* --out stopped.st")"
wait $running && fail "an interrupted job said that all went well"
grep -q "rank 0 .*interrupted; .*stopped.st has the weights of the best epoch so far" stopped.0 ||
  fail "Ctrl-C: $(tail -c 900 stopped.0)"
expect_exit 0 job -n 2 "$RHIZOME" train stopped.rz "${long[@]}" --resume --out stopped.st --json
expect_json out 'j["resumed_minibatches"] > 0'
expect_exit 0 rhizome train s.rz "${flags[@]}" --epochs 250 --ranks 1 --out first.st
same_model stopped.st
[ $failures -eq 0 ]
