#!/usr/bin/env bash
# Ranks are stopped, killed or sent garbage while MPI starts and at moments of a whole training,
# from the start of the processes on: the other ranks end and say why. Skipped without mpirun or
# librhizome_mpi.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
need_mpirun
chat=$RHIZOME_BUILD/bin/rhizome_rank_chat
patience=400 # seconds: on an idle machine the slowest case takes 35
options=()

# A rank of mpirun, of which a folder learns its process, what it said, and how it ended. The victim sends itself the
# signal before it becomes the program, unless that is 0.
cat >rank.sh <<'SH'
#!/usr/bin/env bash
folder=$1 victim=$2 signal=$3 rank=$OMPI_COMM_WORLD_RANK
shift 3
[ "$rank" = "$victim" ] || signal=0
bash -c '[ "$0" = 0 ] || kill -"$0" $$; exec "$@"' "$signal" "$@" 2>"$folder/err.$rank" >"$folder/out.$rank" &
echo $! >"$folder/pid.$rank.new" && mv "$folder/pid.$rank.new" "$folder/pid.$rank"
wait $!
echo $? >"$folder/code.$rank.new" && mv "$folder/code.$rank.new" "$folder/code.$rank"
SH
cat >bare_rank.sh <<'SH'
#!/usr/bin/env bash
# The same with the program as a child of mpirun, which may end it.
echo $$ >"$1/pid.$OMPI_COMM_WORLD_RANK"
exec 2>"$1/err.$OMPI_COMM_WORLD_RANK"
[ "$OMPI_COMM_WORLD_RANK" = "$2" ] && kill -"$3" $$
exec "${@:4}"
SH
chmod +x rank.sh bare_rank.sh

# await COMMAND...: until it succeeds. Fails where that takes too long.
await() {
  local end=$((SECONDS + patience))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}
have() { for file; do [ -s "$file" ] || return 1; done; }

# launch FOLDER VICTIM SIGNAL COMMAND...: three ranks in the background; mpirun tells nobody that one is lost. Of two
# launchers that begin at the same time one may end at once, because both create Open MPI's folder in /tmp: it is begun
# again.
launch() {
  mkdir "$1"
  begin "$@"
  await begun "$@" || fail "mpirun does not start $1: $(head -c 600 "$1/mpirun")"
}
begun() {
  have "$1/pid.0" "$1/pid.1" "$1/pid.2" && return
  kill -0 "$(cat "$1/launcher")" 2>/dev/null || begin "$@"
  return 1
}
begin() {
  timeout -k 5 $patience mpirun --oversubscribe --enable-recovery "${options[@]}" \
    -n 3 ./rank.sh "$@" >"$1/mpirun" 2>&1 &
  echo $! >"$1/launcher"
}
# strike FOLDER VICTIM SIGNAL SECONDS: so long after all ranks have begun. Says in FOLDER/struck that it did.
strike() {
  await have "$1/pid.0" "$1/pid.1" "$1/pid.2" && sleep "$4" && kill "-$3" "$(cat "$1/pid.$2")" 2>/dev/null
  echo yes >"$1/struck"
}
# clear_up FOLDER: nothing of it is left.
clear_up() {
  local pid
  for pid in "$1"/pid.*; do kill -KILL "$(cat "$pid")" 2>/dev/null; done
  kill "$(cat "$1/launcher")" 2>/dev/null
  wait "$(cat "$1/launcher")" 2>/dev/null
}
# survivors_ended FOLDER VICTIM WHAT: all others have ended.
survivors_ended() {
  local rank
  for rank in 0 1 2; do
    [ "$rank" = "$2" ] || await have "$1/code.$rank" ||
      fail "$3: rank $rank still runs: $(head -c 600 "$1/mpirun" "$1"/err.*)"
  done
}
# whole_model FILE: it is a safetensors file with all its bytes (of the best epoch so far, where a rank was lost).
whole_model() {
  python3 - "$1" <<'PY'
import json, sys
data = open(sys.argv[1], "rb").read()
length = int.from_bytes(data[:8], "little")
tensors = json.loads(data[8:8 + length])
ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
sys.exit(8 + length + max(ends) != len(data))
PY
}
said() { grep -qE -e "$1" "$2" || fail "$3: $(head -c 600 "$2")"; }
# A rank that waits in MPI_Init cannot know which other one it waits for; later it can.
lost_text() {
  echo "MPI did not start within 30 s|rank $1 \(.*\) (has been silent for|is lost: )"
  echo "(nearly as long|silent for the longest time:) .*rank $1 \("
}
ends_with_2() { # FOLDER VICTIM WHAT
  local rank
  survivors_ended "$@"
  for rank in 0 1 2; do
    [ "$rank" = "$2" ] && continue
    [ "$(cat "$1/code.$rank")" = 2 ] ||
      fail "$3: rank $rank ended with $(cat "$1/code.$rank"): $(head -c 600 "$1/err.$rank")"
    said "$(lost_text "$2")" "$1/err.$rank" "$3: rank $rank says"
  done
  clear_up "$1"
}

