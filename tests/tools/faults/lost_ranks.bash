# Loses ranks in a training over hosts. Source it after hosts.bash.

peer_timeout=$((3 * patience))
train_flags=(--fanout 5,5 --batch-size 60 --superbatch 3 --cache-bytes 64K --threads 1 --seed 7)

# make_store: creates a small store with a home for each of eight ranks.
make_store() {
  expect_exit 0 rhizome generate planted --out d --scale 11 --dim 16
  expect_exit 0 rhizome ingest s.rz --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
    --array feat=d/features.npy --partitions 8 --homes edgecut
  cat >rank.sh <<'SH'
#!/usr/bin/env bash
# A rank of mpirun. Records its process, its output and its exit code in a folder.
folder=$1
shift
"$@" 2>"$folder/err.$OMPI_COMM_WORLD_RANK" >"$folder/out.$OMPI_COMM_WORLD_RANK" &
echo $! >"$folder/pid.$OMPI_COMM_WORLD_RANK"
wait $!
echo $? >"$folder/code.$OMPI_COMM_WORLD_RANK"
SH
  chmod +x rank.sh
}

# has_begun MOMENT: succeeds if the training that `lose` has launched has reached the moment, or its
# launcher has ended.
has_begun() {
  if [ "$1" = start ]; then
    [ "$(find "$folder" -name "pid.*" -size +0 | wc -l)" = "$ranks" ] && return
  else
    compgen -G "$folder/*/train/CHECKPOINT" >/dev/null && return
  fi
  gone $launcher
}

# lose KIND RANK RANKS SECONDS [start]: trains on RANKS hosts, one rank on each. SECONDS after the
# first checkpoint, or after the start of all processes, one rank is lost: kill (its process is
# killed), stop (its process is stopped), host (all processes on its host are killed), link (its
# host is cut off). All ranks must end within the time-out (30 s during the start) plus 5 s times
# $patience, no rank may report that the training is complete, and a message must name the rank
# (from a survivor) or its host (from mpirun), or say that MPI has not started, if the ranks cannot
# know more. Sets `took`, and adds the number of survivors that named the rank to `named`.
lose() {
  local kind=$1 lost=$2 ranks=$3 moment=${5:-checkpoint} folder rank launcher pids=() others began code spoke=0
  local limit=$peer_timeout
  [ "$moment" = start ] && limit=30
  folder=$(mktemp -d "$work/lost.XXXXXX")
  mpi_options=(--enable-recovery)
  on_hosts "$ranks" "$work/rank.sh" "$folder" "$RHIZOME" train "$work/s.rz" "${train_flags[@]}" --epochs 100000 \
    --checkpoint-every 2 --peer-timeout $peer_timeout --scratch "$folder" --json --progress none >"$folder/mpirun" 2>&1 &
  launcher=$!
  wait_for 60 has_begun "$moment" && ! gone $launcher ||
    fail "the training has not begun: $(head -c 900 "$folder/mpirun" "$folder"/err.*)"
  sleep "$4"
  for ((rank = 0; rank < ranks; ++rank)); do pids[rank]=$(cat "$folder/pid.$rank"); done
  began=$(date +%s%N)
  case $kind in
    kill) kill -9 "${pids[lost]}" ;;
    stop) kill -STOP "${pids[lost]}" ;;
    host) for rank in $(host_pids "$lost"); do kill -9 "$rank" 2>/dev/null; done ;;
    link) cut_link "$lost" ;;
  esac
  others=("${pids[@]}")
  [ "$kind" != stop ] || unset "others[lost]"
  wait_for $((limit + 15)) gone "${others[@]}" || fail "$kind of rank $lost: some ranks still run"
  took=$(((($(date +%s%N) - began) / 1000000)))
  [ $took -le $(((limit + 5 * patience) * 1000)) ] || fail "$kind of rank $lost: the others took $took ms"
  [ "$kind" = stop ] && kill -9 "${pids[lost]}"
  [ "$kind" = link ] && mend_link "$lost"
  wait_for 10 gone $launcher || for rank in "${!hosts[@]}"; do kill -9 $(host_pids "$rank") 2>/dev/null; done
  wait $launcher 2>/dev/null
  for ((rank = 0; rank < ranks; ++rank)); do
    [ "$rank" = "$lost" ] && continue
    code=$(cat "$folder/code.$rank" 2>/dev/null || echo none)
    if grep -qE "rank $lost \(rzhost$lost\) (has been silent for|is lost: )|(nearly as long|silent for the longest time:) .*rank $lost \(" "$folder/err.$rank"; then
      spoke=$((spoke + 1))
      [ "$code" = 2 ] || [ "$code" = none ] || fail "$kind of rank $lost: rank $rank ended with $code"
    elif [ "$moment" = start ] && grep -q "MPI did not start within $limit s" "$folder/err.$rank"; then
      spoke=$((spoke + 1))
    elif [ "$code" = 0 ]; then
      fail "$kind of rank $lost: rank $rank ended with 0"
    fi
  done
  grep -q '"complete":true' "$folder"/out.* && fail "$kind of rank $lost: the training is said to be complete"
  if [ $spoke = 0 ] && ! grep -qE "rzhost$lost|10\.77\.0\.$((lost + 1))" "$folder/mpirun"; then
    fail "$kind of rank $lost: nobody names it: $(head -c 600 "$folder/mpirun" "$folder"/err.*)"
  fi
  named=$((named + spoke))
  rm -rf "$folder"
}
