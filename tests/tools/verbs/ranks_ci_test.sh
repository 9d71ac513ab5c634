#!/usr/bin/env bash
# Ranks as processes: doctor --ranks, random traffic, and a rank that is killed or stopped, under
# mpirun on this machine. Without mpirun or librhizome_mpi, only what does not need them is tested.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
chat=$RHIZOME_BUILD/bin/rhizome_rank_chat

# --- As threads, and what is refused.
expect_exit 0 rhizome doctor --ranks 3 --json
expect_json out 'j["complete"] is True and j["transport"] == "threads" and j["mpi"] is None' \
  '[r["rank"] for r in j["ranks"]] == [0, 1, 2]' '[[p["from"], p["to"]] for p in j["pairs"]] == [[0, 1], [0, 2], [1, 2]]' \
  'all(0 < p["round_trip_seconds"] <= p["round_trip_p95_seconds"] and p["bytes_per_second"] > 0 for p in j["pairs"])'
expect_exit 0 rhizome doctor --ranks 2
grep -q "0 - 1" out || fail "the text: $(cat out)"
# With a store: rows that one rank gives another, read and checked.
expect_exit 0 rhizome generate planted --out d --scale 10 --dim 16
expect_exit 0 rhizome ingest s.rz --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
  --array feat=d/features.npy --partitions 4
served='all(0 < p["rows"]["rows_per_second"] and 0 < p["rows"]["plain_rows_per_second"] and p["rows"]["row_bytes"] == 64
  and p["rows"]["processor_seconds_per_row"] >= 0 for p in j["pairs"])'
expect_exit 0 rhizome doctor s.rz --ranks 3 --json
expect_json out 'len(j["pairs"]) == 3' "$served"
expect_exit 0 rhizome doctor s.rz --ranks 2 --io mmap
grep -q "CPU per row" out || fail "the text: $(cat out)"
expect_exit 1 rhizome doctor s.rz --ranks 5
expect_says "5 ranks: the store has 4"
expect_exit 2 rhizome doctor s.rz --ranks 2 --features none
expect_says "none"
expect_exit 1 rhizome doctor --ranks
expect_says "mpirun -n 4 rhizome doctor --ranks"
for bad in "--ranks none" "--ranks 0" "--ranks 999" "--ranks 4294967298" "--ranks 2 --peer-timeout 0"; do
  # shellcheck disable=SC2086
  expect_exit 1 rhizome doctor $bad
done
expect_exit 1 env OMPI_COMM_WORLD_RANK=0 "$RHIZOME" doctor --ranks 2
expect_says "already one of several ranks"

# --- The command line and the engine link no MPI.
ldd "$RHIZOME" "$RHIZOME_BUILD/lib/librhizome.so" | grep -i mpi && fail "MPI is linked"

# --- Started by a launcher without a module that can be loaded: how to get it, and no error of a lock.
mkdir -p alone/bin && cp "$RHIZOME" alone/bin/ && echo nothing | tee alone/bin/librhizome_mpi.so >/dev/null
expect_exit 6 env LD_LIBRARY_PATH="$work/alone/bin" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \
  alone/bin/rhizome doctor --ranks
expect_says "Open MPI started this process as one of several" "tools/install_deps.sh --mpi"

need_mpirun

# job N COMMAND...: mpirun on this machine, for a minute at most on an idle one; mpirun itself tells nobody that a rank is lost.
job() { timeout -k 5 $((60 * patience)) mpirun --oversubscribe "${options[@]}" -n "$@"; }
# by_mpi VERSION: what doctor says of the ranks, and traffic between them, in memory and by sockets as between machines.
by_mpi() {
  options=()
  for ranks in 2 4; do
    expect_exit 0 job $ranks "$RHIZOME" doctor --ranks --json
    expect_json out "len(j['ranks']) == $ranks and len(j['pairs']) == $ranks * ($ranks - 1) // 2" \
      'j["complete"] is True and j["transport"] == "mpi"' 'j["mpi"]["thread_level"] in ("serialized", "multiple")' \
      "len({r['pid'] for r in j['ranks']}) == len(j['ranks'])" "'$1' in j['mpi']['library']"
    expect_exit 0 job $ranks "$RHIZOME" doctor "$work/s.rz" --ranks --json
    expect_json out "$served"
    expect_exit 0 job $ranks "$chat" 40 30 "$work"
  done
  options=(--mca btl "tcp,self")
  expect_exit 0 job 3 "$chat" 20 30 "$work"
  expect_exit 1 job 2 "$RHIZOME" doctor --ranks 2
}
by_mpi "Open MPI v"