# --- Stopped or killed before MPI_Init, as by a batch system that suspends a job: nobody waits for ever.
launch stopped.0 0 STOP "$chat" 0 2 stopped.0
launch stopped.2 2 STOP "$chat" 0 2 stopped.2
launch killed.1 1 KILL "$chat" 0 2 killed.1
ends_with_2 stopped.0 0 "stopped before MPI_Init"
ends_with_2 stopped.2 2 "stopped before MPI_Init"
ends_with_2 killed.1 1 "killed before MPI_Init"
said "rank 0 of 3, started by Open MPI: MPI did not start within 30 s: MPI_Init waits for all ranks .*--peer-timeout" \
  stopped.2/err.0 "the message"

# --- At moments of the start: 0.3 s on an idle machine.
moments=(0 0.1 0.2 0.5)
for i in "${!moments[@]}"; do
  signal=STOP
  [ $((i % 4)) = 3 ] && signal=KILL
  launch "start.$i" $((i % 3)) 0 "$chat" 0 2 "start.$i"
  strike "start.$i" $((i % 3)) $signal "${moments[i]}"
done
for i in "${!moments[@]}"; do ends_with_2 "start.$i" $((i % 3)) "lost ${moments[i]} s after the start"; done

# --- Garbage at the ports on which ranks listen: bytes and a hang-up, bytes and silence, one byte and silence. They do
# their work or end with a message. The sender stops with the ranks, and after a while in any case.
cat >garbage.py <<'PY'
import glob, os, random, socket, sys, time

folder, seconds = sys.argv[1], float(sys.argv[2])

def ports():
    sockets = set()
    for name in glob.glob(folder + "/pid.[0-9]"):
        try:
            fds = "/proc/" + open(name).read().strip() + "/fd/"
            links = [os.readlink(fds + fd) for fd in os.listdir(fds)]
            sockets |= {link[8:-1] for link in links if link.startswith("socket:[")}
        except OSError:
            pass
    lines = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    return [int(words[1].split(":")[1], 16) for words in lines if words[3] == "0A" and words[9] in sockets]

sent, kept, end = 0, [], time.monotonic() + seconds
while time.monotonic() < end and len(glob.glob(folder + "/code.[0-9]")) < 3:
    for port in ports():
        try:
            link = socket.create_connection(("127.0.0.1", port), 1)
            link.send(os.urandom(random.choice([1, 12, 64, 4096])))
            sent += 1
            if random.random() < 0.7:
                link.close()
            else:
                kept = kept[-30:] + [link]
        except OSError:
            pass
    time.sleep(0.002)
print(sent)
PY
options=(--mca btl "tcp,self")
for i in 0 1; do
  launch "garbage.$i" none 0 "$chat" 10 3 "garbage.$i"
  python3 garbage.py "garbage.$i" 8 >"sent.$i" &