# Another MPI's launcher.
expect_exit 6 env PMI_RANK=0 PMI_SIZE=4 "$RHIZOME" doctor --ranks
expect_says "this process is one of 4, started by PMI" "reports 1"

# --- A rank that is killed or stopped: the others end within the time-out and 5 s, and say which it was.
cat >rank.sh <<'SH'
#!/usr/bin/env bash
"$1" 0 "$3" "$2" 2>"$2/err.$OMPI_COMM_WORLD_RANK"
echo $? >"$2/code.$OMPI_COMM_WORLD_RANK"
SH
chmod +x rank.sh
silence=$((2 * patience))
# four_begun FOLDER: each of four ranks has written its process there.
four_begun() { [ -s "$1/0" ] && [ -s "$1/1" ] && [ -s "$1/2" ] && [ -s "$1/3" ]; }
# lose SIGNAL RANK
lose() {
  local folder=$work/lost.$1.$2 began rank
  mkdir "$folder"
  timeout -k 5 $((60 * patience)) mpirun --oversubscribe --enable-recovery "${options[@]}" -n 4 \
    ./rank.sh "$chat" "$folder" $silence >"$folder/mpirun" 2>&1 &
  local launcher=$!
  wait_for 20 four_begun "$folder" || fail "the ranks have not begun: $(cat "$folder/mpirun")"
  began=$(date +%s)
  kill "-$1" "$(cat "$folder/$2")"
  for rank in 0 1 2 3; do
    [ $rank = "$2" ] && continue
    wait_for 15 test -s "$folder/code.$rank"
    [ "$(cat "$folder/code.$rank" 2>/dev/null)" = 2 ] || fail "rank $rank ended with $(cat "$folder/code.$rank")"
    # Open MPI may lock another rank out, which then is as silent as this one, or says so itself.
    grep -qE "rank $2 \(.*\) (has been silent for $silence s|is lost: )|(nearly as long|silent for the longest time:) .*rank $2 \(" \
      "$folder/err.$rank" ||
      fail "rank $rank says of rank $2, $1: $(head -c 600 "$folder/err.$rank")"
  done
  [ $(($(date +%s) - began)) -le $((8 * patience)) ] || fail "the others took $(($(date +%s) - began)) s"
  [ "$1" = KILL ] || kill -KILL "$(cat "$folder/$2")"
  wait $launcher
}
options=()
lose KILL 2
lose STOP 0
options=(--mca btl "tcp,self")
lose KILL 1

# --- The same binaries on the other Open MPI. Its mpirun ends the others when one has ended badly: one of them speaks.
if other_mpi; then
  by_mpi "Open MPI v5"
  mkdir other
  options=()
  job 4 "$chat" 0 $silence other >other/said 2>&1 &
  launcher=$!
  wait_for 20 four_begun other
  kill -STOP "$(cat other/2)" || fail "the ranks have not begun: $(cat other/said)"
  wait $launcher && fail "mpirun says that all went well"
  grep -qE "rank 2 \(.*\) has been silent for $silence s" other/said || fail "nobody names rank 2: $(head -c 600 other/said)"
  wait_for 10 gone "$(cat other/0)" "$(cat other/1)" "$(cat other/3)" || fail "ranks are left"
  kill -KILL "$(cat other/2)" 2>/dev/null
else
  echo "skipped: the other Open MPI (tools/install_deps.sh --tests)"
fi
[ $failures -eq 0 ]