done
for i in 0 1; do
  survivors_ended "garbage.$i" none "garbage at the ports"
  for rank in 0 1 2; do
    case $(cat "garbage.$i/code.$rank") in
      0) ;;
      2) [ -s "garbage.$i/err.$rank" ] || fail "garbage at the ports: rank $rank says nothing" ;;
      *) fail "garbage at the ports: rank $rank ended with $(cat "garbage.$i/code.$rank")" ;;
    esac
  done
  clear_up "garbage.$i"
  await have "sent.$i" || fail "the sender of garbage still runs"
done
echo "$(cat sent.0) and $(cat sent.1) pieces of garbage were sent"
options=()

# --- A training is lost at moments of its whole life. Whoever says that all went well has a whole model.
if has_gnn; then
  flags=(--fanout 5,5 --batch-size 60 --superbatch 3 --cache-bytes 64K --threads 1 --seed 7 --epochs 2)
  expect_exit 0 rhizome generate planted --out d --scale 11 --dim 16
  expect_exit 0 rhizome ingest s.rz --edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split \
    --array feat=d/features.npy --partitions 6 --homes edgecut
  expect_exit 0 rhizome train s.rz "${flags[@]}" --ranks 1 --out first.st
  train() { # FOLDER VICTIM
    launch "$1" "$2" 0 "$RHIZOME" train s.rz "${flags[@]}" --peer-timeout 3 --scratch "$1" --out "$1/model.st" --json
  }
  # How long one takes that nobody disturbs.
  began=$(date +%s%N)
  train whole none
  survivors_ended whole none "a training"
  took=$((($(date +%s%N) - began) / 1000000))
  clear_up whole
  cmp -s first.st whole/model.st || fail "ranks make another model: $(head -c 600 whole/err.*)"
  for i in 0 1 2 3 4 5; do
    signal=STOP
    [ $((i % 3)) = 1 ] && signal=KILL
    train "life.$i" $((i % 3))
    strike "life.$i" $((i % 3)) $signal "$(python3 -c "print($took * ($i + 1) / 7000)")" &
    [ $((i % 2)) = 0 ] && continue
    for j in $((i - 1)) $i; do
      survivors_ended "life.$j" $((j % 3)) "lost at moment $j of a training"
      await have "life.$j/struck"
      for rank in 0 1 2; do
        [ "$(cat "life.$j/code.$rank" 2>/dev/null)" = 0 ] || continue
        cmp -s first.st "life.$j/model.st" || fail "moment $j: rank $rank ended with 0, and there is no whole model"
      done
      [ ! -e "life.$j/model.st" ] || whole_model "life.$j/model.st" || fail "moment $j: a part of a model"
      clear_up "life.$j"
    done
  done
fi

# --- The same binaries on the other Open MPI. Its mpirun ends the others when one has ended badly: one of them speaks.
if other_mpi; then
  for i in 0 1; do
    mkdir "other.$i"
    timeout -k 5 $patience mpirun --oversubscribe -n 3 ./bare_rank.sh "other.$i" 1 STOP "$chat" 0 2 "other.$i" \
      >"other.$i/mpirun" 2>&1 &
    echo $! >"other.$i/launcher"
  done
  for i in 0 1; do
    wait "$(cat "other.$i/launcher")" && fail "5.0: mpirun says that all went well"
    for rank in 0 2; do
      gone() { ! kill -0 "$(cat "other.$i/pid.$rank")" 2>/dev/null; }
      await gone || fail "5.0: rank $rank is left"
    done
    cat "other.$i"/err.* >said
    said "MPI did not start within 30 s" said "5.0: nobody says what they waited for"
    clear_up "other.$i"
  done
else
  echo "skipped: the other Open MPI (tools/install_deps.sh --tests)"
fi
[ $failures -eq 0 ]
